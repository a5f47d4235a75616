"""Small pieces of text that the parts of a report share."""

import re

from raysys.evaluation.markup import Markup, el, escape
from raysys.evaluation.table import split_name


def remark(*text: object) -> Markup:
    """A quiet paragraph of explanation."""
    return el("p", *text, class_="note")


def headline(split: str) -> str:
    """A test split as a heading."""
    name = split_name(split)
    return name[:1].upper() + name[1:]


def named(name: str) -> Markup:
    """A name in which `L_t`, `C_g`, `ρ_vis` and their like get their index lowered."""
    return Markup(re.sub(r"\b([A-Zρ])_([a-z]+)\b", r"\1<sub>\2</sub>", escape(name)))
