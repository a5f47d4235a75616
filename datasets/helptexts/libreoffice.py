"""Paragraphs of LibreOffice's help, which has the same pages with the same paragraph ids in every language."""

import re
from collections.abc import Mapping
from html.parser import HTMLParser

FOLDER = "usr/share/libreoffice/help"

_PARAGRAPH = re.compile(r'<(p|h[1-6]) id="(?!bm_)([^"]+)"[^>]*>(.*?)</\1>', re.DOTALL)
"""A paragraph or heading of the page itself; what stands around the page has no id, or one that begins with bm_."""
_PLACEHOLDER = re.compile(r"\$\[|%PRODUCT|%BEGIN|%END")
"""A name that was to be put in and was not."""


def read_help(files: Mapping[str, bytes]) -> dict[tuple[str, str], str]:
    """(document, paragraph id) → text, in order of the documents; what shows nothing is left out.

    Args:
        files: paths beneath `FOLDER` → pages (``.html``) of one language. Code samples have no ids, and so are no paragraphs.
    """
    texts: dict[tuple[str, str], str] = {}
    for path in sorted(files):
        _, inside, page = path.partition("/text/")
        if inside:
            document = page.removesuffix(".html")
            for _, name, content in _PARAGRAPH.findall(files[path].decode()):
                text = shown(content)
                if text and not _PLACEHOLDER.search(text):
                    texts.setdefault((document, name), text)
    return texts


def shown(content: str) -> str:
    """The text of a paragraph's markup as a reader sees it, white space as it stands there.

    Where a phrase differs by program or system, all are in the page, and hidden but for one: here it is the one for all others, or the
    first.
    """
    reader = _Reader()
    reader.feed(content)
    reader.close()
    return reader.text


class _Reader(HTMLParser):
    """Collects text; knows spans alone, as other elements of a paragraph neither hide nor choose."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self._spans: list[tuple[str, str]] = []
        """(class, id) of the spans that are open."""
        self._switches: list[tuple[str, dict[str, str]]] = []
        """Text before a choice that is open, and its phrases by id."""

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        if tag == "br":
            self.text += " "
        if tag != "span":
            return
        values = dict(attributes)
        kind, name = values.get("class") or "", values.get("id") or ""
        if kind == "switchinline":
            self._switches.append((self.text, {}))
            self.text = ""
        elif self._spans and self._spans[-1][0] == "switchinline":
            self.text, kind = "", "phrase"
        self._spans.append((kind, name))

    def handle_endtag(self, tag: str) -> None:
        if tag != "span" or not self._spans:
            return
        kind, name = self._spans.pop()
        if kind == "phrase":
            self._switches[-1][1].setdefault(name, self.text)
            self.text = ""
        elif kind == "switchinline":
            before, phrases = self._switches.pop()
            usual = [phrase for name, phrase in phrases.items() if name.startswith("default")]
            self.text = before + next(iter([*usual, *phrases.values()]), "")

    def handle_data(self, data: str) -> None:
        self.text += data
