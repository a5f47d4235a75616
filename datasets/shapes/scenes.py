"""The world: figures of one kind, scenes of one or two kinds, and what counts as the same concept."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

COLOURS = ("red", "orange", "yellow", "green", "blue", "purple", "pink", "black")
SHAPES = ("circle", "square", "triangle", "star", "heart", "cross", "ring", "arrow")
SIZES = ("small", "large")
COUNTS = (1, 2, 3, 4)
RELATIONS = ("left of", "right of", "above", "below")
INVERSE = {"left of": "right of", "right of": "left of", "above": "below", "below": "above"}


@dataclass(frozen=True)
class Figures:
    """One to four figures of the same shape, colour and size. `size` is None for the middle size, which no language names.

    Those of a scene have a colour and a shape. What a sentence says of them may leave these out: None, the size too.
    """

    count: int
    colour: str | None
    shape: str | None
    size: str | None = None

    def __post_init__(self) -> None:
        assert self.count in COUNTS
        assert self.colour is None or self.colour in COLOURS
        assert self.shape is None or self.shape in SHAPES
        assert self.size is None or self.size in SIZES

    @property
    def name(self) -> str:
        return f"{self.count}-{self.colour}-{self.shape}"

    @property
    def binding(self) -> tuple[str | None, str | None]:
        """(colour, shape): what belongs together in one figure."""
        return self.colour, self.shape

    def describes(self, others: "Figures") -> bool:
        """Whether all that is said here is true of `others`; of their number too."""
        told = ((self.colour, others.colour), (self.shape, others.shape), (self.size, others.size))
        return self.count == others.count and all(said is None or said == true for said, true in told)

    def without_size(self) -> "Figures":
        return replace(self, size=None)


@dataclass(frozen=True)
class Reading:
    """One way to state a scene: `first` is `relation` `second`. Without a relation there is no second."""

    first: Figures
    relation: str | None = None
    second: Figures | None = None


@dataclass(frozen=True)
class Scene:
    """A set of facts in canonical form: the relation is "left of" or "above", never its inverse. Use `Scene.of` to build one."""

    first: Figures
    relation: str | None = None
    second: Figures | None = None

    def __post_init__(self) -> None:
        assert (self.relation is None) == (self.second is None)
        assert self.relation in (None, "left of", "above")

    @classmethod
    def of(cls, first: Figures, relation: str | None = None, second: Figures | None = None) -> "Scene":
        """The scene in which `first` is `relation` `second`, whichever of the four relations it is."""
        if second is not None and relation in ("right of", "below"):
            return cls(second, INVERSE[relation], first)
        return cls(first, relation, second)

    @property
    def figures(self) -> tuple[Figures, ...]:
        return (self.first,) if self.second is None else (self.first, self.second)

    @property
    def sized(self) -> bool:
        return any(figures.size for figures in self.figures)

    @property
    def concept(self) -> str:
        """The facts without the sizes, which a caption may leave out: captions of one concept never describe another one."""
        return f" {self.relation} ".join(figures.name for figures in self.figures)

    @property
    def group(self) -> str:
        """What must not be torn apart by a split: the same figures, in whatever size and relation."""
        return " + ".join(sorted(figures.name for figures in self.figures))

    def readings(self) -> Iterator[Reading]:
        """Every true statement of the relation: the canonical one, then the inverse."""
        yield Reading(self.first, self.relation, self.second)
        if self.relation is not None and self.second is not None:
            yield Reading(self.second, INVERSE[self.relation], self.first)

    def shows(self, said: Reading) -> bool:
        """Whether a statement is true here: there are such figures and, where a relation is told, others that they stand so to."""
        if said.second is None:
            return any(said.first.describes(figures) for figures in self.figures)
        return any(
            true.second is not None
            and (said.relation, said.first.describes(true.first), said.second.describes(true.second)) == (true.relation, True, True)
            for true in self.readings()
        )

    def without_sizes(self) -> "Scene":
        return Scene(self.first.without_size(), self.relation, self.second and self.second.without_size())

    def facts(self) -> dict:
        """The truth as JSON: {"figures": [{"count", "colour", "shape", "size"}, …], "relation": … or null}."""
        return {"figures": [vars(figures) for figures in self.figures], "relation": self.relation}
