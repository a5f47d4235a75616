"""What is told of runs that no machine at hand can make: closed forms against hand computation."""

import pytest

from raysys.runs.compare.entries import make_entry
from raysys.runs.compare.rc3_needs import activation_bytes, needs, needs_cluster, network_weights, pretraining_seconds, reads_of, row_flops
from raysys.runs.rc3.settings import Rc3Settings
from raysys.settings import from_mapping

NETWORK = {"size": 8, "layers": 2, "decoder_layers": 3, "heads": 2, "feed_forward": 16, "vocabulary_size": 100, "max_tokens": 10}
NETWORK |= {"regions": 4, "region_size": 12, "patch": 16}


def settings(**training):
    training = {"steps": 10, "global_batch": 16, "workers": 4, "gpu": True, "precision": "bf16", "zero_stage": 3} | training
    data = {"strict": ["s"], "weak": ["w"], "parallel": ["p"], "image": {"size": 32}}
    return from_mapping(Rc3Settings, {"data": data, "model": {"network": NETWORK}, "training": training}, "test")


@pytest.mark.parametrize(
    ("system", "kind", "reads"),
    [
        ("rc3", "strict", (1 + 6, 2, 1)),
        ("rc3", "weak", (6, 2, 0)),
        ("rc3-no-kl", "weak", (6, 0, 0)),
        ("rc3", "parallel", (0, 2, 0)),
        ("rc3-no-rxvtcl", "strict", (1 + 2, 2, 1)),
        ("rc3-no-rxvtcl", "weak", (0, 0, 0)),
        ("rc3-no-rxvtcl-xtcl", "parallel", (0, 0, 0)),
        ("m3p", "parallel", (0, 1, 0)),
    ],
)
def test_passes_of_a_row(system, kind, reads):
    found = reads_of(system, kind, near=1)
    assert (found.visual, found.text, found.decoder) == reads


def test_operations_of_a_row_by_hand():
    # A layer of the encoder has 4 · 64 + 2 · 8 · 16 = 512 weights, one of the decoder 256 more; with a picture there are
    # 1 + max(4 regions, 4 patches) + 10 places.
    strict = 2 * 512 * (3 * 15 + 2 * 10) + 3 * 768 * 10 + 10 * 1.15 * 8 * 100
    parallel = 2 * 512 * 2 * 10
    assert row_flops(settings(), "rc3-no-rxvtcl") == pytest.approx(6 * (strict + parallel) / 2)
    assert row_flops(settings(activation_checkpointing=True, micro_batch=2), "rc3-no-rxvtcl") == pytest.approx(10 * (strict + parallel) / 2)
    # Two of three streams: 11 of the batch's 16 rows.
    assert pretraining_seconds(settings(), "rc3-no-rxvtcl", 1e3) == pytest.approx(10 * 11 * 3 * (strict + parallel) / (4 * 1e3))


def test_activations_are_fewer_where_they_are_recomputed():
    # Two bytes: s b h (34 + 5 a s / h) for 4 rows.
    def layer(places):
        return places * 8 * (34 + 5 * 2 * places / 8)

    whole = 4 * (3 * 2 * layer(15) + 2 * 2 * layer(10) + 3 * 1.5 * layer(10))
    assert activation_bytes(settings(), "rc3-no-rxvtcl") == pytest.approx(whole)
    kept = 4 * (3 * (layer(15) + 2 * 2 * 15 * 8) + 2 * (layer(10) + 2 * 2 * 10 * 8) + 1.5 * layer(10) + 3 * 2 * 10 * 8)
    assert activation_bytes(settings(activation_checkpointing=True), "rc3-no-rxvtcl") == pytest.approx(kept)


def test_the_network_is_counted_without_making_it():
    from raysys.models.visual_mbart import VisualMBart

    base = settings()
    network = base.model.network
    assert network_weights(network, base.training).trained == sum(one.numel() for one in VisualMBart(network).parameters())


def test_needs_name_gpus_stages_hours_and_the_command(monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    base = settings(workers=4000, global_batch=4000)
    made = [make_entry(base, system, seed) for seed in (0, 1) for system in ("rc3", "m3p")]
    text = "\n".join(needs(base, made, "python jobs/reproduce.py rc3 --size large", 5e13))
    assert "each pre-training run: 4000 GPUs" in text
    assert "ZeRO 3*" in text
    assert "50 · 10¹² operations a second, which is assumed and not measured (--teraflops)" in text
    assert "all 4 pre-training runs" in text
    assert "ray job submit --address http://HEAD:8265 --working-dir . -- python jobs/reproduce.py rc3 --size large --storage s3://" in text
    assert needs_cluster(base.training)
    monkeypatch.setenv("RAY_ADDRESS", "head:6379")
    assert not needs_cluster(base.training)
    assert "ray job submit" not in "\n".join(needs(base, made, "x", 5e13))
