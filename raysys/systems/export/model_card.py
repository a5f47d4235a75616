"""The model card of an export: ``README.md`` with the front matter that the Hugging Face hub reads.

Front matter: https://huggingface.co/docs/hub/model-cards
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import yaml

from raysys.models.backbones import TransformersFeatures
from raysys.models.skip_thought import SkipThoughtSettings
from raysys.systems.build import TITLES
from raysys.systems.encoder import Encoder, text_network
from raysys.systems.export.usage import usage
from raysys.systems.rc3.settings import Rc3ModelSettings

FILE = "README.md"
_SCORES, _END = "<!-- scores -->", "<!-- end of scores -->"
_UNSCORED = "Not scored yet."


class DataFacts(NamedTuple):
    """What a system was trained on."""

    name: str
    """Of the data set."""
    samples: dict[str, int]
    """Language → samples with a caption in it."""
    captions: dict[str, int]
    """Language → captions."""
    licences: tuple[str, ...]
    """Licences that its samples name."""


class Measured(NamedTuple):
    """What was found when the export was checked."""

    differences: dict[str, float]
    """Format → largest difference of any entry of a unit vector from the trained encoder's."""
    picture_cosine: float | None
    """Lowest cosine between the vectors of a picture by Pillow's and by training's preprocessing; None without images."""


def model_card(encoder: Encoder, data: Sequence[DataFacts], training: dict[str, Any], measured: Measured, scores: str | None) -> str:
    """The card.

    Args:
        encoder: what is exported; its `info` says run, step, languages and data fingerprint.
        data: what it was trained on; empty where that is not known.
        training: name → value of the settings that a reader will ask for.
        measured: the formats that lie beside the card.
        scores: a table as plain text; None where it has none yet.
    """
    info = encoder.info
    parts = [
        _front_matter(encoder, data, list(measured.differences)),
        f"# {info['run']}",
        _summary(encoder),
        "## What it is\n\n" + _table(("", ""), _facts(encoder)),
        "## Data\n\n" + _data(info, data),
        "## Training\n\n" + _table(("setting", "value"), [(name, str(value)) for name, value in training.items()]),
        f"## Scores\n\n{_SCORES}\n{_END}",
        "## Use\n\nThe examples run in the folder of this file.\n\n" + "\n\n".join(usage(encoder, list(measured.differences))),
        "## Agreement\n\n" + _agreement(measured),
        "## Limits\n\n" + "\n".join(f"* {limit}" for limit in _limits(encoder)),
    ]
    return with_scores("\n\n".join(parts) + "\n", scores)


def with_scores(card: str, scores: str | None) -> str:
    """`card` with other scores, a table as plain text; all else stays as it is, also where a person has changed it."""
    before, found, rest = card.partition(_SCORES)
    _, ended, after = rest.partition(_END)
    if not (found and ended):
        return card
    shown = f"```text\n{scores.strip()}\n```" if scores else _UNSCORED
    return f"{before}{_SCORES}\n{shown}\n{_END}{after}"


def _front_matter(encoder: Encoder, data: Sequence[DataFacts], formats: list[str]) -> str:
    tags = ["sentence-similarity", "feature-extraction", "multilingual", "raysys"]
    tags += ["image-text-retrieval"] if encoder.has_images else []
    tags += [name for name in formats if name != "transformers"]
    front: dict[str, Any] = {"language": list(encoder.info["languages"])}
    licences = sorted({licence for facts in data for licence in facts.licences})
    if licences:
        # several of them cannot be put into one field: the body names them
        one = licences[0].lower().removesuffix("-only").removesuffix("-or-later")
        front["license"] = one if len(licences) == 1 else "other"
    front |= {"library_name": "raysys", "pipeline_tag": "sentence-similarity", "tags": tags}
    return "---\n" + yaml.safe_dump(front, sort_keys=False, allow_unicode=True) + "---"


def _summary(encoder: Encoder) -> str:
    languages = encoder.info["languages"]
    about = "and pictures " if encoder.has_images else ""
    how = ", learned from pictures with captions and not from translations" if encoder.has_images else ""
    spoken = languages[0] if len(languages) == 1 else f"{len(languages)} languages"
    return f"Encodes sentences of {spoken} {about}as unit vectors whose cosine says how alike they are{how}."


