"""COCO: photographs with five English captions each."""

from collections.abc import Iterable, Sequence
from typing import Any

from raysys.errors import UserError
from raysys.shards.parts import Part, Skipped

from ..common.archives import to_stderr
from ..common.described import Described, deal, find_file, not_found, read_json

SOURCE = (
    "Expected is COCO as cocodataset.org publishes it, unpacked into one folder: annotations/captions_train2017.json and "
    "captions_val2017.json with images in train2017/ and val2017/, or the same of 2014; with Karpathy's dataset_coco.json beside them his "
    "splits are made."
)
LANGUAGES = ("en",)
AVAILABLE = LANGUAGES

_PUBLISHED = {"train": "train", "val": "validation"}
_KARPATHY = {"train": "train", "restval": "train", "val": "validation", "test": "test"}
"""Karpathy's split → ours; `restval` is what he left of val2014, and everybody trains with it."""

Found = tuple[list[Described], list[Skipped]]
"""The pictures of a split, and what in the annotations belongs to none of them."""


def parts(source: str, *, languages: Sequence[str], shards: int, seed: int) -> dict[str, list[Part]]:
    """Split → parts: `train` and `validation` as published, or `train`, `validation` and `test` of Karpathy's file.

    A record is a picture with all its captions, or a caption that belongs to no picture. `seed` plays no part.

    Raises:
        UserError: files are missing (lists what is there) or damaged.
    """
    karpathy = find_file(source, ["dataset_coco.json", "annotations/dataset_coco.json"])
    found = _read_karpathy(source, karpathy) if karpathy else _read_published(source)
    return {split: deal("coco", split, source, languages[0], *its, shards) for split, its in found.items()}


def _read_published(source: str) -> dict[str, Found]:
    annotated = []
    for year in ("2017", "2014"):
        found: dict[str, Found] = {}
        for published, split in _PUBLISHED.items():
            name = f"captions_{published}{year}.json"
            if not (uri := find_file(source, [f"annotations/{name}", name])):
                continue
            folders = [f"{published}{year}", f"images/{published}{year}"]
            if find_file(source, folders):
                found[split] = _pictures(uri, folders)
            else:
                annotated.append(f"{folders[0]}/, which {uri} describes")
        if found:
            for folder in annotated:
                to_stderr(f"note: left out for want of pictures: {folder}")
            return found
    wanted = f"images in {' or '.join(annotated)}" if annotated else "annotations/captions_train2017.json or its like"
    raise not_found(source, wanted, SOURCE)


def _pictures(uri: str, folders: Sequence[str]) -> Found:
    """Pictures of ``{"images": [{id, file_name, license, flickr_url}], "annotations": [{image_id, caption}], "licenses": [{id, url}]}``."""
    content = read_json(uri)
    try:
        licences = {licence["id"]: licence["url"] for licence in content.get("licenses", [])}
        images = {image["id"]: image for image in content["images"]}
        captions: dict[int, list[str]] = {number: [] for number in images}
        strays = []
        for position, annotation in enumerate(content["annotations"]):
            if annotation["image_id"] in captions:
                captions[annotation["image_id"]].append(annotation["caption"])
            else:
                where = f"{uri} annotation {position}"
                strays.append(Skipped("caption of a picture that is not listed", f"{where}: image {annotation['image_id']}"))
        records = []
        for number, image in sorted(images.items()):
            fields: dict[str, Any] = {"source": "coco", "image_id": number, "file_name": image["file_name"]}
            fields |= {name: value for name, value in _origin(image, licences) if value}
            files = tuple(f"{folder}/{image['file_name']}" for folder in folders)
            records.append(Described(f"{number:012d}", files, tuple(captions[number]), fields, f"{uri} image {number}"))
    except (KeyError, TypeError) as error:
        raise UserError(f"{uri} has not the form of COCO's captions ({type(error).__name__}: {error}). {SOURCE}") from None
    return records, strays


def _origin(image: dict[str, Any], licences: dict[int, str]) -> Iterable[tuple[str, str | None]]:
    return ("licence", licences.get(image.get("license", -1))), ("url", image.get("flickr_url") or image.get("coco_url"))


def _read_karpathy(source: str, uri: str) -> dict[str, Found]:
    """Pictures of ``{"images": [{cocoid, filepath, filename, split, sentences: [{raw}]}]}``."""
    content = read_json(uri)
    found: dict[str, Found] = {split: ([], []) for split in dict.fromkeys(_KARPATHY.values())}
    try:
        for image in sorted(content["images"], key=lambda image: image["cocoid"]):
            number, name = image["cocoid"], f"{image['filepath']}/{image['filename']}"
            files = (name, f"images/{name}", *(f"{folder}/{number:012d}.jpg" for folder in ("train2017", "val2017")))
            fields = {"source": "coco", "image_id": number, "file_name": image["filename"], "published_split": image["split"]}
            captions = tuple(sentence["raw"] for sentence in image["sentences"])
            record = Described(f"{number:012d}", files, captions, fields, f"{uri} image {number}")
            found[_KARPATHY[image["split"]]][0].append(record)
    except (KeyError, TypeError) as error:
        raise UserError(f"{uri} has not the form of Karpathy's splits ({type(error).__name__}: {error}). {SOURCE}") from None
    folders = ["train2014", "val2014", "images/train2014", "images/val2014", "train2017", "val2017"]
    if not find_file(source, folders):
        raise not_found(source, "images in any of " + ", ".join(f"{folder}/" for folder in folders), SOURCE)
    return {split: its for split, its in found.items() if its[0]}
