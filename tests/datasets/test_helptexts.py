"""Help texts: the readers on small pages, then packages of our own making, as `jobs/prepare.py` reads them."""

import hashlib
import itertools
from collections import defaultdict
from pathlib import Path

import pytest

from raysys.errors import UserError
from raysys.shards.language_pairs import count_pairs
from raysys.shards.manifest import Manifest
from raysys.shards.writer import write_shards
from raysys.storage import Storage
from tests.datasets.recipes import recipe_module
from tests.shards.tars import tar

recipe = recipe_module("helptexts.recipe")
sources, parallel, libreoffice, gnome = (recipe_module(f"helptexts.{name}") for name in ("sources", "parallel", "libreoffice", "gnome"))
archives = recipe_module("common.archives")


# ---- readers ----

SWITCH = (
    'Press <span id="s1" class="switchinline"><span hidden="true" id="MACx_1" class="MAC"><span class="keycode">Command</span></span>'
    '<span hidden="true" id="defaultx_1"><span class="keycode">Ctrl</span></span></span><span class="keycode">+F</span> now.'
)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ('Choose <span class="emph">Insert - <a href="x">Caption</a></span>.', "Choose Insert - Caption."),
        ("Date &amp; time: x<sup>2</sup> &lt; 3<br>next", "Date & time: x2 < 3 next"),
        (SWITCH, "Press Ctrl+F now."),
        (
            'Use <span class="switchinline" id="s"> <span id="DRAWx">a <b>sheet</b></span> <span id="IMPRESSx">a slide</span></span>.',
            "Use a sheet.",
        ),
        (
            '<span class="switchinline" id="s"><span id="defaulta">out <span class="switchinline" id="t"><span id="MACb">x</span>'
            '<span id="defaultb">in</span></span></span></span>!',
            "out in!",
        ),
        ('So.<span class="switchinline" id="s"></span>', "So."),
        ('<img src="a.svg" alt="Icon"><a name="b"></a> ', " "),
    ],
)
def test_markup_of_a_paragraph(content, expected):
    assert libreoffice.shown(content) == expected


def page(*paragraphs: tuple[str, str], tag: str = "p") -> bytes:
    body = "\n".join(f'<{tag} id="{name}" class="paragraph" dir="auto">{text}</{tag}>' for name, text in paragraphs)
    around = '<p dir="auto">Help</p><div id="DisplayArea">%s<pre dir="auto"><code>x = 1</code></pre></div><p id="bm_module">WRITER</p>'
    return (around % body).encode()


def test_pages_of_libreoffice():
    files = {
        "de/text/swriter/b.html": page(("par_id1", "Zwei\nZeilen"), ("par_id2", " "), ("par_id1", "noch einmal")),
        "de/text/scalc/a.html": page(("hd_id1", "Kopf"), ("hd_id2", "In $[officename]"), tag="h2"),
        "de/noscript.html": page(("par_id9", "Kein Text")),
    }
    assert libreoffice.read_help(files) == {
        ("scalc/a", "hd_id1"): "Kopf",
        ("swriter/b", "par_id1"): "Zwei\nZeilen",
        ("swriter/b", "par_id2"): " ",
    }


def mallard(body: str, info: str = "") -> bytes:
    return f'<page xmlns="http://projectmallard.org/1.0/" id="x"><info>{info}</info>{body}</page>'.encode()


CREDIT = '<mal:credit xmlns:mal="http://projectmallard.org/1.0/"><mal:name>N. N.</mal:name></mal:credit>'


def test_pages_of_mallard():
    english = mallard(
        "<title>Back up</title><comment><p>Too long?</p></comment><p>Press <keyseq><key>Ctrl</key> <key>C</key></keyseq>, then "
        "<guiseq><gui>File</gui><gui>Copy</gui></guiseq> in <app>Files</app><media type='image'><p>A window.</p></media>.</p>"
        "<list><item><p>One</p></item><item><p>See <link xref='y'/>.</p></item></list><screen>$ cp</screen>",
        "<credit><name>A. A.</name></credit><desc>Keep  it.</desc>",
    )
    german = mallard(
        "<title>Sichern</title><p>x</p><list><item><p>Eins</p></item><item><p>Siehe.</p></item></list>", f"<desc>y</desc>{CREDIT}{CREDIT}"
    )
    odd = mallard("<title>Sichern</title>")
    files = {"C/guide/a.page": english, "de/guide/a.page": german, "C/guide/b.page": mallard("<p>b</p>"), "de/guide/b.page": odd}
    texts = gnome.read_guides(files, "en")
    assert {place[1]: text for place, text in texts.items() if place[0] == "guide/a"} == {
        "info1/desc1": "Keep  it.",
        "title1": "Back up",
        "p1": "Press Ctrl+C, then File ▸ Copy in Files.",
        "list1/item1/p1": "One",
        "list1/item2/p1": "",  # shows the title of another page
    }
    translated = gnome.same_pages(gnome.read_guides(files, "de"), texts)
    assert {place[0] for place in translated} == {"guide/a"}, "a page of another structure is of another version"
    assert translated["guide/a", "list1/item1/p1"] == "Eins"


