"""Word pieces and character trigrams for sentence-transformers (with `trust_remote_code=True`)."""

from typing import Any

import torch
from sentence_transformers.base.modules import Transformer

from raysys.data.encoding import TextForm, encode_texts, pad_rows


class TrigramTransformer(Transformer):
    """sentence-transformers' own `Transformer`, whose input has the ids of trigrams behind those of the tokenizer.

    No tokenizer of transformers can make these ids. How many there are is in the model's ``config.json``, as `text_form`.
    """

    def preprocess(self, inputs: Any, prompt: str | None = None, processing_kwargs: Any = None, **kwargs: Any) -> dict[str, Any]:
        """Ids and mask, int64 [n, L], of a list of texts. Raises ValueError for a text without any visible character."""
        assert self.tokenizer is not None
        texts = [(prompt or "") + text for text in inputs]
        rows = encode_texts(self.tokenizer.backend_tokenizer, texts, TextForm(**self.model.config.text_form))
        ids, mask = pad_rows([row for row, _ in rows], self.model.config.pad_token_id)
        return {"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask), "modality": "text"}
