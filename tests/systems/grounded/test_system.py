"""Every system of the paper that is trained: what it is made of, what it learns from, and that it learns."""

import dataclasses

import pytest
import torch

from raysys.errors import UserError
from raysys.systems.grounded.build import make_grounded
from raysys.systems.grounded.names import GROUNDED_TITLES, losses_of, parts_of
from raysys.training.parameter_groups import parameter_groups
from raysys.training.settings import TrainingSettings
from tests.systems.grounded.worlds import CAPTIONS, SIZE, TRIPLES, batch, build, model_settings, objective
from tests.training.worlds import FEATURES, tiny_backbone

TRAINED = [name for name in GROUNDED_TITLES if name != "seq"]
BOTH = [name for name in TRAINED if all((parts_of(name)["triples"], parts_of(name)["captions"]))]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return model_settings(tiny_backbone(tmp_path_factory.mktemp("backbone")))


def trained(system):
    return {name: parameter for name, parameter in system.named_parameters() if parameter.requires_grad}


@pytest.mark.parametrize("name", TRAINED)
def test_it_learns_every_loss_it_has_with_all_it_trains_and_leaves_the_rest_alone(name, model):
    system, given = build(name, model), batch(name)
    before = {key: value.clone() for key, value in system.state_dict().items()}
    optimizer = torch.optim.Adam(parameter_groups(system, TrainingSettings(learning_rate=3e-3)))
    found = []
    for _ in range(12):
        rows = system(given)
        assert {len(value) for value in rows.values()} == {len(given.ids)}
        terms = system.losses(rows)
        optimizer.zero_grad()
        system.total(terms).backward()
        assert all(parameter.grad is not None for parameter in trained(system).values())
        optimizer.step()
        found.append({key: term.item() for key, term in terms.items() if key != "perceptual_constant"})
    assert set(found[0]) == set(losses_of(name))
    weights = system.objective.weights
    totals = [sum(getattr(weights, key) * value for key, value in terms.items()) for terms in (found[0], found[-1])]
    assert totals[1] < totals[0]
    after = system.state_dict()
    assert {key for key in trained(system) if torch.equal(before[key], after[key])} == set(), "what is trained moves"
    assert all(torch.equal(before[key], after[key]) for key in before if key not in trained(system))


@pytest.mark.parametrize("name", TRAINED)
def test_its_total_weighs_its_losses(name, model):
    terms = build(name, model).losses(build(name, model)(batch(name)))
    wanted = sum(getattr(objective().weights, key) * value for key, value in terms.items() if key != "perceptual_constant")
    torch.testing.assert_close(build(name, model).total(terms), wanted)


@pytest.mark.parametrize("name", ["t-cp-g", "gs-both", "t-cm"])
def test_the_settings_that_it_keeps_make_the_same_system_again(name, model):
    system = build(name, model)
    again = make_grounded(name, system.model, system.objective)
    again.load_state_dict(system.state_dict())
    assert again.objective == system.objective


@pytest.mark.parametrize("name", TRAINED)
def test_rows_do_not_depend_on_those_beside_them(name, model):
    system, given = build(name, model), batch(name)
    whole = system(given)
    parts = [system(given.rows(start, stop)) for start, stop in ((0, 2), (2, len(given.ids)))]
    for key, value in whole.items():
        torch.testing.assert_close(torch.cat([part[key] for part in parts]), value)


@pytest.mark.parametrize("name", BOTH)
def test_each_loss_is_that_of_the_rows_it_is_of(name, model):
    system, given = build(name, model), batch(name)
    terms = system.losses(system(given))
    triples, captions = (system.losses(system(rows)) for rows in (given.rows(0, TRIPLES), given.rows(TRIPLES, TRIPLES + CAPTIONS)))
    torch.testing.assert_close(terms["text"], triples["text"])
    assert terms["text"] > 0
    for key in set(terms) - {"text"}:
        torch.testing.assert_close(terms[key], captions[key])
        assert key == "perceptual_constant" or terms[key] != 0
    assert captions["text"] == 0
    assert all(value == (key == "perceptual_constant") for key, value in triples.items() if key != "text")


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("kept", [slice(0, TRIPLES), slice(TRIPLES, TRIPLES + CAPTIONS)])
def test_a_batch_without_one_kind_of_rows_still_reaches_every_parameter(name, model, kept):
    system = build(name, model)
    system.total(system.losses(system(batch(name).rows(kept.start, kept.stop)))).backward()
    assert all(parameter.grad is not None and parameter.grad.isfinite().all() for parameter in trained(system).values())


def test_the_loss_on_text_is_the_mean_over_triples_of_both_neighbours(model):
    system, given = build("t-cp-g", model), batch("t-cp-g")
    terms = system.losses(system(given))
    sentences = system.text(given.input_ids, given.attention_mask)
    nothing = torch.zeros_like(given.next_ids), torch.zeros_like(given.next_mask)
    previous, _ = system.decoders(sentences, [(given.previous_ids, given.previous_mask), nothing])
    following, _ = system.decoders(sentences, [nothing, (given.next_ids, given.next_mask)])
    torch.testing.assert_close(terms["text"], (previous.sum() + following.sum()) / TRIPLES)


def test_a_caption_without_another_is_not_counted(model):
    system, given = build("gs-cap", model), batch("gs-cap")
    rows = system(given)
    assert rows["has_other"].tolist() == [True] * (CAPTIONS - 1) + [False]
    torch.testing.assert_close(system.losses(rows)["caption"], rows["caption_nll"][:-1].mean())


