"""Training as a person starts it: what is refused, in one sentence, with code 2, before anything was started."""

from pathlib import Path

import pytest
import yaml

from raysys.runs.finetune.settings import FinetuneSettings
from raysys.runs.grounded.settings import GroundedSettings
from raysys.runs.rc3.settings import Rc3Settings
from raysys.runs.run import open_run
from raysys.runs.settings import GlobetrotterSettings
from raysys.settings import from_mapping, load
from raysys.storage import Storage
from raysys.training.checkpoint_mark import CheckpointState, Mark
from tests.data.worlds import all_languages, write_dataset
from tests.data.worlds import load as load_samples
from tests.jobs.calling import ROOT, job
from tests.object_store import environment


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    write_dataset(folder / "train", 40)
    write_dataset(folder / "test", 8, all_languages, first=100)
    (folder / "empty").mkdir()
    load_samples([str(folder / "train"), str(folder / "test")])  # makes the manifests
    return folder


@pytest.fixture
def config(tmp_path, data):
    """Writes a settings file; the values given replace those in it, dotted names as on the command line."""

    def write(**changes) -> str:
        values = {
            "run": {"name": "small", "storage": str(tmp_path / "runs")},
            "data": {"folder": str(data), "train": ["train"], "tests": {"test": "test"}, "image": {"size": 16}},
            "training": {"steps": 3, "global_batch": 8, "workers": 2},
        }
        for name, value in changes.items():
            *path, last = name.split(".")
            at = values
            for part in path:
                at = at.setdefault(part, {})
            at[last] = value
        (tmp_path / "small.yaml").write_text(yaml.safe_dump(values))
        return str(tmp_path / "small.yaml")

    return write


def one_sentence(err: str) -> str:
    assert err.startswith("error: "), err
    assert err.count("\n") == 1, err
    assert "Traceback" not in err
    return err


def test_a_dry_run_prints_settings_and_plan_and_starts_nothing(config, tmp_path, without_ray):
    code, out, err = job("globetrotter", "--config", config(), "--dry-run", "--training.steps", "12", **without_ray)
    assert (code, err) == (0, "")
    settings, plan = out.split("run /", 1)
    shown = from_mapping(GlobetrotterSettings, yaml.safe_load(settings[settings.index("run:\n") :]), "shown")
    assert shown.training.steps == 12
    assert shown.data.languages == ("de", "en", "ja", "ru")  # what was left open is shown as it was decided
    assert "40 samples in 4 languages (de 10, en 10, ja 10, ru 10)" in plan
    assert "12 steps of 8 samples, 5 steps an epoch" in plan
    assert "2 workers" in plan.replace("workers 2", "2 workers")
    assert not (tmp_path / "runs").exists()


