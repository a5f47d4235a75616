"""Recurrent networks over rows of different lengths, of which padding is never computed.

Tokens are *packed*: the first tokens of all rows, longest row first, then the second tokens of those rows that have one, and so on, with
nothing between. What no step waits for (inputs times weights, gradients of weights) is one matrix product over all tokens, and a step
computes the rows that still go on.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class Packed(NamedTuple):
    """Where the packed tokens of a batch come from."""

    rows: Tensor
    """int64 [t]: the row of each token"""
    places: Tensor
    """int64 [t]: its place in that row, ascending"""
    longest_first: Tensor
    """int64 [k]: rows that have a token, by length, descending"""
    sizes: list[int]
    """How many rows have a first token, a second …: descending. Without any token a single 0, so that every worker makes a step"""

    def last(self) -> Tensor:
        """Where the last token of each row of `longest_first` stands among the packed ones: int64 [k]."""
        sizes = torch.tensor(self.sizes, device=self.rows.device)
        rows = torch.arange(len(self.longest_first), device=self.rows.device)
        steps = (sizes[:, None] > rows).sum(dim=0) - 1
        return (sizes.cumsum(0) - sizes)[steps] + rows


def pack(mask: Tensor) -> Packed:
    """Pack the tokens of rows.

    Args:
        mask: [n, L], 1 at tokens and 0 at padding, which follows the tokens.
    """
    lengths, order = mask.bool().sum(dim=1).sort(descending=True, stable=True)
    by_step = torch.arange(mask.shape[1], device=mask.device)[:, None] < lengths
    places, rows = by_step.nonzero(as_tuple=True)
    sizes = [size for size in by_step.sum(dim=1).tolist() if size] or [0]
    return Packed(order[rows], places, order[: sizes[0]], sizes)


class GRU(nn.Module):
    """A gated recurrent unit (Cho et al. 2014) that starts from zero, with a condition that enters the gates of every step if it has one.

    With x the input, c the condition and h the state before::

        r = σ(W_r x + C_r c + b_r + U_r h + d_r)
        z = σ(W_z x + C_z c + b_z + U_z h + d_z)
        n = tanh(W_n x + C_n c + b_n + r ∗ (U_n h + d_n))
        h' = (1 − z) ∗ n + z ∗ h

    as in :class:`torch.nn.GRU`, whose order of gates the weights have; the condition is that of the decoders of Kiros et al. 2015
    (Skip-Thought Vectors, Eq. 5–9). States are float32 whatever the precision of the weights.

    Args:
        inputs: size of x.
        size: of the state.
        condition: size of c; 0: none.
    """

    def __init__(self, inputs: int, size: int, condition: int = 0):
        super().__init__()
        self.size = size
        # As in Kiros et al.: orthogonal where a state meets itself again and again, uniform in ±0.1 elsewhere.
        self.weight_ih = nn.Parameter(torch.empty(3 * size, inputs).uniform_(-0.1, 0.1))
        self.weight_hh = nn.Parameter(torch.cat([nn.init.orthogonal_(torch.empty(size, size)) for _ in range(3)]))
        self.weight_ch = nn.Parameter(torch.empty(3 * size, condition).uniform_(-0.1, 0.1)) if condition else None
        self.bias_ih = nn.Parameter(torch.zeros(3 * size))
        self.bias_hh = nn.Parameter(torch.zeros(3 * size))

    def forward(self, inputs: Tensor, sizes: list[int], condition: Tensor | None = None) -> Tensor:
        """States after each token, float32 [t, size].

        Args:
            inputs: packed, float [t, inputs].
            sizes: of the packed tokens.
            condition: float [k, condition] of the k rows with a token, longest first.
        """
        gates = F.linear(inputs, self.weight_ih, self.bias_ih)
        weight, bias = self.weight_hh.to(gates.dtype), self.bias_hh.to(gates.dtype)  # of another type under autocast
        shared = None if self.weight_ch is None or condition is None else F.linear(condition, self.weight_ch)
        states: Tensor = _gru_steps(gates, shared, weight, bias, sizes)
        return states


class _GruSteps(Function):
    """All steps of a GRU, with gradients by hand: those of the weights are one product over all tokens, where autograd makes one a step."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, condition: Tensor | None, weight: Tensor, bias: Tensor, sizes: list[int]) -> Tensor:
        size = weight.shape[1]
        gates = inputs.to(torch.float32, copy=True)  # becomes r, z, n
        candidates = gates.new_empty(len(inputs), size)  # U_n h + d_n
        states = gates.new_empty(len(inputs), size)
        before = gates.new_zeros(sizes[0], size)
        with torch.autocast(weight.device.type, enabled=False):
            for step, (first, end) in enumerate(_bounds(sizes)):
                before = before[: end - first]
                # before the first step the state is zero
                hidden = torch.addmm(bias, before.to(weight.dtype), weight.t()) if step else bias.expand(end - first, -1)
                gate = gates[first:end]
                if condition is not None:
                    gate += condition[: end - first]
                r, z, n = gate.split(size, dim=1)
                gate[:, : 2 * size].add_(hidden[:, : 2 * size]).sigmoid_()
                candidate = candidates[first:end].copy_(hidden[:, 2 * size :])
                n.addcmul_(r, candidate).tanh_()
                before = torch.lerp(n, before, z, out=states[first:end])
        ctx.save_for_backward(weight, gates, candidates, states)
        ctx.sizes, ctx.dtype, ctx.conditional = sizes, inputs.dtype, condition is not None
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor | None, Tensor, Tensor, None]:
        weight, gates, candidates, states = ctx.saved_tensors
        sizes, size, bounds = ctx.sizes, states.shape[1], _bounds(ctx.sizes)
        of_inputs, of_hidden = torch.empty_like(gates), gates.new_empty(gates.shape, dtype=weight.dtype)
        of_condition = gates.new_zeros(sizes[0], 3 * size) if ctx.conditional else None
        later = gates.new_zeros(sizes[0], size)  # gradient of the states that the next step begins with
        for step in reversed(range(len(sizes))):
            first, end = bounds[step]
            rows = end - first
            r, z, n = gates[first:end].split(size, dim=1)
            of_gate, of_state = of_inputs[first:end], gradient[first:end] + later[:rows]
            of_r, of_z, of_n = of_gate.split(size, dim=1)
            torch.mul(of_state, 1 - z, out=of_n).mul_(1 - n.square())
            torch.mul(of_n, candidates[first:end], out=of_r).mul_(r * (1 - r))
            before = states[bounds[step - 1][0] :][:rows] if step else torch.zeros_like(n)
            torch.mul(of_state, before - n, out=of_z).mul_(z * (1 - z))
            hidden = of_hidden[first:end]
            hidden[:, : 2 * size] = of_gate[:, : 2 * size]
            hidden[:, 2 * size :] = of_n * r
            if of_condition is not None:
                of_condition[:rows] += of_gate
            if step:
                later[:rows] = (hidden @ weight).float().addcmul_(of_state, z)
        # The states that each step but the first began with: those of the step before, of the rows that go on.
        began = [states[first : first + rows] for (first, _), rows in zip(bounds, sizes[1:], strict=False)]
        of_weight = of_hidden[sizes[0] :].t() @ torch.cat(began).to(weight.dtype) if began else torch.zeros_like(weight)
        conditions = None if of_condition is None else of_condition.to(ctx.dtype)
        return of_inputs.to(ctx.dtype), conditions, of_weight, of_hidden.sum(dim=0), None


