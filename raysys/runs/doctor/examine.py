"""All checks, on the driver and from every node of the Ray cluster."""

import os
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from raysys.errors import UserError
from raysys.runs.doctor import checks
from raysys.runs.doctor.findings import Finding
from raysys.runs.doctor.node import NodeFacts, gather
from raysys.runs.doctor.storage import check_storage
from raysys.storage import Storage, is_remote
from raysys.training.resources import check_address
from raysys.training.settings import RaySettings, TrainingSettings

ANSWER_SECONDS = 180
"""For how long a node is waited for."""


@dataclass(frozen=True)
class Patient:
    """What is examined."""

    folders: tuple[str, ...]
    """Of shards: absolute paths or URIs."""
    run_storage: str | None
    """Where runs are kept; None: nothing is written."""
    storage: Storage
    training: TrainingSettings
    ray: RaySettings
    tested: Mapping[str, str]
    """Versions that were tested, by library; empty where they are not known."""

    @property
    def local_folders(self) -> tuple[str, ...]:
        """Folders on disk that grow during a run."""
        return (self.run_storage,) if self.run_storage and not is_remote(self.run_storage) else ()


def examine(patient: Patient, log: Callable[[Finding], None]) -> bool:
    """Check the driver, start or join Ray, and check every node; findings go to `log` as they come.

    Returns:
        Whether nothing failed.
    """
    levels: Counter[str] = Counter()

    def note(findings: list[Finding]) -> None:
        for finding in findings:
            levels[finding.level] += 1
            log(finding)

    driver = gather(patient.local_folders)
    note(_of_machine("driver", driver, driver, patient))
    note(check_storage("driver", patient.storage, patient.folders, patient.run_storage))
    note(_cluster(patient, driver, note))
    return levels["failed"] == 0


def _of_machine(node: str, facts: NodeFacts, driver: NodeFacts, patient: Patient) -> list[Finding]:
    return [
        checks.check_python(node, facts.python, driver.python),
        checks.check_versions(node, facts.libraries, driver.libraries, patient.tested),
        *(checks.check_disk(node, "disk", folder, disk) for folder, disk in facts.disks.items()),
    ]


def _cluster(patient: Patient, driver: NodeFacts, note: Callable[[list[Finding]], None]) -> list[Finding]:
    """Findings about Ray as a whole; those of single nodes go to `note`."""
    import ray

    from raysys.training.trainer import start_ray

    try:
        check_address(os.environ.get("RAY_ADDRESS", ""))
    except UserError as error:
        return [Finding("failed", "cluster", "ray", str(error))]
    try:
        start_ray(patient.ray, patient.training)
    except UserError as error:
        note([Finding("failed", "cluster", "workers", str(error))])
        if not ray.is_initialized():
            return []
    except (ConnectionError, RuntimeError, ray.exceptions.RayError) as error:
        address = os.environ.get("RAY_ADDRESS", "local")
        first = (str(error).strip() or type(error).__name__).splitlines()[0]
        return [Finding("failed", "cluster", "ray", f"cannot use {address}: {first}", "check RAY_ADDRESS, and that the head runs there")]
    alive = [node for node in ray.nodes() if node["Alive"]]
    names = _names(alive)
    running = {name: _start(node, _examine_node, name, patient, _spill_folder(node)) for name, node in zip(names, alive, strict=True)}
    found = [checks.check_workers([node["Resources"] for node in alive], patient.training)]
    dead = sum(not node["Alive"] for node in ray.nodes())
    if dead:
        found.append(Finding("warning", "cluster", "nodes", f"{dead} were lost since the cluster started", "look at ray status"))
    for name, node in zip(names, alive, strict=True):
        try:
            facts, of_storage = ray.get(running[name], timeout=ANSWER_SECONDS)
            before = time.time()
            there = ray.get(_start(node, time.time), timeout=ANSWER_SECONDS)
            after = time.time()
        except ray.exceptions.GetTimeoutError:
            found.append(
                Finding("failed", name, "ray", f"no answer within {ANSWER_SECONDS} s", "look at the node's logs, and at ray status")
            )
            continue
        except ray.exceptions.RayError as error:
            last = str(error).strip().splitlines()[-1]
            found.append(Finding("failed", name, "ray", f"the checks cannot run there: {last}", "give all nodes the same environment"))
            continue
        note(_of_machine(name, facts, driver, patient))
        resources = node["Resources"]
        workers = min(patient.training.max_workers, int(resources.get("CPU", 0)) // patient.training.cpus_per_worker)
        note([checks.check_memory(name, facts.memory, workers)])
        note([checks.check_object_store(name, resources.get("object_store_memory", 0), facts.shared_memory)])
        note([checks.check_clock(name, "the driver", checks.difference_of_clocks(there, before, after))])
        note(of_storage)
    return found


def _names(nodes: list[dict[str, Any]]) -> list[str]:
    """How to call nodes: by their address, and by their id too where several have one address."""
    shared = Counter(node["NodeManagerAddress"] for node in nodes)
    return [
        node["NodeManagerAddress"] if shared[node["NodeManagerAddress"]] == 1 else f"{node['NodeManagerAddress']}/{node['NodeID'][:6]}"
        for node in nodes
    ]


def _spill_folder(node: dict[str, Any]) -> str:
    """Where a node puts objects that its memory cannot hold: the folder of Ray's session, unless Ray was told otherwise."""
    return str(Path(node["RayletSocketName"]).parents[1])


def _start(node: dict[str, Any], function: Callable, *arguments: Any) -> Any:
    """Begin a call on a certain node."""
    import ray
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    there = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
    return ray.remote(lambda: function(*arguments)).options(num_cpus=0, scheduling_strategy=there, max_retries=0).remote()


def _examine_node(name: str, patient: Patient, spill_folder: str) -> tuple[NodeFacts, list[Finding]]:
    """What a node tells of itself, asked there."""
    facts = gather((*patient.local_folders, spill_folder))
    return facts, check_storage(name, patient.storage, patient.folders, patient.run_storage)