def test_help(without_ray):
    code, out, _ = job("globetrotter", "--help", **without_ray)
    assert code == 0
    for part in ("--dry-run", "--config FILE.yaml", "--training.global-batch", "--objective.margin", "--data.languages"):
        assert part in out


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training.stepz": 3}, "small.yaml: unknown setting 'training.stepz'; did you mean 'training.steps'?"),
        ({"training.steps": "many"}, "small.yaml: training.steps: Input should be a valid integer"),
        ({"data.train": ["nowhere"]}, "/nowhere does not exist"),
        ({"data.train": ["empty"]}, "/empty has no .tar shards; it holds nothing"),
        ({"data.train": []}, "data.train: Tuple should have at least 1 item"),
        ({"data.folder": "gs://bucket"}, "gs:// is not known; use a path, file:// or s3://"),
        ({"data.validation": ["nowhere"]}, "/nowhere does not exist"),
        ({"data.tests": {"test": "nowhere"}}, "/nowhere does not exist"),
        ({"data.languages": ["de", "fr"]}, "has a caption in fr; languages there: de, en, ja, ru"),
        ({"data.languages": ["klingon!"]}, "'klingon!' is not a language tag"),
        ({"training.global_batch": 41}, "training.global_batch is 41, but the data has only 40 samples: lower it to at most 40"),
        ({"ray.cpus": 2}, "2 workers of 1 CPU and 1 CPU for reading data need 3 CPUs, but Ray has 2: use fewer workers"),
        ({"training.workers": 8, "ray.cpus": 4}, "need 9 CPUs, but Ray has 4"),
        ({"data.cached_views": 2}, "set model.image.frozen to true"),
        ({"data.cached_views": 1}, "0 (none cached) or at least 2"),
        ({"objective.weights": dict.fromkeys(("transitive", "image", "image_caption", "cloze"), 0)}, "there is nothing to minimise"),
        ({"model.text": {"layers": 0, "trigram_buckets": 9}}, "trigrams spell out the words that the cloze loss hides"),
        ({"run.name": "a/b"}, "run.name"),
        ({"run.storage": "gs://bucket"}, "gs:// is not known"),
        ({"evaluation.beside": ["other"]}, "other has no scores.json: train it first"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(call, config, tmp_path, changes, message):
    code, out, err = call("globetrotter", "--config", config(**changes))
    assert code == 2
    assert message in one_sentence(err)
    assert out == ""
    assert not (tmp_path / "runs").exists()


def test_bad_input_ends_the_process_with_code_2_before_ray_is_even_imported(config, without_ray):
    code, out, err = job("globetrotter", "--config", config(**{"training.global_batch": 50}), **without_ray)
    assert (code, out) == (2, "")
    assert "training.global_batch is 50" in one_sentence(err)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--training.stepz", "3"], "--training.steps"),
        (["--training.steps", "many"], "--training.steps"),
        (["--objective.transitive", "quotient"], "rescaled"),
    ],
)
def test_bad_options_are_refused_with_the_nearest(call, config, arguments, message):
    code, out, err = call("globetrotter", "--config", config(), *arguments)
    assert (code, out) == (2, "")
    assert message in err
    assert "Traceback" not in err


def test_a_settings_file_that_is_not_there(call):
    code, _, err = call("globetrotter", "--config", "jobs/configs/none.yaml")
    assert code == 2
    assert "cannot read the settings file jobs/configs/none.yaml: No such file or directory" in one_sentence(err)


def test_a_run_folder_that_cannot_be_written(call, config, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr("ray.init", lambda *args, **kwargs: pytest.fail("Ray was started"))
    code, _, err = call("globetrotter", "--config", config(**{"run.storage": str(tmp_path / "file")}))
    assert code == 2
    assert f"{tmp_path}/file" in one_sentence(err)


def test_a_bucket_that_may_only_be_read(call, config, object_store, monkeypatch):
    """Data without manifest is fine there, a run is not."""
    write_dataset(f"{object_store.bucket_uri}/training/train", 16)
    monkeypatch.setattr("ray.init", lambda *args, **kwargs: pytest.fail("Ray was started"))
    with environment(**object_store.reader.environment):
        path = config(**{"data.folder": f"{object_store.bucket_uri}/training", "data.tests": {}})
        code, out, err = call("globetrotter", "--config", path, "--dry-run")
        assert (code, err) == (0, "")
        assert "the manifest is kept in memory, as it cannot be saved" in out
        assert "data 16 samples in 4 languages" in out
        code, _, err = call("globetrotter", "--config", path, "--run.storage", f"{object_store.bucket_uri}/runs")
        assert code == 2
        assert (
            f"folder {object_store.bucket_uri}/runs/small cannot be written ({object_store.bucket_uri}/runs/small/.writable: access refused"
            in one_sentence(err)
        )
        assert object_store.reader.secret_key not in err
    assert not Storage().exists(f"{object_store.bucket_uri}/training/train/manifest.parquet")


@pytest.fixture
def started(config):
    """A run that was trained for 2 steps by 2 workers, as its folder tells."""
    settings = from_mapping(GlobetrotterSettings, yaml.safe_load(Path(config()).read_text()), "small.yaml")
    run = open_run(settings)
    run.folder.save_settings(run.settings)
    state = CheckpointState(step=2, fingerprint=run.samples.fingerprint, workers=2, zero_stage=1, score=None, micro_batches=2)
    Mark(state, "0", "2030-01-01T00:00:00+00:00", {}).write(run.folder.storage, run.checkpoints.uri(2))
    return run


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"training.seed": 1}, "was trained with training.seed = 0, now asked for 1: give the new run another --run.name"),
        ({"training.global_batch": 9}, "training.global_batch = 8, now asked for 9"),
        ({"model.text": {"layers": 2}}, "model.text.layers = 4, now asked for 2"),
        ({"objective.margin": 0.1}, "objective.margin = 0.4, now asked for 0.1"),
        ({"data.languages": ["de", "en"]}, "data.languages = ['de', 'en', 'ja', 'ru'], now asked for ['de', 'en']"),
        ({"training.workers": 4}, "divides each global batch into 2 micro-batches, too few for 4 workers"),
    ],
)
def test_settings_that_would_change_a_run_are_refused_when_it_is_resumed(call, config, started, changes, message):
    code, _, err = call("globetrotter", "--config", config(**changes), "--dry-run")
    assert code == 2
    assert message in one_sentence(err)


