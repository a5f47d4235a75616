"""Which losses, parts and sizes each of the twenty systems has."""

from typing import get_args

import pytest

from raysys.errors import UserError
from raysys.settings import dumps, from_mapping, loads
from raysys.systems.grounded.names import GROUNDED_TITLES, GroundedName, losses_of, parts_of, projection_of
from raysys.systems.grounded.settings import (
    GroundedModelSettings,
    GroundedObjectiveSettings,
    grounded_objective_of,
    text_settings_of,
)

NAMES = get_args(GroundedName)
TEXT, CAPTIONS, BASE = "triples", "captions", "base"
PARTS = {
    (TEXT,): ("t", "t-half"),
    (TEXT, CAPTIONS): ("t-c-g", "t-p-g", "t-cp-g", "t-c-id", "t-p-id", "t-cp-id", "t-cm"),
    (CAPTIONS,): ("c-g", "p-g", "cp-g", "c-id", "p-id", "cp-id", "cm"),
    (CAPTIONS, BASE): ("seq", "gs-img", "gs-cap", "gs-both"),
}


def test_every_system_has_a_title_of_its_own():
    assert tuple(GROUNDED_TITLES) == NAMES
    assert len(set(GROUNDED_TITLES.values())) == len(NAMES) == 20


@pytest.mark.parametrize("name", NAMES)
def test_what_it_needs(name):
    assert name in PARTS[tuple(part for part, needed in parts_of(name).items() if needed)]
    assert projection_of(name) == ("mlp" if name.endswith("-g") else "identity")


@pytest.mark.parametrize("name", NAMES)
def test_its_objective_has_the_weights_of_its_losses_alone(name):
    objective = GroundedObjectiveSettings(pairs=9)
    found = grounded_objective_of(name, objective)
    assert {loss for loss, weight in found.weights if weight} == set(losses_of(name))
    assert all(weight in (0, getattr(objective.weights, loss)) for loss, weight in found.weights)
    assert (found.pairs, found.margins) == (9, objective.margins)
    assert grounded_objective_of(name, found) == found


def test_a_system_without_one_of_its_losses_is_another_system():
    objective = GroundedObjectiveSettings.model_validate({"weights": {"cluster": 0}})
    assert grounded_objective_of("t-p-g", objective).weights.perceptual == 0.01
    with pytest.raises(UserError, match=r"objective\.weights\.cluster is 0, and system t-cp-g"):
        grounded_objective_of("t-cp-g", objective)


@pytest.mark.parametrize("name", NAMES)
def test_the_size_of_the_encoder(name):
    model = GroundedModelSettings()
    half = name == "t-half" or name.startswith("gs-")
    assert text_settings_of(name, model).size == (1024 if half else 2048)
    assert text_settings_of(name, model).model_copy(update={"size": 2048}) == model.text


def test_an_odd_size_has_no_half():
    model = GroundedModelSettings.model_validate({"text": {"size": 9}})
    assert text_settings_of("t", model).size == 9
    with pytest.raises(UserError, match=r"model\.text\.size has to be even for system gs-img.*it is 9"):
        text_settings_of("gs-img", model)


def test_the_image_network_is_frozen_whatever_is_said_of_it():
    assert GroundedModelSettings().image.frozen
    model = from_mapping(GroundedModelSettings, {"image": {"backbone": "resnet-10-narrow"}}, "x.yaml")
    assert model.image.frozen
    assert loads(GroundedModelSettings, dumps(model), "again") == model
    with pytest.raises(UserError, match=r"x\.yaml: image: .*never trained"):
        from_mapping(GroundedModelSettings, {"image": {"frozen": False}}, "x.yaml")
