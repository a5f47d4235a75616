"""L_x, image–caption: a caption is closest to its own image, and an image to its own caption (InfoNCE)."""

from torch import Tensor

from raysys.objectives.similarity import (
    cosine_similarity,
    full_precision,
    scale_by_temperature,
    uniform_targets,
    weighted_cross_entropy,
    with_diagonal,
)


@full_precision
def info_nce(images: Tensor, captions: Tensor, temperature: float | Tensor, same_image: Tensor) -> Tensor:
    """L_x = ½ (InfoNCE image→caption + InfoNCE caption→image) over the global batch.

    The target of a row is its own pair; where other rows show the same image, it is spread evenly over all of them.

    Args:
        images, captions: vectors of the pairs, float [N, d]; any length, they are normalised here.
        temperature: τ, a number or a tensor [1].
        same_image: bool [N, N]; the diagonal counts as true.

    Returns:
        float scalar.
    """
    logits = scale_by_temperature(cosine_similarity(images, captions), temperature)
    positives = with_diagonal(same_image)
    image_to_caption = weighted_cross_entropy(logits, uniform_targets(positives, logits.dtype))
    caption_to_image = weighted_cross_entropy(logits.T, uniform_targets(positives.T, logits.dtype))
    return (image_to_caption + caption_to_image) / 2