# ---- alignment and splits ----


def test_equal_english_texts_become_one_paragraph():
    texts = {
        "en": {
            ("a", "1"): "Close  it",
            ("b", "1"): "Close it",
            ("c", "1"): "Close it",
            ("a", "2"): "PDF",
            ("a", "3"): "x = 4",
            ("a", "4"): "Sun",
        },
        "de": {
            ("a", "1"): "Zu",
            ("b", "1"): "Schließen",
            ("c", "1"): "Schließen",
            ("a", "2"): "(pdf)",
            ("a", "3"): "x ist 4",
            ("a", "4"): "",
        },
        "id": {("c", "1"): "Tutup", ("a", "4"): "Matahari", ("z", "1"): "?"},
    }
    assert parallel.align(texts) == [
        parallel.Paragraph((("a", "1"), ("b", "1"), ("c", "1")), {"en": "Close it", "de": "Schließen", "id": "Tutup"}),
        parallel.Paragraph((("a", "4"),), {"en": "Sun", "id": "Matahari"}),
    ]


def paragraph(document: str, number: int, english: str, german: str, *others: str):
    return parallel.Paragraph(tuple((name, f"p{number}") for name in (document, *others)), {"en": english, "de": german})


def documents() -> list:
    """100 documents of four paragraphs: two of their own, one that shares a sentence with the next document, one that all have."""
    found = [paragraph("d00", 9, "Syntax", "Aufbau", *(f"d{n:02}" for n in range(1, 100)))]
    for n in range(100):
        name = f"d{n:02}"
        found += [paragraph(name, 0, f"The cat number {n} sleeps.", f"Katze {n} schläft."), paragraph(name, 1, f"Dog {n}", f"Hund {n}")]
        # Equal English sentences in one place, equal German ones (case and marks aside) in the other.
        found.append(paragraph(name, 2, f"Look at tree {n // 2}! It is number {n}.", f"Schau: {n}. Baum."))
        found.append(paragraph(name, 3, f"A house of {n}", f"Ein HAUS, {n // 2}"))
    return found


@pytest.mark.parametrize("seed", range(4))
def test_documents_are_divided_and_no_sentence_crosses(seed):
    many = documents()
    splits, left_out = parallel.split_paragraphs(many, seed)
    assert sum(map(len, splits.values())) + left_out == len(many)
    side = parallel.divide([f"d{n:02}" for n in range(100)], seed)
    assert sorted(side.values()) == ["test"] * 4 + ["train"] * 92 + ["validation"] * 4
    sentences = defaultdict(set)
    for split, members in splits.items():
        for one in members:
            assert {side[document] for document, _ in one.places} == {split}
            assert one.places[0][1] != "p9" or (split, len(one.places)) == ("train", 92), "what all documents have is trained on"
            sentences[split] |= set(parallel._sentences(one))
    assert ("en", "look at tree 3") in sentences["train"] | sentences["validation"] | sentences["test"], "sentences are told apart"
    assert all(first.isdisjoint(second) for first, second in itertools.combinations(sentences.values(), 2))
    # Of a held-out document, its own two paragraphs always stay; the other two only where its neighbour is on the same side.
    neighbours = sum(side[f"d{n:02}"] != "train" and side[f"d{n ^ 1:02}"] == "train" for n in range(100))
    assert left_out >= 2 * neighbours > 0
    assert all(sum(one.places[0][1] in ("p0", "p1") for one in splits[name]) == 8 for name in ("validation", "test"))


def test_splits_repeat_for_a_seed():
    assert parallel.split_paragraphs(documents(), 3) == parallel.split_paragraphs(documents(), 3)
    assert parallel.split_paragraphs(documents(), 3) != parallel.split_paragraphs(documents(), 4)


# ---- packages ----


