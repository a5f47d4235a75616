"""The system alone, and on 1, 2 and 4 workers."""

import dataclasses
import functools
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from raysys.data.batches import Batch
from raysys.data.encoding import TextForm
from raysys.data.word_vectors import WordVectors
from raysys.models.heads import whiten
from raysys.systems.muve import Muve, info_nce_by_language
from raysys.systems.settings import ObjectiveSettings
from raysys.training.engine import backward, make_engine
from raysys.training.gather import gather_all
from raysys.training.settings import TrainingSettings
from tests.objectives.cases import BLOCKS, cosine, image_ids, log_softmax, quick, same, seeds, sizes, tensors, vectors
from tests.training.processes import run_ranks
from tests.training.worlds import FEATURES, SEED, VOCABULARY, batch, model_settings, tiny_backbone

LANGUAGES, SIZE = 4, 6  # no caption is in language 3


@pytest.fixture(scope="module")
def backbone(tmp_path_factory) -> str:
    return tiny_backbone(tmp_path_factory.mktemp("backbone"))


def found() -> WordVectors:
    """A vector for every third token, other ones in each language."""
    pairs = [(language, token) for language in range(LANGUAGES) for token in range(5 + language % 3, VOCABULARY, 3)]
    languages, tokens = np.array(pairs).T
    return WordVectors(languages, tokens, np.random.default_rng(0).normal(size=(len(pairs), SIZE)).astype(np.float32))


def make(backbone: str, learned: bool = False, frozen: bool = True, **changed: object) -> Muve:
    settings = model_settings(backbone, frozen=frozen)
    muve = {"skip_gram": {"size": SIZE}, "hidden_size": 10, "rows": len(found())}
    settings = type(settings).model_validate(settings.model_dump() | {"muve": muve} | changed)
    image = settings.image.model_copy(update={"batch_norm": "frozen"})
    torch.manual_seed(SEED)
    temperature = {"learned": learned, "image_caption": 0.2}
    system = Muve(settings.model_copy(update={"image": image}), ObjectiveSettings.model_validate({"temperature": temperature}), LANGUAGES)
    system.begin(found())
    return system


def loss_by_loops(images, captions, temperature, ids, languages):
    """The mean over languages of the mean over their rows, both ways; candidates are the rows of the language alone."""
    means = []
    for language in set(languages.tolist()):
        own, total = [row for row in range(len(ids)) if languages[row] == language], 0.0
        for queries, answers in ((images, captions), (captions, images)):
            for i in own:
                candidates = {k: cosine(queries[i], answers[k]) / temperature for k in own}
                positives = [k for k in own if same(ids, i, k)]
                total -= sum(log_softmax(candidates, k) for k in positives) / len(positives)
        means.append(total / (2 * len(own)))
    return sum(means) / len(means)


def draw_languages(seed: int, rows: int) -> np.ndarray:
    return np.random.default_rng([seed, 3]).choice([0, 2, 5], rows)


@quick
@given(seeds, sizes, st.sampled_from([0.05, 0.1, 1.0]), BLOCKS)
def test_loss_equals_plain_loops(seed, rows, temperature, pairs):
    images, captions, ids, languages = vectors(seed, rows), vectors(seed + 1, rows), image_ids(seed, rows), draw_languages(seed, rows)
    loss = info_nce_by_language(*tensors(images, captions), temperature, *tensors(ids, languages), block_pairs=pairs)
    assert loss.item() == pytest.approx(loss_by_loops(images, captions, temperature, ids, languages), rel=1e-9, abs=1e-12)


@quick
@given(seeds, sizes)
def test_order_of_rows_and_names_of_languages_do_not_matter(seed, rows):
    inputs = tensors(vectors(seed, rows), vectors(seed + 1, rows), image_ids(seed, rows), draw_languages(seed, rows))
    order = torch.from_numpy(np.random.default_rng(seed).permutation(rows))
    images, captions, ids, languages = inputs
    moved = [rows[order] for rows in inputs]
    loss = info_nce_by_language(images, captions, 0.1, ids, languages)
    torch.testing.assert_close(info_nce_by_language(moved[0], moved[1], 0.1, moved[2], 7 - moved[3]), loss)


