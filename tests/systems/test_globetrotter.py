"""The system alone: what it computes of a batch, and what its weights leave out."""

import dataclasses

import pytest
import torch

from raysys.errors import UserError
from raysys.settings import from_mapping
from raysys.systems.globetrotter import Globetrotter, ObjectiveSettings
from tests.training.worlds import FEATURES, batch, build, model_settings, objective, tiny_backbone


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> str:
    return tiny_backbone(tmp_path_factory.mktemp("backbone"))


def make(backbone: str, **weights: float) -> Globetrotter:
    return build(model_settings(backbone), objective(**weights))


def names_of(system: Globetrotter) -> set[str]:
    return {name.split(".")[0] for name in system.state_dict()}


def test_vectors_have_one_row_per_sample_and_unit_length(backbone):
    given = batch(0)
    vectors = make(backbone)(given)
    assert vectors.keys() == {"image_ids", "view_1", "view_2", "caption", "image_caption", "cloze_sum", "cloze_count"}
    assert all(len(rows) == len(given.ids) == 7 for rows in vectors.values())
    for name in ("view_1", "view_2", "caption", "image_caption"):
        assert vectors[name].shape == (7, 16)
        assert vectors[name].norm(dim=1).tolist() == pytest.approx([1.0] * 7, abs=1e-5)
    assert vectors["image_ids"].equal(given.image_ids)
    assert vectors["cloze_count"].tolist() == (given.labels != -100).sum(dim=1).tolist()


def test_cached_vectors_go_through_the_image_head_alone(backbone):
    system, given = make(backbone), batch(0)
    vectors = system(given)
    assert vectors["view_1"].allclose(system.project_image(given.features[:, 0]), atol=1e-6)
    assert vectors["view_2"].allclose(system.project_image(given.features[:, 1]), atol=1e-6)
    assert not vectors["view_1"].allclose(vectors["view_2"], atol=1e-2)


def test_hidden_tokens_are_seen_by_the_cloze_head_alone(backbone):
    system, given = make(backbone), batch(0)
    assert not given.masked_ids.equal(given.input_ids)
    hidden = system(given)
    plain = system(dataclasses.replace(given, masked_ids=given.input_ids))
    for name in ("caption", "image_caption"):
        assert hidden[name].allclose(plain[name], atol=1e-6)
    assert not hidden["cloze_sum"].allclose(plain["cloze_sum"])
    pooled, _ = system.text(given.input_ids, given.attention_mask)
    _, tokens = system.text(given.masked_ids, given.attention_mask)
    assert hidden["caption"].allclose(system.project_caption(pooled), atol=1e-5)
    assert hidden["cloze_sum"].allclose(system.cloze_head(tokens, given.labels, system.text.word_embeddings)[0], atol=1e-4)


def test_pictures_are_augmented_in_training_and_seen_as_they_are_otherwise(backbone):
    system, given = make(backbone), batch(0, pictures=True)
    system.train()
    torch.manual_seed(1)
    first, again = system(given), system(given)
    assert not first["view_1"].allclose(first["view_2"], atol=1e-3)
    assert not first["view_1"].allclose(again["view_1"], atol=1e-3)
    torch.manual_seed(1)
    assert system(given)["view_2"].equal(first["view_2"]), "the views come from torch's generator"
    system.eval()
    seen = system(given)
    assert seen["view_1"].equal(seen["view_2"])
    assert seen["view_1"].allclose(system.project_image(system.image(given.images)), atol=1e-6)
    assert system.image.hidden_size == FEATURES


def test_the_total_is_the_weighted_sum_of_the_terms(backbone):
    system = make(backbone, transitive=2.0, image=0.5, image_caption=0.25, cloze=3.0)
    with torch.no_grad():
        terms = system.losses(system(batch(0)))
    expected = 2.0 * terms["transitive"] + 0.5 * terms["image"] + 0.25 * terms["image_caption"] + 3.0 * terms["cloze"]
    assert float(system.total(terms)) == pytest.approx(float(expected), rel=1e-6)


def test_the_way_to_compute_transitive_similarity_matters(backbone):
    product, rescaled = (build(model_settings(backbone), objective(variant)) for variant in ("product", "rescaled"))
    terms = [system.losses(system(batch(0)))["transitive"].item() for system in (product, rescaled)]
    assert terms[0] != pytest.approx(terms[1], rel=1e-3)


@pytest.mark.parametrize(
    ("weights", "parts", "vectors"),
    [
        ({}, {"text", "image", "image_head", "image_caption_head", "caption_head", "cloze_head"}, None),
        (
            {"transitive": 0},
            {"text", "image", "image_head", "image_caption_head", "cloze_head"},
            {"image_ids", "view_1", "view_2", "image_caption", "cloze_sum", "cloze_count"},
        ),
        (
            {"cloze": 0},
            {"text", "image", "image_head", "image_caption_head", "caption_head"},
            {"image_ids", "view_1", "view_2", "image_caption", "caption"},
        ),
        ({"transitive": 0, "image": 0, "image_caption": 0}, {"text", "cloze_head"}, {"image_ids", "cloze_sum", "cloze_count"}),
    ],
)
def test_what_no_loss_needs_is_not_there(backbone, weights, parts, vectors):
    system = make(backbone, **weights)
    assert names_of(system) == parts
    found = system(batch(0))
    assert vectors is None or found.keys() == vectors
    wanted = {"transitive", "image", "image_caption", "cloze"} - weights.keys()
    assert system.losses(found).keys() == wanted


def test_without_transitive_loss_captions_are_compared_as_with_images(backbone):
    pooled = torch.randn(4, 32, generator=torch.Generator().manual_seed(0))
    system = make(backbone, transitive=0)
    assert system.project_caption(pooled).equal(system.project_image_caption(pooled))
    whole = make(backbone)
    assert not whole.project_caption(pooled).allclose(whole.project_image_caption(pooled), atol=1e-2)
    alone = make(backbone, transitive=0, image=0, image_caption=0)
    assert alone.project_caption(pooled).allclose(pooled / pooled.norm(dim=1, keepdim=True), atol=1e-6)


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ({"weights": {"transitive": 0, "image": 0, "image_caption": 0, "cloze": 0}}, "all weights are 0: there is nothing to minimise"),
        ({"weights": {"cloze": -1}}, "objective.weights.cloze|weights.cloze"),
        ({"weights": {"clozе": 1}}, "did you mean 'weights.cloze'"),
        ({"margin": 1.0}, "margin"),
        ({"temperature": {"image": 0}}, "temperature.image"),
        ({"transitive": "printed"}, "'product' or 'rescaled'"),
    ],
)
def test_impossible_objectives_are_refused(values, says):
    with pytest.raises(UserError, match=says):
        from_mapping(ObjectiveSettings, values, "run.yaml")