def test_alike_pictures_are_counted_and_give_no_gradient(model):
    system, given = build("p-g", model), batch("p-g")
    terms = system.losses(system(dataclasses.replace(given, features=torch.ones_like(given.features))))
    assert {key: term.item() for key, term in terms.items()} == {"perceptual": 0, "perceptual_constant": 1}
    system.total(terms).backward()
    assert not any(parameter.grad.any() for parameter in trained(system).values())
    assert system.losses(system(given))["perceptual_constant"] == 0


def test_a_sample_of_pairs_is_another_correlation(model):
    found = [
        system.losses(system(batch("p-g")))["perceptual"]
        for system in (build("p-g", model, objective(pairs=pairs)) for pairs in (None, 4, 6))
    ]
    assert found[0] == found[2] != found[1]


def test_what_no_loss_trains_is_not_built(model):
    parts = {name: {part for part, _ in build(name, model).named_children()} for name in GROUNDED_TITLES}
    assert parts["t"] == parts["t-half"] == {"text", "decoders"}
    assert parts["t-cp-g"] == {"text", "decoders", "to_grounded"}
    assert parts["t-cp-id"] == {"text", "decoders"}
    assert parts["cp-g"] == {"text", "to_grounded"}
    assert parts["c-id"] == parts["p-id"] == parts["seq"] == {"text"}
    assert parts["cm"] == {"image", "text", "to_visual"}
    assert parts["gs-img"] == {"text", "base", "to_visual"}
    assert parts["gs-cap"] == {"text", "base", "caption_decoder"}
    assert parts["gs-both"] == {"text", "base", "to_visual", "caption_decoder"}


SPACES = {
    "t": {"text": SIZE},
    "t-half": {"text": SIZE // 2},
    "t-p-g": {"text": SIZE, "grounded": 7},
    "c-id": {"text": SIZE},
    "cm": {"text": SIZE, "visual": FEATURES},
    "t-cm": {"text": SIZE, "visual": FEATURES},
    "gs-img": {"text": SIZE},
}


@pytest.mark.parametrize("name", SPACES)
def test_sentences_have_vectors_in_every_space_and_the_last_is_the_one_of_table_1(name, model):
    system, given = build(name, model).eval(), batch(name)
    assert system.spaces == tuple(SPACES[name])
    assert system.default_space == tuple(SPACES[name])[-1]
    rows = system(given)
    for space, size in SPACES[name].items():
        vectors = system.vectors(space, given.input_ids, given.attention_mask)
        assert (vectors.shape, vectors.dtype) == ((len(given.ids), size), torch.float32)
        if space in rows:  # where the losses compare them
            torch.testing.assert_close(vectors, rows[space])
    unit = system.sentence_vectors(given.input_ids, given.attention_mask, torch.zeros(len(given.ids)))
    torch.testing.assert_close(unit, torch.nn.functional.normalize(vectors))
    assert system.word_vectors(given.input_ids, given.attention_mask, torch.zeros(len(given.ids))).shape == (len(given.ids), 8)


def test_sentences_are_compared_with_pictures_where_they_were_ranked_by_them(model):
    system, given = build("t-cm", model), batch("t-cm")
    texts = given.input_ids, given.attention_mask, torch.zeros(len(given.ids))
    torch.testing.assert_close(system.caption_vectors(*texts), torch.nn.functional.normalize(system(given)["visual"]))
    torch.testing.assert_close(system.project_image(given.features), torch.nn.functional.normalize(given.features))
    with pytest.raises(UserError, match=r"system cp-g does not compare sentences with pictures"):
        build("cp-g", model).caption_vectors(*texts)


@pytest.mark.parametrize("name", ["t", "cp-g", "cm"])
def test_an_encoder_may_begin_as_that_of_another_run(name, model):
    base, system = build("t", model), build(name, model)
    with torch.no_grad():
        base.text.words.weight.add_(1)
    system.begin(base.text.state_dict())
    assert torch.equal(system.text.words.weight, base.text.words.weight)
    with pytest.raises(UserError, match=r"model\.base.*system .* size 12"):
        system.begin(build("t-half", model).text.state_dict())


def test_image_networks_are_the_same_whatever_the_system(model):
    images = [build(name, model).image.state_dict() for name in ("cm", "t-cm")]
    for other in images[1:]:
        assert all(torch.equal(other[key], value) for key, value in images[0].items())


@pytest.mark.parametrize("name", ["t-cp-g", "gs-both"])
@pytest.mark.parametrize("encoder", ["gru", "transformer"])
def test_recomputing_activations_changes_no_gradient(name, encoder, model):
    gradients, size = [], {"size": 2 * SIZE}
    model = model.model_copy(update={"text": model.text.model_copy(update={"encoder": encoder, **size})})
    for recompute in (False, True):
        system = build(name, model)
        if recompute:
            system.checkpoint_activations()
        system.total(system.losses(system(batch(name)))).backward()
        gradients.append({key: parameter.grad for key, parameter in trained(system).items()})
    for key, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][key], gradient)


def test_ground_sent_is_a_trained_vector_beside_one_that_stays(model):
    base, system = build("t-half", model), build("gs-both", model)
    system.begin(base.text.state_dict())
    given = batch("gs-both")
    vectors = system.vectors("text", given.input_ids, given.attention_mask)
    torch.testing.assert_close(vectors[:, SIZE // 2 :], base.text(given.input_ids, given.attention_mask))
    torch.testing.assert_close(vectors[:, : SIZE // 2], system.text(given.input_ids, given.attention_mask))
    vectors.sum().backward()
    assert all(parameter.grad is None for parameter in system.base.parameters())
    with pytest.raises(UserError, match=r"model\.base.*system gs-both.* size 6"):
        system.begin(build("t", model).text.state_dict())