@pytest.mark.parametrize("pairs", [1, 6, 1000])
def test_gradients(pairs):
    images, captions, ids, languages = tensors(vectors(0, 7), vectors(1, 7), image_ids(0, 7), np.array([1, 0, 1, 2, 0, 1, 1]))
    temperature = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
    inputs = (images.requires_grad_(), captions.requires_grad_(), temperature)
    assert torch.autograd.gradcheck(lambda a, b, t: info_nce_by_language(a, b, t, ids, languages, block_pairs=pairs), inputs)


def test_a_language_with_one_row_adds_zero_and_pulls_nothing():
    images, captions = torch.randn(3, 4).requires_grad_(), torch.randn(3, 4).requires_grad_()
    loss = info_nce_by_language(images, captions, 0.1, torch.zeros(3, dtype=torch.long), torch.tensor([4, 1, 4]))
    loss.backward()
    assert images.grad[1].eq(0).all()
    assert captions.grad[1].eq(0).all()
    assert images.grad[[0, 2]].abs().sum() > 0
    alone = info_nce_by_language(images[:1], captions[:1], 0.1, torch.zeros(1, dtype=torch.long), torch.tensor([3]))
    assert alone.item() == 0


def test_equal_vectors_of_n_rows_cost_the_logarithm_of_n():
    loss = info_nce_by_language(torch.ones(6, 3), torch.ones(6, 3), 0.1, torch.arange(6), torch.tensor([0, 0, 0, 0, 1, 1]))
    assert loss.item() == pytest.approx((math.log(4) + math.log(2)) / 2, rel=1e-6)


def test_vectors_have_one_row_per_sample_and_unit_length(backbone):
    system, shown = make(backbone), batch(0)
    out = system(shown)
    assert out.keys() == {"image_ids", "languages", "view_1", "image_caption"}
    for name in ("view_1", "image_caption"):
        assert out[name].shape == (7, 16)
        assert out[name].dtype == torch.float32
        assert out[name].norm(dim=1).tolist() == pytest.approx([1.0] * 7, abs=1e-5)
    assert out["languages"].equal(shown.languages)
    assert out["image_ids"].equal(shown.image_ids)
    assert out["view_1"].allclose(system.project_image(shown.features[:, 0]))
    texts = (shown.input_ids, shown.attention_mask, shown.languages)
    assert out["image_caption"].equal(system.caption_vectors(*texts))
    assert system.sentence_vectors(*texts).equal(system.caption_vectors(*texts))
    head = system.image_caption_head
    projected = system.text(*texts) @ head.weight.T + head.bias
    torch.testing.assert_close(out["image_caption"], projected / projected.norm(dim=1, keepdim=True))
    assert system.word_vectors(*texts).shape == (7, SIZE)


def test_the_term_is_the_loss_and_the_total(backbone):
    system, shown = make(backbone).requires_grad_(False), batch(0)
    out = system(shown)
    terms = system.losses(out)
    images, captions = (out[name].double().numpy() for name in ("view_1", "image_caption"))
    expected = loss_by_loops(images, captions, 0.2, shown.image_ids.numpy(), shown.languages.numpy())
    assert {name: float(term) for name, term in terms.items()} == pytest.approx({"image_caption": expected}, rel=1e-5)
    assert float(system.total(terms)) == float(terms["image_caption"])
    assert system.temperature_values(out) == {"temperature_image_caption": 0.2}


def test_what_those_who_encode_ask(backbone):
    system = make(backbone)
    assert system.uses_images
    assert system.reads_languages
    assert system.text_form == TextForm(12)
    assert system.image.hidden_size == FEATURES


def test_the_image_network_is_that_of_every_system_with_the_same_seed(backbone):
    from tests.training.worlds import build, objective

    other = build(model_settings("resnet-10-narrow"), objective())
    own = make("resnet-10-narrow")
    assert all(own.image.state_dict()[name].equal(value) for name, value in other.image.state_dict().items())


def test_pictures_are_augmented_in_training_alone(backbone):
    system, shown = make(backbone), batch(0, pictures=True)
    system.eval()
    assert system(shown)["view_1"].allclose(system.project_image(system.image(shown.images)), atol=1e-6)
    system.train()
    torch.manual_seed(1)
    first, second = system(shown)["view_1"], system(shown)["view_1"]
    assert not first.allclose(second, atol=1e-3)
    torch.manual_seed(1)
    assert system(shown)["view_1"].equal(first)


