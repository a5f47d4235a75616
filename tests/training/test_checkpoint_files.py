"""The form of checkpoints' files: read by others' readers, in any stretches, and never with a wrong byte."""

import random
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from torch import Tensor

from raysys.errors import UserError
from raysys.storage import Storage, StorageSettings, join
from raysys.training import checkpoint_files
from raysys.training.checkpoint_files import CheckpointReader, Damaged, Piece, file_name, index_of
from raysys.training.checkpoint_mark import CheckpointState, Mark, survey
from raysys.training.checkpoint_writer import Snapshot

STATE = CheckpointState(7, "abc", 3, 2, 0.5)
WRITING = "0123456789"


def tensors() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(0)
    return {
        "weight/large": torch.randn(700, 1000, generator=generator),
        "exp_avg/large": torch.randn(700, 1000, generator=generator),
        "weight/odd": torch.randn(3, 5, 7, generator=generator),
        "weight/half": torch.randn(11, generator=generator).bfloat16(),
        "buffer/flags": torch.randint(0, 2, (13,), generator=generator).bool(),
        "buffer/count": torch.tensor(12345678901),
        "buffer/bytes": torch.randint(0, 256, (5, 5), generator=generator, dtype=torch.uint8),
    }


def write(storage: Storage, uri: str, seed: int = 0, ranks: int = 3, **state: Any) -> Mark:
    """Every tensor cut into stretches at random places, which are dealt out to ranks at random."""
    choose = random.Random(seed)
    parts: list[list[Piece]] = [[] for _ in range(ranks)]
    for key, tensor in tensors().items():
        whole = Piece(key, tuple(tensor.shape), 0, tensor.view(-1))
        count = tensor.numel()
        borders = [0, *sorted(choose.randint(0, count) for _ in range(ranks - 1)), count]
        for rank, begin, end in zip(choose.sample(range(ranks), ranks), borders, borders[1:], strict=False):
            if begin < end:
                parts[rank].append(whole.part(begin, end))
    files: dict[str, tuple[int, int | None]] = {}
    for rank, pieces in enumerate(parts):
        name = file_name(rank, ranks, WRITING)
        Snapshot(pieces, {"told": [1, "two"]} if rank == 0 else {}).write(storage, join(uri, name))
        files[name] = (storage.size(join(uri, name)), None)
        index = join(uri, index_of(name))
        files[index_of(name)] = (storage.size(index), zlib.crc32(storage.read(index)))
    mark = Mark(replace(STATE, **state), WRITING, "2030-01-02T03:04:05+00:00", files)
    mark.write(storage, uri)
    return mark


@pytest.mark.parametrize("place", ["disk", "store"])
@pytest.mark.parametrize("block", [64, 1 << 20])
def test_any_stretch_of_any_tensor_is_read(request, tmp_path, monkeypatch, place, block):
    monkeypatch.setattr("raysys.training.checkpoint_writer.BLOCK", block)
    monkeypatch.setattr(checkpoint_files, "RUN", 2 * block if block > 64 else 1 << 16)
    storage, uri = Storage(), str(tmp_path / "step-00000007")
    if place == "store":
        server = request.getfixturevalue("object_store")
        storage, uri = Storage(StorageSettings(endpoint=server.endpoint)), f"{server.bucket_uri}/files-{block}/step-00000007"
    reader = CheckpointReader(storage, uri, write(storage, uri))
    assert reader.state == STATE
    assert reader.extras == {"told": [1, "two"]}
    expected, choose = tensors(), random.Random(1)
    wanted = []
    for key, tensor in expected.items():
        assert reader.stored[key].shape == tuple(tensor.shape)
        assert reader.stored[key].dtype == tensor.dtype
        assert reader.stored[key].gap() is None
        for _ in range(5):
            begin = choose.randint(0, tensor.numel())
            end = choose.randint(begin, tensor.numel())
            wanted.append(Piece(key, tuple(tensor.shape), begin, torch.zeros_like(tensor.view(-1)[begin:end])))
        wanted.append(Piece(key, tuple(tensor.shape), 0, torch.zeros_like(tensor.view(-1))))
    reader.read(wanted)
    for piece in wanted:
        assert piece.values.equal(expected[piece.key].view(-1)[piece.start : piece.start + piece.values.numel()])
    assert list(reader.faults()) == []


