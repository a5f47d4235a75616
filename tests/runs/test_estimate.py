"""The estimate of a run, from its settings to the lines that people read."""

import pytest

from raysys.runs.estimate import Measured, stage_memory
from raysys.runs.estimate_table import describe_estimate, estimate_run, in_bytes, in_seconds
from raysys.runs.run import open_run
from raysys.runs.settings import GlobetrotterSettings
from raysys.settings import from_mapping
from raysys.training.estimate import Weights
from raysys.training.footprint import LossUse, MicroBatchUse
from raysys.training.settings import TrainingSettings
from tests.data.worlds import load as load_samples
from tests.data.worlds import write_dataset

MEASURED = Measured(
    device="CPU",
    weights=Weights(trained=1_000_000, frozen=0, persistent=0),
    micro_batch=MicroBatchUse(size=4, bytes=7e6, forward=0.1, forward_backward=0.4),
    losses=LossUse(bytes=3e6, seconds=0.25),
    update=0.1,
    row_bytes=1000,
    gradient_row_bytes=500,
    pixel_bytes=10_000,
)


def training(**values) -> TrainingSettings:
    return TrainingSettings.model_validate({"global_batch": 16, "workers": 2, **values})


def lines_of(settings: TrainingSettings, counts: list[list[int]], limit: float | None = 1e12) -> dict[str, list[str]]:
    lines = describe_estimate(settings, counts, MEASURED, limit, caption=9)
    cells = {line[:28].strip(): line[28:].replace(" MB", "MB").replace(" kB", "kB").replace(" B", "B").split() for line in lines[1:]}
    return {"first": [lines[0]], "last": lines[-2:], **cells}


def test_table():
    shown = lines_of(training(zero_stage=2), [[8], [8]])
    assert "2 workers, 1 micro-batch of at most 8 samples a step, captions of 9 tokens" in shown["first"][0]
    (heads,) = [cells for name, cells in shown.items() if name == ""]
    assert heads == ["ZeRO", "0", "ZeRO", "1", "ZeRO", "2*", "ZeRO", "3"]
    assert shown["weights"] == ["4MB", "4MB", "4MB", "2MB"]
    assert shown["gradients"] == ["4MB", "4MB", "2MB", "2MB"]
    assert shown["optimizer state"] == ["8MB", "6MB", "6MB", "6MB"]
    assert shown["activations of 8 samples"] == ["7MB"] * 4
    assert shown["sent: weights, gradients"] == ["4MB", "6MB", "6MB", "4MB"]
    assert shown["sent: vectors"] == [in_bytes(16 * 1000 / 2 + 16 * 500).replace(" ", "")] * 4


@pytest.mark.parametrize(
    ("values", "counts", "seconds"),
    [
        ({}, [[8], [8]], "700 ms"),
        ({"micro_batch": 4}, [[4, 4], [4, 4]], "1.3 s"),
        ({"micro_batch": 4, "accumulation": "plain"}, [[4, 4], [4, 4]], "1.1 s"),
    ],
)
def test_time(values, counts, seconds):
    (line,) = (line for line in lines_of(training(**values), counts)["last"] if line.startswith("a step takes"))
    assert line.startswith(f"a step takes about {seconds} on this machine's CPU")
    assert ("to embed it first" in line) == (values == {"micro_batch": 4})


def test_what_does_not_fit_is_marked():
    counts = [[8], [8]]
    totals = [stage_memory(training(), stage, counts, MEASURED).total for stage in range(4)]
    shown = lines_of(training(), counts, limit=sorted(totals)[1])
    marked = [cell.endswith("!") for cell in shown["at most together"]]
    assert marked == [total > sorted(totals)[1] for total in totals]
    assert 0 < sum(marked) < 4
    assert "! more than the" in shown["first"][0]
    assert "no GPU on this machine" in lines_of(training(), counts, limit=None)["last"][-1]


def test_half_precision_without_zero_is_zero_1():
    counts = [[8], [8]]
    plain, first = (stage_memory(training(precision="bf16"), stage, counts, MEASURED) for stage in (0, 1))
    assert plain == first
    assert first.weights == 2e6
    assert first.optimizer == 12e6 / 2


def test_on_a_gpu_a_whole_bucket_is_allocated():
    on_cpu, on_gpu = (stage_memory(training(gpu=gpu, zero_stage=1), 1, [[8], [8]], MEASURED) for gpu in (False, True))
    assert on_cpu.buffers == 4e6
    assert on_gpu.buffers == 4 * 5e8


def test_units():
    assert [in_bytes(size) for size in (0, 999, 1500, 2.5e9, 3e12)] == ["0 B", "999 B", "1.5 kB", "2.5 GB", "3 TB"]
    assert [in_seconds(seconds) for seconds in (0.0123, 1.26)] == ["12 ms", "1.3 s"]


@pytest.mark.parametrize("pictures", [True, False])
def test_a_run_from_its_settings(tmp_path, pictures):
    write_dataset(tmp_path / "train", 24)
    load_samples([str(tmp_path / "train")])
    text = {"hidden_size": 16, "layers": 1, "heads": 2, "intermediate_size": 24, "vocabulary_size": 500, "max_tokens": 12}
    settings = from_mapping(
        GlobetrotterSettings,
        {
            "run": {"name": "small", "storage": str(tmp_path / "runs")},
            "data": {"folder": str(tmp_path), "train": ["train"], "image": {"size": 16}, "cached_views": 0 if pictures else 2},
            "model": {"image": {"backbone": "resnet-10-narrow", "frozen": not pictures}, "text": text},
            "training": {"steps": 3, "global_batch": 12, "workers": 2, "micro_batch": 3, "zero_stage": 1},
        },
        "test",
    )
    lines = estimate_run(open_run(settings))
    assert "2 micro-batches of at most 3 samples a step, captions of 12 tokens" in lines[0]
    assert any(line.strip().startswith("activations of 3 samples") for line in lines)
    assert lines[-1].startswith("a step takes about")
    assert not (tmp_path / "runs").exists(), "nothing is left behind"
