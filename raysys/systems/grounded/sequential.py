"""SEQ (after Collell et al. 2017, "Imagined Visual Representations as Multimodal Embeddings"): text first, pictures afterwards."""

import numpy as np
import torch
from torch import Tensor

from raysys.errors import UserError
from raysys.systems.grounded.encoder import GroundedEncoder
from raysys.systems.grounded.names import Space
from raysys.systems.grounded.settings import GroundedModelSettings, GroundedObjectiveSettings


class Sequential(GroundedEncoder):
    """The vector of T beside the picture that a linear regression imagines for it, W·T + b; of both the first d_t principal components.

    Nothing of it is trained by gradients: :meth:`begin` takes the encoder of a run of system t, :meth:`fit` does the rest.
    """

    regression: Tensor
    intercept: Tensor
    mean: Tensor
    components: Tensor
    fitted: Tensor

    def __init__(self, name: str, model: GroundedModelSettings, objective: GroundedObjectiveSettings):
        super().__init__(name, model, objective)
        self.requires_grad_(False)
        size, pictures = self.text.settings.size, self.picture_size
        self.register_buffer("regression", torch.zeros(pictures, size))
        self.register_buffer("intercept", torch.zeros(pictures))
        self.register_buffer("mean", torch.zeros(size + pictures))
        self.register_buffer("components", torch.zeros(size, size + pictures))
        self.register_buffer("fitted", torch.tensor(False))

    def fit(self, text_vectors: np.ndarray, image_vectors: np.ndarray) -> None:
        """Regression and principal components, by scikit-learn.

        Args:
            text_vectors: captions as T reads them, float [M, d_t].
            image_vectors: the captions' pictures, float [M, D].

        Raises:
            UserError: fewer captions than a sentence's vector has entries.
        """
        from sklearn.decomposition import PCA  # takes seconds, which those who only encode need not wait
        from sklearn.linear_model import LinearRegression

        size = self.text.settings.size
        if len(text_vectors) < size:
            raise UserError(
                f"seq needs at least as many captions as a sentence's vector has entries: there are {len(text_vectors)} captions and "
                f"model.text.size is {size}"
            )
        regression = LinearRegression().fit(text_vectors, image_vectors)
        imagined = regression.predict(text_vectors).astype(text_vectors.dtype, copy=False)
        components = PCA(size, svd_solver="covariance_eigh").fit(np.concatenate([text_vectors, imagined], axis=1))
        values = (regression.coef_, regression.intercept_, components.mean_, components.components_, np.array(True))
        for buffer, value in zip((self.regression, self.intercept, self.mean, self.components, self.fitted), values, strict=True):
            buffer.copy_(torch.from_numpy(value))

    def vectors(self, space: Space, input_ids: Tensor, attention_mask: Tensor) -> Tensor:
        """As :meth:`GroundedEncoder.vectors` says. Raises RuntimeError before :meth:`fit`."""
        if not self.fitted:
            raise RuntimeError("seq has no vectors before it was fitted to captions and pictures")
        sentences = self.text(input_ids, attention_mask)
        imagined = sentences @ self.regression.T + self.intercept
        return (torch.cat([sentences, imagined], dim=1) - self.mean) @ self.components.T