def _facts(encoder: Encoder) -> list[tuple[str, str]]:
    info, model = encoder.info, encoder.system.model
    network, longest = _text_network(encoder)
    facts = [
        ("system", TITLES[info.get("system", "globetrotter")]),
        ("step", f"{info['step']:,}"),
        ("text network", network),
        ("longest sentence", f"{longest}; longer ones are cut"),
        ("vectors", f"{encoder.encode_texts(['a'], info['languages'][:1]).shape[1]} entries, float32"),
        ("languages", ", ".join(info["languages"])),
    ]
    if encoder.has_images:
        image, form = model.image, encoder.preprocess.settings
        module = encoder.system.image.network
        name = type(module.model).__name__ if isinstance(module, TransformersFeatures) else "EfficientNet-Lite0"
        facts.insert(3, ("image network", name + (", not trained" if image.frozen else "")))
        facts.insert(4, ("pictures", f"{form.size} × {form.size} pixels, " + ("cropped" if form.fit == "crop" else "padded with white")))
    return facts


def _text_network(encoder: Encoder) -> tuple[str, str]:
    """What reads sentences, and how long they may be."""
    model = encoder.system.model
    if isinstance(model, Rc3ModelSettings):
        network = model.network
        pieces = f"{network.vocabulary_size:,} word pieces"
        return f"mBART, {network.layers} + {network.decoder_layers} layers of {network.size}, {pieces}", f"{network.max_tokens} word pieces"
    if isinstance(model.text, SkipThoughtSettings):
        reader = "GRU" if model.text.encoder == "gru" else f"transformer, {model.text.layers} layers"
        return f"{reader}, {model.text.vocabulary_size:,} words of {model.text.word_size}", f"{model.text.max_words} words"
    text, longest = model.text, f"{model.text.max_tokens} word pieces"
    if text_network(encoder.system) is None:
        return f"word vectors of each language, {model.muve.rows:,} in all", longest
    if text.layers:
        return f"transformer, {text.layers} layers of {text.hidden_size}, {text.vocabulary_size:,} word pieces", longest
    trigrams = f" and character trigrams ({text.trigram_buckets:,})" if text.trigram_buckets else ""
    return f"bag of word pieces ({text.vocabulary_size:,}){trigrams}", longest


def _data(info: dict[str, Any], data: Sequence[DataFacts]) -> str:
    fingerprint = f"Fingerprint of the data: `{info['data_fingerprint']}`." if info["data_fingerprint"] else ""
    if not data:
        return f"The data were not at hand when this card was written. {fingerprint}".strip()
    heads = ("language", *(f"{facts.name}: samples / captions" for facts in data))
    rows = [
        (language, *(f"{facts.samples.get(language, 0):,} / {facts.captions.get(language, 0):,}" for facts in data))
        for language in info["languages"]
    ]
    licences = [f"* {facts.name}: {', '.join(facts.licences) or 'its samples name none'}" for facts in data]
    return "\n\n".join([fingerprint, _table(heads, rows), "Licences that the samples name:", "\n".join(licences)]).strip()


def _agreement(measured: Measured) -> str:
    found = measured.differences.items()
    lines = [f"* {name}: largest difference of an entry of a vector from the trained encoder's {value:.1e}" for name, value in found]
    if measured.picture_cosine is not None:
        lines.append(
            "* pictures prepared by `AutoImageProcessor` (Pillow) instead of training's code: the cosine with the trained encoder's vector "
            f"was at least {measured.picture_cosine:.5f}"
        )
    return "Measured when it was exported, on sentences and pictures that were made for it:\n\n" + "\n".join(lines)


def _limits(encoder: Encoder) -> list[str]:
    limits = [
        "It knows the languages above, and of the world what its training data show; it has their prejudices too.",
        "A text without a visible character has no meaning. raysys refuses it; transformers' tokenizer gives it the vector of its "
        "special tokens.",
    ]
    text = text_network(encoder.system)
    model = encoder.system.model
    if isinstance(model, Rc3ModelSettings):
        limits.append("The network also reads images with their texts; as a sentence encoder it is asked for texts alone.")
    elif not (isinstance(model.text, SkipThoughtSettings) or (text is not None and text.settings.layers)):
        limits.append("It does not see the order of words: a sentence is the mean of its pieces.")
    if text is not None and text.settings.trigram_buckets:
        limits.append(
            "Character trigrams are part of its input and no tokenizer of transformers makes them: sentence-transformers needs "
            "`trust_remote_code=True` (the code is in the folder)."
        )
    if encoder.has_images:
        shown = "Pictures are turned upright, put on white and made square, as in training"
        if encoder.preprocess.settings.fit == "crop":
            shown += "; transformers' own processor does not do the first two"
        limits.append(f"{shown}.")
    return limits


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join("| " + " | ".join(str(cell).replace("|", "\\|") for cell in line) + " |" for line in lines)
