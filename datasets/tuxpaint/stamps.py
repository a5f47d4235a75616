"""Stamps: a picture with one sentence in many languages, as the package holds them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from raysys.shards.languages import normalise_language
from raysys.shards.sample import clean_caption

FOLDER = "usr/share/tuxpaint/stamps"

_DROPPED_FOLDERS = ("symbols/",)
"""Letters, hand signs, shapes and coins: nothing a sentence would describe."""

_DROPPED_LOCALES = {"en_GB", "en_AU", "ca@valencia", "sr@latin", "ta"}
"""Variants of another locale here; and Tamil, whose text is damaged."""

_LINE = re.compile(r"([A-Za-z_@]+)\.utf8=(.*)")
_ENDS = " .…。．｡।|¦!！,،;:;։።។·"
"""Marks at the end of a sentence; languages disagree on whether a caption has one."""


@dataclass(frozen=True)
class Stamp:
    """One picture."""

    name: str
    """Path in the package, without extension."""
    file: str
    """Path of the picture."""
    captions: dict[str, str]
    """BCP-47 tag → caption; `en` always."""


def tidy(text: str) -> str:
    """A caption without the mark that ends the sentence and without the one that opens an exclamation."""
    text = clean_caption(text).rstrip(_ENDS)
    return text[1:] if text.startswith("¡") else text


def parse_captions(text: str) -> dict[str, str]:
    """Captions by BCP-47 tag from the text beside a stamp: an English line, then lines ``locale.utf8=…``; empty ones left out."""
    english, *lines = text.splitlines()
    captions = {"en": tidy(english)}
    for line in lines:
        match = _LINE.fullmatch(line.strip())
        if match and match[1] not in _DROPPED_LOCALES and (caption := tidy(match[2])):
            captions[normalise_language(match[1])] = caption
    return captions


def read_stamps(files: Mapping[str, bytes]) -> list[Stamp]:
    """All stamps that have a picture and a sentence, sorted by name.

    Args:
        files: path beneath the folder of stamps → content. Of two pictures of one stamp the PNG is taken, which is the
            one its painter approved; pictures named ``…_mirror`` have no sentence of their own.
    """
    return list(_stamps(files))


def _stamps(files: Mapping[str, bytes]) -> Iterator[Stamp]:
    for path in sorted(files):
        name = path.removesuffix(".txt")
        if name == path or path.startswith(_DROPPED_FOLDERS):
            continue
        picture = next((name + extension for extension in (".png", ".svg") if name + extension in files), None)
        captions = parse_captions(files[path].decode("utf-8"))
        if picture and captions["en"]:
            yield Stamp(name, picture, captions)


def labels(stamps: Iterable[Stamp], languages: Iterable[str]) -> Iterator[tuple[tuple[str, str], str]]:
    """((language, caption without regard to case), name) for all captions of `stamps` in `languages`."""
    languages = list(languages)
    for stamp in stamps:
        for language in languages:
            if language in stamp.captions:
                yield (language, stamp.captions[language].casefold()), stamp.name
