"""The packages that the emoji data set is made of: names, and the art of eight styles, all under open licences."""

import json
import tarfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..common.archives import NpmArchive, fetch_npm

NAMES = NpmArchive("cldr-annotations-full", "48.2.0", "28576e51225deb51e3ddd734b0f824a0079682cb5d8c27faa9f68149317a14d1")
"""CLDR short names and keywords of single emoji, per language (Unicode License v3)."""


@dataclass(frozen=True)
class Style:
    """One hand that drew the emoji."""

    name: str
    archive: NpmArchive
    licence: str


def _iconify(name: str, version: str, sha256: str, licence: str) -> Style:
    return Style(name, NpmArchive(f"@iconify-json/{name}", version, sha256), licence)


TRAINING_STYLES = (
    _iconify("noto", "1.2.9", "3e918d88fc945c0bb3d468dbace6f88caef67f01c9f0e7bcae0915a042e8f1ad", "Apache-2.0"),
    _iconify("twemoji", "1.2.5", "19046dff7d8707ce96212ec86468b36ac5f8e60409629dd13f809265c6d0ebb7", "CC-BY-4.0"),
    _iconify("openmoji", "1.2.29", "03181e2c156cab35cf4a62f1f7886bd971d59212e75ac3f189d5a4cae3930fc5", "CC-BY-SA-4.0"),
    _iconify("noto-v1", "1.2.5", "2bf62c26c2c2884aa99e90aec942cdaee17a5921f05690694f4978ad4b017c37", "Apache-2.0"),
    _iconify("emojione", "1.2.3", "26a14f44284407e8bcde91799388dca2bfd91dbcd55a97f425524a1c5b73610e", "CC-BY-4.0"),
    _iconify("emojione-v1", "1.2.3", "6641d59d48a42823fdc2b84e7427e9f302944eb98d2c7d94d6e67c139e7b37b3", "CC-BY-SA-4.0"),
)
VALIDATION_STYLE = _iconify("fluent-emoji-flat", "1.2.6", "7d064769dee690815f823bc5bcc511d957198caf9f5edd8dd9c1aa48a6aeb175", "MIT")
TEST_STYLE = Style(
    "fluent-emoji-3d",
    NpmArchive("@lobehub/fluent-emoji-3d", "1.1.0", "c1bb7eee7de090205a232518a9ab4adb3df458bfbe8a1f78232991194c8b2e58"),
    "MIT",
)
"""Fluent's two styles are near twins, so neither is ever one to train on."""

STYLES = (*TRAINING_STYLES, VALIDATION_STYLE, TEST_STYLE)


def fetch(cache: Path, log: Callable[[str], None]) -> dict[str, Path]:
    """Fetch what is missing; package name → archive in `cache`."""
    archives = [NAMES, *(style.archive for style in STYLES)]
    return dict(zip((archive.name for archive in archives), fetch_npm(archives, cache, log), strict=True))


def read_members(archive: Path, wanted: Callable[[str], bool]) -> dict[str, bytes]:
    """Contents of the files of an npm archive for which `wanted(path)` holds, by path without the leading ``package/``."""
    found: dict[str, bytes] = {}
    with tarfile.open(archive, "r:gz") as tar:
        for member in tar:
            path = member.name.partition("/")[2]
            if member.isfile() and wanted(path):
                file = tar.extractfile(member)
                assert file is not None
                found[path] = file.read()
    return found


def read_names(archive: Path, languages: Iterable[str]) -> dict[str, dict[str, dict[str, list[str]]]]:
    """Annotations by CLDR locale, then by emoji: ``{"tts": [name], "default": [keywords]}``; locales without any are left out."""
    paths = {f"annotations/{language}/annotations.json": language for language in languages}
    names = {}
    for path, data in read_members(archive, paths.__contains__).items():
        annotations: dict[str, Any] = json.loads(data)["annotations"].get("annotations")
        if annotations:
            names[paths[path]] = annotations
    return names
