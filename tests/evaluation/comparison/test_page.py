"""The page as a browser sees it: well-formed, harmless, complete, and honest about what is missing and what is the paper's."""

import json
import re

import pytest

from raysys.evaluation.comparison.data import Comparison, FoundWord, WordExample
from raysys.evaluation.comparison.page import write_comparison
from raysys.evaluation.comparison.record import record
from raysys.evaluation.examples import Retrieved, TranslationExample
from raysys.evaluation.side_by_side.bars import Bars, bar_table
from raysys.evaluation.side_by_side.published import Published
from raysys.evaluation.side_by_side.row import Row
from raysys.evaluation.side_by_side.statistics import Summary
from raysys.evaluation.word_scores import WORDS
from tests.evaluation.comparison.rows import result, row
from tests.evaluation.test_report import EVIL, Page, png

WORD_METRICS = [
    f"eval/word_translation{ground}_R@10{words}{when}{scaling}"
    for ground in ("", "_dictionary")
    for words in ("", "_disjoint")
    for when in ("", "_procrustes")
    for scaling in ("", "_csls")
]
RETRIEVAL = {f"eval/{way}_R@{k}": 0.1 * k / 10 for way in ("text_to_image", "image_to_text") for k in (1, 5, 10)}


def full(text="x"):
    """Every part, with `text` wherever text may come from elsewhere."""
    seeds = {}
    for seed in range(3):
        words = result(0.2, **dict.fromkeys(WORD_METRICS, 0.3))
        seeds[seed] = {"test-unseen": result(0.3 + seed / 100, **RETRIEVAL), "tuxpaint": result(0.2), text: result(0.25), WORDS: words}
    found = [Retrieved("de", text, 0.8, True, png(), text, 0.8, 1, 40), Retrieved("ru", text, 0.7, False, None, text, 0.1, 9, 40)]
    return Comparison(
        title=text,
        summary=text,
        facts=[(text, text)],
        rows=[row("text-only", 0.03, None, wanted=3), row("muve", None, None, None), Row("globetrotter", "Globetrotter", seeds, 3)],
        references=[Row(text, text, {0: {"test-unseen": result(0.6)}})],
        also=[Row(text, text, {0: {"test-unseen": result(0.4)}}, changes={text: (text, 2)})],
        human=["tuxpaint"],
        example_of=text,
        translations={text: [TranslationExample("en", text, text, found, png())]},
        words=[WordExample("en", text, [FoundWord("de", text, True), FoundWord("ru", text, False, text)])],
        failures=[TranslationExample("en", text, "", found[1:], None)],
        missing=[(text, text)],
        commands=[(text, text)],
    )


@pytest.fixture(scope="module")
def page():
    return Page(write_comparison(full()))


def test_hostile_text_is_shown_and_never_run():
    source = write_comparison(full(EVIL))
    page = Page(source)
    assert "script" not in {tag for tag, _ in page.tags}
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    assert "".join(page.text).count(EVIL) > 10
    assert "<script" not in source


def test_loads_nothing_from_outside(page):
    assert all(load.startswith(("data:image/", "#")) for load in page.loads)
    assert not re.search("https?:|url\\(|@import", write_comparison(full()))


def test_every_part_is_there_and_can_be_reached(page):
    ids = [attrs["id"] for _, attrs in page.tags if "id" in attrs]
    assert ids == [
        *("order", "figure-5", "figure-6", "to-latin", "figure-7", "figure-8", "figure-9"),
        *("beyond", "table-1", "table-2", "table-3"),
    ]
    assert [attrs["href"][1:] for tag, attrs in page.tags if tag == "a"] == ids


def test_an_empty_comparison_is_a_page_with_a_title():
    page = Page(write_comparison(Comparison(title="nothing yet")))
    assert "nothing yet" in page.text
    assert not [tag for tag, _ in page.tags if tag == "section"]


