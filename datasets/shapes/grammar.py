"""From facts to sentences: every way in which a language may caption a scene."""

from collections.abc import Iterator
from dataclasses import dataclass

from .languages import cs, de, el, en, es, fi, fr, hi, id, it, ja, ko, ru, tr, zh_hans
from .languages.base import Language
from .scenes import Reading, Scene

LANGUAGES: dict[str, Language] = {
    module.LANGUAGE.tag: module.LANGUAGE for module in (en, de, fr, es, ru, cs, tr, hi, ja, zh_hans, ko, el, it, id, fi)
}


@dataclass(frozen=True)
class Variant:
    """One way to word a scene: with the sizes or without, from which side the relation is seen, a noun phrase or a sentence."""

    sizes: bool
    inverse: bool
    sentence: bool

    def reading(self, scene: Scene) -> Reading:
        """The statement of `scene` that this variant makes."""
        readings = list((scene if self.sizes else scene.without_sizes()).readings())
        return readings[1 if self.inverse else 0]


def variants(scene: Scene) -> Iterator[Variant]:
    """The 2 to 8 variants in which `scene` can be worded; no two of them give the same text."""
    for sizes in (True, False) if scene.sized else (False,):
        for inverse in (False, True) if scene.relation else (False,):
            for sentence in (False, True):
                yield Variant(sizes, inverse, sentence)


def caption(scene: Scene, language: str, variant: Variant) -> str:
    """`scene` in `language` (a BCP-47 tag of `LANGUAGES`), worded as `variant`; NFC."""
    return LANGUAGES[language].describe(variant.reading(scene), variant.sentence)
