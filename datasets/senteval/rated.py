"""Sentences of film reviews and of reviews of products, sorted by how people rated them: the files of MR and CR from other labels."""

import io
import tarfile
import zipfile
from pathlib import Path

from raysys.errors import UserError

from ..common.pypi import PypiArchive

PACKAGE = PypiArchive("vaderSentiment", "0.5", "vaderSentiment-0.5.zip", "5d97c37f3ef6e24eef331122e055dbedafeb6a56abfce0608b326701116ea49a")
_INNER = "vaderSentiment-0.5/additional_resources/hutto_ICWSM_2014.tar.gz"

SETS = {
    "MR-rated": ("movieReviewSnippets_GroundTruth.txt", "rt-polarity"),
    "CR-rated": ("amazonReviewSnippets_GroundTruth.txt", "custrev"),
}
"""Folder → (file of the package, name of the files of the task)."""

CLEAR = 0.5
"""A mean rating (of −4 to 4) above it is positive, below its negative is negative; what lies between is left out."""


def read_rated(package: Path) -> dict[str, str]:
    """Text of the files of `SETS`, by their names.

    Raises:
        UserError: not the package.
    """
    try:
        inner = zipfile.ZipFile(package).read(_INNER)
        with tarfile.open(fileobj=io.BytesIO(inner), mode="r:gz") as tar:
            found = {}
            for name, _ in SETS.values():
                member = tar.extractfile(f"hutto_ICWSM_2014/{name}")
                assert member is not None
                found[name] = member.read().decode("utf-8")
            return found
    except (OSError, EOFError, KeyError, zipfile.BadZipFile, tarfile.TarError, UnicodeDecodeError) as error:
        raise UserError(f"{package} is not the source distribution of {PACKAGE.name} {PACKAGE.version}: {error}") from None


def by_polarity(text: str, where: str) -> tuple[list[str], list[str]]:
    """(positive, negative) sentences, in the order of the file, each text once.

    A line is an id, the mean rating and the sentence, with tabs between them. A text that people rated twice is taken where it
    is met first, so that no fold is asked for a sentence of another one.

    Raises:
        UserError: a line without three columns, or without a rating.
    """
    sides: dict[str, list[str]] = {"pos": [], "neg": []}
    seen: set[str] = set()
    for number, line in enumerate(text.replace("\r\n", "\n").rstrip("\n").split("\n"), 1):
        try:
            _, rating, sentence = line.split("\t")
            value = float(rating)
        except ValueError:
            raise UserError(f"{where}, line {number}: an id, a rating and a sentence were expected, found {line[:80]!r}") from None
        sentence = " ".join(sentence.split())
        if abs(value) > CLEAR and sentence and sentence not in seen:
            seen.add(sentence)
            sides["pos" if value > 0 else "neg"].append(sentence)
    return sides["pos"], sides["neg"]
