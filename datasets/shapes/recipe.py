"""Shards of a small drawn world whose truth is known: coloured shapes, their sizes, counts and places, captioned by a grammar."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from raysys.errors import UserError
from raysys.shards.languages import normalise_language
from raysys.shards.sample import Sample

from .concepts import divide
from .grammar import LANGUAGES as GRAMMARS
from .grammar import Variant, caption, variants
from .pictures import SIZE, draw, encode
from .scenes import COLOURS, COUNTS, RELATIONS, SHAPES, SIZES, Scene

AVAILABLE: tuple[str, ...] = tuple(GRAMMARS)
LANGUAGES: tuple[str, ...] = AVAILABLE[:12]
COUNT = 6000
CONCEPTS = 10_000
SAMPLES_PER_LANGUAGE = 25
SAMPLES_PER_REPEAT = 60
PICTURES_PER_CONCEPT = 4
CAPTIONS_PER_PICTURE = 2
ATOMS = frozenset((*COLOURS, *SHAPES, *SIZES, *RELATIONS, *map(str, COUNTS)))


@dataclass(frozen=True)
class Captioned:
    """What a training or validation picture shows and how it is captioned, in its one language."""

    scene: Scene
    language: str
    variants: tuple[Variant, ...]

    def atoms(self) -> Iterator[str]:
        """Everything that the captions put a word to."""
        for variant in self.variants:
            reading = variant.reading(self.scene)
            for figures in filter(None, (reading.first, reading.second)):
                yield from (str(figures.count), figures.colour, figures.shape)
                if figures.size:
                    yield figures.size
            if reading.relation:
                yield reading.relation


def samples(cache: Path, *, seed: int, languages: Sequence[str] = LANGUAGES, count: int | None = None) -> Iterator[Sample]:
    """Draw and caption `count` pictures (default 6 000), split after split: train, validation, test-seen, test-unseen.

    In `train`, captions in the languages that a picture does not have lie apart, in `translations`.

    Nothing is fetched and `cache` stays empty. The same seed, languages and count give the same bytes.
    Raises UserError for a language without a grammar, and for a count too small to use every word in every language.
    """
    count = COUNT if count is None else count
    languages = _spoken(languages)
    _check(languages, count)
    train, validation, tests, _ = split_sizes(count).values()
    repeats = min(PICTURES_PER_CONCEPT, len(languages))
    concepts = divide(seed, -(-train // repeats), -(-validation // repeats), tests)

    captioned = _caption_completely(concepts.train, train, languages, seed)
    yield from _monolingual("train", captioned, seed, languages)
    yield from _monolingual("validation", _caption(concepts.validation, validation, languages, Random(f"shapes/{seed}/validation")), seed)

    random = Random(f"shapes/{seed}/test")
    trained: dict[Scene, set[str]] = {}
    for item in captioned:
        trained.setdefault(item.scene, set()).add(item.language)
    one_of_each_group = list({scene.group: scene for scene in trained}.values())
    seen = random.sample(one_of_each_group, min(tests, len(one_of_each_group)))
    for index, scene in enumerate(seen):
        extra = {"trained_languages": [language for language in languages if language in trained[scene]]}
        yield _multilingual("test-seen", index, scene, languages, seed, extra)
    for index, scene in enumerate(concepts.unseen):
        novel = any(figures.binding in concepts.reserved for figures in scene.figures)
        yield _multilingual("test-unseen", index, scene, languages, seed, {"novel": "colour and shape" if novel else "pair"})


def split_sizes(count: int) -> dict[str, int]:
    """Samples of each split when `count` are made: a tenth, but not more than 200, for each test; 8 % of the rest for validation."""
    tests = min(200, count // 10)
    validation = round(0.08 * (count - 2 * tests))
    return {"train": count - 2 * tests - validation, "validation": validation, "test-seen": tests, "test-unseen": tests}


def _spoken(languages: Sequence[str]) -> tuple[str, ...]:
    """The languages in their normal spelling, all of them known and each named once."""
    tags = []
    for language in languages:
        try:
            tags.append(normalise_language(language))
        except ValueError as error:
            raise UserError(f"{error}; shapes speaks {', '.join(AVAILABLE)}") from None
    unknown = [tag for tag in tags if tag not in GRAMMARS]
    if unknown:
        raise UserError(f"shapes has no grammar for {', '.join(unknown)}; it speaks {', '.join(AVAILABLE)}")
    if not tags or len(set(tags)) < len(tags):
        raise UserError(f"languages for shapes must be one or more, each named once; got: {' '.join(languages) or 'none'}")
    return tuple(tags)


def _check(languages: tuple[str, ...], count: int) -> None:
    repeats = min(PICTURES_PER_CONCEPT, len(languages))
    least, most = max(SAMPLES_PER_LANGUAGE * len(languages), SAMPLES_PER_REPEAT * repeats), CONCEPTS * repeats
    made = f"shapes in {len(languages)} language{'s' * (len(languages) > 1)}"
    if count < least:
        raise UserError(f"{made} needs {least} samples or more, so that training uses every word in every language; not {count}")
    if count > most:
        raise UserError(f"{made} can be made with up to {most} samples, as there are not enough concepts for more; not {count}")


def _caption(scenes: list[Scene], count: int, languages: tuple[str, ...], random: Random) -> list[Captioned]:
    """Deal languages to `count` pictures of the scenes: each scene in several languages, each language equally often."""
    repeats = min(PICTURES_PER_CONCEPT, len(languages))
    used = Counter(dict.fromkeys(languages, 0))
    dealt: list[Captioned] = []
    for scene in scenes:
        by_use = sorted(random.sample(languages, len(languages)), key=used.__getitem__)
        for language in by_use[: min(repeats, count - len(dealt))]:
            used[language] += 1
            choices = list(variants(scene))
            dealt.append(Captioned(scene, language, tuple(random.sample(choices, min(CAPTIONS_PER_PICTURE, len(choices))))))
    random.shuffle(dealt)
    return dealt


def _caption_completely(scenes: list[Scene], count: int, languages: tuple[str, ...], seed: int) -> list[Captioned]:
    """Deal anew until every language has a word for everything. Only very small sets need more than one attempt."""
    for attempt in range(1000):
        dealt = _caption(scenes, count, languages, Random(f"shapes/{seed}/train/{attempt}"))
        atoms: dict[str, set[str]] = {language: set() for language in languages}
        for item in dealt:
            atoms[item.language].update(item.atoms())
        if all(words >= ATOMS for words in atoms.values()):
            return dealt
    raise UserError(f"{count} training samples do not use every word in each of {len(languages)} languages: make more samples")


def _monolingual(split: str, captioned: list[Captioned], seed: int, translated: Sequence[str] = ()) -> Iterator[Sample]:
    """Samples with captions in one language; those in the others of `translated` lie apart."""
    for index, item in enumerate(captioned):
        said = {
            language: [caption(item.scene, language, variant) for variant in item.variants]
            for language in dict.fromkeys([item.language, *translated])
        }
        captions = {item.language: said.pop(item.language)}
        yield _sample(split, index, item.scene, captions, seed, {"translations": said} if said else {})


def _multilingual(split: str, index: int, scene: Scene, languages: tuple[str, ...], seed: int, extra: dict) -> Sample:
    """A test sample: the same wording of the same facts in every language."""
    variant = Random(f"shapes/{seed}/{split}/{index}/wording").choice(list(variants(scene)))
    others = [other for other in variants(scene) if other != variant]
    said = {"paraphrases": {language: [caption(scene, language, other) for other in others] for language in languages}}
    return _sample(split, index, scene, {language: [caption(scene, language, variant)] for language in languages}, seed, said | extra)


def _sample(split: str, index: int, scene: Scene, captions: dict[str, list[str]], seed: int, extra: dict) -> Sample:
    random = Random(f"shapes/{seed}/{split}/{index}/picture")
    picture, placed = draw(scene, random)
    image, extension = encode(picture, random)
    metadata = {
        "captions": captions,
        "alignment": "strict",
        "group": scene.group,
        "concept": scene.concept,
        "scene": scene.facts(),
        "boxes": [[figure.index, *figure.box(SIZE)] for figure in placed],
        "source": "shapes",
        "licence": "Apache-2.0",
        **extra,
    }
    return Sample(split=split, key=f"{index:06d}", image=image, extension=extension, metadata=metadata)
