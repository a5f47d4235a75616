"""From facts to findings: pure functions."""

from collections.abc import Mapping, Sequence

from raysys.errors import UserError
from raysys.runs.doctor.findings import Finding, size
from raysys.runs.doctor.node import Disk
from raysys.training.resources import check_cpus, check_gpus
from raysys.training.settings import TrainingSettings

GIB = 1 << 30
WORKER_MEMORY = 2 * GIB
"""What a training process takes before the networks: Ray, torch, DeepSpeed."""
LEAST_MEMORY = GIB
LITTLE_DISK, LEAST_DISK = 10 * GIB, GIB
FULL = 0.95
"""Part of a disk in use from which on Ray spills no more objects to it."""
CLOCK_WARNING, CLOCK_FAILED = 30.0, 600.0
"""Seconds; S3 refuses signatures that are off by 15 minutes."""


def read_constraints(text: str) -> dict[str, str]:
    """Versions by name in the ``name==version`` lines of a constraints file."""
    lines = (line.partition("#")[0].strip().partition("==") for line in text.splitlines())
    return {name.strip().lower(): version.strip() for name, sign, version in lines if sign}


def check_versions(node: str, found: Mapping[str, str], driver: Mapping[str, str], tested: Mapping[str, str]) -> Finding:
    """Versions on a node beside those of the driver, which must be equal, and those that were tested, which should be."""
    differing = [f"{name} {version} but {driver[name]} on the driver" for name, version in found.items() if version != driver[name]]
    missing = [name for name, version in found.items() if version == "none"]
    untested = [f"{name} {found[name]} for {tested[name]}" for name in found if name in tested and _public(found[name]) != tested[name]]
    if missing:
        return Finding("failed", node, "versions", f"not installed: {', '.join(missing)}", "install the project's environment there")
    if differing:
        return Finding("failed", node, "versions", "; ".join(differing), "give all nodes the same environment")
    if untested:
        advice = "pip install --constraint constraints.txt gives what was tested"
        return Finding("warning", node, "versions", ", ".join(untested), advice)
    return Finding("ok", node, "versions", ", ".join(f"{name} {version}" for name, version in found.items()))


def _public(version: str) -> str:
    """A version without what a builder added, such as +cu128."""
    return version.partition("+")[0]


def check_python(node: str, found: str, driver: str) -> Finding:
    """Ray wants the same Python on all nodes, down to the last number."""
    if found != driver:
        return Finding("failed", node, "python", f"{found}, but {driver} on the driver", "give all nodes the same Python")
    return Finding("ok", node, "python", found)


def check_workers(nodes: Sequence[Mapping[str, float]], training: TrainingSettings) -> Finding:
    """Whether the workers, and one CPU for the data, fit into the nodes' resources (``CPU``, ``GPU`` as Ray counts them)."""
    cpus, gpus = (int(sum(node.get(kind, 0) for node in nodes)) for kind in ("CPU", "GPU"))
    try:
        check_cpus(cpus, training)
        check_gpus(gpus, training)
    except UserError as error:
        return Finding("failed", "cluster", "workers", str(error))
    places = sum(int(node.get("CPU", 0)) // training.cpus_per_worker for node in nodes)
    if places < training.min_workers:
        found = f"{training.min_workers} workers of {training.cpus_per_worker} CPUs, but the nodes have room for {places} of them"
        return Finding("failed", "cluster", "workers", found, "lower training.cpus_per_worker, or use larger nodes")
    room = f"{cpus} CPUs and {gpus} GPUs on {len(nodes)} nodes"
    found = f"{training.workers} workers of {training.cpus_per_worker} CPU, and CPUs for the data, in {room}"
    return Finding("ok", "cluster", "workers", found)


def check_memory(node: str, free: int, workers: int) -> Finding:
    """Memory for the training workers that may be put on a node."""
    wanted = workers * WORKER_MEMORY + LEAST_MEMORY
    advice = "end other processes, use fewer workers a node, or nodes with more memory"
    found = f"{size(free)} free"
    if free < LEAST_MEMORY:
        return Finding("failed", node, "memory", found, advice)
    if free < wanted:
        return Finding("warning", node, "memory", f"{found}, {size(wanted)} are advisable for {workers} workers", advice)
    return Finding("ok", node, "memory", found)


def check_object_store(node: str, object_store: float, shared_memory: int | None) -> Finding:
    """Whether Ray's object store (bytes) fits into /dev/shm (bytes; None: there is none)."""
    found = f"{size(object_store)}, {'no /dev/shm' if shared_memory is None else f'{size(shared_memory)} in /dev/shm'}"
    if shared_memory is None or shared_memory < object_store:
        advice = "in a container give --shm-size (Kubernetes: an emptyDir of medium Memory), or Ray a smaller object store"
        return Finding("warning", node, "object store", f"{found}: it does not fit and would lie on disk", advice)
    return Finding("ok", node, "object store", found)


def check_disk(node: str, what: str, folder: str, disk: Disk) -> Finding:
    """Room on the disk of a folder."""
    used = 1 - disk.free / disk.total if disk.total else 1.0
    found = f"{size(disk.free)} of {size(disk.total)} free at {folder}"
    if disk.free < LEAST_DISK or used > FULL:
        return Finding("failed", node, what, f"{found} ({used:.0%} used)", "make room: Ray spills nothing to a disk that is 95% full")
    if disk.free < LITTLE_DISK:
        return Finding("warning", node, what, found, f"{size(LITTLE_DISK)} are advisable")
    return Finding("ok", node, what, found)


def check_clock(node: str, beside: str, difference: float) -> Finding:
    """A node's clock beside another one: seconds by which it is ahead at least (negative: behind)."""
    found = f"{abs(difference):.0f} s {'ahead of' if difference > 0 else 'behind'} {beside}"
    advice = "set the clock (NTP): stores refuse signatures that are off by 15 minutes, and lines of logs get out of order"
    if abs(difference) >= CLOCK_FAILED:
        return Finding("failed", node, "clock", found, advice)
    if abs(difference) >= CLOCK_WARNING:
        return Finding("warning", node, "clock", found, advice)
    return Finding("ok", node, "clock", f"as {beside}'s, to the second" if abs(difference) < 1 else found)


def difference_of_clocks(there: float, before: float, after: float) -> float:
    """Seconds that a clock is certainly ahead of ours, which told `before` and `after` the question; negative: behind; 0: may be equal."""
    return there - after if there > after else there - before if there < before else 0.0
