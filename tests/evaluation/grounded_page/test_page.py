"""The page as a browser sees it: well-formed, harmless, complete, and honest about what is missing and what is the paper's."""

import dataclasses
import json
import re
import shutil
import subprocess

import numpy as np
import pytest
from PIL import Image

from raysys.evaluation.grounded_page import concreteness
from raysys.evaluation.grounded_page.data import RELATEDNESS, GroundedComparison, in_text_space, whole_sets
from raysys.evaluation.grounded_page.page import write_grounded_page
from raysys.evaluation.grounded_page.record import record
from raysys.evaluation.grounded_page.scene_map import scene_map
from tests.evaluation.grounded_page.made_up import examples, full, published, relatedness, row, structure
from tests.evaluation.test_report import EVIL, Page

IDS = ["order", "table-1", "table-1-relatedness", "concreteness", "table-3", "table-2", "figure-2", "figure-3"]


@pytest.fixture(scope="module")
def source():
    return write_grounded_page(full())


def cells(source, part, table=0):
    """Text of the rows of a table in a part of the page: label → cells."""
    section = source[source.index(f'id="{part}"') :]
    section = section[: section.index("</section>")]
    body = re.findall(r"<tbody>(.*?)</tbody>", section, re.DOTALL)[table]
    rows = {}
    for line in body.split("</tr>")[:-1]:
        label, *others = [re.sub("<[^>]+>", " ", cell) for cell in re.findall(r"<t[hd].*?</t[hd]>", line)]
        rows[" ".join(label.split())] = [" ".join(cell.split()) for cell in others]
    return rows


def test_hostile_text_is_shown_and_never_run():
    source = write_grounded_page(full(EVIL))
    page = Page(source)
    assert "script" not in {tag for tag, _ in page.tags}
    assert not any(name.startswith("on") for _, attrs in page.tags for name in attrs)
    assert "".join(page.text).count(EVIL) > 30
    assert "<script" not in source


def test_loads_nothing_from_outside(source):
    assert all(load.startswith(("data:image/", "#")) for load in Page(source).loads)
    assert not re.search("https?:|url\\(|@import", source)


def test_every_part_is_there_and_can_be_reached(source):
    page = Page(source)
    assert [attrs["id"] for _, attrs in page.tags if "id" in attrs] == IDS
    assert [attrs["href"][1:] for tag, attrs in page.tags if tag == "a"] == IDS


def test_an_empty_comparison_is_a_page_with_a_title():
    page = Page(write_grounded_page(GroundedComparison(title="nothing yet")))
    assert "nothing yet" in page.text
    assert not [tag for tag, _ in page.tags if tag == "section"]


def test_table_1_has_chance_and_the_papers_numbers_beneath(source):
    rows = cells(source, "table-1")
    assert rows["chance"] == ["5.0", "0.0", "–", "–"]
    assert rows["x"] == ["6.0", "–", "–", "–"]
    assert rows["T"] == ["11.0 ± 1.4 10.0", "5.5 ± 0.7 4.1", "29.0 ± 1.4 54.2", "61.0 ± 1.4 70.1"]
    assert rows["C g + P g 1 of 2 seeds"] == ["30.0 28.9", "15.0 29.1", "10.0 4.7", "80.0 87.5"]
    assert rows["CM (vis.) not trained"] == ["– 27.1", "– 19.2", "– 1.5", "– 85.8"]
    assert cells(source, "table-1", 1)["T + C g + P g"][0] == "22.0 ± 2.8"
    assert "200 pictures, 1,000 captions" in source


def test_negative_numbers_have_a_minus(source):
    second = source[source.index('id="table-1"') :]
    assert "−30.0" in second
    assert "-30.0" not in second


def test_relatedness_has_the_papers_sets_and_others(source):
    assert cells(source, "table-1-relatedness")["T"] == ["31.1 ± 0.1 30", "41.1 ± 0.1 41", "21.1 ± 0.1 21", "51.1 ± 0.1 51"]
    further = source[source.index("Further sets") :]
    assert "STS x" in further
    assert cells(source, "table-1-relatedness", 3)["C g + P g 1 of 2 seeds"] == ["23.0", "13.0"]


