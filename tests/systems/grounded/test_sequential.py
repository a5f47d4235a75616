"""SEQ against the closed forms of regression and principal components."""

import numpy as np
import pytest
import torch

from raysys.errors import UserError
from tests.systems.grounded.worlds import SIZE, batch, build, model_settings
from tests.training.worlds import FEATURES, tiny_backbone


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return model_settings(tiny_backbone(tmp_path_factory.mktemp("backbone")))


@pytest.fixture
def system(model):
    made = build("seq", model).eval()
    made.begin(build("t", model).text.state_dict())
    return made


def data(rows: int = 200):
    generator = np.random.default_rng(0)
    text = generator.normal(size=(rows, SIZE)) @ generator.normal(size=(SIZE, SIZE)) + 1
    images = text @ generator.normal(size=(SIZE, FEATURES)) + generator.normal(size=(rows, FEATURES)) - 2
    return text.astype(np.float32), images.astype(np.float32)


def test_its_vectors_are_the_first_components_of_text_and_imagined_picture(system):
    text, images = data()
    system.fit(text, images)
    given = batch("seq")
    sentences = system.text(given.input_ids, given.attention_mask).numpy().astype(float)

    def with_one(vectors):
        return np.concatenate([vectors, np.ones((len(vectors), 1))], axis=1)

    weights, *_ = np.linalg.lstsq(with_one(text.astype(float)), images.astype(float), rcond=None)
    both = np.concatenate([text, with_one(text) @ weights], axis=1)
    _, _, directions = np.linalg.svd(both - both.mean(axis=0), full_matrices=False)
    wanted = (np.concatenate([sentences, with_one(sentences) @ weights], axis=1) - both.mean(axis=0)) @ directions[:SIZE].T
    found = system.vectors("text", given.input_ids, given.attention_mask)
    assert found.dtype == torch.float32
    signs = np.sign((system.components.numpy() * directions[:SIZE]).sum(axis=1))  # a component may point either way
    np.testing.assert_allclose(found.numpy() * signs, wanted, atol=2e-3 * np.abs(wanted).max())


def test_nothing_of_it_is_trained_and_all_of_it_is_kept(system, model):
    assert not any(parameter.requires_grad for parameter in system.parameters())
    system.fit(*data())
    again, given = build("seq", model).eval(), batch("seq")
    again.load_state_dict(system.state_dict())
    texts = given.input_ids, given.attention_mask
    assert torch.equal(again.vectors("text", *texts), system.vectors("text", *texts))


def test_without_a_fit_it_has_no_vectors(system):
    given = batch("seq")
    with pytest.raises(RuntimeError, match="fitted"):
        system.vectors("text", given.input_ids, given.attention_mask)


def test_too_few_captions(system):
    with pytest.raises(UserError, match=r"11 captions and model\.text\.size is 12"):
        system.fit(*data(SIZE - 1))
    system.fit(*data(SIZE))
