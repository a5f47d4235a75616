"""Correlations of cosines with ratings, against scipy on plain cosines and hand computation."""

import numpy as np
import pytest
from scipy import stats

from raysys.errors import RunFailed
from raysys.evaluation.rated_pairs import PARTS, YEARS, load
from raysys.evaluation.relatedness import correlations, score_sets
from tests.evaluation.rated_files import COUNTS, rows, write, write_all, write_benchmark, write_year


@pytest.fixture
def folder(tmp_path):
    write_all(tmp_path)
    return tmp_path


def encode(texts):
    """A vector of its own for every string."""
    return np.stack([np.random.default_rng([ord(c) for c in text]).normal(size=8) for text in texts])


def expected(data, vectors=encode):
    a, b = (vectors([row[side] for row in data]).astype(np.float64) for side in (0, 1))
    cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
    ratings = [rating for _, _, rating in data]
    return stats.spearmanr(cosines, ratings).statistic, stats.pearsonr(cosines, ratings).statistic


def test_all_sets_as_published(folder):
    asked = []
    found = score_sets(lambda texts: asked.append(len(texts)) or encode(texts), load(str(folder)))
    assert found.lacking == {}
    assert len(asked) == 1
    assert set(found.chance.values()) == {0.0}
    whole = [row for genre, n in COUNTS.items() for row in rows(len(genre), n)]
    named = {"STS_all": whole, **{f"STS_{genre}": rows(len(genre), n) for genre, n in COUNTS.items()}, "SICK": rows(2, 7)}
    named |= {"SICK_dev": rows(1, 7), "SICK_train": rows(0, 7), "STS_all_dev": whole, "STS_2012_surprise.OnWN": rows(3, 6)}
    for name, data in named.items():
        got = found.metrics[f"eval/{name}_spearman"], found.metrics[f"eval/{name}_pearson"]
        assert got == pytest.approx(expected(data), abs=1e-6)
    parts = [found.metrics[f"eval/STS_2014_{part}_pearson"] for part in YEARS["STS14-en-test"]]
    assert found.metrics["eval/STS_2014_pearson"] == pytest.approx(np.mean(parts))
    assert set(PARTS) < {name.removeprefix("eval/").removesuffix("_spearman") for name in found.metrics}


def test_pairs_that_nobody_rated_are_left_out_and_the_weighted_mean_counts_pairs(tmp_path):
    place = tmp_path / "STS" / "STS12-en-test"
    write_year(place, YEARS["STS12-en-test"])
    data = rows(1, 9)
    write(place / "STS.input.MSRvid.txt", *(f"{first}\t{second}\tsource" for first, second, _ in data))
    write(place / "STS.gs.MSRvid.txt", *("" if i % 2 else f"{rating}" for i, (_, _, rating) in enumerate(data)))
    sets = load(str(tmp_path))
    assert len(sets.pairs["STS_2012_MSRvid"]) == 5
    found = score_sets(encode, sets)
    assert found.metrics["eval/STS_2012_MSRvid_pearson"] == pytest.approx(expected(data[::2])[1], abs=1e-6)
    values = [found.metrics[f"eval/STS_2012_{part}_pearson"] for part in YEARS["STS12-en-test"]]
    assert found.metrics["eval/STS_2012_weighted_pearson"] == pytest.approx(np.average(values, weights=[6, 5, 6, 6, 6]))
    assert len(sets.sentences("STS_2012")) == 2 * (4 * 6 + 5)


def test_sets_of_ones_own(tmp_path):
    write_year(tmp_path / "STS" / "shapes", ["colours", "counts"])
    write_benchmark(tmp_path / "STS" / "mine", {"sea": 4})
    found = score_sets(encode, load(str(tmp_path)))
    assert found.metrics["eval/STS_shapes_spearman"] == pytest.approx(np.mean([expected(rows(seed, 6))[0] for seed in (0, 1)]), abs=1e-6)
    assert found.metrics["eval/STS_mine_sea_spearman"] == found.metrics["eval/STS_mine_spearman"]
    assert set(found.lacking) == {"STS_all", "STS_2012", "STS_2013", "STS_2014", "STS_2015", "STS_2016", "SICK"}
    for name, how in found.lacking.items():
        assert "get_transfer_data.bash" in how, name
        assert str(tmp_path) in how


@pytest.mark.parametrize("vectors", [lambda n: np.zeros((n, 5)), lambda n: np.full((n, 33), 0.37)])
def test_constant_vectors_have_no_correlation(folder, vectors):
    found = score_sets(lambda texts: vectors(len(texts)), load(str(folder)))
    assert set(found.metrics.values()) == {0.0}


def test_correlations_by_hand():
    got = correlations(np.array([1.0, 2, 3, 10]), np.array([0.0, 1, 1, 5]))
    assert got["spearman"] == pytest.approx(np.corrcoef([1, 2, 3, 4], [1, 2.5, 2.5, 4])[0, 1])
    assert got["pearson"] == pytest.approx(np.corrcoef([1, 2, 3, 10], [0, 1, 1, 5])[0, 1])
    assert correlations(np.arange(4.0), np.ones(4)) == {"spearman": 0.0, "pearson": 0.0}


def test_vectors_that_cannot_be_scored(folder):
    with pytest.raises(RunFailed, match="not finite"):
        score_sets(lambda texts: np.full((len(texts), 3), np.nan), load(str(folder)))
    with pytest.raises(ValueError, match="vectors for"):
        score_sets(lambda texts: encode(texts)[:-1], load(str(folder)))