_gru_steps: Callable[..., Any] = _GruSteps.apply


def _bounds(sizes: list[int]) -> list[tuple[int, int]]:
    """First and end of each step's tokens among the packed ones."""
    bounds, first = [], 0
    for size in sizes:
        bounds.append((first, first + size))
        first += size
    return bounds


class LSTM(nn.Module):
    """A long short-term memory (Hochreiter and Schmidhuber 1997; gates i, f, g, o as in :class:`torch.nn.LSTM`) with a condition.

    The condition enters the gates of every step as in :class:`GRU`. States are float32 whatever the precision of the weights.

    Args:
        inputs: size of an input.
        size: of the state.
        condition: size of the condition.
    """

    def __init__(self, inputs: int, size: int, condition: int):
        super().__init__()
        self.size = size
        self.weight_ih = nn.Parameter(torch.empty(4 * size, inputs).uniform_(-0.1, 0.1))
        self.weight_hh = nn.Parameter(torch.cat([nn.init.orthogonal_(torch.empty(size, size)) for _ in range(4)]))
        self.weight_ch = nn.Parameter(torch.empty(4 * size, condition).uniform_(-0.1, 0.1))
        self.bias = nn.Parameter(torch.zeros(4 * size))

    def forward(self, inputs: Tensor, sizes: list[int], condition: Tensor) -> Tensor:
        """States after each token, float32 [t, size]; arguments as :meth:`GRU.forward`."""
        shared = F.linear(condition, self.weight_ch)
        state = cell = shared.new_zeros(sizes[0], self.size, dtype=torch.float32)
        states = []
        for gates in F.linear(inputs, self.weight_ih, self.bias).split(sizes):
            rows = len(gates)
            hidden = F.linear(state[:rows].to(gates.dtype), self.weight_hh)
            i, f, g, o = (gates + shared[:rows] + hidden).float().chunk(4, dim=1)
            cell = f.sigmoid() * cell[:rows] + i.sigmoid() * g.tanh()
            state = o.sigmoid() * cell.tanh()
            states.append(state)
        return torch.cat(states)
