"""A pre-training run before anything is started: its streams and plan, what it will take, and what is refused."""

import numpy as np
import pytest

from raysys.data.rc3_batches import PARALLEL, STRICT, WEAK
from raysys.data.shares import Share
from raysys.errors import UserError
from raysys.runs.card import data_facts
from raysys.runs.estimate_table import estimate_run
from raysys.runs.outlook import outlook_of
from raysys.runs.rc3.build import get_tokenizer, make_job
from raysys.runs.rc3.run import describe_rc3, open_rc3
from raysys.runs.rc3.settings import Rc3Settings
from raysys.runs.words import training_texts
from raysys.settings import from_mapping
from tests.data.rc3_worlds import PARALLELS, SIZE, STRICTS, WEAKS, write_all

NETWORK = {"size": 16, "layers": 1, "decoder_layers": 1, "heads": 2, "feed_forward": 32, "vocabulary_size": 400, "max_tokens": 16}
VALUES = {
    "data": {"strict": ["strict"], "weak": ["weak"], "parallel": ["parallel"], "parallel_share": 2, "image": {"size": 16}},
    "model": {"network": {**NETWORK, "regions": 4, "region_size": SIZE, "patch": 8}},
    "training": {"steps": 4, "global_batch": 4, "workers": 1},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("rc3")
    write_all(folder)
    return str(folder)


@pytest.fixture
def opened(folder, tmp_path):
    def of(system: str = "rc3", **data):
        values = VALUES | {"system": system, "run": {"storage": str(tmp_path)}, "data": VALUES["data"] | {"folder": folder} | data}
        return open_rc3(from_mapping(Rc3Settings, values, "test"), lambda line: None)

    return of


def test_every_batch_has_its_share_of_each_stream(opened):
    run = opened()
    kinds = run.samples.kinds_of(run.plan.slice(1, 0, 1))
    assert np.bincount(kinds).tolist() == [1, 1, 2]
    assert (STRICT, WEAK, PARALLEL) == (0, 1, 2)
    assert run.settings.data.languages == ("de", "en", "fr", "ja")


@pytest.mark.parametrize(
    ("system", "kinds"), [("rc3", {0, 1, 2}), ("rc3-no-rxvtcl", {0, 2}), ("rc3-no-rxvtcl-xtcl", {0}), ("muniter", {0, 2}), ("uc2", {0})]
)
def test_a_system_is_given_the_streams_it_learns_from(opened, system, kinds):
    run = opened(system)
    assert set(run.samples.kinds_of(np.arange(len(run.samples))).tolist()) == kinds


def test_rivals_of_english_captions_begin_with_english(opened):
    """Strict samples without a caption in English, of which the world has some, are left out."""
    run = opened("muniter")
    assert len(run.samples.strict) == STRICTS // 2
    job = make_job(run, get_tokenizer(run))
    (payload,) = job.builder([Share(0, 0, np.array(run.samples.numbers(STRICT)))])
    from raysys.data.batches import BatchFinisher

    batch = BatchFinisher(run.settings.data.image, 1, job.builder)(payload)
    assert {run.settings.data.languages[place] for place in batch.first_languages.tolist()} == {"en"}


def test_every_system_is_asked_the_same_words(opened):
    texts = [training_texts(opened(system)) for system in ("rc3", "rc3-no-rxvtcl-xtcl", "vl-bart")]
    assert texts[0]
    assert texts[0] == texts[1] == texts[2]


def test_what_is_told_of_it(opened):
    lines = describe_rc3(opened())
    told = "\n".join(lines)
    assert (
        f"{STRICTS} pictures with translations, {WEAKS} pictures with texts that are not parallel, {2 * PARALLELS} parallel texts" in told
    )
    assert "losses mlm, mclm, itm, xtcl, rxvtcl, kl" in told
    assert "strict" in lines[-1]


def test_the_card_counts_samples_and_texts_of_every_stream(opened):
    run = opened()
    strict, weak, parallel = data_facts(run)
    assert (strict.name, weak.name, parallel.name) == ("strict", "weak", "parallel")
    assert (parallel.samples["en"], parallel.captions["en"]) == (PARALLELS, 2 * PARALLELS)
    assert sum(parallel.samples.values()) == 2 * PARALLELS
    assert strict.samples["ja"] == STRICTS


@pytest.mark.parametrize("system", ["rc3", "m3p", "memad", "vl-bart"])
def test_its_needs_are_measured_on_noise(opened, system):
    run = opened(system)
    assert any(line.strip().startswith("optimizer state") for line in estimate_run(run))
    assert outlook_of(run.settings).longest(run) == NETWORK["max_tokens"]


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"weak": []}, r"data\.weak: the system rc3 learns from this stream; name a folder"),
        ({"languages": ["en", "de", "sw"]}, r"data\.languages: no stream has texts in sw; languages there: de, en, fr, ja"),
        ({"image": {"size": 20}}, r"data\.image\.size: pictures of 20 pixels cannot be cut into patches of 8"),
        ({"parallel": ["nowhere"]}, r"nowhere"),
    ],
)
def test_what_is_refused(opened, changed, error):
    with pytest.raises(UserError, match=error):
        opened(**changed)


def test_a_rival_that_needs_regions_says_so(opened):
    with pytest.raises(UserError, match=r"data\.strict_visual: the system uc2 learns from regions; set it to regions or combined"):
        opened("uc2", strict_visual="patches")
