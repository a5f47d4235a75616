"""Small files in the layouts in which IGLUE's features and annotations are published."""

import base64
import json
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import lmdb
import numpy as np


def region_arrays(number: int, count: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """float32 features [count, 2048] and boxes [count, 4] within 640 × 480 pixels."""
    random = np.random.default_rng(number)
    corners = np.sort(random.uniform(0, 1, (count, 2, 2)), axis=1) * np.array([640, 480])
    return random.standard_normal((count, 2048), dtype=np.float32), corners.reshape(count, 4).astype(np.float32)


def record(number: int, **changes: Any) -> dict[str, Any]:
    """An LMDB's value as made from H5 files: arrays, and numpy's own integers."""
    features, boxes = region_arrays(number)
    return {"img_id": str(number), "img_h": np.int64(480), "img_w": np.int64(640), "features": features, "boxes": boxes} | changes


def put_lmdb(folder: Path, values: Mapping[str, bytes], listed: list[bytes] | None = None) -> Path:
    """An LMDB in `folder`; `listed` is its own list of keys."""
    folder.mkdir(parents=True)
    with lmdb.open(str(folder), map_size=1 << 30) as environment, environment.begin(write=True) as transaction:
        for key, value in values.items():
            transaction.put(key.encode(), value)
        if listed is not None:
            transaction.put(b"keys", pickle.dumps(listed))
    return folder


def row(image_id: str, number: int, count: int = 3, **changes: Any) -> str:
    """A row of a TSV."""
    features, boxes = region_arrays(number, count)
    arrays = {
        "objects_id": np.arange(count),
        "objects_conf": np.ones(count, np.float32),
        "attrs_id": np.arange(count),
        "attrs_conf": np.ones(count, np.float32),
        "boxes": boxes,
        "features": features,
    }
    fields = {"img_id": image_id, "img_h": 480, "img_w": 640, "num_boxes": count}
    fields |= {name: base64.b64encode(values.tobytes()).decode() for name, values in arrays.items()}
    names = ("img_id", "img_h", "img_w", "objects_id", "objects_conf", "attrs_id", "attrs_conf", "num_boxes", "boxes", "features")
    return "\t".join(str((fields | changes)[name]) for name in names)


def put(folder: Path, name: str, records: list[Any] | str) -> Path:
    """A file beneath `folder`: json lines of `records`, or a text."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    text = records if isinstance(records, str) else "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in records)
    path.write_text(text, encoding="utf-8")
    return path
