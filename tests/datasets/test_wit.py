"""WIT as it is published, in small: tab-separated values with quotes and line ends in fields, several languages a picture."""

import csv
import dataclasses
import gzip
import io
import threading
from urllib.parse import quote

import pytest

from raysys.errors import UserError
from raysys.shards.languages import normalise_language
from tests.datasets.prepared import prepared
from tests.datasets.recipes import recipe_module
from tests.datasets.web_server import GOOD, web_server
from tests.shards.tars import picture

recipe = recipe_module("wit.recipe")
rows = recipe_module("wit.rows")
sorting = recipe_module("wit.sorting")
captions = recipe_module("wit.captions")
pictures = recipe_module("common.web_pictures")

COMMONS = "https://upload.wikimedia.org/wikipedia/commons"


def row(language: str, url: str, reference: str = "", attribution: str = "", alt: str = "", passes: str = "true") -> list[str]:
    page = f"https://{language}.wikipedia.org/wiki/Page"
    values = {"language": language, "page_url": page, "image_url": url, "attribution_passes_lang_id": passes}
    values |= {"caption_reference_description": reference, "caption_attribution_description": attribution}
    values |= {
        "caption_alt_text_description": alt,
        "context_page_description": 'Several\nlines, a\ttab and "quotes"',
        "mime_type": "image/jpeg",
    }
    return [values.get(column, "") for column in rows.COLUMNS]


def packed(content: list[list[str]], end: str = "\n", header: tuple[str, ...] = rows.COLUMNS) -> bytes:
    text = io.StringIO()
    csv.writer(text, delimiter="\t", lineterminator=end).writerows([header, *content])
    return gzip.compress(text.getvalue().encode())


@pytest.fixture
def source(tmp_path):
    """Two files of training rows and one of validation rows, with the pictures at hand."""
    folder = tmp_path / "wit"
    (folder / "images" / "wikipedia" / "commons" / "a").mkdir(parents=True)
    (folder / "images" / "wikipedia" / "commons" / "a" / "Haus.jpg").write_bytes(picture(1, kind="JPEG"))
    (folder / "images" / "Größe 2.png").write_bytes(picture(2))
    (folder / "images" / "broken.jpg").write_bytes(b"GIF89a")
    house, size = f"{COMMONS}/a/Haus.jpg", f"{COMMONS}/b/{quote('Größe 2.png')}"
    first = [
        row("de", house, "Ein Haus\nam  See"),
        row("xx-unknown-tag-", house, "?"),
        row("tlh", house, "not one of WIT's"),
        row("en", house, "A house"),
        row("en", size, ""),
        row("iw", size, "גודל"),
        row("fr", house, "Une maison"),
    ]
    second = [
        row("en", house, "A house by the lake"),
        row("de", house, "Ein Haus am See"),
        row("zh-TW", house, "房子"),
        row("en", f"{COMMONS}/c/none.jpg", "Nowhere"),
        row("en", f"{COMMONS}/c/broken.jpg", "Broken"),
    ]
    (folder / "wit_v1.train.all-00000-of-00010.tsv.gz").write_bytes(packed(first))
    (folder / "wit_v1.train.all-00001-of-00010.tsv.gz").write_bytes(packed([*second, ["too", "short"]], "\r\n"))
    (folder / "wit_v1.val.all-00000-of-00005.tsv.gz").write_bytes(packed([row("en", house, "A house")]))
    return folder


LANGUAGES = ("de", "en", "he", "zh-Hant")


