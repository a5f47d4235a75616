"""The systems of "RC³: Regularized Contrastive Cross-lingual Cross-modal Pre-training": its own, their ablations, and the rivals."""

from typing import Literal

Rc3Name = Literal[
    "rc3",
    "rc3-no-kl",
    "rc3-no-rxvtcl",
    "rc3-no-rxvtcl-xtcl",
    "m3p",
    "muniter",
    "xuniter",
    "uc2",
    "memad",
    "vl-t5",
    "vl-bart",
]
"""How the network is pre-trained: the rows of Tables 1–4 that differ in that."""

Loss = Literal[
    "mlm",
    "mclm",
    "itm",
    "xtcl",
    "rxvtcl",
    "kl",
    "masked_regions",
    "text_mlm",
    "pair_mlm",
    "translation",
    "infilling",
    "spans",
]
"""The terms of the objectives; :class:`raysys.systems.rc3.settings.Rc3Weights` says what each is."""

Stream = Literal["strict", "weak", "parallel"]
"""D_s, images with parallel captions; D_w, images with texts that are not parallel; D_t, parallel text."""

RC3_TITLES: dict[str, str] = {
    "rc3": "RC³",
    "rc3-no-kl": "RC³ w/o KL(P_vtr‖P_tr)",
    "rc3-no-rxvtcl": "RC³ w/o R-XVtCL",
    "rc3-no-rxvtcl-xtcl": "RC³ w/o R-XVtCL & XTCL",
    "m3p": "M³P",
    "muniter": "mUNITER",
    "xuniter": "xUNITER",
    "uc2": "UC²",
    "memad": "MeMAD",
    "vl-t5": "VL-T5",
    "vl-bart": "VL-BART",
}
"""What the systems are called in tables."""


def losses_of(system: str) -> tuple[Loss, ...]:
    """What `system`, an :data:`Rc3Name`, is trained by."""
    return _LOSSES[system]


def streams_of(system: str) -> tuple[Stream, ...]:
    """Which data `system` is trained on. D_w serves R-XVtCL alone; D_t serves XTCL, text batches and translation."""
    losses = set(losses_of(system))
    weak: tuple[Stream, ...] = ("weak",) if "rxvtcl" in losses else ()
    parallel: tuple[Stream, ...] = ("parallel",) if losses & {"xtcl", "text_mlm", "translation"} else ()
    return ("strict", *weak, *parallel)


def first_language_of(system: str) -> str | None:
    """The language (BCP 47) that the first text of each strictly aligned row has to be in; None: any of the row's languages, by chance.

    For systems whose authors had captions in English alone.
    """
    return "en" if system in ("muniter", "xuniter", "vl-t5", "vl-bart") else None


def uses_decoder(system: str) -> bool:
    """Whether `system` trains the decoder, so that it can be fine-tuned to translate."""
    return bool({"mclm", "translation", "infilling", "spans"} & set(losses_of(system)))


def masks_regions(system: str) -> bool:
    """Whether `system` hides regions of images."""
    return bool({"masked_regions", "infilling", "spans"} & set(losses_of(system)))


def needs_regions(system: str) -> bool:
    """Whether images of strictly aligned data have to come as regions: `system` hides them, or takes their mean as the image's vector."""
    return masks_regions(system) or system == "memad"


def language_exponent_of(system: str) -> float:
    """Text batches draw a language of n sentences with a chance of n to this power."""
    return _EXPONENTS.get(system, 1.0)


_UNITER: tuple[Loss, ...] = ("mlm", "masked_regions", "itm", "text_mlm")

_LOSSES: dict[str, tuple[Loss, ...]] = {
    "rc3": ("mlm", "mclm", "itm", "xtcl", "rxvtcl", "kl"),
    "rc3-no-kl": ("mlm", "mclm", "itm", "xtcl", "rxvtcl"),
    "rc3-no-rxvtcl": ("mlm", "mclm", "itm", "xtcl"),
    "rc3-no-rxvtcl-xtcl": ("mlm", "mclm", "itm"),
    "m3p": _UNITER,
    "muniter": _UNITER,
    "xuniter": _UNITER,
    "uc2": ("mlm", "masked_regions", "itm", "pair_mlm"),
    "memad": ("translation",),
    "vl-t5": ("spans", "itm"),
    "vl-bart": ("infilling", "itm"),
}

_EXPONENTS = {"muniter": 0.7, "xuniter": 0.3}
"""As mBERT and XLM-R were trained, which mUNITER and xUNITER begin as."""
