"""The noise, the decoder and greedy translation, each against what is written out by hand."""

import copy

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from raysys.models import translator
from raysys.models.text import TextModelSettings
from raysys.models.translator import (
    CLS_ID,
    FIRST_ORDINARY,
    MASK_ID,
    PAD_ID,
    SEP_ID,
    TranslationDecoder,
    TranslatorSettings,
    WordHead,
    add_noise,
    length_groups,
    translate,
)

TEXT = TextModelSettings(hidden_size=32, layers=1, heads=2, intermediate_size=48, dropout=0.2, max_tokens=16, vocabulary_size=60)
LANGUAGES = 3
quick = settings(max_examples=40, deadline=None)


def captions(*lengths: int, start: int = FIRST_ORDINARY) -> tuple[Tensor, Tensor]:
    """Captions of as many word pieces, all of them different: [CLS] 5 6 7 … [SEP], and padding."""
    width, ids = max(lengths) + 2, []
    for length in lengths:
        row = [CLS_ID, *range(start, start + length), SEP_ID]
        start += length
        ids.append(row + [PAD_ID] * (width - len(row)))
    found = torch.tensor(ids)
    return found, (found != PAD_ID).long()


def noised(lengths: list[int], **values: float) -> tuple[list[list[int]], Tensor]:
    """Each noised caption without padding; and the captions."""
    ids, mask = captions(*lengths)
    found, found_mask = add_noise(ids, mask, TranslatorSettings.model_validate(values))
    assert found.shape == found_mask.shape
    assert found.dtype == found_mask.dtype == torch.int64
    assert found_mask.sum(dim=1).max() == found.shape[1], "no column of padding alone"
    assert found_mask.equal((found != PAD_ID).long()), "padding where the mask has it, all of it behind the tokens"
    assert (found_mask.diff(dim=1) <= 0).all()
    return [row[row != PAD_ID].tolist() for row in found], ids


rows_of_lengths = st.lists(st.integers(1, 12), min_size=1, max_size=6)
shares = st.sampled_from([0.0, 0.1, 0.5, 0.95])


@quick
@given(seed=st.integers(0, 2**31), lengths=rows_of_lengths, drop=shares, blank=shares, distance=st.integers(0, 5))
def test_noise_keeps_a_part_of_the_caption_nearly_in_its_order(seed, lengths, drop, blank, distance):
    torch.manual_seed(seed)
    for row, (found, own) in enumerate(zip(*noised(lengths, drop=drop, blank=blank, shuffle_distance=distance), strict=True)):
        assert found[0] == CLS_ID
        assert found[-1] == SEP_ID
        pieces = found[1:-1]
        assert 1 <= len(pieces) <= lengths[row]
        assert drop or len(pieces) == lengths[row]
        kept = [piece for piece in pieces if piece != MASK_ID]
        assert blank or kept == pieces
        assert len(set(kept)) == len(kept)
        assert set(kept) <= set(own.tolist()), "its own word pieces, each once"
        if not drop:
            moves = [place - (piece - own[1].item()) for place, piece in enumerate(pieces) if piece != MASK_ID]
            assert max(map(abs, moves), default=0) <= distance
        for place, piece in enumerate(kept):
            assert all(piece - earlier >= -distance for earlier in kept[:place]), "no two of them change places over a greater distance"


def test_shares_and_shuffling_are_as_asked():
    torch.manual_seed(0)
    found, _ = noised([12] * 4000, drop=0.2, blank=0.3, shuffle_distance=0)
    pieces = [row[1:-1] for row in found]
    left = sum(map(len, pieces)) / 48_000
    assert left == pytest.approx(0.8, abs=0.01)
    assert sum(row.count(MASK_ID) for row in pieces) / (48_000 * left) == pytest.approx(0.3, abs=0.01)
    assert all(row == sorted(row) for row in ([piece for piece in row if piece != MASK_ID] for row in pieces))

    found, ids = noised([12] * 4000, drop=0, blank=0, shuffle_distance=3)
    moved = torch.tensor(found)[:, 1:-1] - ids[:, 1:-1]
    assert sorted(set(moved.flatten().tolist())) == [-3, -2, -1, 0, 1, 2, 3]
    # sorting by i + U[0, 4) by another hand
    keys = torch.arange(12) + 4 * torch.rand(4000, 12, dtype=torch.float64)
    expected = keys.argsort(dim=1) - torch.arange(12)
    assert float(moved.abs().float().mean()) == pytest.approx(float(expected.abs().float().mean()), abs=0.02)


