"""The system alone: what it computes of a batch, and what its weights leave out."""

import copy
import dataclasses
import itertools

import pytest
import torch

from raysys.errors import UserError
from raysys.objectives.similarity import MINIMUM_TEMPERATURE
from raysys.settings import from_mapping
from raysys.systems.globetrotter import Globetrotter
from raysys.systems.settings import ObjectiveSettings
from tests.training.worlds import FEATURES, batch, build, model_settings, objective, tiny_backbone

LOSSES = ("transitive", "image", "image_caption", "cloze")
COMBINATIONS = [weights for weights in itertools.product((0, 1), repeat=4) if any(weights)]


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


def learning(backbone: str, start: float = 0.1, frozen: bool = True, **weights: float) -> Globetrotter:
    wanted = objective(**weights).model_dump()
    wanted["temperature"] = {"learned": True, "transitive": start, "image": 2 * start, "image_caption": 3 * start}
    return build(model_settings(backbone, frozen=frozen), ObjectiveSettings.model_validate(wanted))


EDGES = {
    "usual": lambda: batch(0, pictures=True),
    "one row": lambda: batch(0, pictures=True).rows(2, 3),
    "no masked token": lambda: dataclasses.replace(batch(0, pictures=True), labels=torch.full_like(batch(0).labels, -100)),
    "a caption of padding": lambda: dataclasses.replace(
        batch(0, pictures=True), attention_mask=batch(0).attention_mask * (torch.arange(7) != 3).long()[:, None]
    ),
    "padding only": lambda: dataclasses.replace(
        (row := batch(0, pictures=True).rows(0, 0)), attention_mask=torch.zeros_like(row.attention_mask)
    ),
}


@pytest.mark.parametrize("edge", EDGES)
@pytest.mark.parametrize("weights", COMBINATIONS, ids=str)
def test_every_trained_parameter_has_a_gradient(backbone, weights, edge):
    given = EDGES[edge]()
    for heads, layers in (("separate", 1), ("shared", 0)):
        model = model_settings(backbone, frozen=False)
        model = model.model_copy(update={"text_heads": heads, "text": model.text.model_copy(update={"layers": layers})})
        wanted = objective(**dict(zip(LOSSES, weights, strict=True)))
        system = build(model, wanted.model_copy(update={"temperature": wanted.temperature.model_copy(update={"learned": True})})).train()
        vectors = system(given)
        if edge == "padding only":  # what a gather leaves of a share without samples
            other = system(batch(0, pictures=True))
            vectors = {name: torch.cat([rows[:0], other[name].detach()]) for name, rows in vectors.items()}
        system.total(system.losses(vectors)).backward()
        trained = {name: parameter for name, parameter in system.named_parameters() if parameter.requires_grad}
        assert [name for name, parameter in trained.items() if parameter.grad is None] == []
        assert all(parameter.grad.isfinite().all() for parameter in trained.values())
        if edge == "usual":
            without = {name for name, parameter in trained.items() if parameter.grad.eq(0).all()}
            assert not {name for name in without if "bias" not in name}, "what no loss trains is frozen"


@pytest.mark.parametrize(
    ("weights", "frozen"),
    [
        ({}, set()),
        ({"image_caption": 0}, {"image_caption_head"}),
        ({"image": 0, "image_caption": 0}, {"image", "image_head", "image_caption_head"}),
        ({"transitive": 0, "image_caption": 0, "cloze": 0}, {"text", "image_caption_head"}),
        ({"transitive": 0, "image": 0, "image_caption": 0}, set()),
    ],
)
def test_what_no_loss_trains_is_frozen(backbone, weights, frozen):
    system = build(model_settings(backbone, frozen=False), objective(**weights)).train()
    parameters = list(system.named_parameters())
    assert {name.split(".")[0] for name, one in parameters if not one.requires_grad} == frozen
    assert not {name.split(".")[0] for name, one in parameters if one.requires_grad} & frozen
    if "image" in frozen:
        assert not system.image.network.training, "a frozen network's statistics stay as they are"