def test_table_3_has_stars_f1_and_the_average():
    correct = {"MR": "1" * 20, "MRPC": "1" * 20}
    wrong = {"MR": "0" * 8 + "1" * 12, "MRPC": "1" * 20}
    from tests.evaluation.grounded_page.made_up import averaged, senteval

    f1 = {"eval/senteval_MRPC_f1": 0.8}
    rows = averaged([row("t", senteval(wrong, **f1)), row("t-cp-g", senteval(correct, **f1)), row("c-g", senteval(correct, **f1))])
    source = write_grounded_page(GroundedComparison("t", rows=rows))
    found = cells(source, "table-3")
    assert found["most frequent class"] == ["50.0", "50.0", "50.0"]
    assert found["T"] == ["60.0* 75.9*", "100.0 / 80.0 72.2/80.2", "80.0 80.1"]
    assert found["T + C g + P g"] == ["100.0 77.4", "100.0 / 80.0 73.2/80.9", "100.0 81.6"]
    assert "C g" in cells(source, "table-3", 1)
    assert "AVG is over the tasks that all rows have: MR, MRPC." in source


def test_the_best_of_a_column_is_bold_the_lowest_where_lower_is_better():
    rows = [row("t", structure(mNNO=0.1, C_inter=0.5)), row("c-g", structure(mNNO=0.3, C_inter=0.1))]
    source = write_grounded_page(GroundedComparison("t", rows=rows))
    body = source[source.index('class="numbers"') :]
    assert re.findall(r'class="number best">([\d.]+)', body[: body.index("</table>")]) == ["30.0", "10.0"]


def test_what_is_lacking_says_how_to_get_it():
    lacking = {RELATEDNESS: {**relatedness(STS_all=0.1)[RELATEDNESS], "lacking": {"SICK": "copy it there"}}}
    text = "".join(Page(write_grounded_page(GroundedComparison("t", rows=[row("t", lacking)]))).text)
    assert "Not scored here, because the data is not there:SICK: copy it there" in text
    only = {RELATEDNESS: {"metrics": {}, "lacking": {"SICK": "copy it there"}}}
    assert "SICK: copy it there" in "".join(Page(write_grounded_page(GroundedComparison("t", rows=[row("t", only)]))).text)


def test_missing_runs_are_named():
    data = GroundedComparison(title="t", missing=[("seq, seed 1", "it is not trained yet"), ("b", "c")])
    text = "".join(Page(write_grounded_page(data)).text)
    assert "2 runs are missing from this page:" in text
    assert "seq, seed 1: it is not trained yet" in text


def test_concreteness_is_that_of_the_paper_for_its_own_numbers():
    found = concreteness.gains(published(), "t", "cp-g")
    assert [(gain.label, gain.concreteness, round(gain.points, 6)) for gain in found] == [
        ("STS/Cap", 3.1, 43.0),
        ("STS/News", 2.61, 12.0),
        ("STS/Forum", 2.39, 12.0),
    ]
    text = "".join(Page(write_grounded_page(published())).text)
    assert "As in the paper, grounding gains more where words are concrete: +43.0 points on STS/Cap, the most concrete, and +12.0" in text


def test_where_concrete_words_gain_less_the_page_says_so():
    ratings = {"STS_captions": 3.1, "STS_forum": 2.4}
    rows = [
        row("t", relatedness(ratings, STS_captions=0.4, STS_forum=0.2)),
        row("cp-g", relatedness(ratings, STS_captions=0.3, STS_forum=0.2)),
    ]
    text = "".join(Page(write_grounded_page(GroundedComparison("t", rows=rows))).text)
    assert "Otherwise than in the paper: −10.0 points on STS/Cap, the most concrete, and +0.0 on STS/Forum, the least." in text


def test_parts_of_sets_are_not_sets_of_their_own():
    names = ["STS_all", "STS_all_dev", "STS_2012", "STS_2012_MSRpar", "STS_2012_weighted", "SICK", "STS_captions"]
    assert whole_sets(names) == ["STS_all", "STS_2012", "SICK", "STS_captions"]


