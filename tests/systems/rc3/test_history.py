"""The ring of the latest losses."""

import math

import pytest
import torch

from raysys.systems.rc3.history import LossHistory


def test_the_mean_is_over_the_latest_that_there_are():
    history, losses, means = LossHistory(3), [0.5, 2.0, 0.1, 3.0, 0.0], []
    assert history.mean().item() == 0
    for loss in losses:
        history.push(torch.tensor(loss))
        means.append(history.mean().item())
    sure = [math.exp(-loss) for loss in losses]
    assert means == pytest.approx([sum(latest) / len(latest) for latest in (sure[:1], sure[:2], sure[:3], sure[1:4], sure[2:5])])
    assert set(history.state_dict()) == {"values", "pushed"}
