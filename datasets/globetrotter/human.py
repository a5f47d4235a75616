"""The test captions that people translated: a file per language with a caption a line, or a folder per language with a file per caption.

The publication says that they come with the texts, and neither where nor how they lie. So they are read from a folder of one name, in
either of the forms that texts by language have.
"""

import re
from collections.abc import Sequence

from raysys.shards.parts import Skipped
from raysys.storage import Storage, join

from ..common.archives import to_stderr
from .layout import language_of
from .splits import Found, Record

FOLDER = "human_translations"
"""Beneath the source."""

_FORM = re.compile(r"(?P<file>[^/]+)\.txt|(?P<language>[^/]+)/(?P<name>[^/]+)\.txt")


def find_human(storage: Storage, source: str, languages: Sequence[str]) -> Found:
    """A record for all files ``LANGUAGE.txt``, line i of which is caption i, and one for each NAME of ``LANGUAGE/NAME.txt``.

    What is not in all of the `languages` that there are is left out.
    """
    found = Found()
    if not storage.exists(folder := join(source, FOLDER)):
        to_stderr(f"note: {source} has no {FOLDER}/, where translations by people are looked for")
        return found
    by_name: dict[str, dict[str, str]] = {}
    for entry in storage.list(folder):
        path = entry.uri[len(folder) + 1 :]
        form = _FORM.fullmatch(path)
        language = language_of(form["file"] or form["language"]) if form else None
        if not form or language is None:
            found.faults.append(Skipped("unknown language" if form else "not the name of a text", entry.uri))
        elif language in languages:
            by_name.setdefault(form["name"] or "", {})[language] = f"{FOLDER}/{path}"
    there = {language for its in by_name.values() for language in its}
    wanted = [language for language in languages if language in there]
    for name, its in sorted(by_name.items()):
        if lacking := [language for language in wanted if language not in its]:
            found.faults.append(Skipped("not in every language", f"{join(folder, name)}: no text in {', '.join(lacking)}"))
            continue
        key = "human" if not name else "human-" + re.sub(r"[^0-9A-Za-z]+", "-", name)
        texts = tuple((language, its[language]) for language in wanted)
        found.records.append(Record(key, (), texts, (), (("source", "globetrotter"), ("translators", "people")), by_line=not name))
    return found
