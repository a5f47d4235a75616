"""What Table 2 and Figures 2 and 3 need beyond scores: `examples.json` in a run's folder."""

import base64
import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

FILE = "examples.json"
"""Its name in a run's folder."""
_VERSION = 1


@dataclass(frozen=True)
class Neighbour:
    """A sentence near another one."""

    text: str
    similarity: float
    """Cosine."""
    of: Literal["Q", "N", ""] = ""
    """Figure 2: whether it is a caption of the query's picture Q, of its nearest picture N, or of another one."""


@dataclass(frozen=True)
class QueryNeighbours:
    """Table 2: what lies nearest to a sentence with an abstract word."""

    query: str
    found: Sequence[Neighbour]
    """Nearest first; at least one."""
    word: str = ""
    """The abstract word of the query."""
    concreteness: float | None = None
    """Of the word, from 1 (abstract) to 5 (concrete); None where it is not rated."""


@dataclass(frozen=True)
class PictureNeighbours:
    """Figure 2: the neighbours of a caption, and what they show."""

    caption: str
    """Of the picture Q."""
    found: Sequence[Neighbour]
    """Nearest captions, nearest first, without the caption itself."""
    picture: bytes = b""
    """Q as a small image file (PNG, JPEG or WebP); empty where it is not shown."""
    nearest: bytes = b""
    """N, the picture nearest to Q in the space of pictures, likewise."""
    nearest_caption: str = ""


@dataclass(frozen=True)
class ScenePoint:
    """A sentence on the map of scenes."""

    text: str
    scene: str
    x: float
    y: float
    """Of t-SNE; only distances mean anything."""


@dataclass(frozen=True)
class SceneMap:
    """Figure 3: sentences of a few scenes by t-SNE, with how closely each scene keeps together before t-SNE."""

    points: Sequence[ScenePoint]
    intra: float
    """C_intra: mean cosine of two sentences of one scene."""
    inter: float
    """C_inter: mean cosine of two sentences of different scenes."""
    scenes: Mapping[str, tuple[float, float]] = dataclasses.field(default_factory=dict)
    """Scene → (C_intra of its sentences, their mean cosine with all others)."""


@dataclass(frozen=True)
class Examples:
    """All of one run, in the space in which its sentences are compared. Whatever is empty is left out of the page.

    Runs that are shown side by side are asked the same queries and show the same sentences, so that they have to be chosen by a seed
    that all runs share, and not by what a run finds.
    """

    step: int
    """Of the checkpoint."""
    space: str
    """`text`, `grounded` or `visual`."""
    searched: str = ""
    """What the neighbours were searched in, for people, such as "2,400 captions of tuxpaint"."""
    queries: Sequence[QueryNeighbours] = ()
    pictures: Sequence[PictureNeighbours] = ()
    scenes: SceneMap | None = None

    def dumps(self) -> str:
        """The text of ``examples.json``: the fields above by name, pictures in base64, and `version`.

        Raises:
            ValueError: a number that is not finite.
        """
        return json.dumps({"version": _VERSION, **dataclasses.asdict(self)}, ensure_ascii=False, allow_nan=False, default=_encoded) + "\n"

    @classmethod
    def loads(cls, text: str) -> "Examples":
        """From the text of ``examples.json``.

        Raises:
            ValueError: it is none, or one of another version.
        """
        values = json.loads(text)
        if values.get("version") != _VERSION:
            raise ValueError(f"{FILE} is of version {values.get('version')}, not {_VERSION}: score the run again")
        try:
            return cls(
                values["step"],
                values["space"],
                values["searched"],
                [QueryNeighbours(**{**one, "found": _found(one)}) for one in values["queries"]],
                [PictureNeighbours(**{**one, "found": _found(one), **_pictures(one)}) for one in values["pictures"]],
                _scenes(values["scenes"]) if values["scenes"] else None,
            )
        except (KeyError, TypeError) as error:
            raise ValueError(f"{FILE} cannot be read ({error!r}): score the run again") from None


def _encoded(value: object) -> str:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    raise TypeError(f"{type(value).__name__} has no place in {FILE}")


def _found(values: Mapping[str, Any]) -> list[Neighbour]:
    return [Neighbour(**one) for one in values["found"]]


def _pictures(values: Mapping[str, Any]) -> dict[str, bytes]:
    return {name: base64.b64decode(values[name]) for name in ("picture", "nearest")}


def _scenes(values: Mapping[str, Any]) -> SceneMap:
    scenes = {name: (pair[0], pair[1]) for name, pair in values["scenes"].items()}
    return SceneMap([ScenePoint(**one) for one in values["points"]], values["intra"], values["inter"], scenes)
