"""The report as a browser sees it: well-formed, harmless, complete, self-contained."""

import base64
import html.parser
import io
import itertools
import re

import numpy as np
import pytest
from PIL import Image

from raysys.evaluation.examples import Retrieved, Side, TransitiveMatch, TranslationExample
from raysys.evaluation.figures import Curve, by_family, heat_map, line_chart, nice_ticks, running_mean
from raysys.evaluation.markup import Markup, el, picture
from raysys.evaluation.naming import family
from raysys.evaluation.report import ReportData, write_report
from raysys.shards.languages import LANGUAGES

EVIL = '<script>alert("x")</script>\'"&<img src=https://evil.example/x onerror=alert(1)>'
VOID = {"img", "br", "meta", "rect", "path", "line", "circle"}
LOADING = {"src", "href", "srcset", "data", "action", "poster", "background", "xlink:href", "formaction"}


def png():
    buffer = io.BytesIO()
    Image.new("RGBA", (600, 300), (255, 0, 0, 128)).save(buffer, "PNG")
    return buffer.getvalue()


class Page(html.parser.HTMLParser):
    """Parses, checks that every element is closed in order, and keeps what a test may ask for."""

    def __init__(self, source):
        super().__init__()
        self.open, self.tags, self.text, self.loads = [], [], [], []
        self.feed(source)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        self.loads += [value for name, value in attrs if name in LOADING]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        assert tag in VOID

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def result(languages=("en", "ru"), value=0.25):
    names = ["eval/translation_R@1", "eval/translation_R@1_both_seen", "eval/sentence_translation", "eval/text_to_image_R@1"]
    return {
        "items": 40,
        "languages": list(languages),
        "lacking": {"ru": 3},
        "metrics": dict.fromkeys(names, value),
        "chance": dict.fromkeys(names, 0.025),
        "matrices": {"recall@1": [[None if i == j else value for j in range(len(languages))] for i in range(len(languages))]},
    }


def full(text="слово", image=None):
    found = [
        Retrieved("ar", text, 0.8, True, image, text, 0.8, 1, 40),
        Retrieved("he", text, 0.7, False, b"not an image", "נכון", -0.1, 9, 40),
    ]
    example = TranslationExample("en", text, text, found, image)
    side = Side("fa", text, text, 0.7, image)
    return ReportData(
        title=text,
        summary=text,
        facts=[(text, text)],
        results={text: {"emoji/test-seen": result(value=0.1)}, "this run": {"emoji/test-seen": result(), text: result()}},
        rival=text,
        split_notes={text: text},
        metrics=[{"step": s, "train/loss": 5.0 / s, "train/loss_" + text: None if s == 2 else 1.0, "eval/x": 0.1} for s in range(1, 40)],
        translations={text: [example]},
        matches=[TransitiveMatch(kind, side, side, 0.9, 0.1, -0.2) for kind in ("match", "weak caption", "different images")],
        failures=[TranslationExample("en", text, "", found[1:], image)],
        samples={text: {"en": 4, text: 5}},
        bad_samples=[(text, text)] * 60,
        settings=text,
        commands=[(text, text)],
    )


def test_hostile_text_is_shown_and_never_run():
    source = write_report(full(EVIL, png()))
    page = Page(source)
    assert "script" not in {tag for tag, _ in page.tags}
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    assert "".join(page.text).count(EVIL) > 10
    assert "<script" not in source


