"""examples.json: what goes in comes out, and what is not that is refused."""

import dataclasses
import json

import pytest

from raysys.evaluation.grounded_page.examples import Examples
from tests.evaluation.grounded_page.made_up import examples


@pytest.mark.parametrize("given", [examples("Ein “Fuchs” </script> 狐"), Examples(3, "text", "", [], [])])
def test_there_and_back(given):
    assert Examples.loads(given.dumps()) == given


def test_numbers_that_json_does_not_have_are_refused():
    scenes = dataclasses.replace(examples().scenes, intra=float("nan"))
    with pytest.raises(ValueError, match="not JSON compliant"):
        dataclasses.replace(examples(), scenes=scenes).dumps()


@pytest.mark.parametrize(
    ("change", "message"),
    [({"version": 2}, "version 2, not 1"), ({"queries": [{"text": 1}]}, "cannot be read"), ({"pictures": [{}]}, "score the run again")],
)
def test_other_files_are_refused_with_what_to_do(change, message):
    values = json.loads(examples().dumps()) | change
    with pytest.raises(ValueError, match=message):
        Examples.loads(json.dumps(values))