@pytest.mark.parametrize("shards", [1, 2, 7])
def test_rows_of_a_picture_meet_in_one_sample(source, tmp_path, shards):
    splits = prepared(recipe, source, tmp_path / "out", shards, LANGUAGES)
    train = splits["train"]
    by_url = {metadata["url"]: metadata for metadata in train.metadata.values()}
    assert by_url == {
        f"{COMMONS}/a/Haus.jpg": {
            "captions": {"de": ["Ein Haus am See"], "en": ["A house", "A house by the lake"], "zh-Hant": ["房子"]},
            "alignment": "weak",
            "source": "wit",
            "url": f"{COMMONS}/a/Haus.jpg",
            "page": "https://de.wikipedia.org/wiki/Page",
        },
        f"{COMMONS}/b/Gr%C3%B6%C3%9Fe%202.png": {
            "captions": {"he": ["גודל"]},
            "alignment": "weak",
            "source": "wit",
            "url": f"{COMMONS}/b/Gr%C3%B6%C3%9Fe%202.png",
            "page": "https://iw.wikipedia.org/wiki/Page",
        },
    }
    assert sorted(train.images.values()) == sorted([picture(1, kind="JPEG"), picture(2)])
    assert train.counts.read == 13
    assert train.counts.skipped == {
        "another row of a picture (its caption is with the first)": 4,
        "unknown language": 2,
        "language not asked for": 1,
        "no caption": 1,
        "row is malformed": 1,
        "image missing": 1,
        "not an image": 1,
    }
    examples = train.counts.examples
    assert examples["row is malformed"] == "wit_v1.train.all-00001-of-00010.tsv.gz row 6"
    assert examples["image missing"] == f"wit_v1.train.all-00001-of-00010.tsv.gz row 4: {COMMONS}/c/none.jpg"
    assert [caption["en"] for caption in splits["validation"].captions.values()] == [["A house"]]


def test_the_same_picture_is_in_the_same_sample_whatever_the_number_of_shards(source, tmp_path):
    one, many = (prepared(recipe, source, tmp_path / str(shards), shards, LANGUAGES)["train"] for shards in (1, 50))
    assert one.metadata == many.metadata
    assert len(list((tmp_path / "50" / "train").glob("*.tar"))) <= 6  # empty drawers make no parts


def test_files_are_sorted_once(source, tmp_path):
    prepared(recipe, source, tmp_path / "out", languages=LANGUAGES)
    kept = {path: path.stat().st_mtime_ns for path in (source / ".sorted").iterdir()}
    assert len(kept) == 6
    (source / "images" / "none.jpg").write_bytes(picture(3, kind="JPEG"))
    again = prepared(recipe, source, tmp_path / "out", languages=LANGUAGES)["train"]
    assert again.counts.written == 3
    assert {path: path.stat().st_mtime_ns for path in (source / ".sorted").iterdir()} == kept
    prepared(recipe, source, tmp_path / "out", languages=("fr",))
    assert len(list((source / ".sorted").iterdir())) == 12


def test_blocks_of_any_size_hold_the_same_rows(source, monkeypatch):
    uri = str(source / "wit_v1.train.all-00000-of-00010.tsv.gz")
    expected = list(rows.read_rows(uri, LANGUAGES, recipe.CAPTION_COLUMNS[:1]))
    for number, size in enumerate((0, 300, 1 << 20)):
        monkeypatch.setattr(sorting, "BUFFER", size)
        drawers = sorting.sort_file(uri, str(source / f".{number}"), 3, LANGUAGES, recipe.CAPTION_COLUMNS[:1], threading.Event())
        found = [row for drawer in drawers for row in drawer.rows()]
        assert sorted(found, key=lambda row: row.number) == expected
        for drawer in drawers:
            assert [row.number for row in drawer.rows()] == sorted(row.number for row in drawer.rows())


