"""Settings of fine-tuning: the paper's Table 6 where nothing is said, and what cannot be trained."""

import pytest

from raysys.errors import UserError
from raysys.runs.finetune.settings import FinetuneDataSettings, FinetuneSettings, settings_class
from raysys.settings import dumps, from_command_line, from_mapping, loads

TABLE_6 = {
    "xvnli": (4e-5, 128, 10, 80),
    "xgqa": (4e-5, 256, 5, 40),
    "marvl": (4e-5, 64, 40, 80),
    "itr": (1e-5, 64, 10, 80),
    "mmt": (5e-6, 256, 5, 50),
}


def told(settings: FinetuneSettings) -> tuple:
    training = settings.training
    return training.learning_rate, training.global_batch, training.epochs, settings.max_tokens


@pytest.mark.parametrize("task", TABLE_6)
def test_defaults_are_the_papers_wherever_settings_come_from(task, tmp_path):
    (tmp_path / "settings.yaml").write_text("training: {seed: 3}\n")
    line = from_command_line(settings_class(task), ["--base", "x"], "finetune.py", "")
    file = from_command_line(
        settings_class(task), ["--config", str(tmp_path / "settings.yaml"), "--training.steps", "7"], "finetune.py", ""
    )
    assert (line.system, line.run.name, file.training.seed, file.training.steps) == (task, task, 3, 7)
    assert told(line) == told(file) == told(from_mapping(FinetuneSettings, {"system": task}, "")) == TABLE_6[task]
    saved = line.model_copy(update={"training": line.training.model_copy(update={"learning_rate": 1.0})})
    assert loads(FinetuneSettings, dumps(saved), "").training.learning_rate == 1.0


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"base": ""}, r"base: name the finished pre-training run .* python jobs/rc3\.py makes one"),
        ({"data": {}}, r"data\.train: name a folder of records of the task mmt"),
        ({"data": {"train": ["a"]}}, r"data\.target: name the language to translate into"),
        ({"data": {"train": ["a"], "target": "de", "test_images": {"x": ["y"]}}}, r"data\.test_images: there is no test x; tests are none"),
    ],
)
def test_what_cannot_be_trained(changed, error):
    with pytest.raises(UserError, match=error):
        from_mapping(FinetuneSettings, {"system": "mmt", "base": "runs/b"} | changed, "").resolved()


def test_languages_of_translation_by_the_name_of_the_test():
    data = FinetuneDataSettings(source="en", target="de")
    names = ["2016", "2016/en-fr", "a/b/zh-Hans-en", "x/en-zh-Hans"]
    assert [data.pair_of(name) for name in names] == [("en", "de"), ("en", "fr"), ("zh-Hans", "en"), ("en", "zh-Hans")]
    for name in ("2016/flickr", "2016/e-n"):
        with pytest.raises(UserError, match=f"data.tests.{name}"):
            data.pair_of(name)