def test_the_files_are_safetensors(tmp_path):
    write(Storage(), str(tmp_path))
    found: dict[str, int] = {}
    expected = tensors()
    for file in sorted(tmp_path.glob("*.safetensors")):
        with safe_open(file, "pt") as opened:
            for key in opened.keys():  # noqa: SIM118
                values = opened.get_tensor(key)
                assert values.dtype == expected[key].dtype
                found[key] = found.get(key, 0) + values.numel()
    assert found == {key: tensor.numel() for key, tensor in expected.items()}


def test_a_snapshot_is_a_copy_that_uses_memory_again(tmp_path):
    values = torch.arange(1000.0)
    first = Snapshot([Piece("weight/a", (1000,), 0, values)], {})
    values.zero_()
    second = Snapshot([Piece("weight/a", (1000,), 0, values[:900])], {"longer": "x" * 8}, first.buffer)
    assert second.buffer is first.buffer
    second.write(Storage(), str(tmp_path / "file.safetensors"))
    with safe_open(tmp_path / "file.safetensors", "pt") as opened:
        assert opened.get_tensor("weight/a").equal(torch.zeros(900))
    assert Snapshot([Piece("weight/a", (1000,), 0, torch.ones(5000))], {}, first.buffer).buffer is not first.buffer


@pytest.mark.parametrize("file", range(3))
@pytest.mark.parametrize("place", ["header", "body", "end", "index"])
def test_a_bit_that_changed_is_found(tmp_path, place, file):
    mark = write(Storage(), str(tmp_path))
    name = mark.indices[file]
    path = tmp_path / (name if place == "index" else name.replace(".json", ".safetensors"))
    data = bytearray(path.read_bytes())
    data[{"header": 40, "body": len(data) // 2, "end": len(data) - 1, "index": 30}[place]] ^= 4
    path.write_bytes(data)
    named = path.name.partition("-of-")[0]
    if place in ("header", "index"):
        with pytest.raises(Damaged, match=named):
            CheckpointReader(Storage(), str(tmp_path), mark)
        return
    reader = CheckpointReader(Storage(), str(tmp_path), mark)
    assert [named in fault for fault in reader.faults()] == [True]
    with pytest.raises(Damaged, match=named):
        reader.read([Piece(key, tuple(one.shape), 0, torch.zeros_like(one.view(-1))) for key, one in tensors().items()])


@pytest.mark.parametrize("position", [5, 30, 100, 200, -20])
def test_a_mark_that_changed_is_no_mark(tmp_path, position):
    write(Storage(), str(tmp_path / "step-00000007"))
    path = tmp_path / "step-00000007" / "complete.json"
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)
    (found,) = survey(Storage(), str(tmp_path))
    assert found.fault is not None


def test_pieces_that_do_not_cover_a_tensor_once_are_told():
    file = None
    stored = checkpoint_files.Stored((10,), torch.float32, [(0, 4, file, 0), (6, 4, file, 0)])  # type: ignore[list-item]
    assert stored.gap() == "elements 4 to 6 are missing"
    stored = checkpoint_files.Stored((2, 5), torch.float32, [(3, 7, file, 0), (0, 4, file, 0)])  # type: ignore[list-item]
    assert stored.gap() == "elements 3 to 4 are there twice"
    assert checkpoint_files.Stored((10,), torch.float32, [(0, 9, file, 0)]).gap() == "9 of 10 elements are there"  # type: ignore[list-item]
    assert checkpoint_files.Stored((), torch.float32, [(0, 1, file, 0)]).gap() is None  # type: ignore[list-item]


def test_checkpoints_of_the_earlier_form_are_refused_in_a_sentence(tmp_path):
    folder = tmp_path / "step-00000004"
    folder.mkdir()
    (folder / "complete.json").write_text('{"step": 4, "fingerprint": "abc", "workers": 2, "zero_stage": 1, "score": null}')
    (folder / "mp_rank_00_model_states.pt").write_bytes(b"\x80")
    with pytest.raises(UserError, match="step-00000004 was written by an earlier version, in DeepSpeed's own form"):
        survey(Storage(), str(tmp_path))


def test_sizes_are_compared_without_reading(tmp_path):
    mark = write(Storage(), str(tmp_path / "step-00000007"))
    (found,) = survey(Storage(), str(tmp_path))
    assert (found.step, found.mark, found.fault) == (7, mark, None)
    assert sum(found.files.values()) == mark.size + (tmp_path / "step-00000007" / "complete.json").stat().st_size
    path = Path(found.uri, mark.indices[1])
    path.write_bytes(path.read_bytes()[:-1])
    assert "bytes instead of" in str(survey(Storage(), str(tmp_path))[0].fault)
    path.unlink()
    assert f"{path.name} is missing" in str(survey(Storage(), str(tmp_path))[0].fault)
