"""What a person sees: figures, what workers tell, and word of it when they tell nothing; and what Ray's own metrics have."""

import re
import time
import urllib.request
from typing import Any

import pytest

from raysys.storage import Storage
from raysys.training.gauges import RayGauges
from raysys.training.progress import ProgressBoard, ProgressDisplay, explain_silence, figures_of
from raysys.training.run_folder import RunFolder
from raysys.training.watchdog import Standstill

NOTE = Standstill(1, 2, 12, "data", 600.0, False, "loader.py:7 in read", "/run/watchdog/x.txt")


@pytest.fixture
def board(ray_session) -> Any:
    board = ProgressBoard.remote()  # type: ignore[attr-defined]
    yield board
    ray_session.kill(board)


def test_a_board_hands_out_what_it_was_given_once(ray_session, board):
    ray_session.get([board.put.remote({"step": 1}), board.tell.remote("a profile"), board.put.remote({"step": 2})])
    news = ray_session.get(board.take.remote())
    assert (news.lines, news.texts) == ([{"step": 1}, {"step": 2}], ["a profile"])
    assert news.silent < 5
    time.sleep(0.2)
    again = ray_session.get(board.take.remote())
    assert (again.lines, again.texts) == ([], [])
    assert again.silent >= news.silent + 0.2
    ray_session.get(board.beat.remote())
    assert ray_session.get(board.take.remote()).silent < again.silent


def test_standstills_are_told_and_kept_until_the_next_group_begins(ray_session, board):
    ray_session.get(board.stands_still.remote(NOTE))
    assert ray_session.get(board.still.remote()) == [NOTE]
    assert ray_session.get(board.take.remote()).texts == [str(NOTE)]
    assert ray_session.get(board.still.remote()) == [NOTE]
    ray_session.get(board.begin.remote())
    assert ray_session.get(board.still.remote()) == []


def test_texts_are_shown_as_lines(ray_session, board, capsys):
    with ProgressDisplay(board, 10, "shapes", time.perf_counter()):
        ray_session.get([board.stands_still.remote(NOTE), board.put.remote({"step": 10, "train/loss": 2.5})])
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"shapes: {NOTE}"
    assert shown[1].startswith("shapes: first step after ")
    assert shown[2] == "shapes: step 10/10  loss 2.5"


def test_texts_are_shown_above_the_bar(ray_session, board, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    long = "[rank 1] " + "a" * 300
    with ProgressDisplay(board, 10, "shapes", time.perf_counter()):
        ray_session.get(board.tell.remote(long))
    shown = capsys.readouterr().out
    assert f"shapes: {long}\n" in shown, "whole, and its brackets are no markup"


def test_silence_is_told_at_growing_distances_until_there_is_a_word():
    display = ProgressDisplay(None, 10, "shapes", time.perf_counter(), lambda: "there is no room")
    told = {silent: display._silence_told(silent) for silent in (0, 59, 60.5, 61, 120, 121.5, 200, 243, 244, 5, 59.5, 62, 63)}
    assert [silent for silent, texts in told.items() if texts] == [60.5, 121.5, 243, 62]
    assert told[60.5] == ["no word from the training workers for 60 s: there is no room"]


def test_silence_is_shown(ray_session, board, capsys):
    ray_session.get(board.beat.remote())
    with ProgressDisplay(board, 10, "shapes", time.perf_counter(), lambda: "there is no room", silence=0.1):
        time.sleep(1.2)
    assert re.search(r"shapes: no word from the training workers for \d s: there is no room\n", capsys.readouterr().out)


def test_the_reason_of_silence_names_what_is_needed_and_free(ray_session):
    told = explain_silence(6, {"CPU": 2, "GPU": 1})
    assert re.match(r"6 workers together need 12 CPU, 6 GPU; free in Ray now: [0-9.]+ of 4 CPU, 0 of \d+ GPU\. ", told)


def test_a_line_in_a_few_words():
    line = {"step": 3, "train/loss": 2.34567, "train/samples_per_second": 1234.5, "data/wait_fraction": 0.0, "train/grad_norm": 1.0}
    assert figures_of(line) == "loss 2.346  samples/s 1234  waiting for data 0"


class Worker:
    """A worker's gauges."""

    def __init__(self, rank: int, run: str):
        self.gauges = RayGauges(RunFolder(Storage(), f"s3://bucket/runs/{run}"), rank)

    def add(self, line: dict[str, Any]) -> None:
        self.gauges.add(line)


def test_metrics_are_gauges_of_ray(ray_session):
    """As the Prometheus endpoint of the node has them; Ray reports every ten seconds."""

    workers = [ray_session.remote(num_cpus=0)(Worker).remote(rank, "shapes") for rank in range(2)]
    for rank, worker in enumerate(workers):
        line = {"step": 12 + rank, "train/loss": 2.5, "train/grad_norm": None, "data/wait_fraction": 0.25, "eval/text_to_image_R@1": 0.5}
        ray_session.get([worker.add.remote({"step": 1, "train/loss": 9.0}), worker.add.remote(line)])
    wanted = {
        (f"ray_raysys_{name}", str(rank)): value
        for rank in range(2)
        for name, value in {
            "train_step": 12.0 + rank,
            "train_loss": 2.5,
            "data_wait_fraction": 0.25,
            "eval_text_to_image_r_1": 0.5,
        }.items()
    }
    deadline = time.monotonic() + 60
    while (found := exported(ray_session)) != wanted and time.monotonic() < deadline:
        time.sleep(0.5)
    assert found == wanted


@pytest.mark.slow
def test_gauges_stay_between_lines_that_are_far_apart(ray_session):
    worker = ray_session.remote(num_cpus=0)(Worker).remote(0, "rare")
    ray_session.get(worker.add.remote({"step": 1}))
    seen = []
    for _ in range(45):
        time.sleep(1)
        seen.append(bool(exported(ray_session, "rare")))
    assert all(seen[seen.index(True) :])
    assert seen.index(True) < 15


def exported(ray_session: Any, run: str = "shapes") -> dict[tuple[str, str], float]:
    """(name, rank) → value of the gauges of a run."""
    (node,) = ray_session.nodes()
    with urllib.request.urlopen(f"http://{node['NodeManagerAddress']}:{node['MetricsExportPort']}/metrics", timeout=10) as answer:
        lines = answer.read().decode().splitlines()
    found = {}
    for line in lines:
        if match := re.match(r"(ray_raysys_\w+)\{(.*)\} (\S+)$", line):
            tags = dict(re.findall(r'(\w+)="([^"]*)"', match[2]))
            if tags["run"] == run:
                found[match[1], tags["rank"]] = float(match[3])
    return found