def test_a_whitened_image_head(backbone):
    system = make(backbone, image_head="whitened", head={"size": 3})
    system.image_head.begin(whiten(torch.randn(50, FEATURES), 3))
    assert system(batch(0))["view_1"].shape == (7, 3)


@pytest.mark.parametrize("learned", [False, True])
def test_training_lowers_the_loss(backbone, learned):
    system, shown = make(backbone, learned), batch(0)
    optimizer = torch.optim.AdamW([one for one in system.parameters() if one.requires_grad], lr=1e-2)
    losses = []
    for _ in range(60):
        loss = system.total(system.losses(system(shown)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]


CASES = {"usual": (4, 3), "a rank without samples": (7, 0), "a rank without a known word": (4, 3)}
"""Rows of the global batch of seven on each of two ranks."""
QUARTERS = (2, 0, 3, 2)


def whole(case: str) -> Batch:
    shown = batch(0, pictures=True)
    ids = shown.input_ids.clone()
    ids[:4] = ids[:4] // 3 * 3 + 2 + shown.languages[:4, None] % 3 if case != "a rank without a known word" else 3
    return dataclasses.replace(shown, input_ids=ids.clamp(max=VOCABULARY - 1) * shown.attention_mask)


def share(case: str, counts: tuple[int, ...], rank: int) -> Batch:
    start = sum(counts[:rank])
    return whole(case).rows(start, start + counts[rank])


@functools.cache
def one_process(backbone: str, case: str) -> tuple[float, dict[str, torch.Tensor]]:
    system = make(backbone, learned=True, frozen=False).train()
    system.training = False  # of the system alone: pictures as they are
    loss = system.total(system.losses(system(whole(case))))
    loss.backward()
    return loss.item(), {name: parameter.grad for name, parameter in system.named_parameters()}


def work(rank: int, backbone: str, stages: tuple[int, ...], cases: dict[str, tuple[int, ...]]) -> dict:
    from deepspeed.utils import safe_get_full_grad

    results = {}
    for stage in stages:
        system = make(backbone, learned=True, frozen=False).train()
        system.checkpoint_activations()
        workers = len(next(iter(cases.values())))
        engine = make_engine(system, TrainingSettings(global_batch=7, zero_stage=stage), workers=workers)
        engine.module.training = False
        for case, counts in cases.items():
            out = gather_all(engine(share(case, counts, rank)), list(counts))
            loss = engine.module.total(engine.module.losses(out))
            backward(engine, loss)
            gradients = {name: safe_get_full_grad(one).clone() for name, one in engine.module.named_parameters()}
            results[stage, case] = loss.item(), gradients
            for group in engine.optimizer.param_groups:
                group["lr"] = 0.0
            engine.step()
        engine.destroy()
    return results


def assert_alike(result: tuple[float, dict[str, torch.Tensor]], backbone: str, case: str) -> None:
    (loss, gradients), (expected, wanted) = result, one_process(backbone, case)
    scale = max(float(gradient.norm()) for gradient in wanted.values())
    assert loss == pytest.approx(expected, rel=1e-5)
    assert gradients.keys() == wanted.keys()
    for name, gradient in wanted.items():
        assert (gradients[name] - gradient).norm() <= 1e-5 * gradient.norm() + 1e-7 * scale, name
    for name in ("text.vectors.weight", "text.adapters.weight", "temperatures.image_caption.log_ratio", "image_caption_head.weight"):
        assert wanted[name].norm() > 1e-4, name


@pytest.fixture(scope="module")
def halves(backbone) -> list[dict]:
    """What each of two processes found by ZeRO 3, all cases in one group of processes."""
    return run_ranks(work, 2, backbone, (3,), CASES)


@pytest.mark.parametrize("case", CASES)
def test_two_workers_find_the_loss_and_every_gradient_of_one(halves, backbone, case):
    for result in halves:
        assert_alike(result[3, case], backbone, case)


@pytest.mark.slow
def test_four_workers_find_the_loss_and_every_gradient_of_one(backbone):
    for result in run_ranks(work, 4, backbone, (0, 1, 2, 3), {"usual": QUARTERS}):
        for stage in (0, 1, 2, 3):
            assert_alike(result[stage, "usual"], backbone, "usual")