@quick
@given(seed=st.integers(0, 2**31), drop=shares, blank=shares, distance=st.integers(0, 5))
def test_special_tokens_inside_a_caption_keep_their_places(seed, drop, blank, distance):
    torch.manual_seed(seed)
    ids = torch.tensor([[CLS_ID, 9, 1, 8, 7, MASK_ID, 6, SEP_ID, PAD_ID], [CLS_ID, 1, SEP_ID, *[PAD_ID] * 6]])
    found, mask = add_noise(ids, (ids != PAD_ID).long(), TranslatorSettings(drop=0, blank=0, shuffle_distance=distance))
    special = ids[:, : found.shape[1]] < FIRST_ORDINARY
    assert found[special].equal(ids[:, : found.shape[1]][special])
    found, mask = add_noise(ids, (ids != PAD_ID).long(), TranslatorSettings(drop=drop, blank=0, shuffle_distance=distance))
    assert [token for token in found[0].tolist() if token < FIRST_ORDINARY and token] == [CLS_ID, 1, MASK_ID, SEP_ID]
    assert found[1][mask[1].bool()].tolist() == [CLS_ID, 1, SEP_ID], "without word pieces there is nothing to do"


def test_noise_comes_from_the_global_generator():
    ids, mask = captions(9, 5, 12)
    torch.manual_seed(4)
    first, again = (add_noise(ids, mask, TranslatorSettings())[0] for _ in range(2))
    torch.manual_seed(4)
    assert add_noise(ids, mask, TranslatorSettings())[0].equal(first)
    assert not torch.equal(first, again)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 5, 8, 100])
def test_groups_of_like_length_hold_every_row_and_none_is_empty(rows):
    lengths = torch.randint(1, 20, (rows,), generator=torch.Generator().manual_seed(rows))
    groups = length_groups(lengths)
    assert len(groups) == 4
    assert all(len(group) for group in groups)
    order = torch.cat(groups)
    assert sorted(order[:rows].tolist()) == list(range(rows)), "what comes again comes last"
    assert lengths[order[:rows]].diff().ge(0).all()
    if rows == 100:
        assert list(map(len, groups)) == [50, 25, 13, 12]


class Networks:
    """A decoder with what it stands on; its weights are large enough for translations to differ."""

    def __init__(self, bias: float = 0.0) -> None:
        torch.manual_seed(1)
        self.embeddings = nn.Embedding(TEXT.vocabulary_size, TEXT.hidden_size)
        self.decoder = TranslationDecoder(TranslatorSettings(layers=2), TEXT, LANGUAGES).eval()
        self.head = WordHead(TEXT)
        with torch.no_grad():
            self.head.bias.normal_()[SEP_ID] = bias
            for name, parameter in self.decoder.named_parameters():
                parameter.mul_(1 if parameter.ndim < 2 else 200 if "embeddings" in name else 8)
        self.memory = torch.randn(6, 7, TEXT.hidden_size)
        self.mask = (torch.arange(7)[None] < torch.tensor([7, 3, 5, 1, 2, 6])[:, None]).long()
        self.languages = torch.tensor([0, 1, 2, 2, 1, 0])

    def translate(self, steps: int) -> tuple[Tensor, Tensor]:
        return translate(self.decoder, self.head, self.memory, self.mask, self.languages, self.embeddings, steps)

    def by_hand(self, row: int, steps: int) -> list[int]:
        """A translation alone, without cache and without padding."""
        memory = self.memory[row : row + 1, : int(self.mask[row].sum())]
        written = [CLS_ID]
        while len(written) <= steps and written[-1] != SEP_ID:
            tokens, whole = torch.tensor([written]), torch.ones(1, memory.shape[1])
            states = self.decoder(tokens, self.languages[row : row + 1], memory, whole, self.embeddings)
            scores = (states[0, -1] @ self.embeddings.weight.T + self.head.bias).tolist()
            for token in (PAD_ID, 1, CLS_ID, MASK_ID, *([SEP_ID] if len(written) == 1 else [])):
                scores[token] = -1e9
            written.append(max(range(len(scores)), key=scores.__getitem__))
        return written if written[-1] == SEP_ID else [*written, SEP_ID]


