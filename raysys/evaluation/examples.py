"""Examples for people to look at: translations, failures and transitive matches (Globetrotter, Tables 1, 3 and Figure 3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
import torch

from raysys.evaluation.naming import script
from raysys.evaluation.ranking import similarities, unit_vectors
from raysys.evaluation.scores import EncodedItems, Item
from raysys.objectives.transitive import transitive_similarity

Image = bytes | None


@dataclass(frozen=True)
class Retrieved:
    """The nearest sentence of one language."""

    language: str
    text: str
    similarity: float
    right: bool
    image: Image = field(default=None, repr=False)
    """Picture of the item that the sentence belongs to."""
    expected: str = ""
    """The true translation."""
    expected_similarity: float = 0.0
    expected_rank: int = 1
    """Place of the true translation among the language's sentences, 1 = first."""
    candidates: int = 0


@dataclass(frozen=True)
class TranslationExample:
    """A sentence and what was found for it."""

    language: str
    text: str
    gloss: str
    """The same in English, for the reader; empty where there is none."""
    retrieved: list[Retrieved]
    image: Image = field(default=None, repr=False)


@dataclass(frozen=True)
class Side:
    """One half of a transitive match."""

    language: str
    text: str
    gloss: str
    image_caption: float
    """α^x of this image and its caption."""
    image: Image = field(default=None, repr=False)


@dataclass(frozen=True)
class TransitiveMatch:
    """Two images with captions of two languages, and the similarities that tie them (Fig. 3)."""

    kind: Literal["match", "weak caption", "different images"]
    left: Side
    right: Side
    images: float
    """α^v, image–image."""
    transitive: float
    """α: what training took the captions' similarity to be."""
    captions: float
    """β, caption–caption: what the trained encoder says, seeing no image."""


class _Bank:
    """Distinct sentences of one language, ready to be searched."""

    def __init__(self, encoded: EncodedItems, language: str) -> None:
        self.texts = encoded.texts[language]
        self.items = [i for i, text in enumerate(self.texts) if text is not None]
        self.vectors = unit_vectors(encoded.sentences[language][self.items], f"captions in {language}")

    def retrieve(self, language: str, query: torch.Tensor, item: int, items: Sequence[Item]) -> Retrieved | None:
        """The sentence nearest to `query` [1, d] beside the true translation of `item`; None where that is lacking."""
        true = self.texts[item]
        if true is None:
            return None
        scores = similarities(query, self.vectors)[0].numpy()
        right = np.array([self.texts[i] == true for i in self.items])
        expected = float(scores[right].max())
        # A sentence that ties with the right one is not a success: it goes first.
        best = max(range(len(scores)), key=lambda j: (scores[j], not right[j]))
        found = self.items[best]
        return Retrieved(
            language,
            self.texts[found] or "",
            float(scores[best]),
            bool(right[best]),
            items[item if right[best] else found].image,
            true,
            expected,
            int(((scores >= expected) & ~right).sum()) + 1,
            len(self.items),
        )


def translation_examples(
    encoded: EncodedItems, items: Sequence[Item], count: int = 6, targets: int = 5, seed: int = 0
) -> list[TranslationExample]:
    """Nearest sentences in other languages for `count` sentences drawn at random (not chosen for success).

    Query languages and target languages take turns, so that every language is shown; `items` are those that were encoded.
    """
    generator = np.random.default_rng(seed)
    banks = {a: bank for a in encoded.languages if (bank := _Bank(encoded, a)).items}
    if len(banks) < 2:
        return []
    turn = _by_script(list(banks))
    examples: list[TranslationExample] = []
    used: set[int] = set()
    for number in range(min(count, len(encoded))):
        query = turn[number % len(turn)]
        fresh = [i for i in banks[query].items if i not in used]
        if not fresh:
            continue
        item = int(generator.choice(fresh))
        used.add(item)
        others = [turn[(number + 1 + step) % len(turn)] for step in range(len(turn) - 1)]
        vector = unit_vectors(encoded.sentences[query][[item]], query)
        found = [r for a in others if (r := banks[a].retrieve(a, vector, item, items)) is not None][:targets]
        if found:
            examples.append(
                TranslationExample(query, encoded.texts[query][item] or "", _gloss(encoded, item, query), found, items[item].image)
            )
    return examples


