"""Index, inspect, count, validate or repair data sets of tar shards.

    python jobs/shards.py index    <folder or s3://…>   read every byte once, write manifest.parquet beside the shards
    python jobs/shards.py inspect  <folder or s3://…>   counts by language, and a contact sheet of samples with captions
    python jobs/shards.py pairs    <folder or s3://…>   how many samples each two languages share: a table, and language-pairs.json
    python jobs/shards.py validate <folder or s3://…>   one line per fault; exit code 1 if there is any
    python jobs/shards.py repair   <folder or s3://…> --out <folder or s3://…>   a clean copy, and a list of what was left out

Each acts on every folder of shards at or beneath the one that is given. Tars of other tools are described by --layout.* options
(``--layout.caption_member txt --layout.language en`` for img2dataset and open_clip), or by the data.layout of a --config file; without
either, inspect, pairs, validate and repair go by what index wrote down.
"""

import argparse
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pydantic

from raysys.errors import DONE, FAILED, run_program
from raysys.settings import Settings, from_mapping, load
from raysys.shards.inspect import contact_sheet, megabytes, summarise
from raysys.shards.language_pairs import choose_languages, count_pairs
from raysys.shards.layout import OWN_FORM, Layout
from raysys.shards.manifest import Manifest, find_datasets, list_shards, load_or_build, notes
from raysys.shards.repair import RECORD, repair
from raysys.shards.tar import ShardError
from raysys.shards.validate import validate
from raysys.storage import Storage, StorageSettings, join

_WORTH_PROCESSES = 1_000_000_000
"""Bytes of a data set from which on starting processes takes less time than it saves."""


class _AnySettings(Settings):
    """The settings of a run, of which only data.layout is of use here."""

    model_config = pydantic.ConfigDict(extra="allow")


def index(options: argparse.Namespace, storage: Storage) -> int:
    """Write a new manifest for every data set; a damaged one does not keep the others from theirs."""
    code = DONE
    for folder in find_datasets(storage, options.uri):
        start = time.monotonic()
        try:
            size = sum(entry.size for entry in list_shards(storage, folder))
            processes = os.cpu_count() or 1 if size > _WORTH_PROCESSES else 0
            manifest = Manifest.build(storage, folder, options.on_damage, options.layout or OWN_FORM, processes)
        except ShardError as error:
            print(f"{folder}: not indexed: {error}", flush=True)
            code = FAILED
            continue
        seconds = time.monotonic() - start
        for message in notes(manifest, storage):
            print(message)
        manifest.save(storage)
        total = sum(manifest.shards.values())
        print(
            f"{folder}: {len(manifest.shards)} shards, {len(manifest)} samples, {total} bytes, {seconds:.1f} s"
            f" ({total / 1e6 / max(seconds, 1e-9):.0f} MB/s), fingerprint {manifest.fingerprint}",
            flush=True,
        )
    return code


def inspect(options: argparse.Namespace, storage: Storage) -> int:
    """Print what data sets hold and write the contact sheet."""
    manifests = [load_or_build(storage, folder, layout=options.layout) for folder in find_datasets(storage, options.uri)]
    for manifest in manifests:
        print("\n".join(summarise(manifest).lines()), end="\n\n")
    sheet = contact_sheet(storage, manifests, options.samples).encode()
    target = options.out or join(options.uri, "contact-sheet.html")
    storage.write(target, sheet)
    print(f"contact sheet: {target} ({megabytes(len(sheet))})")
    return DONE


def pairs(options: argparse.Namespace, storage: Storage) -> int:
    """Print how many samples each two languages share, and write the same as json."""
    languages = choose_languages(options.languages)
    found = [
        count_pairs(load_or_build(storage, folder, layout=options.layout), languages) for folder in find_datasets(storage, options.uri)
    ]
    for counted in found:
        print("\n".join(counted.lines()), end="\n\n")
    target = options.out or join(options.uri, "language-pairs.json")
    storage.write(target, json.dumps([counted.record() for counted in found]).encode())
    print(f"the same as json: {target}")
    return DONE


def validate_all(options: argparse.Namespace, storage: Storage) -> int:
    """Print a line per fault."""
    causes: Counter[str] = Counter()
    folders = find_datasets(storage, options.uri)
    for folder in folders:
        for fault in validate(storage, folder, options.layout):
            print(join(folder, str(fault)), flush=True)
            causes[fault.cause] += 1
    print(f"{_counted(causes)} in {len(folders)} data set{'s' if len(folders) > 1 else ''}")
    return FAILED if causes else DONE


