"""The loss of words against softmax cross-entropy in NumPy and autograd, in one part and in many, kept and computed again."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from raysys.models import word_loss
from raysys.models.word_loss import WordLoss

SIZE, WORDS, TOKENS = 6, 11, 9


def case(tokens: int = TOKENS) -> tuple[WordLoss, Tensor, Tensor]:
    torch.manual_seed(0)
    head = WordLoss(SIZE, WORDS)
    with torch.no_grad():
        head.weight.normal_()
        head.bias.normal_()
    return head, torch.randn(tokens, SIZE, requires_grad=True), torch.randint(0, WORDS, (tokens,))


def test_values_are_negative_log_likelihoods():
    head, vectors, words = case()
    logits = vectors.detach().double().numpy() @ head.weight.detach().double().numpy().T + head.bias.detach().double().numpy()
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    expected = [-np.log(shares[token, word]) for token, word in enumerate(words)]
    np.testing.assert_allclose(head(vectors, words).detach().numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("kept", [0, 2**20])
@pytest.mark.parametrize("at_once", [1, 3 * WORDS, 2**20])
@pytest.mark.parametrize("tokens", [TOKENS, 1, 0])
def test_gradients_are_those_of_autograd_whatever_is_kept(monkeypatch, kept, at_once, tokens):
    monkeypatch.setattr(word_loss, "_KEPT", kept)
    monkeypatch.setattr(word_loss, "_AT_ONCE", at_once)
    head, vectors, words = case(tokens)
    upstream = torch.randn(tokens)
    leaves = [vectors, head.weight, head.bias]
    losses = head(vectors, words)
    found = torch.autograd.grad(losses, leaves, upstream, retain_graph=True)
    again = torch.autograd.grad(losses, leaves, upstream)
    plain = F.cross_entropy(F.linear(vectors, head.weight, head.bias), words, reduction="none")
    torch.testing.assert_close(losses, plain)
    for one, other, right in zip(found, again, torch.autograd.grad(plain, leaves, upstream), strict=True):
        torch.testing.assert_close(one, right, rtol=1e-4, atol=1e-5)
        assert one.equal(other)


@pytest.mark.parametrize("kept", [0, 2**20])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision(monkeypatch, kept, dtype):
    monkeypatch.setattr(word_loss, "_KEPT", kept)
    head, vectors, words = case()
    exact = head(vectors, words)
    wanted = torch.autograd.grad(exact.sum(), [vectors, head.weight])
    with torch.autocast("cpu", dtype=dtype):
        rough = head(vectors, words)
    assert rough.dtype == torch.float32
    torch.testing.assert_close(rough, exact, rtol=0.05, atol=0.05)
    for one, right in zip(torch.autograd.grad(rough.sum(), [vectors, head.weight]), wanted, strict=True):
        torch.testing.assert_close(one, right, rtol=0.1, atol=0.1)
    assert head.to(dtype)(vectors, words).dtype == torch.float32


def test_logits_of_all_tokens_are_never_there_at_once(monkeypatch):
    """Without gradients, and where they are computed again, the largest tensor is a part."""
    monkeypatch.setattr(word_loss, "_KEPT", 0)
    monkeypatch.setattr(word_loss, "_AT_ONCE", 2 * WORDS)
    largest = 0
    addmm = torch.addmm

    def watched(*arguments: Tensor) -> Tensor:
        nonlocal largest
        found = addmm(*arguments)
        largest = max(largest, found.numel())
        return found

    monkeypatch.setattr(torch, "addmm", watched)
    head, vectors, words = case(100)
    head(vectors, words).sum().backward()
    assert largest == 2 * WORDS