def test_scores_in_the_text_space():
    results = structure(mNNO=0.3, mNNO_text=0.2, rho_vis_text=0.1) | relatedness(STS_all=0.4)
    results["tuxpaint"]["chance"]["eval/mNNO_text"] = 0.05
    found = in_text_space(results)
    assert list(found) == ["tuxpaint"]
    assert found["tuxpaint"]["metrics"] == {"eval/mNNO": 0.2, "eval/rho_vis": 0.1}
    assert found["tuxpaint"]["chance"] == {"eval/mNNO": 0.05}
    assert found["tuxpaint"]["items"] == 200


def test_table_2_and_figures_2_and_3_stand_side_by_side(source):
    assert cells(source, "table-2")["x x , 2.75"] == ["x 0.90 x 0.80 x 0.50"] * 2
    text = "".join(Page(source).text)
    assert "neighbours with a mark: T 2 of 3; Cg + Pg 2 of 3." in text
    assert "Cinter 11.0, Cintra 27.0 before t-SNE" in text
    assert "paper, other data: Cinter 19, Cintra 22" in text
    assert cells(source, "figure-3")["coast"] == ["20.0", "−12.0"] * 2
    alone = dataclasses.replace(full(), examples={"cp-g": examples("y")})
    assert cells(write_grounded_page(alone), "table-2")["y y , 2.75"] == ["y 0.90 y 0.80 y 0.50"]


@pytest.mark.parametrize("points", [0, 1, 3])
def test_points_stay_inside_their_map(points):
    found = examples().scenes
    found = dataclasses.replace(found, points=found.points[:points])
    drawn = scene_map(found, ["x", "coast"], "map", size=100)
    places = [float(number) for pair in re.findall(r"translate\(([-\d.]+) ([-\d.]+)\)", drawn) for number in pair]
    assert len(places) == 2 * points
    assert all(12 <= place <= 88 for place in places)


def test_every_number_is_in_the_record():
    found = json.loads(json.dumps(record(full()), allow_nan=False))
    this = next(one for one in found["systems"] if one["name"] == "t")
    assert this["seeds"]["1"]["tuxpaint"]["eval/mNNO"] == pytest.approx(0.12)
    assert this["mean"]["tuxpaint"]["eval/mNNO"] == pytest.approx(0.11)
    assert found["systems"][1]["deviation"]["tuxpaint"]["eval/mNNO"] is None
    assert found["chance"]["tuxpaint"]["eval/mNNO"] == 0.05
    assert {"claim", "split", "verdict", "pairs"} <= found["findings"][0].keys()
    assert found["significance"]["MR"]["best"] == "t-cp-g"
    assert found["significance"]["MR"]["p"]["t"] == pytest.approx(1.0)  # two seeds of ½ each
    assert found["paper"]["table_1"]["cp-g"]["eval/mNNO"] == 28.9
    assert found["missing"] == [{"run": "x", "why": "x"}]
    assert found["lacking"] == {"relatedness": {"x": "x"}, "senteval": {"x": "x"}}


@pytest.mark.slow
@pytest.mark.parametrize("width", [500, 1100])
def test_in_a_real_browser_nothing_sticks_out(tmp_path, width):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium here")
    page, picture = tmp_path / "page.html", tmp_path / "page.png"
    page.write_text(write_grounded_page(published(0.01)))
    command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--user-data-dir={tmp_path / 'profile'}"]
    size = f"--window-size={width},3000"
    subprocess.run([*command, f"--screenshot={picture}", size, f"file://{page}"], check=True, timeout=60, capture_output=True)
    seen = np.asarray(Image.open(picture).convert("L"), dtype=int)
    assert (seen < 90).mean() > 0.005  # there is text
    edge = seen[:, -8:]  # the page's margin: nothing but the bar beneath the navigation crosses it
    assert (np.ptp(edge, axis=1) > 40).mean() < 0.01
