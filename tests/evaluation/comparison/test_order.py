"""The order of the systems in every outcome: as expected, otherwise, tied, unknown."""

import dataclasses

import pytest

from raysys.evaluation.comparison.order import check_order
from raysys.evaluation.comparison.paper import CHANCE, EXPECTED, SENTENCES, SYSTEMS
from raysys.evaluation.comparison.tables import checks, closed
from raysys.evaluation.side_by_side.verdicts import tally
from tests.evaluation.comparison.rows import SENTENCES as METRIC
from tests.evaluation.comparison.rows import comparison, result, row


def only(data, split="test-unseen"):
    found = check_order(data, split, METRIC)
    assert len(found) == 1
    return found[0]


def test_what_is_expected_is_what_the_paper_found():
    for better, worse in EXPECTED:
        assert SENTENCES[better].low > SENTENCES[worse].high or (better, worse) == ("lample-conneau", "text-only")
    assert {name for pair in EXPECTED for name in pair} == {*SYSTEMS, CHANCE}


def test_an_order_that_holds():
    pair = only(comparison(globetrotter=[0.30, 0.32, 0.34], muve=[0.20, 0.20, 0.23]))
    assert (pair.verdict, pair.wins, pair.within_deviation) == ("holds", (3, 3), False)
    assert pair.difference == pytest.approx(0.11)
    assert pair.sentence() == (
        "Globetrotter above Sigurdsson et al. (MUVE): 32.0 ± 2.0 against 21.0 ± 1.7, 11.0 points more, better in 3 of 3 seeds."
    )


def test_an_order_that_differs_says_by_how_much_and_from_which_languages():
    data = comparison(globetrotter=[0.30, 0.32, 0.34], without_cloze=[0.31, 0.33, 0.33])
    pair = only(data)
    assert (pair.verdict, pair.wins, pair.within_deviation) == ("differs", (1, 3), True)
    sentence = pair.sentence()
    assert sentence.startswith("Globetrotter is not above Globetrotter without L_c: 32.0 ± 2.0 against 32.3 ± 1.2, 0.3 points less, ")
    assert "better in 1 of 3 seeds; the difference is within the deviation over seeds." in sentence
    assert sentence.endswith("It is worse from 3 of 3 languages, most from German −0.3, English −0.3, Russian −0.3.")


def test_a_tie_is_not_above():
    pair = only(comparison(globetrotter=[0.3, 0.3], muve=[0.3, 0.3]))
    assert (pair.verdict, pair.wins, pair.difference) == ("differs", (0, 2), 0)
    assert "30.0 ± 0.0 against 30.0 ± 0.0, the same, better in 0 of 2 seeds" in pair.sentence()


def test_small_differences_are_not_rounded_to_none():
    pair = only(comparison(globetrotter=[0.3001], muve=[0.3]))
    assert pair.verdict == "holds"
    assert "less than 0.1 points more" in pair.sentence()


def test_single_seeds_have_no_deviation_to_hide_behind():
    pair = only(comparison(globetrotter=[0.30], muve=[0.31]))
    assert pair.within_deviation is False
    assert "30.0 against 31.0, 1.0 points less, better in 0 of 1 seeds." in pair.sentence()


@pytest.mark.parametrize(("value", "verdict"), [(0.03, "holds"), (0.02, "differs"), (0.025, "differs")])
def test_chance_is_what_the_scores_say(value, verdict):
    pair = only(comparison(text_only=[value, value]))
    assert (pair.worse, pair.verdict) == (CHANCE, verdict)
    assert f"{100 * value:.1f} ± 0.0 against 2.5, " in pair.sentence()


def test_systems_without_scores_are_unknown_and_named():
    data = comparison(lample_conneau=[None, None], muve=[0.3, 0.3], text_only=[0.1, None])
    found = {(pair.better, pair.worse): pair for pair in check_order(data, "test-unseen", METRIC)}
    first = found["Sigurdsson et al. (MUVE)", "Lample & Conneau"]
    assert first.verdict == "unknown"
    assert first.sentence().endswith("cannot be told, there are no scores of Lample & Conneau.")
    assert found["Lample & Conneau", "text only (L_c)"].verdict == "unknown"
    assert found["text only (L_c)", CHANCE].verdict == "holds"
    assert len(found) == 3  # Globetrotter is not on the page: nothing is said of it
    assert tally(list(found.values())) == "1 of 1 pairs stand as in the paper; 2 cannot be told yet."


def test_seeds_that_only_one_of_two_has_do_not_count_as_wins():
    pair = only(comparison(globetrotter=[0.3, 0.4, None], muve=[None, 0.1, 0.1]))
    assert pair.wins == (1, 1)
    apart = dataclasses.replace(pair, second=type(pair.second)({7: 0.1}))
    assert "no seed that both were trained with" in apart.sentence()


def test_every_split_and_metric_is_checked():
    data = comparison(globetrotter=[0.3], muve=[0.2])
    data.rows[0].seeds[0]["tuxpaint"] = result(0.1)
    data.rows[1].seeds[0]["tuxpaint"] = result(0.2)
    verdicts = {key: [pair.verdict for pair in pairs] for key, pairs in checks(data).items()}
    assert len(verdicts) == 4
    assert verdicts["test-unseen", METRIC] == ["holds"]
    assert verdicts["tuxpaint", METRIC] == ["differs"]


def test_the_share_of_the_gap_that_is_closed():
    this, best, run = row("globetrotter", 0.2, 0.4), row("supervised", 0.7), row("best", 0.4, 0.5)
    assert closed(run, this, best, "test-unseen") == pytest.approx(0.375)  # (0.45 − 0.3) / (0.7 − 0.3)
    assert closed(this, this, best, "test-unseen") == 0
    assert closed(best, this, best, "test-unseen") == pytest.approx(1)
    assert closed(run, best, this, "test-unseen") is None
    assert closed(run, this, best, "elsewhere") is None
