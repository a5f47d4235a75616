"""The encoder and the decoders: values written out in NumPy, what must not matter, and training on real processes in every ZeRO stage."""

import itertools
from typing import Any

import numpy as np
import pydantic
import pytest
import torch
from torch import Tensor, nn

from raysys.models.recurrent import GRU
from raysys.models.skip_thought import CaptionDecoder, NeighbourDecoders, SentenceEncoder, SkipThoughtSettings
from raysys.training.engine import backward, make_engine, optimizer_step
from raysys.training.loss_scale import LossScale
from raysys.training.settings import TrainingSettings
from tests.training.engines import let_go
from tests.training.processes import run_ranks

ENCODERS = ("gru", "transformer")
VOCABULARY = 23
LENGTHS = {"this": [4, 7, 3, 0, 9, 5], "previous": [5, 0, 9, 0, 3, 3], "next": [0, 0, 4, 0, 8, 3], "other": [4, 3, 0, 0, 9, 9]}
ROWS = len(LENGTHS["this"])


def settings(encoder: str = "gru", **others: Any) -> SkipThoughtSettings:
    sizes = {"word_size": 6, "size": 8, "vocabulary_size": VOCABULARY, "max_words": 8, "layers": 2, "heads": 2, "dropout": 0.0}
    return SkipThoughtSettings.model_validate({**sizes, "encoder": encoder, **others})


class Networks(nn.Module):
    """Encoder and decoders together, as systems have them, with weights that are large enough for values to differ."""

    def __init__(self, encoder: str = "gru", **others: Any) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder = SentenceEncoder(settings(encoder, **others))
        self.neighbours = NeighbourDecoders(self.encoder.settings, self.encoder.words)
        self.caption = CaptionDecoder(self.encoder.settings, self.encoder.words)
        with torch.no_grad():
            for parameter in self.parameters():
                parameter.mul_(4) if parameter.ndim > 1 else parameter.add_(torch.randn_like(parameter) * 0.3)

    def forward(self, batch: dict[str, tuple[Tensor, Tensor]]) -> dict[str, Tensor]:
        vectors = self.encoder(*batch["this"])
        loss, tokens = self.neighbours(vectors, [batch["previous"], batch["next"]])
        caption, caption_tokens = self.caption(vectors, *batch["other"])
        return {"vectors": vectors, "neighbours": loss, "tokens": tokens, "caption": caption, "caption_tokens": caption_tokens}


def sentences(lengths: list[int], seed: int, padding: int = 0) -> tuple[Tensor, Tensor]:
    """Random words; what stands in the padding is random too."""
    width = max(lengths) + padding
    ids = torch.randint(0, VOCABULARY, (len(lengths), width), generator=torch.Generator().manual_seed(seed))
    return ids, (torch.arange(width)[None] < torch.tensor(lengths)[:, None]).long()


def batch(padding: int = 0) -> dict[str, tuple[Tensor, Tensor]]:
    """Ids of the same sentences whatever the padding."""
    found = {}
    for seed, (kind, lengths) in enumerate(LENGTHS.items()):
        ids, mask = sentences(lengths, seed)
        wide, wide_mask = sentences(lengths, seed + 100, padding)
        wide[:, : ids.shape[1]][mask.bool()] = ids[mask.bool()]
        found[kind] = (wide, wide_mask)
    return found


def rows_of(given: dict[str, tuple[Tensor, Tensor]], chosen: Any) -> dict[str, tuple[Tensor, Tensor]]:
    return {kind: (ids[chosen], mask[chosen]) for kind, (ids, mask) in given.items()}


def array(parameter: Tensor) -> np.ndarray:
    return parameter.detach().double().numpy()


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def gru_step(network: GRU, x: np.ndarray, h: np.ndarray, condition: np.ndarray | None) -> np.ndarray:
    of_input = array(network.weight_ih) @ x + array(network.bias_ih)
    if condition is not None and network.weight_ch is not None:
        of_input = of_input + array(network.weight_ch) @ condition
    of_state = array(network.weight_hh) @ h + array(network.bias_hh)
    (a, b, c), (d, e, f) = np.split(of_input, 3), np.split(of_state, 3)
    r, z = sigmoid(a + d), sigmoid(b + e)
    return (1 - z) * np.tanh(c + r * f) + z * h


