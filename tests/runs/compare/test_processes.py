"""Commands side by side: failures are kept and told, Ctrl-C ends all of them, logs are whole."""

import os
import re
import signal
import sys
import threading
import time
import uuid

import pytest

from raysys.runs.compare.processes import Row, explain, fitting, run_rows
from raysys.storage import Storage, join
from raysys.training.settings import TrainingSettings


def python(name, folder, source, log=None):
    return Row(name, [sys.executable, "-c", source], log or str(folder / f"{name}.log"))


def test_one_failure_does_not_stop_the_others(tmp_path):
    rows = [
        python("first", tmp_path, "print('one')"),
        python("second", tmp_path, "import sys; print('before'); print('why', file=sys.stderr); sys.exit(3)"),
        python("third", tmp_path, "import os; print(os.environ['GIVEN'])"),
        python("fourth", tmp_path, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"),
    ]
    lines = []
    failed = run_rows(rows, 1, {"GIVEN": "three"}, Storage(), lines.append)
    assert [re.sub(r" \d+ s\b.*", "", line) for line in lines] == [
        "1/4 first: done in",
        "2/4 second: failed after",
        "3/4 third: done in",
        "4/4 fourth: failed after",
    ]
    assert [(one.row.name, one.code, one.tail) for one in failed] == [("second", 3, "before\nwhy"), ("fourth", -9, "")]
    assert (tmp_path / "third.log").read_text().splitlines()[-1] == "three"
    told = explain(failed)
    assert told.startswith("2 runs did not end well; the same command tries again:\n")
    assert f"second (exit code 3), {tmp_path}/second.log\n    before\n    why" in told
    assert "fourth (killed by signal 9)" in told


def test_logs_grow_and_their_end_is_of_the_last_attempt(tmp_path):
    row = python("x", tmp_path, "import sys; print('long ' * 20000); sys.exit('because')")
    run_rows([row], 1, {}, Storage(), lambda line: None)
    (failed,) = run_rows([python("x", tmp_path, "import sys; sys.exit('again')")], 1, {}, Storage(), lambda line: None)
    assert failed.tail == "again"
    text = (tmp_path / "x.log").read_text()
    assert "because" in text
    assert text.count(f"$ {sys.executable} -c") == 2


def test_as_many_at_a_time_as_asked(tmp_path):
    source = (
        "import os, time, pathlib; p = pathlib.Path(os.environ['PLACE'], str(os.getpid())); p.touch(); time.sleep(0.4); "
        "print(len(list(p.parent.iterdir()))); time.sleep(0.4); p.unlink()"
    )
    (tmp_path / "running").mkdir()
    rows = [python(str(number), tmp_path, source) for number in range(4)]
    assert run_rows(rows, 2, {"PLACE": str(tmp_path / "running")}, Storage(), lambda line: None) == []
    seen = [int((tmp_path / f"{number}.log").read_text().split()[-1]) for number in range(4)]
    assert max(seen) == 2


@pytest.fixture
def heeds_ctrl_c():
    """Where the tests themselves run in the background, a shell has them ignore it, and what they start too."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("heeds_ctrl_c")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_the_processes_and_lets_them_tidy_up(tmp_path, number):
    source = (
        "import pathlib, time\n"
        "try:\n    pathlib.Path('{0}').touch(); time.sleep(60)\n"
        "except KeyboardInterrupt:\n    time.sleep(0.3); pathlib.Path('{1}').touch()"
    )
    begun, tidied = [tmp_path / f"begun-{i}" for i in range(2)], [tmp_path / f"tidied-{i}" for i in range(2)]
    rows = [python(str(i), tmp_path, source.format(begun[i], tidied[i])) for i in range(2)] + [python("never", tmp_path, "")]

    def interrupt():
        deadline = time.monotonic() + 30
        while not all(path.exists() for path in begun) and time.monotonic() < deadline:
            time.sleep(0.05)
        os.kill(os.getpid(), number)

    thread = threading.Thread(target=interrupt)
    before = signal.getsignal(signal.SIGTERM)
    thread.start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_rows(rows, 2, {}, Storage(), lambda line: None)
    thread.join()
    assert time.monotonic() - started < 30
    assert all(path.exists() for path in tidied)
    assert not (tmp_path / "never.log").exists()
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.usefixtures("heeds_ctrl_c")
def test_processes_that_do_not_heed_ctrl_c_are_ended(tmp_path, monkeypatch):
    monkeypatch.setattr("raysys.runs.compare.processes.PATIENCE", 0.3)
    source = (
        "import os, pathlib, signal, time\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\npathlib.Path('{}').write_text(str(os.getpid()))\n"
    )
    source = source.format(tmp_path / "id") + "time.sleep(60)"

    def interrupt():
        while not (tmp_path / "id").exists() or not (tmp_path / "id").read_text():
            time.sleep(0.05)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        run_rows([python("deaf", tmp_path, source)], 1, {}, Storage(), lambda line: None)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "id").read_text()), 0)


def test_logs_of_remote_runs_are_stored_beside_them(tmp_path, object_store):
    log = join(object_store.bucket_uri, uuid.uuid4().hex, "x.log")
    (failed,) = run_rows([python("x", tmp_path, "import sys; print('hello'); sys.exit(1)", log)], 1, {}, Storage(), lambda line: None)
    assert Storage().read(log).decode().endswith("hello\n")
    assert failed.tail == "hello"


@pytest.mark.parametrize(
    ("training", "rows", "cpus", "gpus", "room"),
    [
        ({"workers": 1}, 27, 2, 0, 1),  # a worker, and one CPU to read the data
        ({"workers": 1}, 27, 16, 0, 8),
        ({"workers": 1}, 3, 16, 0, 3),
        ({"workers": 4, "cpus_per_worker": 2}, 9, 20, 0, 2),
        ({"workers": 4}, 9, 2, 0, 1),  # the run itself says what it lacks
        ({"workers": 2, "gpu": True}, 9, 100, 5, 2),
        ({"workers": "2..8"}, 9, 6, 0, 3),
    ],
)
def test_how_many_runs_have_room(training, rows, cpus, gpus, room):
    assert fitting(TrainingSettings(**training), rows, cpus, gpus) == room
