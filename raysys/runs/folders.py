"""Whole folders between this machine's disk and storage."""

from pathlib import Path

from raysys.storage import Storage, join


def upload_folder(storage: Storage, folder: Path, uri: str, mark: str) -> None:
    """Copy all files beneath a local folder to `uri`. The file `mark`, by which the folder counts as whole, is the last to arrive."""
    storage.delete(join(uri, mark))
    for file in sorted((path for path in folder.rglob("*") if path.is_file()), key=lambda path: (path == folder / mark, path)):
        storage.upload(str(file), join(uri, *file.relative_to(folder).parts))


def download_folder(storage: Storage, uri: str, folder: Path) -> None:
    """Copy all files beneath `uri` to a local folder."""
    for entry in storage.list(uri):
        target = folder / entry.uri[len(join(uri)) + 1 :]
        target.parent.mkdir(parents=True, exist_ok=True)
        storage.download(entry.uri, str(target))