def lstm_step(network: Any, x: np.ndarray, state: tuple[np.ndarray, np.ndarray], condition: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    h, cell = state
    gates = array(network.weight_ih) @ x + array(network.weight_hh) @ h + array(network.weight_ch) @ condition + array(network.bias)
    i, f, g, o = np.split(gates, 4)
    cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(cell), cell


def likelihood(head: Any, h: np.ndarray, word: int) -> float:
    logits = array(head.weight) @ h + array(head.bias)
    return float(np.log(np.exp(logits).sum()) - logits[word])


def words_of(given: tuple[Tensor, Tensor], row: int) -> list[int]:
    ids, mask = given
    return ids[row][mask[row].bool()].tolist()


@pytest.mark.parametrize("decoder_size", [None, 5])
def test_values_equal_the_equations(decoder_size):
    networks, given = Networks(decoder_size=decoder_size), batch()
    with torch.no_grad():
        found = networks(given)
    table = array(networks.encoder.words.weight)
    size = decoder_size or 8
    for row in range(ROWS):
        s = np.zeros(8)
        for word in words_of(given["this"], row):
            s = gru_step(networks.encoder.reader.gru, table[word], s, None)
        np.testing.assert_allclose(found["vectors"][row].numpy(), s, atol=1e-6)
        total, count = 0.0, 0
        for kind, decoder in (("previous", networks.neighbours.previous), ("next", networks.neighbours.next)):
            h, written = np.zeros(size), words_of(given[kind], row)
            for word, following in itertools.pairwise(written):
                h = gru_step(decoder, table[word], h, s)
                total, count = total + likelihood(networks.neighbours.vocabulary, h, following), count + 1
        assert found["neighbours"][row].item() == pytest.approx(total, rel=1e-5)
        assert found["tokens"][row].item() == count
        state, total, written = (np.zeros(size), np.zeros(size)), 0.0, words_of(given["other"], row)
        for word, following in itertools.pairwise(written):
            state = lstm_step(networks.caption.lstm, table[word], state, s)
            total += likelihood(networks.caption.vocabulary, state[0], following)
        assert found["caption"][row].item() == pytest.approx(total, rel=1e-5)
        assert found["caption_tokens"][row].item() == len(written[1:])


@pytest.mark.parametrize("encoder", ENCODERS)
def test_padding_order_and_company_do_not_matter(encoder):
    networks = Networks(encoder).eval()
    with torch.no_grad():
        expected = networks(batch())
        for other in (batch(padding=1), rows_of(batch(), slice(None)), {**batch(), "previous": batch(padding=2)["previous"]}):
            for name, rows in networks(other).items():
                torch.testing.assert_close(rows, expected[name], rtol=1e-5, atol=1e-6)
        order = torch.tensor([4, 0, 3, 5, 2, 1])
        for name, rows in networks(rows_of(batch(), order)).items():
            torch.testing.assert_close(rows, expected[name][order], rtol=1e-5, atol=1e-6)
        for row in range(ROWS):
            for name, rows in networks(rows_of(batch(), slice(row, row + 1))).items():
                torch.testing.assert_close(rows, expected[name][row : row + 1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("encoder", ENCODERS)
def test_a_row_of_length_0_gives_zeros(encoder):
    found = Networks(encoder)(batch())
    assert not found["vectors"][3].any()
    assert found["neighbours"][3] == found["tokens"][3] == found["caption"][3] == found["caption_tokens"][3] == 0
    assert found["neighbours"][1] == 0, "a sentence without neighbours"
    assert found["vectors"].isfinite().all()
    assert all(rows.dtype == torch.float32 for rows in found.values())


@pytest.mark.parametrize("columns", [0, 3])
@pytest.mark.parametrize("rows", [0, 2])
@pytest.mark.parametrize("recompute", [False, True])
@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_weight_has_a_gradient_also_where_no_row_has_a_token(encoder, recompute, rows, columns):
    if encoder == "transformer" and not rows:
        pytest.skip("a worker has a row at least")
    networks = Networks(encoder).train()
    if recompute:
        networks.encoder.checkpoint_activations()
    nothing = (torch.zeros(rows, columns, dtype=torch.int64), torch.zeros(rows, columns, dtype=torch.int64))
    found = networks(dict.fromkeys(LENGTHS, nothing))
    assert all(len(rows_found) == rows and not rows_found.any() for rows_found in found.values())
    (found["vectors"].sum() + found["neighbours"].sum() + found["caption"].sum()).backward()
    for name, parameter in networks.named_parameters():
        assert parameter.grad is not None, name
        assert not parameter.grad.any(), name


@pytest.mark.parametrize("encoder", ENCODERS)
def test_recomputed_activations_change_nothing(encoder):
    networks = Networks(encoder, dropout=0.2).train()

    def gradients() -> list[Tensor]:
        torch.manual_seed(3)
        networks.zero_grad()
        found = networks(batch())
        (found["neighbours"].sum() + found["caption"].sum()).backward()
        return [parameter.grad.clone() for parameter in networks.parameters()]

    kept = gradients()
    assert all(gradient.isfinite().all() and gradient.any() for gradient in kept)
    networks.encoder.checkpoint_activations()
    assert all(map(torch.equal, gradients(), kept))


def test_word_vectors_are_means():
    encoder = Networks().encoder
    ids, mask = torch.tensor([[4, 5, 6], [7, 0, 0]]), torch.tensor([[1, 1, 0], [0, 0, 0]])
    found = encoder.word_vectors(ids, mask)
    torch.testing.assert_close(found[0], encoder.words.weight[4:6].mean(dim=0))
    assert not found[1].any()


def test_the_word_table_is_the_encoders():
    networks = Networks()
    assert [name for name in networks.state_dict() if "words" in name] == ["encoder.words.weight"]
    found = networks(batch())
    found["neighbours"].sum().backward()
    read = {word for kind in ("this", "previous", "next") for row in range(ROWS) for word in words_of(batch()[kind], row)}
    assert set(networks.encoder.words.weight.grad.any(dim=1).nonzero()[:, 0].tolist()) <= read
    from_decoders = networks.encoder.words.weight.grad.clone()
    networks.zero_grad()
    networks.neighbours(found["vectors"].detach(), [batch()["previous"], batch()["next"]])[0].sum().backward()
    assert networks.encoder.words.weight.grad.any()
    assert not networks.encoder.words.weight.grad.equal(from_decoders)


def test_settings():
    assert SkipThoughtSettings().form.max_tokens == 32
    assert (SkipThoughtSettings().size, SkipThoughtSettings().word_size, SkipThoughtSettings().vocabulary_size) == (2048, 620, 20_000)
    with pytest.raises(pydantic.ValidationError, match="size 10 is not a multiple of heads 4"):
        SkipThoughtSettings(encoder="transformer", size=10, heads=4)
    assert SkipThoughtSettings(size=10, heads=4).size == 10


STEPS, RATE = 2, 5e-2
CASES = [("gru", stage, precision) for stage in (0, 1, 2, 3) for precision in ("fp32", "bf16")]
CASES += [("gru", 3, "fp16"), ("transformer", 3, "fp32"), ("transformer", 3, "bf16")]


def share(rank: int, step: int) -> dict[str, tuple[Tensor, Tensor]]:
    """Of the first rank real sentences, of the other rows of length 0 alone; in the last step the other way round."""
    given = batch()
    if rank == (step != STEPS - 1):
        given = {kind: (ids, torch.zeros_like(mask)) for kind, (ids, mask) in given.items()}
    return given


def loss_of(found: dict[str, Tensor]) -> Tensor:
    return found["neighbours"].sum() / 40 + found["caption"].sum() / 20 + found["vectors"].square().sum() / ROWS


def train_everything(rank: int) -> dict[tuple[str, int, str], dict[str, Tensor]]:
    """Weights after :data:`STEPS` steps, of every encoder, stage and precision."""
    import deepspeed

    results = {}
    for encoder, stage, precision in CASES:
        chosen = TrainingSettings.model_validate(
            {"zero_stage": stage, "precision": precision, "learning_rate": RATE, "global_batch": 2 * ROWS, "clip_norm": 0.5}
        )
        engine = make_engine(Networks(encoder), chosen, 2)
        if engine.loss_scaler:
            engine.loss_scaler = LossScale(256.0)
        for step in range(STEPS):
            backward(engine, loss_of(engine(share(rank, step))))
            assert optimizer_step(engine)[1], "the gradient is finite"
        with deepspeed.zero.GatheredParameters(list(engine.module.parameters()), enabled=stage == 3):
            results[encoder, stage, precision] = {
                name: parameter.detach().float().clone() for name, parameter in engine.module.named_parameters()
            }
        let_go(engine)
    return results


def test_training_on_two_workers_of_which_one_has_no_tokens():
    first, second = run_ranks(train_everything, 2)
    for encoder in ENCODERS:
        networks = Networks(encoder)
        groups = [
            {"params": [one for one in networks.parameters() if (one.ndim > 1) is matrix], "weight_decay": 0.01 * matrix}
            for matrix in (False, True)
        ]
        optimizer = torch.optim.AdamW(groups, lr=RATE)
        for step in range(STEPS):
            optimizer.zero_grad()
            (sum(loss_of(networks(share(rank, step))) for rank in range(2)) / 2).backward()  # type: ignore[union-attr]
            nn.utils.clip_grad_norm_(networks.parameters(), 0.5)
            optimizer.step()
        start = dict(Networks(encoder).named_parameters())
        for case in [case for case in CASES if case[0] == encoder]:
            found, other = first[case], second[case]
            assert all(found[name].equal(other[name]) for name in found), case
            if case[2] == "fp32":
                for name, parameter in networks.named_parameters():
                    if name.endswith("key.bias"):  # attention does not depend on it: its gradient is rounding, which Adam makes large
                        continue
                    torch.testing.assert_close(found[name], parameter.detach(), rtol=1e-4, atol=1e-4, msg=f"{case} {name}")
            else:
                moved, expected = (
                    torch.cat([(weights[name] - start[name]).detach().flatten() for name in start])
                    for weights in (found, dict(networks.named_parameters()))
                )
                assert torch.cosine_similarity(moved, expected, dim=0) > 0.95, case
