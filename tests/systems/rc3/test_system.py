"""RC³ and its rivals at a tiny size: what each row is told, and which weights learn."""

from typing import get_args

import pytest
import torch
import torch.nn.functional as F

from raysys.data.rc3_batches import PARALLEL, STRICT, WEAK
from raysys.errors import UserError
from raysys.objectives.similarity import unit_vectors
from raysys.systems.rc3.build import make_rc3
from raysys.systems.rc3.corruption import hidden_regions
from raysys.systems.rc3.names import Rc3Name, losses_of
from raysys.systems.rc3.readings import image_of
from tests.systems.rc3.worlds import BOS, LANGUAGES, MASK, SIZE, VOCABULARY, batch, build, exchanged, model_settings, objective

SYSTEMS = get_args(Rc3Name)
FEW = [(PARALLEL,), (STRICT,), (WEAK,), (STRICT, STRICT), (WEAK, WEAK, PARALLEL)]


def rows_of(system, whole):
    return system.train()(exchanged(system, whole))


@pytest.mark.parametrize("name", SYSTEMS)
def test_every_trained_weight_has_a_gradient_in_every_batch(name):
    system = build(name)
    for kinds in (None, *FEW):
        system.zero_grad()
        whole = batch() if kinds is None else batch(kinds)
        terms = system.losses(rows_of(system, exchanged(system, whole).rows(0, whole.count)))
        total = system.total(terms)
        total.backward()
        assert total.isfinite()
        missing = [key for key, one in system.named_parameters() if one.requires_grad and (one.grad is None or one.grad.isnan().any())]
        assert not missing, kinds
        learns = {key for key, one in system.named_parameters() if one.requires_grad and one.grad.any()}
        if kinds is None:
            assert terms.keys() >= set(losses_of(name))
            assert total.item() == pytest.approx(sum(terms[loss].item() for loss in losses_of(name)), rel=1e-6)
            assert any("encoder.layers" in key for key in learns)
            assert any("decoder.layers" in key for key in learns) == (name.startswith(("rc3", "memad", "vl")))


def test_rows_are_what_the_network_makes_of_their_texts_and_images():
    system = build("rc3")
    whole = exchanged(system, batch())
    found = rows_of(system, whole)
    image, each = image_of(whole), torch.arange(whole.count)
    pictured = whole.kinds != PARALLEL
    for name in ("first", "second"):
        ids, mask = getattr(whole, f"{name}_ids"), getattr(whole, f"{name}_mask")
        torch.testing.assert_close(found[f"tr_{name}"], system.network.encode(ids, mask).first)
        seen = system.network.encode(ids, mask, [image]).first
        torch.testing.assert_close(found[f"vtr_{name}"][pictured], seen[pictured])
        assert not found[f"vtr_{name}"][~pictured].any()
        for row, k in ((whole.near_rows >= 0) & pictured[:, None]).nonzero().tolist():
            other = whole.near_rows[row, k : k + 1]
            alone = system.network.encode(ids[other], mask[other], [image.rows(each[row : row + 1])])
            torch.testing.assert_close(found[f"vtr_near_{name}"][row, k : k + 1], alone.first)


def test_masked_words_are_guessed_and_the_other_caption_is_written():
    system = build("rc3")
    whole = batch((PARALLEL, WEAK, STRICT, STRICT))
    found, row = rows_of(system, whole), torch.tensor([2])
    encoded = system.network.encode(whole.first_masked[row], whole.first_mask[row], [image_of(whole).rows(row)])
    logits = system.network.word_logits(encoded.text_states)[0]
    expected = F.cross_entropy(logits, whole.first_labels[2], reduction="sum")  # −100 is left out
    assert found["mlm_sum"][2].item() == pytest.approx(expected.item(), rel=1e-5)
    language = whole.second_ids[2, whole.second_mask[2].sum() - 1]
    written, tokens = system.network.next_word_nll(encoded, whole.second_ids[row], whole.second_mask[row], language[None])
    assert found["mclm_sum"][2].item() == pytest.approx(written.item(), rel=1e-5)
    assert found["mclm_count"].tolist()[:3] == [0, 0, tokens.item()]
    assert found["mlm_count"].tolist()[:2] == [0, 0]