def test_learned_temperatures_begin_as_set_and_leave_as_columns(backbone):
    system = learning(backbone, image=0).requires_grad_(False)
    vectors = system(batch(0))
    assert set(system.temperatures) == {"transitive", "image_caption"}
    assert vectors["temperature_transitive"].equal(torch.full((7,), 0.1))
    assert vectors["temperature_image_caption"].allclose(torch.full((7,), 0.3))
    fixed = {"transitive": 0.1, "image_caption": 0.3}
    settings = objective(image=0).model_dump() | {"temperature": fixed}
    plain = build(model_settings(backbone), ObjectiveSettings.model_validate(settings)).requires_grad_(False)
    expected, found = plain.losses(plain(batch(0))), system.losses(vectors)
    assert {name: float(term) for name, term in found.items()} == pytest.approx({name: float(term) for name, term in expected.items()})
    assert system.temperature_values(vectors) == pytest.approx({"temperature_transitive": 0.1, "temperature_image_caption": 0.3})
    assert plain.temperature_values(plain(batch(0))) == {"temperature_transitive": 0.1, "temperature_image_caption": 0.3}
    assert not any(name.startswith("temperature") for name in plain(batch(0)))
    assert not hasattr(plain, "temperatures")


def test_the_gradient_of_a_learned_temperature_is_that_of_finite_differences(backbone):
    system = learning(backbone).double().eval()
    given = dataclasses.replace(batch(0), features=batch(0).features.double())

    def loss() -> torch.Tensor:
        vectors = system(given)
        # float32 of the networks' own making; from here on in float64
        vectors = {name: rows.double() if rows.is_floating_point() else rows for name, rows in vectors.items()}
        for name, learned in system.temperatures.items():
            vectors[f"temperature_{name}"] = (learned.start * learned.log_ratio.exp()).expand(7)
        return system.total(system.losses(vectors))

    loss().backward()
    for name, learned in system.temperatures.items():
        moved = []
        for change in (1e-4, -1e-4):
            with torch.no_grad():
                learned.log_ratio += change
                moved.append(loss().item())
                learned.log_ratio -= change
        assert learned.log_ratio.grad.item() == pytest.approx((moved[0] - moved[1]) / 2e-4, rel=1e-5), name


def test_a_learned_temperature_stops_at_the_minimum(backbone):
    system = learning(backbone)
    with torch.no_grad():
        for learned in system.temperatures.values():
            learned.log_ratio.fill_(-9.0)
        lowest = build(
            model_settings(backbone),
            ObjectiveSettings.model_validate(
                objective().model_dump() | {"temperature": dict.fromkeys(("transitive", "image", "image_caption"), MINIMUM_TEMPERATURE)}
            ),
        )
        found, expected = (one.losses(one(batch(0))) for one in (system, lowest))
        assert {name: float(term) for name, term in found.items()} == pytest.approx({name: float(term) for name, term in expected.items()})


def gradients_of(system: Globetrotter) -> dict[str, torch.Tensor]:
    return {name: parameter.grad.clone() for name, parameter in system.named_parameters() if parameter.requires_grad}


def assert_alike(found: dict[str, torch.Tensor], expected: dict[str, torch.Tensor]) -> None:
    assert found.keys() == expected.keys()
    for name, gradient in expected.items():
        assert (found[name] - gradient).norm() <= 1e-5 * gradient.norm() + 1e-7, name


def test_cached_gradients_of_micro_batches_are_those_of_the_whole_batch(backbone):
    system, given = learning(backbone), batch(0)
    system.total(system.losses(system(given))).backward()
    expected = gradients_of(system)
    system.zero_grad()
    parts = [given.rows(start, start + 3) for start in (0, 3)] + [given.rows(6, 7)]
    with torch.no_grad():
        embedded = [system(part) for part in parts]
    whole = {name: torch.cat([part[name] for part in embedded]) for name in embedded[0]}
    leaves = {name: rows.requires_grad_() for name, rows in whole.items() if rows.is_floating_point()}
    system.total(system.losses(whole)).backward()
    for part, start in zip(parts, (0, 3, 6), strict=True):
        again = system(part)
        wanted = [name for name in leaves if again[name].requires_grad]
        torch.autograd.backward([again[name] for name in wanted], [leaves[name].grad[start : start + part.count] for name in wanted])
    found = gradients_of(system)
    assert_alike(found, expected)
    assert found["temperatures.image.log_ratio"].abs() > 1e-3


def test_recomputed_activations_change_nothing(backbone):
    model = model_settings(backbone, dropout=0.2, frozen=False)
    system = build(model, objective()).train()
    recomputing = copy.deepcopy(system)
    recomputing.checkpoint_activations()
    found = []
    for one in (system, recomputing):
        torch.manual_seed(3)
        loss = one.total(one.losses(one(batch(0, pictures=True))))
        loss.backward()
        found.append((loss.item(), gradients_of(one), dict(one.named_buffers())))
    assert found[0][0] == found[1][0]
    assert_alike(found[1][1], found[0][1])
    assert all(buffer.equal(found[0][2][name]) for name, buffer in found[1][2].items())
