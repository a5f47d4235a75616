"""Index, inspect or validate data sets of tar shards.

    python jobs/shards.py index    <folder or s3://…>   read every byte once, write manifest.parquet beside the shards
    python jobs/shards.py inspect  <folder or s3://…>   counts by language, and a contact sheet of samples with captions
    python jobs/shards.py validate <folder or s3://…>   one line per fault; exit code 1 if there is any

Each acts on every folder of shards at or beneath the one that is given.
"""

import argparse
import time
from collections.abc import Callable

from raysys.errors import DONE, FAILED, run_program
from raysys.shards.inspect import contact_sheet, megabytes, summarise
from raysys.shards.manifest import Manifest, find_datasets, load_or_build, notes
from raysys.shards.tar import ShardError
from raysys.shards.validate import validate
from raysys.storage import Storage, StorageSettings, join


def index(options: argparse.Namespace, storage: Storage) -> int:
    """Write a new manifest for every data set; a damaged one does not keep the others from theirs."""
    code = DONE
    for folder in find_datasets(storage, options.uri):
        start = time.monotonic()
        try:
            manifest = Manifest.build(storage, folder, options.on_damage)
        except ShardError as error:
            print(f"{folder}: not indexed: {error}", flush=True)
            code = FAILED
            continue
        seconds = time.monotonic() - start
        for message in notes(manifest):
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
    manifests = [load_or_build(storage, folder) for folder in find_datasets(storage, options.uri)]
    for manifest in manifests:
        print("\n".join(summarise(manifest).lines()), end="\n\n")
    sheet = contact_sheet(storage, manifests, options.samples).encode()
    target = options.out or join(options.uri, "contact-sheet.html")
    storage.write(target, sheet)
    print(f"contact sheet: {target} ({megabytes(len(sheet))})")
    return DONE


def validate_all(options: argparse.Namespace, storage: Storage) -> int:
    """Print a line per fault."""
    faults = 0
    folders = find_datasets(storage, options.uri)
    for folder in folders:
        for fault in validate(storage, folder):
            print(join(folder, str(fault)), flush=True)
            faults += 1
    sets = f"{len(folders)} data set{'s' if len(folders) > 1 else ''}"
    print(f"{faults} fault{'s' if faults > 1 else ''} in {sets}" if faults else f"no faults in {sets}")
    return FAILED if faults else DONE


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line and run the chosen action; returns the exit code."""
    parser = argparse.ArgumentParser(prog="jobs/shards.py", description="Index, inspect or validate data sets of tar shards.")
    actions = parser.add_subparsers(dest="action", required=True)

    def action(name: str, run: Callable[[argparse.Namespace, Storage], int], text: str) -> argparse.ArgumentParser:
        command = actions.add_parser(name, help=text, description=text)
        command.add_argument("uri", help="a folder or s3://bucket/prefix; every folder of shards at or beneath it is taken")
        command.add_argument("--storage.endpoint", dest="endpoint", help="URL of the S3 endpoint (default: AWS_ENDPOINT_URL)")
        command.add_argument("--storage.region", dest="region", help="S3 region (default: AWS_REGION)")
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
    action("validate", validate_all, "Print one line per fault; exit code 1 if there is any.")
    options = parser.parse_args(arguments)
    return options.run(options, Storage(StorageSettings(endpoint=options.endpoint, region=options.region)))


def _at_least_one(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of samples, 1 or more")
    return int(text)


if __name__ == "__main__":
    run_program(main)
