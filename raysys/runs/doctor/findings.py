"""What a check found, as a line for people."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """The outcome of one check on one node."""

    level: Literal["ok", "warning", "failed"]
    node: str
    """Where: ``driver``, the address of a node, or ``cluster`` for what concerns all of them."""
    what: str
    """What was looked at."""
    found: str
    advice: str = ""
    """What to do; empty where all is well or `found` says it."""

    def __str__(self) -> str:
        return f"{self.level:<8} {self.node}  {self.what}: {self.found}" + (f"; {self.advice}" if self.advice else "")


def size(count: float) -> str:
    """Bytes for people: ``1.5 GiB``."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"
