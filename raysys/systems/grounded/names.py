"""The systems of "Incorporating Visual Semantics into Sentence Representations within a Grounded Space": the rows of its tables."""

from typing import Literal, TypedDict

GroundedName = Literal[
    "t",
    "t-half",
    "t-c-g",
    "t-p-g",
    "t-cp-g",
    "t-c-id",
    "t-p-id",
    "t-cp-id",
    "c-g",
    "p-g",
    "cp-g",
    "c-id",
    "p-id",
    "cp-id",
    "cm",
    "t-cm",
    "seq",
    "gs-img",
    "gs-cap",
    "gs-both",
]
"""The systems of Tables 1 and 3."""

Loss = Literal["text", "cluster", "perceptual", "cross_modal", "ranking", "caption"]
"""L_T, L_C, L_P, the ranking of CM, and Cap2Img and Cap2Cap of GroundSent."""
Space = Literal["text", "grounded", "visual"]
"""Where sentences can be compared: s = F(S) itself, g(s), or f(s) among the pictures."""

GROUNDED_TITLES: dict[str, str] = {
    "t": "T",
    "t-half": "T½",
    "t-c-g": "T + C_g",
    "t-p-g": "T + P_g",
    "t-cp-g": "T + C_g + P_g",
    "t-c-id": "T + C_id",
    "t-p-id": "T + P_id",
    "t-cp-id": "T + C_id + P_id",
    "c-g": "C_g",
    "p-g": "P_g",
    "cp-g": "C_g + P_g",
    "c-id": "C_id",
    "p-id": "P_id",
    "cp-id": "C_id + P_id",
    "cm": "CM",
    "t-cm": "T + CM",
    "seq": "SEQ",
    "gs-img": "GS-Img",
    "gs-cap": "GS-Cap",
    "gs-both": "GS-Both",
}
"""What the systems are called in tables. T½ is the paper's T₁₀₂₄, the textual model of half the size, whatever that is."""


class Parts(TypedDict):
    """What a system needs."""

    triples: bool
    """Ordered sentences, to be trained on."""
    captions: bool
    """Captions and their pictures, to be trained on or fitted to."""
    base: bool
    """A finished run: of system t for seq, of t-half for the others."""


def parts_of(system: str) -> Parts:
    """What `system`, a :data:`GroundedName`, needs."""
    losses = losses_of(system)
    return {
        "triples": "text" in losses,
        "captions": losses != ("text",),
        "base": system == "seq" or system.startswith("gs-"),
    }


def losses_of(system: str) -> tuple[Loss, ...]:
    """What `system` is trained by; nothing for seq, which is fitted in closed form."""
    return _LOSSES[system]


def projection_of(system: str) -> Literal["mlp", "identity"]:
    """g of `system`, from sentences to where cluster and perceptual loss compare them; the identity where it has neither."""
    return "mlp" if system.endswith("-g") else "identity"


def spaces_of(system: str) -> tuple[Space, ...]:
    """In which spaces sentences can be compared by `system`; the last is the one whose structure Table 1 scores."""
    if projection_of(system) == "mlp":
        return ("text", "grounded")
    return ("text", "visual") if "cross_modal" in losses_of(system) else ("text",)


_LOSSES: dict[str, tuple[Loss, ...]] = {
    "t": ("text",),
    "t-half": ("text",),
    "t-c-g": ("text", "cluster"),
    "t-p-g": ("text", "perceptual"),
    "t-cp-g": ("text", "cluster", "perceptual"),
    "t-c-id": ("text", "cluster"),
    "t-p-id": ("text", "perceptual"),
    "t-cp-id": ("text", "cluster", "perceptual"),
    "c-g": ("cluster",),
    "p-g": ("perceptual",),
    "cp-g": ("cluster", "perceptual"),
    "c-id": ("cluster",),
    "p-id": ("perceptual",),
    "cp-id": ("cluster", "perceptual"),
    "cm": ("cross_modal",),
    "t-cm": ("text", "cross_modal"),
    "seq": (),
    "gs-img": ("ranking",),
    "gs-cap": ("caption",),
    "gs-both": ("ranking", "caption"),
}
