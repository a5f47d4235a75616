"""What each system is trained by, and on."""

from typing import get_args

import pytest

from raysys.errors import UserError
from raysys.systems.rc3.names import (
    RC3_TITLES,
    Loss,
    Rc3Name,
    first_language_of,
    language_exponent_of,
    losses_of,
    masks_regions,
    needs_regions,
    streams_of,
    uses_decoder,
)
from raysys.systems.rc3.settings import Rc3ObjectiveSettings, Rc3Weights, rc3_objective_of


@pytest.mark.parametrize(
    ("system", "losses", "streams"),
    [
        ("rc3", "mlm mclm itm xtcl rxvtcl kl", "strict weak parallel"),
        ("rc3-no-kl", "mlm mclm itm xtcl rxvtcl", "strict weak parallel"),
        ("rc3-no-rxvtcl", "mlm mclm itm xtcl", "strict parallel"),
        ("rc3-no-rxvtcl-xtcl", "mlm mclm itm", "strict"),
        ("m3p", "mlm masked_regions itm text_mlm", "strict parallel"),
        ("uc2", "mlm masked_regions itm pair_mlm", "strict"),
        ("memad", "translation", "strict parallel"),
        ("vl-t5", "spans itm", "strict"),
    ],
)
def test_losses_and_the_data_they_need(system, losses, streams):
    assert losses_of(system) == tuple(losses.split())
    assert streams_of(system) == tuple(streams.split())


def test_every_system_and_every_loss_is_told():
    assert set(RC3_TITLES) == set(get_args(Rc3Name))
    assert set(Rc3Weights.model_fields) == set(get_args(Loss))
    assert {loss for system in RC3_TITLES for loss in losses_of(system)} == set(get_args(Loss))


def test_what_sets_the_rivals_apart():
    assert {system for system in RC3_TITLES if first_language_of(system)} == {"muniter", "xuniter", "vl-t5", "vl-bart"}
    assert [language_exponent_of(system) for system in ("rc3", "m3p", "muniter", "xuniter")] == [1, 1, 0.7, 0.3]
    assert {system for system in RC3_TITLES if not uses_decoder(system)} == {"m3p", "muniter", "xuniter", "uc2"}
    assert masks_regions("vl-bart") and not masks_regions("memad") and needs_regions("memad") and not needs_regions("rc3")  # noqa: PT018


def test_weights_of_losses_that_a_system_has_not_are_zero():
    weights = rc3_objective_of("rc3-no-kl", Rc3ObjectiveSettings(weights=Rc3Weights(itm=0.5))).weights
    assert (weights.itm, weights.rxvtcl, weights.kl, weights.masked_regions) == (0.5, 1, 0, 0)


def test_a_loss_switched_off_is_another_system():
    with pytest.raises(UserError, match=r"objective.weights.kl is 0, and system rc3 is trained by that loss"):
        rc3_objective_of("rc3", Rc3ObjectiveSettings(weights=Rc3Weights(kl=0)))
