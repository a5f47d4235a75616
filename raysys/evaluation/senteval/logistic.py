"""Logistic regression for many problems over the same rows at once: all folds and all strengths of regularisation together.

A problem is a subset of the rows and a C. All are solved by L-BFGS (Liu and Nocedal, 1989) side by side, so that a pass over the
features serves all of them: cross-validating ten folds in ten folds over six strengths takes one solve instead of 600. The minimum
is the one of scikit-learn's `LogisticRegression(C)`: C · Σ loss + ½ ‖weights‖², intercept not regularised, softmax from three classes on.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from raysys.evaluation.senteval.features import Features

_HISTORY = 10
_ENOUGH = 1e-4  # of the slope, that a step has to bring (Armijo)
_NOISE = 2e-7  # of the loss, which is a sum in float32


@dataclass(frozen=True)
class Solved:
    """Classifiers of K problems."""

    weights: Tensor
    """float32 [K, z, d]; z is 1 for two classes (the score of class 1), else the number of classes."""
    bias: Tensor
    """float32 [K, z]."""
    passes: int
    """How often all features were read."""
    unfinished: int
    """Problems that were not at their minimum when the passes ran out."""

    def predict(self, features: Features) -> np.ndarray:
        """The most probable class of each row by each classifier: int8 [K, n]."""
        count, outputs, width = self.weights.shape
        found = np.empty((count, len(features)), dtype=np.int8)
        flat, bias = self.weights.reshape(-1, width), self.bias.reshape(-1)
        for rows, block in features.blocks():
            scores = torch.addmm(bias, block, flat.T).reshape(len(block), count, outputs)
            best = scores[..., 0] > 0 if outputs == 1 else scores.argmax(dim=2)
            found[:, rows] = best.T.to(torch.int8).numpy()
        return found

    def only(self, problem: int) -> "Solved":
        """The classifier of one problem."""
        return Solved(self.weights[problem : problem + 1], self.bias[problem : problem + 1], self.passes, self.unfinished)


class _Loss:
    """Mean loss and gradient of problems, in coordinates in which their curvature is about 1.

    The features are centred (which the intercept makes up for) and turned to their principal axes (which the penalty does not feel).
    The weight along axis j is v_j / s_j, with s_j² = variance_j / 4 + 1 / (C n), which bounds the curvature there. The minimum is the
    same and the way to it far shorter: some ten passes where features that are alike would take hundreds.
    """

    def __init__(self, features: Features, labels: np.ndarray, classes: int, used: np.ndarray, strengths: np.ndarray) -> None:
        self.features, self.classes = features, classes
        self.outputs = 1 if classes == 2 else classes
        self.labels = torch.from_numpy(labels.astype(np.int64))
        self.used = torch.from_numpy(np.ascontiguousarray(used.T))  # bool [n, K]
        self.counts = self.used.sum(dim=0).float()
        self.decay = 1 / (torch.from_numpy(strengths).float() * self.counts)
        self.mean, self.axes = features.principal.mean, features.principal.axes
        self.scale = (features.principal.variances / 4 + self.decay[:, None]).sqrt()[:, None, :]  # [K, 1, d]

    @property
    def size(self) -> int:
        return self.outputs * (self.features.width + 1)

    def weights(self, points: Tensor, problems: Tensor) -> tuple[Tensor, Tensor]:
        """(weights [K, z, d], bias [K, z] for features that are not centred) at `points` [K, size]."""
        cut = self.outputs * self.features.width
        weights = (points[:, :cut].reshape(-1, self.outputs, self.features.width) / self.scale[problems]) @ self.axes.T
        return weights, 2 * points[:, cut:] - weights @ self.mean

    def __call__(self, points: Tensor, problems: Tensor) -> tuple[Tensor, Tensor]:
        """(loss float64 [K], gradient float32 [K, size]) of some `problems` (int64 [K]) at `points` [K, size]."""
        count, width = len(problems), self.features.width
        weights, bias = self.weights(points, problems)
        flat = weights.reshape(-1, width)
        losses = torch.zeros(count, dtype=torch.float64)
        by_weight, by_bias = torch.zeros_like(flat), torch.zeros(len(flat))
        for rows, block in self.features.blocks():
            scores = torch.addmm(bias.reshape(-1), block, flat.T)
            part, errors = self._errors(scores, rows, problems)
            losses += part
            by_weight.addmm_(errors.T, block)
            by_bias += errors.sum(dim=0)
        by_weight -= by_bias[:, None] * self.mean
        share = 1 / self.counts[problems]
        decay = self.decay[problems]
        gradient = by_weight.reshape(weights.shape) * share[:, None, None] + decay[:, None, None] * weights
        gradient = gradient @ self.axes / self.scale[problems]
        slope = 2 * by_bias.reshape(count, -1) * share[:, None]
        losses = losses * share + decay * weights.double().square().sum(dim=(1, 2)) / 2
        return losses, torch.cat([gradient.reshape(count, -1), slope], dim=1)

    def _errors(self, scores: Tensor, rows: slice, problems: Tensor) -> tuple[Tensor, Tensor]:
        """(loss summed over the rows, float64 [K]; its derivative by the scores, float32 [b, K z])."""
        labels = self.labels[rows]
        used = self.used[rows][:, problems]
        if self.outputs == 1:
            signs = (1 - 2 * labels).float()[:, None]
            losses = functional.softplus(scores * signs)
            errors = torch.sigmoid(scores).sub_(labels[:, None]).mul_(used)
            return (losses * used).sum(dim=0, dtype=torch.float64), errors
        logs = scores.reshape(len(scores), -1, self.outputs).log_softmax(dim=2)
        wanted = labels[:, None, None].expand(-1, len(problems), 1)
        losses = -logs.gather(2, wanted)[..., 0]
        errors = logs.exp().scatter_add_(2, wanted, torch.full(wanted.shape, -1.0)).mul_(used[..., None])
        return (losses * used).sum(dim=0, dtype=torch.float64), errors.reshape(len(scores), -1)


def solve(
    features: Features,
    labels: np.ndarray,
    classes: int,
    used: np.ndarray,
    strengths: np.ndarray,
    *,
    tolerance: float = 1e-4,
    passes: int = 500,
) -> Solved:
    """Fit a classifier to each problem.

    Memory beside the features: 2 × 10 × K · z · (d + 1) floats for the last steps, and blocks.

    Args:
        features: n rows of width d.
        labels: int [n], 0 … classes − 1.
        classes: two or more.
        used: bool [K, n], the rows of each problem.
        strengths: float [K], C of each problem.
        tolerance: a problem is solved when no component of its gradient (of the mean loss, in coordinates of about unit curvature)
            is larger.
        passes: most passes over the features.
    """
    loss = _Loss(features, labels, classes, used, strengths)
    count = len(strengths)
    solution = torch.zeros(count, loss.size)
    problems = torch.arange(count)  # those that are not solved yet
    points = solution.clone()
    values, gradients = loss(points, problems)
    memory = _Memory(count, loss.size)
    directions, steps = -gradients, torch.ones(count)
    done = 1
    while len(problems) and done < passes:
        slopes = (directions * gradients).sum(dim=1, dtype=torch.float64)
        trials = points + steps[:, None] * directions
        new_values, new_gradients = loss(trials, problems)
        done += 1
        gain = values - new_values
        good = gain >= -_ENOUGH * steps * slopes - _NOISE * values.abs()
        memory.add(good, (trials - points)[good], (new_gradients - gradients)[good])
        points[good], values[good], gradients[good] = trials[good], new_values[good], new_gradients[good]
        directions[good] = memory.directions(good, gradients[good])
        # The minimum of the parabola through both values and the slope, where it is not too near or too far.
        shorter = (-slopes * steps / (2 * (-gain - steps * slopes)).clamp_min(1e-30)).clamp(0.1, 0.5).float() * steps
        steps = torch.where(good, 1.0, shorter)
        solved = (gradients.abs().amax(dim=1) <= tolerance) | (steps < 1e-6)
        if solved.any() or done == passes:
            solution[problems] = points
        if solved.any():
            kept = ~solved
            problems, points, values, gradients = problems[kept], points[kept], values[kept], gradients[kept]
            directions, steps = directions[kept], steps[kept]
            memory.keep(kept)
    weights, bias = loss.weights(solution, torch.arange(count))
    return Solved(weights, bias, done, len(problems))


class _Memory:
    """The last steps of each problem and how its gradient changed in them: the curvature that L-BFGS knows of."""

    def __init__(self, count: int, size: int) -> None:
        self.steps, self.changes = torch.zeros(count, _HISTORY, size), torch.zeros(count, _HISTORY, size)
        self.inverse = torch.zeros(count, _HISTORY)  # 1 / (step · change); 0 where there is none
        self.taken = torch.zeros(count, dtype=torch.int64)

    def add(self, where: Tensor, steps: Tensor, changes: Tensor) -> None:
        products = (steps * changes).sum(dim=1)
        usable = products > 1e-10 * changes.square().sum(dim=1)
        chosen = where.nonzero()[:, 0][usable]
        slots = self.taken[chosen] % _HISTORY
        self.steps[chosen, slots], self.changes[chosen, slots] = steps[usable], changes[usable]
        self.inverse[chosen, slots] = 1 / products[usable]
        self.taken[chosen] += 1

    def directions(self, where: Tensor, gradients: Tensor) -> Tensor:
        """The two loops of L-BFGS for some problems: minus the inverse Hessian, as far as it is known, times the gradient."""
        chosen = where.nonzero()[:, 0]
        result = gradients.clone()
        parts = []
        for back in range(1, _HISTORY + 1):  # a slot that was never filled has zeros and changes nothing
            slots = (self.taken[chosen] - back) % _HISTORY
            step, change, inverse = self.steps[chosen, slots], self.changes[chosen, slots], self.inverse[chosen, slots]
            if back == 1:
                curved = (change.square().sum(dim=1) * inverse)[:, None]
            share = inverse * (step * result).sum(dim=1)
            result -= share[:, None] * change
            parts.append((slots, share))
        result /= torch.where(curved > 0, curved, 1.0)
        for slots, share in reversed(parts):
            step, change, inverse = self.steps[chosen, slots], self.changes[chosen, slots], self.inverse[chosen, slots]
            result += (share - inverse * (change * result).sum(dim=1))[:, None] * step
        return -result

    def keep(self, kept: Tensor) -> None:
        self.steps, self.changes, self.inverse = self.steps[kept], self.changes[kept], self.inverse[kept]
        self.taken = self.taken[kept]