@pytest.mark.parametrize("bias", [-100.0, 9.0, 100.0])
def test_greedy_translation_equals_a_loop_without_cache(bias):
    networks, steps = Networks(bias=bias), 6
    ids, mask = networks.translate(steps)
    assert mask.equal((ids != PAD_ID).long())
    found = [row[row != PAD_ID].tolist() for row in ids]
    assert found == [networks.by_hand(row, steps) for row in range(6)]
    assert len({tuple(row) for row in found}) > 1
    lengths = {len(row) - 2 for row in found}
    assert lengths == {6} if bias == -100 else lengths == {1} if bias == 100 else len(lengths) > 1
    for row in found:
        assert row[0] == CLS_ID
        assert row[-1] == SEP_ID
        assert all(token >= FIRST_ORDINARY for token in row[1:-1])
        assert row[1:-1], "no translation is empty"


@pytest.mark.parametrize("bias", [-100.0, 9.0, 100.0])
def test_the_networks_are_called_as_often_whatever_the_rows(bias):
    networks, calls = Networks(bias=bias), []
    for name, module in (("decoder", networks.decoder), ("layer", networks.decoder.bert.encoder.layer[0]), ("head", networks.head)):
        module.register_forward_hook(lambda *_, name=name: calls.append(name))
    networks.translate(5)
    assert calls == ["layer", "decoder", "head"] * 5


def test_the_language_and_what_is_translated_decide_what_is_written():
    networks = Networks(bias=-100.0)
    found = networks.translate(6)[0]
    networks.languages = (networks.languages + 1) % LANGUAGES
    other = networks.translate(6)[0]
    assert (found != other).any(dim=1).sum() >= 3
    networks.memory[2] += torch.randn(7, TEXT.hidden_size)
    assert (networks.translate(6)[0] != other).any(dim=1).nonzero().tolist() == [[2]]


@pytest.mark.parametrize("at_once", [1, 200, 2**24])
def test_cross_entropy_of_any_number_of_words_at_once(at_once, monkeypatch):
    monkeypatch.setattr(translator, "_LOGITS_AT_ONCE", at_once)
    networks = Networks()
    states, labels = torch.randn(11, TEXT.hidden_size, requires_grad=True), torch.randint(60, (11,))
    weights = torch.rand(11)
    (networks.head(states, networks.embeddings, labels) * weights).sum().backward()
    found = [states.grad, networks.embeddings.weight.grad, networks.head.bias.grad]
    leaves = [one.detach().clone().requires_grad_() for one in (states, networks.embeddings.weight, networks.head.bias)]
    logits = leaves[0] @ leaves[1].T + leaves[2]
    losses = logits.logsumexp(dim=1) - logits[range(11), labels]
    torch.testing.assert_close(networks.head(states, networks.embeddings, labels), losses)
    for gradient, expected in zip(found, torch.autograd.grad((losses * weights).sum(), leaves), strict=True):
        torch.testing.assert_close(gradient, expected)


def test_the_decoder_does_not_look_ahead_nor_read_its_first_token():
    networks = Networks()
    ids, _ = captions(5, 5, 5, 5, 5, 5)
    states = networks.decoder(ids, networks.languages, networks.memory, networks.mask, networks.embeddings)
    changed = ids.clone()
    changed[:, 0], changed[:, 4:] = 33, 44
    again = networks.decoder(changed, networks.languages, networks.memory, networks.mask, networks.embeddings)
    torch.testing.assert_close(again[:, :4], states[:, :4])
    assert not torch.allclose(again[:, 4], states[:, 4])


def test_recomputed_activations_give_the_same_gradients():
    networks = Networks()
    networks.decoder.train()
    again = copy.deepcopy(networks)
    again.decoder.checkpoint_activations()
    ids, _ = captions(5, 5, 5, 5, 5, 5)
    calls = []
    again.decoder.bert.encoder.layer[1].crossattention.self.query.register_forward_hook(lambda *_: calls.append(1))
    for one in (networks, again):
        torch.manual_seed(2)
        states = one.decoder(ids, one.languages, one.memory, one.mask, one.embeddings)
        F.normalize(states[..., :3], dim=-1).sum().backward()
    assert len(calls) == 2
    for (name, parameter), other in zip(networks.decoder.named_parameters(), again.decoder.parameters(), strict=True):
        torch.testing.assert_close(parameter.grad, other.grad, msg=name)
