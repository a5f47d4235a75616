"""Scenes for sets that are trained on and tested one after the other: which scenes may be drawn for which purpose, whatever the seed."""

from collections.abc import Iterator
from hashlib import blake2b
from random import Random
from typing import Literal

from .concepts import PAIR_COUNTS, SINGLE_EVERY, Deck
from .scenes import COLOURS, COUNTS, RELATIONS, SHAPES, SIZES, Figures, Scene

Role = Literal["train", "validation", "test"]
_OF_TWENTY: tuple[Role, ...] = ("test", "test", "validation")
BINDINGS = tuple((colour, shape) for colour in COLOURS for shape in SHAPES)


def role_of(scene: Scene) -> Role:
    """What a scene may be drawn for: a tenth of all groups for tests, a twentieth for validation, the others for training.

    Told by the group alone, so that sets made at different times, of different sizes and with different seeds share no test scene.
    """
    number = blake2b(scene.group.encode(), digest_size=8).digest()
    place = int.from_bytes(number, "big") % 20
    return _OF_TWENTY[place] if place < len(_OF_TWENTY) else "train"


def scenes_for(role: Role, random: Random, *, sized: bool = True, singles: bool = True) -> Iterator[Scene]:
    """Endless scenes of a role, no concept twice, balanced in colours, shapes, counts, sizes and relations.

    Args:
        sized: whether figures may be small and large; else all are of the middle size.
        singles: whether every eighth scene (as long as there are more) has one kind of figures alone.
    """
    bindings, counts, relations = Deck(BINDINGS, random), Deck(PAIR_COUNTS, random), Deck(RELATIONS, random)
    sizes = Deck((None, None, *SIZES) if sized else (None,), random)
    alone = [Scene.of(Figures(count, *binding, sizes.draw())) for binding in BINDINGS for count in COUNTS] if singles else []
    alone = random.sample([scene for scene in alone if role_of(scene) == role], sum(role_of(scene) == role for scene in alone))
    concepts: set[str] = set()
    while True:
        if alone and (len(concepts) + 1) % SINGLE_EVERY == 0:
            scene = alone.pop()
        else:
            one, other = (Figures(count, *bindings.draw(), sizes.draw()) for count in counts.draw())
            scene = Scene.of(one, relations.draw(), other)
            if one.binding == other.binding or role_of(scene) != role or scene.concept in concepts:
                continue
        concepts.add(scene.concept)
        yield scene
