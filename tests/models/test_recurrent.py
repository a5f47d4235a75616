"""GRU and LSTM against their equations in NumPy, row by row, and their gradients against finite differences and torch's own networks."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from raysys.models.recurrent import GRU, LSTM, pack

INPUTS, SIZE, CONDITION = 5, 6, 4


def mask_of(lengths: list[int], width: int | None = None) -> Tensor:
    width = max(lengths, default=0) if width is None else width
    return (torch.arange(width)[None] < torch.tensor(lengths, dtype=torch.int64)[:, None]).long()


def random_weights(network: nn.Module, seed: int = 0) -> nn.Module:
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.5)
    return network


@settings(max_examples=60, deadline=None)
@given(lengths=st.lists(st.integers(0, 6), max_size=7), extra=st.integers(0, 2))
def test_packing_is_a_permutation_of_the_tokens(lengths, extra):
    mask = mask_of(lengths, max(lengths, default=0) + extra)
    tokens = pack(mask)
    assert sorted(zip(tokens.rows.tolist(), tokens.places.tolist(), strict=True)) == [tuple(one) for one in mask.nonzero().tolist()]
    assert tokens.places.tolist() == sorted(tokens.places.tolist())
    found = [lengths[row] for row in tokens.longest_first]
    assert found == sorted((length for length in lengths if length), reverse=True)
    expected = [sum(length > step for length in lengths) for step in range(max(lengths, default=0))]
    assert tokens.sizes == (expected or [0])
    last = tokens.last()
    assert tokens.rows[last].equal(tokens.longest_first)
    assert (tokens.places[last] + 1).tolist() == found


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def gru_states(network: GRU, rows: list[np.ndarray], conditions: np.ndarray | None) -> list[np.ndarray]:
    """The equations of the docstring, one row and one token at a time, in float64."""
    w, u, b, d = (
        getattr(network, name).detach().double().numpy().reshape(3, SIZE, -1).squeeze()
        if "bias" in name
        else getattr(network, name).detach().double().numpy().reshape(3, SIZE, -1)
        for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
    )
    c = None if network.weight_ch is None else network.weight_ch.detach().double().numpy().reshape(3, SIZE, -1)
    found = []
    for number, row in enumerate(rows):
        h, states = np.zeros(SIZE), []
        for x in row:
            of_input = [
                w[gate] @ x + b[gate] + (0 if c is None or conditions is None else c[gate] @ conditions[number]) for gate in range(3)
            ]
            r = sigmoid(of_input[0] + u[0] @ h + d[0])
            z = sigmoid(of_input[1] + u[1] @ h + d[1])
            n = np.tanh(of_input[2] + r * (u[2] @ h + d[2]))
            h = (1 - z) * n + z * h
            states.append(h)
        found.append(np.array(states).reshape(-1, SIZE))
    return found


def lstm_states(network: LSTM, rows: list[np.ndarray], conditions: np.ndarray) -> list[np.ndarray]:
    w, u, c = (getattr(network, f"weight_{kind}").detach().double().numpy().reshape(4, SIZE, -1) for kind in ("ih", "hh", "ch"))
    b = network.bias.detach().double().numpy().reshape(4, SIZE)
    found = []
    for row, condition in zip(rows, conditions, strict=True):
        h, cell, states = np.zeros(SIZE), np.zeros(SIZE), []
        for x in row:
            i, f, g, o = (w[gate] @ x + u[gate] @ h + c[gate] @ condition + b[gate] for gate in range(4))
            cell = sigmoid(f) * cell + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(cell)
            states.append(h)
        found.append(np.array(states).reshape(-1, SIZE))
    return found


@pytest.mark.parametrize("lengths", [[3, 0, 6, 1, 6], [1], [4, 4], [0, 2]])
@pytest.mark.parametrize("kind", ["gru", "conditional gru", "lstm"])
def test_states_equal_the_equations(kind, lengths):
    network = random_weights(LSTM(INPUTS, SIZE, CONDITION) if kind == "lstm" else GRU(INPUTS, SIZE, CONDITION * (kind != "gru")))
    random = np.random.default_rng(0)
    inputs, conditions = random.normal(size=(len(lengths), max(lengths), INPUTS)), random.normal(size=(len(lengths), CONDITION))
    tokens = pack(mask_of(lengths))
    packed = torch.from_numpy(inputs).float()[tokens.rows, tokens.places]
    chosen = torch.from_numpy(conditions).float()[tokens.longest_first]
    found = network(packed, tokens.sizes) if kind == "gru" else network(packed, tokens.sizes, chosen)
    rows = [row[:length] for row, length in zip(inputs, lengths, strict=True)]
    expected = lstm_states(network, rows, conditions) if kind == "lstm" else gru_states(network, rows, conditions)
    for row, states in enumerate(expected):
        np.testing.assert_allclose(found[tokens.rows == row].detach().numpy(), states, atol=1e-6)


@pytest.mark.parametrize("lengths", [[3, 0, 6, 1, 6], [2, 2, 2]])
def test_gradients_equal_those_of_torchs_gru(lengths):
    ours, theirs = random_weights(GRU(INPUTS, SIZE)), nn.GRU(INPUTS, SIZE)
    theirs.load_state_dict({f"{name}_l0": value for name, value in ours.state_dict().items()})
    tokens = pack(mask_of(lengths))
    inputs = torch.randn(len(tokens.rows), INPUTS, requires_grad=True)
    states = ours(inputs, tokens.sizes)
    expected = theirs(nn.utils.rnn.PackedSequence(inputs, torch.tensor(tokens.sizes)))[0].data
    torch.testing.assert_close(states, expected)
    upstream = torch.randn_like(states)
    parameters = dict(ours.named_parameters())
    found = torch.autograd.grad(states, [inputs, *parameters.values()], upstream, retain_graph=True)
    again = torch.autograd.grad(states, [inputs, *parameters.values()], upstream)
    wanted = torch.autograd.grad(expected, [inputs, *(getattr(theirs, f"{name}_l0") for name in parameters)], upstream)
    for one, other, right in zip(found, again, wanted, strict=True):
        torch.testing.assert_close(one, right, rtol=1e-5, atol=1e-6)
        assert one.equal(other), "a backward pass leaves what it reads as it is"


def test_gradients_equal_finite_differences():
    network = random_weights(GRU(INPUTS, SIZE, CONDITION))
    tokens = pack(mask_of([3, 0, 4, 1]))
    inputs = torch.randn(len(tokens.rows), INPUTS, requires_grad=True)
    conditions = torch.randn(3, CONDITION, requires_grad=True)
    upstream = torch.randn(len(inputs), SIZE)

    def value() -> float:
        with torch.no_grad():
            return float((network(inputs, tokens.sizes, conditions).double() * upstream).sum())

    leaves = {"inputs": inputs, "conditions": conditions, **dict(network.named_parameters())}
    (network(inputs, tokens.sizes, conditions) * upstream).sum().backward()
    for name, leaf in leaves.items():
        direction = torch.randn_like(leaf)
        step = 2e-3
        with torch.no_grad():
            leaf += step * direction
            above = value()
            leaf -= 2 * step * direction
            below = value()
            leaf += step * direction
        assert float((leaf.grad * direction).sum()) == pytest.approx((above - below) / (2 * step), rel=5e-3, abs=5e-3), name


@pytest.mark.parametrize("kind", [GRU, LSTM])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_under_autocast_and_as_weights(kind, dtype):
    network = random_weights(kind(INPUTS, SIZE, CONDITION))
    tokens = pack(mask_of([3, 0, 4, 1]))
    inputs, conditions = torch.randn(len(tokens.rows), INPUTS), torch.randn(3, CONDITION)
    exact = network(inputs, tokens.sizes, conditions)
    exact.sum().backward()
    wanted = {name: parameter.grad.clone() for name, parameter in network.named_parameters()}
    network.zero_grad()
    with torch.autocast("cpu", dtype=dtype):
        rough = network(inputs, tokens.sizes, conditions)
    rough.sum().backward()
    assert rough.dtype == torch.float32
    assert 0 < (rough - exact).abs().max() < 0.05
    for name, parameter in network.named_parameters():
        torch.testing.assert_close(parameter.grad, wanted[name], rtol=0.1, atol=0.1)
    weights = network.to(dtype)
    states = weights(inputs.to(dtype), tokens.sizes, conditions.to(dtype))
    assert states.dtype == torch.float32
    states.sum().backward()
    assert all(parameter.grad.dtype == dtype and parameter.grad.isfinite().all() for parameter in weights.parameters())


@pytest.mark.parametrize("kind", [GRU, LSTM])
def test_without_a_token_every_weight_has_a_gradient_of_zero(kind):
    network = kind(INPUTS, SIZE, CONDITION)
    tokens = pack(mask_of([0, 0], 3))
    states = network(torch.zeros(0, INPUTS), tokens.sizes, torch.zeros(0, CONDITION))
    assert states.shape == (0, SIZE)
    states.sum().backward()
    assert all(parameter.grad is not None and not parameter.grad.any() for parameter in network.parameters())


def test_recurrent_weights_begin_orthogonal():
    for network, gates in ((GRU(INPUTS, 16), 3), (LSTM(INPUTS, 16, CONDITION), 4)):
        for part in network.weight_hh.detach().split(16):
            torch.testing.assert_close(part @ part.T, torch.eye(16), atol=1e-5, rtol=0)
        assert len(network.weight_hh) == gates * 16
