"""Flickr30k: photographs of people and animals in everyday situations, with five English captions each."""

import re
from collections.abc import Iterator, Sequence

from raysys.errors import UserError
from raysys.shards.parts import Part, Skipped

from ..common.described import Described, deal, find_file, not_found, read_json
from ..common.lines import Line, read_lines

SOURCE = (
    "Expected are results_20130124.token (image.jpg#0, a tab, the caption) or results.csv (image_name| comment_number| comment) and the "
    "pictures in flickr30k-images/ (or flickr30k_images/), in one folder; with Karpathy's dataset_flickr30k.json beside them his "
    "splits are made."
)
LANGUAGES = ("en",)
AVAILABLE = LANGUAGES

_CAPTIONS = ["results_20130124.token", "results.csv", "flickr30k/results_20130124.token", "flickr30k_images/results.csv"]
_FOLDERS = ["flickr30k-images", "flickr30k_images/flickr30k_images", "flickr30k_images", "images"]
_KARPATHY = {"train": "train", "val": "validation", "test": "test"}

_TOKEN = re.compile(r"(?P<image>[^#\t]+)#(?P<number>\d+)\t(?P<caption>.*)")
# The published results.csv has one row without its second separator: "2199200615.jpg| 4   A dog runs across the grass .".
_ROW = re.compile(r"(?P<image>[^|]+)\|\s*(?P<number>\d+)(?:\s*\||\s)\s*(?P<caption>.*)")


def parts(source: str, *, languages: Sequence[str], shards: int, seed: int) -> dict[str, list[Part]]:
    """Split → parts: everything as `train`, or `train`, `validation` and `test` of Karpathy's file.

    A record is a picture with all its captions, or a row of the file of captions that cannot be used. `seed` plays no part.

    Raises:
        UserError: files are missing (lists what is there) or damaged.
    """
    if not (folder := find_file(source, _FOLDERS)):
        raise not_found(source, f"folder of pictures ({', '.join(_FOLDERS)})", SOURCE)
    folder = folder.removeprefix(source.rstrip("/") + "/")
    found: dict[str, tuple[list[Described], list[Skipped]]]
    if karpathy := find_file(source, ["dataset_flickr30k.json"]):
        found = {split: (records, []) for split, records in _read_karpathy(karpathy, folder).items()}
    elif captions := find_file(source, _CAPTIONS):
        found = {"train": _read_captions(captions, folder)}
    else:
        raise not_found(source, "file of captions (results_20130124.token, results.csv or dataset_flickr30k.json)", SOURCE)
    return {split: deal("flickr30k", split, source, languages[0], *its, shards) for split, its in found.items()}


def _read_captions(uri: str, folder: str) -> tuple[list[Described], list[Skipped]]:
    captions: dict[str, dict[int, str]] = {}
    bad = []
    for line, image, number, caption in _rows(uri):
        if line.fault or not image:
            bad.append(Skipped(line.fault or "row is malformed", f"{uri} line {line.number}"))
        elif number in captions.setdefault(image, {}):
            bad.append(Skipped("caption has the number of another one", f"{uri} line {line.number}: {image}#{number}"))
        else:
            captions[image][number] = caption
    return [
        _described(image, folder, tuple(caption for _, caption in sorted(its.items())), f"{uri} {image}")
        for image, its in sorted(captions.items())
    ], bad


def _rows(uri: str) -> Iterator[tuple[Line, str, int, str]]:
    """(line, image, number of the caption, caption); without image where the row is malformed."""
    pattern = _TOKEN if uri.endswith(".token") else _ROW
    for line in read_lines(uri):
        if pattern is _ROW and line.number == 1 and line.text.replace(" ", "") == "image_name|comment_number|comment":
            continue
        if not line.text and not line.fault:
            continue
        match = pattern.fullmatch(line.text)
        yield (line, match["image"].strip(), int(match["number"]), match["caption"]) if match else (line, "", 0, "")


def _read_karpathy(uri: str, folder: str) -> dict[str, list[Described]]:
    """Pictures of ``{"images": [{filename, split, sentences: [{raw}]}]}``."""
    found: dict[str, list[Described]] = {split: [] for split in _KARPATHY.values()}
    try:
        for image in sorted(read_json(uri)["images"], key=lambda image: image["filename"]):
            captions = tuple(sentence["raw"] for sentence in image["sentences"])
            found[_KARPATHY[image["split"]]].append(_described(image["filename"], folder, captions, f"{uri} {image['filename']}"))
    except (KeyError, TypeError) as error:
        raise UserError(f"{uri} has not the form of Karpathy's splits ({type(error).__name__}: {error}). {SOURCE}") from None
    return {split: records for split, records in found.items() if records}


def _described(image: str, folder: str, captions: tuple[str, ...], where: str) -> Described:
    key = (image.rpartition(".")[0] or image).replace(".", "_")
    return Described(key, (f"{folder}/{image}",), captions, {"source": "flickr30k", "file_name": image}, where)
