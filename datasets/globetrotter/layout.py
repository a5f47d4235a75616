"""The published layout of the Globetrotter data set: which text is about which image, in which language.

Beneath each collection's folder lie ``translated_independent`` (an image has a text in one language) and ``translated_alllangs`` (in
all of them), each with ``listing_train.txt``, ``listing_val.txt`` and ``listing_test.txt``, whose lines are ``./LANGUAGE/NAME_NUMBER.txt``.
A text has a caption a line. ``clean_sentences`` has English texts of the same names. This is how the authors' release finds its data.
"""

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from raysys.shards.languages import normalise_language
from raysys.shards.parts import Skipped
from raysys.storage import Storage, join

from ..common.lines import read_lines

PUBLISHED_LANGUAGES = (
    "af", "am", "ar", "az", "bg", "bn", "bs", "cs", "da", "de", "el", "en", "es", "et", "fa", "fa-AF", "fi", "fr", "ha", "he", "hi", "hr",
    "hu", "id", "it", "ja", "ka", "ko", "lv", "ms", "nl", "no", "pl", "ps", "pt", "ro", "ru", "sk", "sl", "so", "sq", "sr", "sv", "sw",
    "ta", "th", "tl", "tr", "uk", "ur", "vi", "zh",
)  # fmt: skip
"""The 52 languages, as their folders are named."""
KNOWN_LANGUAGES = tuple(normalise_language(folder) for folder in PUBLISHED_LANGUAGES)
"""The same in BCP-47: `no` is `nb`, `tl` is `fil`, `zh` is `zh-Hans`."""

INDEPENDENT, ALL_LANGUAGES = "translated_independent", "translated_alllangs"
ENGLISH = "clean_sentences"

_LINE = re.compile(r"(?:\./)?(?P<language>[^/]+)/(?P<name>(?:[^/]*[_.])?(?P<number>[0-9]{1,18})\.txt)")


class Image(NamedTuple):
    """One image of a collection."""

    key: str
    """Of its sample."""
    files: tuple[str, ...]
    """Where it may lie beneath the source, the likeliest place first."""


class Text(NamedTuple):
    """A file with an image's captions in one language, one a line."""

    image: Image
    language: str
    """BCP-47."""
    path: str
    """Beneath the source."""


class Collection(NamedTuple):
    """One of the three data sets that the images are from."""

    name: str
    folder: str
    """Beneath the source, that of its texts."""
    image: Callable[[str], Image]
    """From a text's file name to the image it is about."""


def _number(name: str) -> int:
    return int(re.findall("[0-9]+", name)[-1])


def _coco(name: str) -> Image:
    half, number = ("val2014" if "val" in name else "train2014"), _number(name)
    return Image(f"coco-{half}-{number:012d}", (f"COCO/{half}/COCO_{half}_{number:012d}.jpg",))


def _flickr30k(name: str) -> Image:
    return Image(f"flickr30k-{_number(name)}", (f"flickr30k/images/{_number(name)}.jpg",))


def _conceptual(name: str) -> Image:
    number = str(_number(name))
    # Of a number of more than eight digits the first is no part of the image's own.
    own = f"{int(number[1:] if len(number) > 8 else number):08d}"
    return Image(f"conceptual-{own}", tuple(f"ConceptualCaptions/train/{own}.{extension}" for extension in ("jpeg", "jpg", "png")))


COLLECTIONS = (
    Collection("coco", "COCO/annotations", _coco),
    Collection("flickr30k", "flickr30k/entities", _flickr30k),
    Collection("conceptual", "ConceptualCaptions", _conceptual),
)


def language_of(folder: str) -> str | None:
    """The language that a folder or file is named by; None where it is none of the data set's."""
    try:
        language = normalise_language(folder)
    except ValueError:
        return None
    return language if language in KNOWN_LANGUAGES else None


def find_listing(storage: Storage, source: str, collection: Collection, kind: str, published: str) -> str | None:
    """URI of a listing, `kind` being one of the two folders of texts and `published` one of train, val and test; None if it is missing."""
    uri = join(source, collection.folder, kind, f"listing_{published}.txt")
    return uri if storage.exists(uri) else None


def find_english(storage: Storage, source: str, collection: Collection) -> dict[str, str]:
    """File name → path beneath the source of the English texts that were translated; they lie in folders of any names and depth."""
    found: dict[str, str] = {}
    if storage.exists(folder := join(source, collection.folder, ENGLISH)):
        for entry in storage.list(folder, ".txt"):
            path = f"{collection.folder}/{ENGLISH}/{entry.uri[len(folder) + 1 :]}"
            found.setdefault(path.rpartition("/")[2], path)
    return found


def read_listing(uri: str, collection: Collection, kind: str) -> Iterator[Text | Skipped]:
    """The texts of a listing, and the lines that name none."""
    seen: set[str] = set()
    for line in read_lines(uri):
        where = f"{uri} line {line.number}"
        if line.fault:
            yield Skipped(line.fault, where)
        elif not (named := _LINE.fullmatch(line.text.strip())):
            yield Skipped("not the name of a text", f"{where}: {line.text.strip()!r}")
        elif not (language := language_of(named["language"])):
            yield Skipped("unknown language", f"{where}: {named['language']}")
        elif (path := f"{collection.folder}/{kind}/{named['language']}/{named['name']}") in seen:
            yield Skipped("listed twice", f"{where}: {path}")
        else:
            seen.add(path)
            yield Text(collection.image(named["name"]), language, path)