def test_what_does_not_change_a_run_may_differ_when_it_is_resumed(call, config, started, data, tmp_path):
    changes = {"training.steps": 9, "training.checkpoint_every": 5, "data.tests": {}, "data.languages": ["de", "en", "ja", "ru"]}
    code, out, err = call("globetrotter", "--config", config(**changes), "--dry-run")
    assert (code, err) == (0, "")
    assert "resumed at step 2" in out
    # The same data elsewhere is the same data; other data in its place is not.
    moved = tmp_path / "moved"
    write_dataset(moved / "train", 40)
    code, out, err = call("globetrotter", "--config", config(**{"data.tests": {}}), "--data.folder", str(moved), "--dry-run")
    assert (code, err) == (0, "")
    assert "resumed at step 2" in out
    write_dataset(moved / "train", 44)
    code, _, err = call("globetrotter", "--config", config(**{"data.tests": {}}), "--data.folder", str(moved), "--dry-run")
    assert code == 2
    assert "was trained on other data than data.train now holds" in one_sentence(err)


def test_a_submitted_job_needs_absolute_paths(call, config, monkeypatch, tmp_path):
    monkeypatch.setenv("RAY_JOB_CONFIG_JSON_ENV_VAR", "{}")
    code, _, err = call("globetrotter", "--config", config(), "--data.folder", "data", "--dry-run")
    assert code == 2
    assert "data.folder: 'data' is relative, but a submitted job runs in a temporary copy" in one_sentence(err)
    code, _, err = call("globetrotter", "--config", config(), "--run.storage", "runs", "--dry-run")
    assert "--run.storage $PWD/runs" in one_sentence(err)
    assert call("globetrotter", "--config", config(), "--dry-run")[0] == 0


def test_the_shipped_settings_are_valid():
    files = sorted((ROOT / "jobs/configs").rglob("*.yaml"))
    assert files
    kinds = {"grounded": GroundedSettings, "rc3": Rc3Settings}
    for file in files:
        folder = file.parent.name + ("/" + file.name.partition("-")[0] if "-" in file.name else "")
        if folder == "rc3/tasks":  # what is fine-tuned → its data
            for name, task in yaml.safe_load(file.read_text()).items():
                values = task | {"system": name.partition("-")[0]}
                assert from_mapping(FinetuneSettings, values, str(file)).data.train
        elif folder == "rc3/finetune":  # of any task
            from_mapping(FinetuneSettings, yaml.safe_load(file.read_text()) | {"system": "xvnli"}, str(file))
        else:
            assert load(kinds.get(folder, GlobetrotterSettings), file).data.train
