"""Stars against the best of the paper's own models, from answers written down by hand."""

import dataclasses

import pytest
from scipy.stats import binomtest

from raysys.evaluation.grounded_page.data import SENTEVAL, average_of, averaged
from raysys.evaluation.grounded_page.paper import task_metric
from raysys.evaluation.grounded_page.significance import stars
from tests.evaluation.grounded_page.made_up import full, row, senteval


def data(*rows):
    return dataclasses.replace(full(), rows=list(rows), references=[], also=[])


def test_one_seed_is_mcnemars_exact_test():
    best, other = "1" * 20, "0" * 8 + "1" * 12
    found = stars(
        data(row("t", senteval({"MR": other})), row("t-c-g", senteval({"MR": best})), row("t-p-g", senteval({"MR": other}))), "MR"
    )
    assert found.best == "t-c-g"
    assert found.p == pytest.approx(dict.fromkeys(("t", "t-p-g"), binomtest(0, 8).pvalue))
    assert found.starred("t")
    assert not found.starred("t-c-g")
    assert not found.starred("nowhere")


def test_several_seeds_take_twice_the_median():
    best = senteval({"MR": "1" * 20})
    seeds = [senteval({"MR": "0" * wrong + "1" * (20 - wrong)}) for wrong in (8, 5, 1)]
    found = stars(data(row("t", *seeds), row("t-c-g", best, best, best)), "MR")
    assert found.p["t"] == pytest.approx(2 * binomtest(0, 5).pvalue)
    assert not found.starred("t")  # 2 · 0.0625
    two = stars(data(row("t", *seeds[:2]), row("t-c-g", best, best)), "MR")
    assert two.p["t"] == pytest.approx(binomtest(0, 8).pvalue + binomtest(0, 5).pvalue)


def test_seeds_and_answers_that_do_not_match_are_not_compared():
    best = senteval({"MR": "1111"})
    without = senteval({"MR": "0000"})
    without[SENTEVAL] = {name: value for name, value in without[SENTEVAL].items() if name != "correct"}
    rows = (row("t", None, best), row("seq", without), row("gs-img", senteval({"MR": "000"})), row("t-c-g", best))
    assert stars(data(*rows), "MR").p == {}
    assert stars(data(row("t", best)), "MR").best == ""
    assert stars(data(row("t", best), row("t-c-g", best)), "SUBJ").best == ""


def test_the_average_is_over_what_all_have():
    rows = [row("t", senteval({"MR": "1100", "CR": "1111"})), row("seq", senteval({"MR": "1000"}), None), row("t-c-g", None)]
    first, second, third = averaged(rows)
    assert first.summary(SENTEVAL, task_metric("AVG")).mean == 0.5
    assert second.summary(SENTEVAL, task_metric("AVG")).mean == 0.25
    assert second.chance(SENTEVAL, task_metric("AVG")) == 0.5
    assert third.seeds == {}
    assert average_of(averaged(rows)) == ["MR"]
    assert averaged([row("t", {"tuxpaint": {"metrics": {}}})])[0].seeds == {0: {"tuxpaint": {"metrics": {}}}}