def test_hidden_regions_are_not_seen_but_guessed():
    system = build("m3p", masked_regions=0.5)
    whole = batch((STRICT, STRICT, PARALLEL))
    found = rows_of(system, whole)
    hidden = hidden_regions(whole.region_draws, whole.region_mask, 0.5)
    other = whole.regions.clone()
    other[hidden] += 5
    changed = rows_of(system, type(whole)(**{**whole.__dict__, "regions": other}))
    assert torch.equal(changed["mlm_sum"], found["mlm_sum"])
    assert (changed["masked_regions_sum"] > found["masked_regions_sum"])[:2].all()
    assert found["masked_regions_count"].tolist() == [*hidden.sum(dim=1)[:2].tolist(), 0]


def test_words_are_guessed_from_two_captions_together():
    system = build("uc2")
    found = rows_of(system, whole := batch((STRICT, PARALLEL)))
    most = (whole.first_labels[0] != -100).sum() + (whole.second_labels[0] != -100).sum()
    assert 0 < found["pair_mlm_count"][0] <= most
    assert found["pair_mlm_count"][1] == 0


@pytest.mark.parametrize("name", ["vl-bart", "vl-t5"])
def test_captions_or_their_spans_are_written(name):
    found = rows_of(build(name), whole := batch((STRICT, PARALLEL)))
    loss = losses_of(name)[0]
    hidden = whole.first_labels[0] != -100
    spans = (hidden & ~F.pad(hidden[:-1], (1, 0))).sum()
    tokens = whole.first_mask[0].sum() - 1 if name == "vl-bart" else hidden.sum() + spans + 1
    assert found[f"{loss}_count"].tolist() == [tokens, 0]


def test_the_gate_begins_open_and_is_for_rows_with_an_image():
    system = build("memad")
    whole = batch((STRICT, PARALLEL))
    before = rows_of(system, whole)["translation_sum"]
    languages = whole.second_ids.gather(1, whole.second_mask.sum(dim=1, keepdim=True) - 1)[:, 0]
    encoded = system.network.encode(whole.first_ids, whole.first_mask)
    torch.testing.assert_close(before, system.network.next_word_nll(encoded, whole.second_ids, whole.second_mask, languages)[0])
    torch.nn.init.ones_(system.gate.dense.weight)
    after = rows_of(system, whole)["translation_sum"]
    assert after[0] != before[0]
    torch.testing.assert_close(after[1], before[1])


def test_in_evaluation_all_texts_are_encoded_alone_and_with_their_images():
    system = build("m3p").eval()
    found = system(whole := batch())
    torch.testing.assert_close(found["tr_second"], system.network.encode(whole.second_ids, whole.second_mask).first)
    torch.testing.assert_close(found["vtr_first"], system.visio_textual(whole.first_ids, whole.first_mask, image_of(whole)))


def test_as_a_sentence_encoder():
    system = build("rc3").eval()
    ids, mask = torch.tensor([[BOS, 7, 8, VOCABULARY - 1]]), torch.ones(1, 4, dtype=torch.int64)
    vectors = system.sentence_vectors(ids, mask, torch.zeros(1))
    torch.testing.assert_close(vectors, unit_vectors(system.network.encode(ids, mask).first))
    assert vectors.shape == (1, system.vector_size) == (1, SIZE)
    assert torch.equal(system.caption_vectors(ids, mask, torch.zeros(1)), vectors)
    assert system.word_vectors(ids, mask, torch.zeros(1)).shape == (1, SIZE)
    assert system.text_form == system.model.network.form


def test_the_settings_of_the_objective_count():
    whole, terms = batch(), {}
    for given in ({}, {"words": "sum"}, {"xtcl": {"on_strict": False}}, {"xtcl": {"symmetric": True}}, {"rxvtcl": {"near": None}}):
        system = build("rc3", **given)
        terms[str(given)] = system.losses(rows_of(system, whole))
    plain, words, apart, both, every = terms.values()
    assert words["mlm"] > plain["mlm"]
    assert apart["xtcl"] < plain["xtcl"], "fewer negatives"
    assert both["xtcl"].item() == pytest.approx(2 * plain["xtcl"].item(), rel=0.1)
    assert every["rxvtcl"] > plain["rxvtcl"], "more negatives"


def test_mistakes_are_told():
    with pytest.raises(UserError, match="only one"):
        make_rc3("rc3", model_settings(), objective(), languages=1)
    with pytest.raises(ValueError, match="exchange has not been called"):
        build("rc3").train()(batch())
    system = make_rc3("vl-t5", model_settings(), objective(), LANGUAGES)
    with pytest.raises(ValueError, match="mask token"):
        rows_of(system, batch())
    assert build("vl-t5").mask_id == MASK