def repair_all(options: argparse.Namespace, storage: Storage) -> int:
    """Write clean copies beneath `--out`; done when they are complete and every fault is listed."""
    for folder in find_datasets(storage, options.uri):
        target = join(options.out, folder.removeprefix(join(options.uri)))
        records = repair(storage, folder, target, options.layout)
        causes = Counter(fault.cause for record in records for fault in record.faults)
        kept, recovered = sum(record.samples for record in records), sum(record.recovered for record in records)
        print(
            f"{folder}: {kept} samples of {len(records)} shards kept in {target} ({recovered} from behind damage); {_counted(causes)}"
            + (f", listed in {join(target, RECORD)}" if causes else ""),
            flush=True,
        )
    return DONE


def _counted(causes: Counter[str]) -> str:
    """Faults in all, and by cause."""
    total = sum(causes.values())
    told = ", ".join(f"{cause} {count}" for cause, count in causes.most_common())
    return f"{total} fault{'s' if total > 1 else ''} ({told})" if total else "no faults"


def _layout(options: argparse.Namespace) -> Layout | None:
    """From --config and --layout.*; None where neither is given."""
    values: dict[str, Any] = {}
    if options.config:
        data = load(_AnySettings, options.config).model_dump().get("data")
        values = dict(data.get("layout") or {}) if isinstance(data, dict) else {}
    values |= {name: getattr(options, f"layout.{name}") for name in Layout.model_fields if getattr(options, f"layout.{name}") is not None}
    return from_mapping(Layout, values, f"{options.config or 'command line'}: data.layout") if values or options.config else None


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and run the chosen action; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="jobs/shards.py", description="Index, inspect, count, validate or repair data sets of tar shards."
    )
    actions = parser.add_subparsers(dest="action", required=True)

    def action(name: str, run: Callable[[argparse.Namespace, Storage], int], text: str) -> argparse.ArgumentParser:
        command = actions.add_parser(name, help=text, description=text)
        command.add_argument("uri", help="a folder or s3://bucket/prefix; every folder of shards at or beneath it is taken")
        command.add_argument("--storage.endpoint", dest="endpoint", help="URL of the S3 endpoint (default: AWS_ENDPOINT_URL)")
        command.add_argument("--storage.region", dest="region", help="S3 region (default: AWS_REGION)")
        command.add_argument("--config", help="settings file of a run, whose data.layout says where captions and images lie")
        for field, described in Layout.model_fields.items():
            command.add_argument(
                f"--layout.{field}", f"--layout.{field.replace('_', '-')}", dest=f"layout.{field}", help=described.description
            )
        command.set_defaults(run=run)
        return command

    command = action("index", index, "Read every byte once and write manifest.parquet beside the shards.")
    command.add_argument(
        "--on-damage",
        choices=("raise", "skip"),
        default="raise",
        help="skip: keep the samples that lie before the damage in a shard (default: raise)",
    )
    command = action("inspect", inspect, "Print counts by language and write a contact sheet of samples with their captions.")
    command.add_argument("--out", help="where the contact sheet goes (default: contact-sheet.html in the folder)")
    command.add_argument("--samples", type=_at_least_one, default=48, help="samples shown of every data set (default: 48)")
    command = action("pairs", pairs, "Print how many samples each two languages share; on the diagonal, how many each language has.")
    command.add_argument("--languages", nargs="+", default=(), help="which languages, and in what order (default: all that are there)")
    command.add_argument("--out", help="where the counts go as json (default: language-pairs.json in the folder)")
    action("validate", validate_all, "Print one line per fault; exit code 1 if there is any.")
    command = action("repair", repair_all, "Write a clean copy of every data set: usable samples only, what was left out is listed.")
    command.add_argument("--out", required=True, help="folder or s3://… of the copy; faultless shards in it are not written again")
    options = parser.parse_args(arguments)
    options.layout = _layout(options)
    return options.run(options, Storage(StorageSettings(endpoint=options.endpoint, region=options.region)))


def _at_least_one(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of samples, 1 or more")
    return int(text)


if __name__ == "__main__":
    run_program(main)
