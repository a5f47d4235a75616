"""The Debian packages of help: which there are, and what each holds."""

from collections.abc import Sequence
from pathlib import Path

from raysys.shards.languages import normalise_language

from ..common.archives import DebianArchive, fetch_debian, to_stderr
from ..common.debian import read_files
from . import gnome, libreoffice

Texts = dict[tuple[str, str], str]
"""(document, place in it) → text in one language."""

_VERSION = "4:7.4.7-1+deb12u14"
_LIBREOFFICE = {
    "ca": "194dfad8a2f1bc76a442a568d3eee13add77338ff081e177f8df6eb95e336ace",
    "cs": "9fcbf9b3cbbc1370d827d5bc59df0227fa95bdf3b5628b907ef5fb4d8d55be6a",
    "da": "53313a9c7a4bb25ff3d648ab629f69144a65adc4f67ad38da6e55b05165618c8",
    "de": "00490b63c509ac96f7f212d6a6e40452d3e0d1f97ccf4b824dd5ec4c01e8277f",
    "dz": "1380379dab641b8a9a4740474878e245bab22f9d3c2794b5585dcf025f24b749",
    "el": "ed4c905d0df5761be817f59381ce7c48fa50ec9cef5737c83e66aa7d3c898f79",
    "en-us": "8faa840285734d6cfe1ed25537b48f07e74bd6412e3917bf8e5f8a653f7b3712",
    "es": "9128a84d83d92c8b1c618d90469d16affddb7d1290b09d42a0c5109cb16f0480",
    "et": "e52d7115195642283a14c052e610957cbed8435f06beb35139823722c8942839",
    "eu": "e88eaa5da5d9254a7c9bc1a6ac89d04758380adc044f9a007f666de68ef9aa91",
    "fi": "47b0bf9820e7eef19de7d56400aae8139de26eca4f3d72f57d6769c751630f26",
    "fr": "c796530d3e95af1ea4d054076682efc8aad2b569ae9513f3d4a776b2df3fd206",
    "gl": "c1cf71cc98ed2c08060bfcf55cbc03d3d72e0fe7c3f5192b034c87cbf6b6e679",
    "hi": "fda6f59354cb79f7ecfe379a502b009119a506aa0873416b044f1f39ad00a4cf",
    "hu": "d4ae75812fdeb6f2b03fac6bc0f95d3f6824b75706930e806d41c751e68ffe27",
    "id": "5aa8c2894f8638fb2ec50cce72f81e9559f9baf45845c40b990b7f046e3f73d4",
    "it": "7fa29342a302bb495981fdabf98f3a9c3628123f3f191b2a5c95cb583c9ff212",
    "ja": "7799ace9bfe0845771ed2499913e7f7e521318cf3727c007672e3b020f8eb7b9",
    "km": "58700c6513c15d78e6dbbfda82b05f45fcb5a8acf0832f3dca50918d71e27f50",
    "ko": "7ef2d854e9ed58e6bf861cfa9fa2579555233f9df874baf327fcb07ccd190669",
    "nl": "8b4b49a7d1bd0df3aa4693eeebe3f6886655427eaf736d9289c5ff6fbf489591",
    "om": "97c58a5f6b34a871594c807b034c5d5dce693d10e089a41c5faf1e50cf37bf8b",
    "pl": "27441ce6d1303524b223aa94a17356bf7195f388d9b05a9e5e346866d7983694",
    "pt": "0130802d755de8666c663cc0745ba7a23d546d35a918f349a7a9adb78d16e7a4",
    "pt-br": "600d4294e52a6534be923521aff7b1b9eb7e6ddb7e30b2598ad04b2fe9cf8278",
    "ru": "5a2f75d5b0dfcf660275070647af528a81be28b5d3e9c3ec2d419ef5518db7a2",
    "sl": "98c06e58e4cf90c5ccc98d5d7bb069edbbf64845dcdf485cce24a16598d40c90",
    "sv": "1b34145188f08aff7029fdc1ae378141494743d93cb09d9a3e782a229941ab66",
    "tr": "8fe832104805b66d2dc5c153564bcc55b5a084e10b3c3a3ea773c4b57659bfb8",
    "vi": "fcc4f84cd28d094f8663d1b68b98a7d562f3c71c8beeb71401c4859f1027aaaf",
    "zh-cn": "db867cdece4c2f9c7eebe65e519c6cf386fdcf49d6e061db3dffec893b3e1dee",
    "zh-tw": "f79cb2bee8d8d783efd825051a957b4c97a56dad5a05bde0ee90e66099331209",
}
"""End of a package's name → SHA-256."""

LIBREOFFICE = {
    normalise_language(name): DebianArchive(f"libreoffice-help-{name}", _VERSION, digest) for name, digest in _LIBREOFFICE.items()
}
"""BCP-47 tag → package of one language."""
GNOME = DebianArchive("gnome-user-docs", "43.0-2", "0d635a840747958ca84da778b40d341f1155603851f922c9a171f5a181d6a39f")
"""The package of all languages."""

LICENCES = {"libreoffice": "MPL-2.0", "gnome": "CC-BY-SA-3.0"}
"""First part of a document's name → licence of the text."""


def read_texts(cache: Path, languages: Sequence[str]) -> dict[str, Texts]:
    """Language → texts of both programs' help in `languages`, English among them; packages that `cache` lacks are fetched.

    Raises:
        UserError: a package cannot be fetched, or is not the right one.
    """
    read = {"libreoffice": _read_libreoffice(cache, languages), "gnome": _read_gnome(cache, languages)}
    texts: dict[str, Texts] = {language: {} for language in languages}
    for source, its_texts in read.items():
        for language, its in its_texts.items():
            texts[language] |= {(f"{source}/{document}", place): text for (document, place), text in its.items()}
    return texts


def _read_libreoffice(cache: Path, languages: Sequence[str]) -> dict[str, Texts]:
    packages = {language: LIBREOFFICE[language] for language in languages if language in LIBREOFFICE}
    return {
        language: libreoffice.read_help(read_files(fetch_debian(package, cache, to_stderr), libreoffice.FOLDER, (".html",)))
        for language, package in packages.items()
    }


def _read_gnome(cache: Path, languages: Sequence[str]) -> dict[str, Texts]:
    files = read_files(fetch_debian(GNOME, cache, to_stderr), gnome.FOLDER, (".page",))
    english = gnome.read_guides(files, "en")
    return {language: gnome.same_pages(gnome.read_guides(files, language), english) for language in languages}