def deb(path: Path, files: dict[str, bytes]) -> str:
    """Write a Debian package: an ar archive of three members; returns its SHA-256."""
    data = b"!<arch>\n"
    for name, content in (
        ("debian-binary", b"2.0\n"),
        ("control.tar", tar([])),
        ("data.tar", tar([(f"./{n}", c) for n, c in files.items()])),
    ):
        data += f"{name:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode() + content + b"\n" * (len(content) % 2)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """Packages of 60 pages in English, German and Japanese (half of it translated), where the pinned ones would lie."""
    folder = tmp_path / "cache"
    folder.mkdir()
    words = {"en": "Click button {} to save.", "de": "Klicken Sie auf Knopf {}, um zu speichern.", "ja": "ボタン{}を押して保存。"}
    packages, guides = {}, {}
    for language, name, locale in (("en", "en-us", "C"), ("de", "de", "de"), ("ja", "ja", "ja")):
        help_pages = {}
        for n in range(60):
            text = words["en" if language == "ja" and n % 2 else language].format(n)
            help_pages[f"{libreoffice.FOLDER}/{name}/text/swriter/page.{n:02}.html"] = page(
                ("par_id1", f"<b>{text}</b>"), ("par_id2", "42")
            )
        archive = archives.DebianArchive(f"libreoffice-help-{name}", "1", "")
        packages[language] = archives.DebianArchive(archive.name, "1", deb(folder / archive.file, help_pages))
        guides[f"{gnome.FOLDER}/{locale}/gnome-help/a.page"] = mallard(f"<p>{words[language].format('two')}</p>")
    archive = archives.DebianArchive("gnome-user-docs", "1", "")
    monkeypatch.setattr(sources, "GNOME", archives.DebianArchive(archive.name, "1", deb(folder / archive.file, guides)))
    monkeypatch.setattr(sources, "LIBREOFFICE", packages)
    return folder


def test_shards_of_packages(cache, tmp_path, capsys):
    samples = list(recipe.samples(cache, seed=0, languages=("de", "ja", "en")))
    assert "distinct and translated, from libreoffice: en 60 de 60 ja 30" in capsys.readouterr().err
    assert [split for split, _ in itertools.groupby(sample.split for sample in samples)] == ["train", "validation", "test"]
    by_key = {sample.key: sample for sample in samples}
    assert len(by_key) == len(samples) == 61
    sample = by_key["libreoffice-swriter-page-04-par_id1"]
    assert sample.image is None
    assert sample.metadata == {
        "captions": {
            "de": ["Klicken Sie auf Knopf 4, um zu speichern."],
            "ja": ["ボタン4を押して保存。"],
            "en": ["Click button 4 to save."],
        },
        "alignment": "strict",
        "document": "libreoffice/swriter/page.04",
        "place": "par_id1",
        "licence": "MPL-2.0",
        "source": "libreoffice",
    }
    assert by_key["gnome-gnome-help-a-p1"].metadata["licence"] == "CC-BY-SA-3.0"
    for split, its in itertools.groupby(samples, key=lambda sample: sample.split):
        write_shards(its, str(tmp_path / split), 2, Storage())
    counted = count_pairs(Manifest.build(Storage(), str(tmp_path / "train")), ("en", "de", "ja"))
    train = [sample.metadata["captions"] for sample in samples if sample.split == "train"]
    with_japanese = sum("ja" in captions for captions in train)
    assert counted.counts.tolist() == [[len(train), len(train), with_japanese]] * 2 + [[with_japanese] * 3]
    assert counted.images == 0


def test_english_is_read_but_not_written_where_it_is_not_asked_for(cache):
    samples = list(recipe.samples(cache, seed=0, languages=("ja", "de")))
    assert len(samples) == 31
    assert {tuple(sample.metadata["captions"]) for sample in samples} == {("ja", "de")}


@pytest.mark.parametrize(
    ("options", "message"),
    [({"count": 5}, "size of the data set 'helptexts' is fixed"), ({"languages": ("de",)}, "two languages or more, and 'de' is one")],
)
def test_mistakes(tmp_path, options, message):
    with pytest.raises(UserError, match=message):
        next(recipe.samples(tmp_path, **{"seed": 0, "languages": ("en", "de"), **options}))


def test_languages_are_those_of_the_packages():
    assert set(recipe.LANGUAGES) <= set(sources.LIBREOFFICE) <= set(recipe.AVAILABLE)
    assert len(set(recipe.AVAILABLE)) == len(recipe.AVAILABLE) == 42
