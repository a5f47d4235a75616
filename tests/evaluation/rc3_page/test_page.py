"""The page as a browser sees it: harmless, complete, in the paper's shape, and honest about what is missing and what is the paper's."""

import json
import re

import numpy as np
import pytest

from raysys.evaluation.figures import Curve
from raysys.evaluation.rc3_page import paper
from raysys.evaluation.rc3_page.data import Link, Rc3Comparison, averaged
from raysys.evaluation.rc3_page.page import write_rc3_page
from raysys.evaluation.rc3_page.record import record
from raysys.shards.language_pairs import LanguagePairs
from tests.evaluation.grounded_page.test_page import cells
from tests.evaluation.rc3_page.made_up import full, published, row, scores
from tests.evaluation.test_report import EVIL, Page

IDS = ["order", "zero-shot", "table-1", "table-2", "table-3", "table-4", "languages", "curves", "table-5", "runs"]


@pytest.fixture(scope="module")
def source():
    return write_rc3_page(full())


def test_hostile_text_is_shown_and_never_run():
    source = write_rc3_page(full(EVIL))
    page = Page(source)
    assert "script" not in {tag for tag, _ in page.tags}
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    assert "".join(page.text).count(EVIL) > 15
    assert "<script" not in source


def test_loads_nothing_and_every_part_can_be_reached(source):
    page = Page(source)
    assert not re.search("https?:|url\\(|@import", source)
    assert [attrs["id"] for _, attrs in page.tags if "id" in attrs] == IDS
    assert [attrs["href"][1:] for tag, attrs in page.tags if tag == "a" and attrs["href"].startswith("#")] == IDS


def test_an_empty_comparison_is_a_page_with_a_title():
    page = Page(write_rc3_page(Rc3Comparison(title="nothing yet")))
    assert "nothing yet" in page.text
    assert not [tag for tag, _ in page.tags if tag == "section"]


def test_before_any_run_is_scored_the_papers_tables_stand_with_empty_cells():
    source = write_rc3_page(Rc3Comparison(title="t", rows=[row(name, wanted=3) for name in paper.ROWS]))
    assert cells(source, "table-1")["RC³-Patch not trained"] == ["– 71.21", "– 41.36", "–", "–"]
    assert cells(source, "table-3")["VL-T5 not trained"] == ["– 45.5", "– 40.9", "–", "–"]
    assert len(cells(source, "table-4")) == 5
    assert 'id="order"' not in source


def test_the_papers_shape_with_ours_above_its_numbers(source):
    assert cells(source, "table-1")["RC³-ROI"] == ["71.0 ± 1.4 77.91", "61.0 ± 1.4 54.13", "– 69.42", "– 41.12"]
    second = cells(source, "table-2")
    assert second["RC³-ROI"][:4] == ["56.0 ± 1.4 71.65", "51.0 ± 1.4 40.39", "– 29.24", "41.0 ± 1.4 36.06"]  # zh is our zh-Hans
    assert second["M³P not trained"][0] == "– 56.36"
    assert cells(source, "table-3")["RC³-ROI"] == ["30.5 ± 0.7", "20.3 ± 0.5 45.73", "– 41.52", "– 68.38", "– 62.71"]  # ours, then theirs
    assert cells(source, "table-4")["w/o KL 1 of 2 seeds"][:2] == ["63.0 76.26", "48.0 70.69"]
    assert cells(source, "table-1")["chance"] == ["33.3", "5.0", "–", "–"]


def test_every_language_of_ours_has_a_column_and_the_average(source):
    assert cells(source, "languages")["RC³-ROI"] == ["71.0 ± 1.4", "61.0 ± 1.4", "56.0 ± 1.4", "58.5 ± 1.4"]
    assert "300 items in each." in source


def test_averages_over_zero_shot_languages(source):
    found = cells(source, "zero-shot")
    # xvnli (60 + 55) / 2 and (62 + 57) / 2; xgqa (50 + 40) / 2 and (52 + 42) / 2
    assert found["RC³-ROI"][:3] == ["58.5 ± 1.4 71.65", "46.0 ± 1.4 35.23", "52.2 ± 1.4 50.23"]
    assert found["chance"] == ["33.3", "5.0", "19.2"]
    assert "M³P" not in " ".join(found)


def test_an_average_over_fewer_tasks_is_none():
    whole, part = {**scores("xvnli", en=0.6, fr=0.5), **scores("marvl", id=0.7)}, scores("xvnli", en=0.6, fr=0.5)
    data = averaged(Rc3Comparison("t", rows=[row("rc3-regions", whole, part), row("memad", scores("mmt", en=0.4))]))
    assert data.row("rc3-regions").summary("all", "all/zero-shot").values == {0: pytest.approx(0.6)}
    assert data.row("rc3-regions").summary("xvnli", "xvnli/zero-shot").values == {0: 0.5, 1: 0.5}
    assert data.row("memad").summary("all", "all/zero-shot") is None
    assert data.columns == [("xvnli", "en"), ("xvnli", "fr"), ("marvl", "id"), ("mmt", "en")]


def test_table_5_and_the_papers():
    weak = LanguagePairs("emoji", 1201, 1201, ("en", "de"), np.array([[1200, 30], [30, 1]]))
    source = write_rc3_page(Rc3Comparison(title="t", weak=weak))
    assert cells(source, "table-5") == {"English": ["1,200", "30"], "German": ["30", "1"]}
    assert cells(source, "table-5", 1)["English"][0] == "5,157,134"


def test_curves_tell_their_last_values_and_links_lead_to_reports():
    curves = {"mlm": {"RC³": Curve("RC³", [1, 2, 3], [9.0, 5.0, 4.0]), "M³P": Curve("M³P", [1, 3], [8.0, 3.5])}}
    source = write_rc3_page(Rc3Comparison(title="t", curves=curves, links=[Link("RC³", "XVNLI", 2, "a-seed-2/report.html")]))
    assert 'aria-label="Masked words (MLM), last values: RC³ 4, M³P 3.5"' in source
    assert source.count('class="curve"') == 2
    assert '<a href="a-seed-2/report.html" aria-label="RC³, XVNLI, seed 2">2</a>' in source


def test_the_record_is_json_with_everything():
    found = json.loads(json.dumps(record(full()), allow_nan=False))
    assert found["systems"][1]["mean"]["xvnli"]["xvnli/zero-shot"] == pytest.approx(0.585)
    assert found["paper"]["table_4"]["rc3-no-kl"]["itr/ja"] == 29.15
    assert found["order"]["columns"]["Mean of tasks"][0]["wins"] == 1
    assert found["weak_pairs"]["counts"][1][1] == 1000
    assert found["missing"] == [{"run": "x", "why": "x"}]
    assert found["chance"]["all"]["all/zero-shot"] == pytest.approx((1 / 3 + 0.05) / 2)


def test_other_scores_of_retrieval_are_kept_beside_the_mean():
    own = scores("itr", en=0.4)["itr"]["metrics"]
    assert own == {"itr/en": 0.4, "itr/en/text_to_image_R@1": pytest.approx(0.39), "itr/en/image_to_text_R@1": pytest.approx(0.41)}


def test_the_papers_own_numbers_come_out_as_printed():
    source = write_rc3_page(published(0.0))
    for part in ("table-1", "table-2"):
        for label, columns in cells(source, part).items():
            for cell in columns if label != "chance" else ():
                numbers = cell.split()
                assert len(numbers) == 2 or cell == "–"
                assert cell == "–" or abs(float(numbers[0]) - float(numbers[1])) <= 0.0501