def cells(source, part):
    """Text of the rows of the first figure in a part of the page: label → cells."""
    section = source[source.index(f'id="{part}"') :]
    body = section[section.index("<tbody>") : section.index("</tbody>")]
    rows = {}
    for line in body.split("</tr>")[:-1]:
        label, *others = [re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", line)]
        rows[label] = [cell for cell in others if cell]
    return rows


def test_numbers_stand_beside_those_of_the_paper_which_are_marked():
    source = write_comparison(full())
    rows = cells(source, "figure-5")
    assert rows["chance"] == ["2.5", "0.5"]
    assert rows["Globetrotter"] == ["31.0 ± 1.0", "72.3"]
    assert rows["text only (Lc)1 of 3 seeds"] == ["3.0", "8.9–9.5"]
    assert rows["Sigurdsson et al. (MUVE)not trained"] == ["–", "56.7"]
    assert rows["x"] == ["60.0", "–"]
    human = cells(source, "figure-6")
    assert human["Globetrotter"] == ["20.0 ± 0.0", "70.8"]
    assert "paper, other data" in source
    assert all("paper" in heading for heading in re.findall(r'theirs" data-label="([^"]+)"', source))


def test_what_the_paper_does_not_have_has_no_column_for_it():
    assert cells(write_comparison(full()), "to-latin")["Globetrotter"] == ["15.5 ± 0.5"]


def test_words_and_images_have_a_column_for_each_bar():
    source = write_comparison(full())
    assert cells(source, "figure-7")["Globetrotter"] == ["30.0 ± 0.0", "30.0 ± 0.0", "–", "57.5"]
    assert cells(source, "figure-8")["Globetrotter"] == ["1.0 ± 0.0", "5.0 ± 0.0", "10.0 ± 0.0", "35.1–37.8", "66.2–67.6", "76.1–77.1"]
    assert source.count("nearest by CSLS") == 2 * 4  # all and disjoint, two ground truths; heading and caption


def test_languages_held_out_and_hubs_have_parts_where_they_were_scored():
    found = result(0.3, **{"eval/anti_hubs": 0.2, "eval/transfer_R@1_from_held_out": 0.4, "eval/transfer_R@1_to_held_out": 0.5})
    source = write_comparison(Comparison("made up", rows=[Row("globetrotter", "Globetrotter", {0: {"test-unseen": found}})]))
    assert cells(source, "held-out")["Globetrotter"] == ["40.0", "50.0"]
    assert cells(source, "anti-hubs")["Globetrotter"] == ["20.0"]
    assert 'id="anti-hubs"' not in write_comparison(full())


def test_systems_without_images_are_no_rows_of_figure_8():
    assert "text only (Lc)" not in str(cells(write_comparison(full()), "figure-8"))


def test_missing_runs_are_named():
    data = Comparison(title="t", rows=[row("globetrotter", 0.3)], missing=[("muve, seed 1", "3 of 8 steps are done"), ("b", "c")])
    text = "".join(Page(write_comparison(data)).text)
    assert "2 runs are missing from this page:" in text
    assert "muve, seed 1: 3 of 8 steps are done" in text


def test_where_the_order_differs_the_page_says_so():
    data = Comparison(title="t", rows=[row("text-only", 0.01), row("without-cloze", 0.4), row("globetrotter", 0.3)])
    text = "".join(Page(write_comparison(data)).text)
    assert "Otherwise than in the paper" in text
    assert "Unseen concepts: Globetrotter is not above Globetrotter without Lc: 30.0 against 40.0, 10.0 points less" in text
    assert "0 of 2 pairs of systems stand as in the paper" in text
    good = Comparison(title="t", rows=[row("text-only", 0.06), row("without-cloze", 0.2), row("globetrotter", 0.3)])
    assert "Otherwise than in the paper" not in "".join(Page(write_comparison(good)).text)


@pytest.mark.parametrize("values", [{0: 0.5}, {0: 0.0, 1: 0.0}, {0: 0.99, 1: 1.0, 2: 0.98}, {0: 0.001, 1: 0.2, 2: 0.4}])
def test_bars_stay_inside_their_track(values):
    source = bar_table([Bars("x", [Summary(values)], [Published(0.9, 0.95)])], [""], "what")
    Page(source)
    places = [float(number) for number in re.findall(r"left:(-?[\d.]+)%", source)]
    widths = [float(number) for number in re.findall(r"left:[\d.]+%;width:(-?[\d.]+)%", source)]
    assert all(0 <= place <= 100 for place in places)
    assert all(width >= 0 for width in widths)
    assert source.count('class="whisker"') == (len(values) > 1)
    assert source.count('class="seed"') == len(values) + 1  # one in the legend
    mean = 100 * sum(values.values()) / len(values)
    top = 100  # the scale reaches over the paper's 0.95
    assert f'class="fill" style="left:0.0%;width:{round(100 * mean / top, 2)}%"' in source


def test_every_number_is_in_the_record():
    found = json.loads(json.dumps(record(full()), allow_nan=False))
    this = next(one for one in found["systems"] if one["name"] == "globetrotter")
    assert this["seeds"]["2"]["test-unseen"]["eval/sentence_translation"] == pytest.approx(0.32)
    assert this["mean"]["test-unseen"]["eval/sentence_translation"] == pytest.approx(0.31)
    assert this["deviation"]["test-unseen"]["eval/sentence_translation"] == pytest.approx(0.01)
    assert found["systems"][0]["deviation"]["test-unseen"]["eval/sentence_translation"] is None
    assert found["also"][0]["changes"] == {"x": ["x", 2]}
    assert found["chance"]["test-unseen"]["eval/sentence_translation"] == 0.025
    assert {"better", "worse", "verdict", "sentence"} <= found["order"][0].keys()
    assert found["paper"]["sentence_translation"]["globetrotter"] == [0.723, 0.723]
    assert "other data" in found["paper"]["note"]
    assert found["missing"] == [{"run": "x", "why": "x"}]