def test_loads_nothing_from_outside():
    page = Page(write_report(full("x", png())))
    assert page.loads
    assert all(load.startswith(("data:image/", "#")) for load in page.loads)
    source = write_report(full("x", png()))
    assert "http://" not in source
    assert "https://" not in source
    assert "url(" not in source
    assert "@import" not in source
    policy = next(attrs["content"] for tag, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy


def test_links_lead_to_parts_that_exist():
    page = Page(write_report(full()))
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    links = [attrs["href"][1:] for tag, attrs in page.tags if tag == "a"]
    assert links == ids
    assert ids == ["scores", "training", "languages", "translations", "matches", "failures", "data", "settings", "reproduce"]


def test_an_empty_report_is_a_page_with_a_title():
    page = Page(write_report(ReportData(title="nothing yet")))
    assert "nothing yet" in page.text
    assert not [tag for tag, _ in page.tags if tag == "section"]


def test_sentences_set_their_own_direction_and_language():
    page = Page(write_report(full("سلام")))
    marked = [attrs.get("lang") for tag, attrs in page.tags if tag == "bdi"]
    assert {"ar", "he", "fa", "en"} <= set(marked)
    assert sum(attrs.get("dir") == "auto" for _, attrs in page.tags) >= 6


def test_right_and_wrong_are_told_in_words_not_by_colour_alone():
    page = Page(write_report(full()))
    labels = [attrs.get("aria-label") for _, attrs in page.tags if "mark" in attrs.get("class", "").split()]
    assert labels == ["right", "wrong", "wrong", "right"]
    assert any("right, at place 9 of 40" in text for text in page.text)


def test_scores_stand_beside_chance_and_the_rival():
    text = " ".join(Page(write_report(full("without"))).text)
    assert re.search(r"chance .*\.025.* without .*\.100.* this run .*\.250", text)
    assert "10 ×" in text
    assert "2.50 ×" in text
    assert "ru 3" in text


def test_index_of_a_loss_is_lowered_without_opening_a_door():
    source = write_report(ReportData(title="t", results={"without L_t <b>": {"test": result()}, "this run": {"test": result()}}))
    assert "without L<sub>t</sub> &lt;b&gt;" in source


def test_pictures_become_small_and_opaque_and_bad_ones_a_box():
    source = picture(png(), 'a "b"', size=100)
    assert 'alt="a &quot;b&quot;"' in source
    data = base64.b64decode(re.search(r"base64,([^\"]+)", source)[1])
    with Image.open(io.BytesIO(data)) as image:
        assert image.size == (100, 50)
        assert np.abs(np.asarray(image.convert("RGB"), int)[25, 50] - [255, 127, 127]).max() < 8
    assert "unreadable" in picture(b"nonsense", "x")
    assert "no image" in picture(None, "x")


def test_elements_escape_text_and_attributes_but_not_markup():
    assert el("p", "<b>", Markup("<i>x</i>"), None, ["&"], title='"', hidden=True, id=None) == (
        '<p title="&quot;" hidden>&lt;b&gt;<i>x</i>&amp;</p>'
    )


@pytest.mark.parametrize("values", [[1.0], [2.0, 2.0], [0.0, 0.0, 0.0], list(np.linspace(9, 1e-5, 400)), [-3.0, 5e6]])
def test_curves_stay_inside_their_frame(values):
    chart = line_chart(Curve("loss", list(range(1, len(values) + 1)), values), width=300, height=200)
    Page(chart)
    numbers = [float(n) for d in re.findall(r' d="([^"]+)"', chart) for n in re.findall(r"-?[\d.]+", d)]
    assert all(0 <= x <= 300 for x in numbers[::2])
    assert all(0 <= y <= 200 for y in numbers[1::2])
    assert "nan" not in chart


def test_ticks_are_round_and_cover_the_range():
    assert nice_ticks(0, 1) == [0, 0.5, 1.0]
    assert nice_ticks(1.2, 5.4) == [0, 2, 4, 6]
    for low, high in [(3, 3), (-1, -1), (0, 0), (1e-6, 2e-6), (-5, 700)]:
        ticks = nice_ticks(low, high)
        assert ticks[0] <= low
        assert ticks[-1] >= high
        assert 2 <= len(ticks) <= 7


def test_running_mean_keeps_straight_lines_straight():
    line = np.linspace(0, 10, 200)
    np.testing.assert_allclose(running_mean(line), line)
    np.testing.assert_array_equal(running_mean(np.array([1.0, 5.0])), [1.0, 5.0])


@pytest.mark.parametrize("count", [2, 12, 52])
def test_heat_map_has_each_direction_once_with_families_together(count):
    tags = list(dict.fromkeys(["de", "en", *LANGUAGES]))[:count]
    matrix = [[None if i == j else (i * count + j) / count**2 for j in range(count)] for i in range(count)]
    figure = heat_map(tags, matrix, chance=0.01)
    Page(figure)
    titles = re.findall(r"<title>([^<]+): ([\d.]+)</title>", figure)
    assert len(titles) == len({name for name, _ in titles}) == count * (count - 1)
    if count > 2:
        assert ("German → English", f"{1 / count**2:.3f}") in titles
    shades = [float(x) for x in re.findall(r'fill-opacity="([\d.]+)"', figure)]
    assert min(shades) >= 0
    assert max(shades) <= 1


def test_families_are_not_split():
    tags = ["ru", "en", "cs", "ja", "de", "es", "fr", "hi", "tr"]
    order = [family(tags[i]) for i in by_family(tags)]
    assert len([1 for a, b in itertools.pairwise(order) if a != b]) + 1 == len(set(order))
