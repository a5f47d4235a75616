"""The folder of a text network: BertModel and tokenizer, for `AutoModel` and `AutoTokenizer`."""

import json
from pathlib import Path

from transformers import PreTrainedTokenizerFast

from raysys.models.text import TextEncoder
from raysys.systems.export.standalone import copy_into


def save_text_folder(text: TextEncoder | None, tokenizer: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write network (where there is one) and tokenizer; where it reads character trigrams, also the code that makes their ids.

    No tokenizer of transformers can make them. ``raysys_encoding.py`` does, with `text_form` of ``config.json``.
    """
    tokenizer.save_pretrained(folder)
    if text is None:
        return
    text.bert.save_pretrained(folder)
    if text.settings.trigram_buckets:
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        config["text_form"] = vars(text.settings.form)
        (folder / "config.json").write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")
        copy_into(folder, "encoding")
