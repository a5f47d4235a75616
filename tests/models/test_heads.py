import pytest
import torch
import torch.nn.functional as F

from raysys.models.heads import ClozeHead, ProjectionHead, ProjectionHeadSettings, WhitenedHead, whiten
from raysys.models.text import TextEncoder, TextModelSettings

SMALL = TextModelSettings(hidden_size=32, layers=1, heads=4, intermediate_size=64, max_tokens=12, vocabulary_size=90)


@pytest.fixture
def cloze():
    torch.manual_seed(0)
    return TextEncoder(SMALL).eval(), ClozeHead(SMALL)


def batch() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(5, 90, (4, 7), generator=generator)
    labels = torch.full_like(ids, -100)
    labels[0, 2], labels[0, 4], labels[3, 1] = 11, 12, 13
    return ids, labels


def test_projection_gives_normalised_float32():
    torch.manual_seed(0)
    head = ProjectionHead(ProjectionHeadSettings(), 48)
    out = head(torch.randn(5, 48))
    assert out.shape == (5, 128)
    torch.testing.assert_close(out.mean(dim=1), torch.zeros(5), atol=1e-5, rtol=0)
    torch.testing.assert_close(out.var(dim=1, unbiased=False), torch.ones(5), atol=1e-3, rtol=0)


def test_projection_of_zero_vectors_is_finite_and_trains():
    head = ProjectionHead(ProjectionHeadSettings(size=8), 16)
    head(torch.zeros(3, 16)).square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in head.parameters())


def test_heads_accept_float32_when_weights_are_bfloat16(cloze):
    encoder, head = cloze
    assert ProjectionHead(ProjectionHeadSettings(), 48).bfloat16()(torch.randn(5, 48)).dtype == torch.float32
    sums, counts = head.bfloat16()(torch.randn(4, 7, 32), batch()[1], encoder.bfloat16().word_embeddings)
    assert sums.dtype == counts.dtype == torch.float32


def test_cloze_equals_the_plain_computation_over_all_positions(cloze):
    encoder, head = cloze
    torch.nn.init.normal_(head.decoder_bias)
    ids, labels = batch()
    _, tokens = encoder(ids, torch.ones_like(ids))
    sums, counts = head(tokens, labels, encoder.word_embeddings)
    states = F.layer_norm(F.gelu(tokens @ head.dense.weight.T + head.dense.bias), (32,), head.norm.weight, head.norm.bias)
    log_p = torch.log_softmax(states @ encoder.word_embeddings.weight.T + head.decoder_bias, dim=-1)
    expected = [-(log_p[0, 2, 11] + log_p[0, 4, 12]), torch.tensor(0.0), torch.tensor(0.0), -log_p[3, 1, 13]]
    torch.testing.assert_close(sums, torch.stack(expected))
    assert counts.tolist() == [2, 0, 0, 1]


def test_decoder_shares_the_embedding_tensor(cloze):
    encoder, head = cloze
    assert {name: tuple(p.shape) for name, p in head.named_parameters() if 90 in p.shape} == {"decoder_bias": (90,)}
    tokens = torch.randn(4, 7, 32)
    labels = batch()[1]
    head(tokens, labels, encoder.word_embeddings)[0].sum().backward()
    # ids that occur in no input get their gradient through the decoder alone
    assert (encoder.word_embeddings.weight.grad.abs().sum(dim=1) > 0).all()


def test_without_predicted_tokens_the_graph_stays_whole(cloze):
    encoder, head = cloze
    ids, labels = batch()
    _, tokens = encoder(ids, torch.ones_like(ids))
    sums, counts = head(tokens, torch.full_like(labels, -100), encoder.word_embeddings)
    assert sums.tolist() == counts.tolist() == [0.0] * 4
    sums.sum().backward()
    gradients = [p.grad for module in (encoder, head) for p in module.parameters()]
    assert all(g is not None and torch.equal(g, torch.zeros_like(g)) for g in gradients)


def test_a_sample_does_not_depend_on_its_neighbours(cloze):
    encoder, head = cloze
    tokens, labels = torch.randn(4, 7, 32), batch()[1]
    together, _ = head(tokens, labels, encoder.word_embeddings)
    alone = torch.cat([head(tokens[i : i + 1], labels[i : i + 1], encoder.word_embeddings)[0] for i in range(4)])
    torch.testing.assert_close(together, alone)


def test_whitening_gives_uncorrelated_components_of_unit_variance():
    torch.manual_seed(0)
    vectors = torch.randn(4000, 12) @ torch.randn(12, 12) * torch.linspace(0.1, 9, 12) + torch.randn(12)
    head = WhitenedHead(ProjectionHeadSettings(size=5), 12)
    head.begin(whiten(vectors, 5))
    seen = head(vectors).detach()
    assert torch.allclose(seen.mean(dim=0), torch.zeros(5), atol=1e-3)
    assert torch.allclose(seen.T @ seen / len(seen), torch.eye(5), atol=2e-2)
    # The components are those of the largest variance: scikit-free check against the singular values.
    standardised = (vectors - vectors.mean(dim=0)) / vectors.std(dim=0)
    largest = torch.linalg.svd(standardised, full_matrices=False)
    assert torch.allclose((seen @ seen.T)[:50, :50], (largest.U[:, :5] @ largest.U[:, :5].T)[:50, :50] * len(vectors), atol=0.1)


def test_a_constant_entry_counts_for_nothing():
    vectors = torch.randn(100, 4, generator=torch.Generator().manual_seed(1))
    vectors[:, 2] = 7.0
    found = whiten(vectors, 2)
    assert all(value.isfinite().all() for value in found)
    assert found.components[:, 2].abs().max() < 1e-6


def test_too_few_vectors_for_the_components():
    with pytest.raises(ValueError, match="more than 8 vectors"):
        whiten(torch.randn(8, 20), 8)


def test_whitened_head_keeps_its_start_when_saved_and_loaded():
    head, again = (WhitenedHead(ProjectionHeadSettings(size=3), 6) for _ in range(2))
    vectors = torch.randn(50, 6)
    head.begin(whiten(vectors, 3))
    again.load_state_dict(head.state_dict())
    assert torch.equal(head(vectors), again(vectors))