def test_pictures_from_the_web(source, tmp_path, monkeypatch):
    limits = dataclasses.replace(pictures.default_limits(), private_addresses=True, silence=1, seconds=1, pause=0.01, attempts=1)
    monkeypatch.setattr(recipe, "default_limits", lambda: limits)
    (source / "images").rename(source / "other")
    for path in source.glob("*.tsv.gz"):
        path.unlink()
    with web_server() as server:
        content = [row("de", server.url("/good"), "Gut"), row("en", server.url("/good"), "Good"), row("en", server.url("/down"), "Down")]
        (source / "wit_v1.train.all-1percent_sample.tsv.gz").write_bytes(packed(content))
        train = prepared(recipe, source, tmp_path / "out", languages=("de", "en"))["train"]
        assert list(train.captions.values()) == [{"de": ["Gut"], "en": ["Good"]}]
        assert list(train.images.values()) == [GOOD]
        assert server.asked == {"/good": 1, "/down": 1}
        assert train.counts.skipped["http 500 (the next run tries again)"] == 1
        server.healthy = True
        assert prepared(recipe, source, tmp_path / "out", languages=("de", "en"))["train"].counts.written == 2
        assert server.asked == {"/good": 1, "/down": 2}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("English: A house. Deutsch: Ein Haus: klein.", {"en": "A house.", "de": "Ein Haus: klein."}),
        ("Français : Une maison", {"fr": "Une maison"}),
        ("Bahasa Indonesia: Rumah English: House", {"id": "Rumah", "en": "House"}),
        ("Plain English: not a mark inside? It is one", {"en": "not a mark inside? It is one"}),
        ("A house: small", {}),
        ("中文: 房子", {"zh-Hans": "房子"}),
        ("", {}),
    ],
)
def test_marks_of_languages(text, expected):
    assert captions.divide_by_language(text) == expected


REFERENCE, ATTRIBUTION, ALT = recipe.CAPTION_COLUMNS


@pytest.mark.parametrize(
    ("columns", "values", "expected"),
    [
        ((REFERENCE,), {"reference": " Ein\u00a0Haus ", "alt": "alt"}, "Ein Haus"),
        ((REFERENCE, ALT), {"reference": "\u200b", "alt": "alt"}, "alt"),
        ((ALT, REFERENCE), {"reference": "Haus", "alt": "alt"}, "alt"),
        ((ATTRIBUTION,), {"attribution": "English: A house Deutsch: Ein Haus"}, "Ein Haus"),
        ((ATTRIBUTION,), {"attribution": "English: A house"}, ""),
        ((ATTRIBUTION,), {"attribution": "Ein Haus"}, "Ein Haus"),
        ((ATTRIBUTION,), {"attribution": "A house", "passes": "false"}, ""),
        ((ATTRIBUTION, REFERENCE), {"attribution": "English: A house", "reference": "Haus"}, "Haus"),
    ],
)
def test_which_caption_is_taken(columns, values, expected):
    cells = dict(zip(rows.COLUMNS, row("de", "", **values), strict=True))
    assert captions.choose_caption(cells, "de", columns) == expected


def test_every_language_of_wit_has_its_normal_spelling():
    assert len(recipe.AVAILABLE) == 108
    assert {"he", "nb", "zh-Hans", "zh-Hant", "be-tarask", "sr-Latn"} <= set(recipe.AVAILABLE)
    assert [normalise_language(tag) for tag in recipe.AVAILABLE] == list(recipe.AVAILABLE)
    assert set(captions._NAMES.values()) <= set(recipe.AVAILABLE)


def test_mistakes_are_told(source, tmp_path):
    def parts():
        return recipe.parts(str(source), languages=("en",), shards=2, seed=0)

    path = source / "wit_v1.train.all-00000-of-00010.tsv.gz"
    whole = path.read_bytes()
    path.write_bytes(packed([], header=("language", "image_url")))
    with pytest.raises(UserError, match="is no file of WIT: its first line lacks the column 'page_url'; it has 'language, image_url'"):
        parts()
    path.write_bytes(whole[:-20])
    with pytest.raises(UserError, match=r"00000-of-00010\.tsv\.gz is cut short or damaged after line \d+"):
        parts()
    path.write_bytes(gzip.decompress(whole))
    with pytest.raises(UserError, match=r"00000-of-00010\.tsv\.gz is cut short or damaged after line 0"):
        parts()
    for file in source.glob("*.gz"):
        file.unlink()
    with pytest.raises(
        UserError, match=r"has no wit_v1\.train\.all-….tsv\.gz; found there: (\.sorted, )?images\. Expected are WIT's files"
    ):
        parts()
