"""Reads a file of WikiMatrix: one mined pair of sentences a line, ``margin score ⇥ sentence ⇥ sentence``, the best first."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from raysys.shards.sample import clean_caption

from ..common.lines import CUT_SHORT, CutShort, Line, read_lines

THRESHOLD = 1.04
"""Least margin score of a pair that is taken; the value its authors recommend for most languages."""
LOOK_AHEAD = 1000
"""So many lower scores are read before the rest of a file is taken to be lower too."""


@dataclass(frozen=True)
class Row:
    """One line of a file."""

    number: int
    """1 for the first."""
    score: float = 0.0
    source: str = ""
    target: str = ""
    fault: str = ""
    """Why it gives no pair, or what is wrong with the file from this line on."""

    @property
    def is_pair(self) -> bool:
        """Whether there are two sentences."""
        return bool(self.source)


def read_rows(uri: str) -> Iterator[Row]:
    """The lines with a score of at least `THRESHOLD`, and those that cannot be read; the file's order is kept.

    Reading stops at the lower scores. A file that proves not to be sorted is read to its end; the first line that is out of order
    says so in its fault, and so does the line at which a compressed file is cut short.

    Raises:
        UserError: the file is missing or no UTF-8 text at all.
    """
    last, is_sorted, lower, number = math.inf, True, 0, 0
    try:
        for line in read_lines(uri):
            number = line.number
            row = _parse(line)
            if row.is_pair:
                if is_sorted and row.score > last:
                    is_sorted = False
                    yield Row(number, fault="not sorted by score from here on")
                last = row.score
                if row.score < THRESHOLD:
                    lower += 1
                    if is_sorted and lower >= LOOK_AHEAD:
                        return
                    continue
            elif lower and is_sorted:
                continue
            yield row
    except CutShort:
        yield Row(number + 1, fault=CUT_SHORT)


def _parse(line: Line) -> Row:
    if line.fault:
        return Row(line.number, fault=line.fault)
    fields = line.text.split("\t")
    if len(fields) != 3:
        return Row(line.number, fault="not three columns")
    try:
        score = float(fields[0])
    except ValueError:
        score = math.nan
    if not math.isfinite(score):
        return Row(line.number, fault="score is no number")
    if not (clean_caption(fields[1]) and clean_caption(fields[2])):
        return Row(line.number, fault="empty sentence")
    return Row(line.number, score, fields[1].strip(), fields[2].strip())