def failures(encoded: EncodedItems, items: Sequence[Item], count: int = 6, search: int = 300) -> list[TranslationExample]:
    """Translations that went most wrong: those whose wrong sentence is furthest nearer than the true one.

    Looks at `search` evenly spaced items in every language; at most one failure of an item and of a direction is shown.
    """
    banks = {a: bank for a in encoded.languages if (bank := _Bank(encoded, a)).items}
    queries = sorted({i * len(encoded) // min(search, len(encoded)) for i in range(min(search, len(encoded)))})
    worst: list[tuple[float, int, str, str]] = []
    for a in banks:
        rows = [i for i in queries if encoded.texts[a][i] is not None]
        if not rows:
            continue
        vectors = unit_vectors(encoded.sentences[a][rows], a)
        for b, other in banks.items():
            if b == a:
                continue
            top = similarities(vectors, other.vectors).max(dim=1).values.numpy()
            true = (vectors * unit_vectors(encoded.sentences[b][rows], b)).sum(dim=1).numpy()
            worst += [(float(top[r] - true[r]), i, a, b) for r, i in enumerate(rows) if encoded.texts[b][i] is not None]
    examples: list[TranslationExample] = []
    seen: set[object] = set()
    for gap, item, a, b in sorted(worst, key=lambda entry: (-entry[0], *entry[1:])):
        if len(examples) == count or gap <= 0:
            break
        if item in seen or (a, b) in seen:
            continue
        found = banks[b].retrieve(b, unit_vectors(encoded.sentences[a][[item]], a), item, items)
        if found is not None and not found.right:
            seen |= {item, (a, b)}
            examples.append(TranslationExample(a, encoded.texts[a][item] or "", _gloss(encoded, item, a), [found], items[item].image))
    return examples


def transitive_matches(
    encoded: EncodedItems,
    items: Sequence[Item],
    *,
    margin: float = 0.4,
    variant: Literal["product", "rescaled"] = "product",
    each: int = 2,
    limit: int = 1500,
    seed: int = 0,
) -> list[TransitiveMatch]:
    """Pairs of images with captions of different languages: taken, turned down for a caption, turned down for the images.

    Every item speaks one of its languages, drawn at random as in training. `each` pairs of a kind: the highest α; α = 0 although
    the images are alike, because a caption does not fit its image; α = 0 although both captions fit, because the images differ.
    An item is shown once. At most `limit` items are compared (evenly spaced).
    """
    if encoded.images is None:
        return []
    generator = np.random.default_rng(seed)
    spoken = [[a for a in encoded.languages if encoded.texts[a][i] is not None] for i in range(len(encoded))]
    rows = [i for i in range(len(encoded)) if spoken[i] and encoded.image_ids[i] is not None]
    rows = [rows[j * len(rows) // limit] for j in range(limit)] if len(rows) > limit else rows
    if len(rows) < 2:
        return []
    languages = [str(generator.choice(spoken[i])) for i in rows]
    images = unit_vectors(encoded.images[rows], "images").float()
    fit = (images * _rows(encoded.captions, languages, rows)).sum(dim=1)
    alike = images @ images.T
    alpha = transitive_similarity(alike, fit, margin, variant).numpy()
    sentences = _rows(encoded.sentences, languages, rows)
    beta = (sentences @ sentences.T).numpy()
    weakest = torch.minimum(fit[:, None], fit[None, :]).numpy()
    images_alike = alike.numpy()
    tags, identity = np.array(languages), np.array([encoded.image_ids[i] for i in rows])
    allowed = np.triu((tags[:, None] != tags[None, :]) & (identity[:, None] != identity[None, :]), 1)
    wanted: list[tuple[Literal["match", "weak caption", "different images"], np.ndarray, np.ndarray]] = [
        ("match", alpha, allowed & (alpha > 0)),
        ("weak caption", images_alike - weakest, allowed & (alpha == 0) & (images_alike > margin)),
        ("different images", weakest - images_alike, allowed & (alpha == 0) & (weakest > images_alike)),
    ]
    matches: list[TransitiveMatch] = []
    used: set[int] = set()

    def side(r: int) -> Side:
        i, language = rows[r], languages[r]
        return Side(language, encoded.texts[language][i] or "", _gloss(encoded, i, language), float(fit[r]), items[i].image)

    for kind, value, mask in wanted:
        taken = 0
        candidates = np.argwhere(mask)
        order = np.argsort(-value[mask], kind="stable")
        for x, y in candidates[order]:
            if taken == each:
                break
            if x in used or y in used:
                continue
            used |= {int(x), int(y)}
            taken += 1
            matches.append(TransitiveMatch(kind, side(x), side(y), float(images_alike[x, y]), float(alpha[x, y]), float(beta[x, y])))
    return matches


def _rows(vectors: Mapping[str, np.ndarray], languages: Sequence[str], rows: Sequence[int]) -> torch.Tensor:
    return unit_vectors(np.stack([vectors[a][i] for a, i in zip(languages, rows, strict=True)]), "captions").float()


def _gloss(encoded: EncodedItems, item: int, language: str) -> str:
    return "" if language == "en" else encoded.texts.get("en", {item: None})[item] or ""


def _by_script(languages: list[str]) -> list[str]:
    """Languages in an order that alternates between scripts, so that a few of them show many."""
    piles: dict[str, list[str]] = {}
    for language in languages:
        piles.setdefault(script(language), []).append(language)
    order: list[str] = []
    while any(piles.values()):
        order += [pile.pop(0) for pile in piles.values() if pile]
    return order
