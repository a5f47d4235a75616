"""The places of samples and members as flat arrays."""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


@dataclass(frozen=True)
class Lookup:
    """The manifest as flat arrays, for finding thousands of samples a second. n samples, m members."""

    shard_names: list[str]
    shards: np.ndarray
    """int64 [n]: index into `shard_names`."""
    keys: pa.StringArray
    """[n]"""
    checksums: np.ndarray
    """int64 [n]"""
    starts: np.ndarray
    """int64 [n + 1]: members of sample i are `starts[i]` to `starts[i + 1]`."""
    extension_names: list[str]
    extensions: np.ndarray
    """int64 [m]: index into `extension_names`."""
    offsets: np.ndarray
    """int64 [m], bytes."""
    sizes: np.ndarray
    """int64 [m], bytes."""

    @classmethod
    def of(cls, table: pa.Table) -> "Lookup":
        """Made of a manifest's table."""
        shards = single(table["shard"]).dictionary_encode()
        members = single(table["members"])
        flat = members.flatten()
        extensions = flat.field("extension").dictionary_encode()
        return cls(
            shard_names=shards.dictionary.to_pylist(),
            shards=shards.indices.to_numpy().astype(np.int64),
            keys=single(table["key"]),
            checksums=table["checksum"].to_numpy(),
            starts=np.concatenate([[0], np.cumsum(pc.list_value_length(members).to_numpy())]).astype(np.int64),
            extension_names=extensions.dictionary.to_pylist(),
            extensions=extensions.indices.to_numpy().astype(np.int64),
            offsets=flat.field("offset").to_numpy(),
            sizes=flat.field("size").to_numpy(),
        )


def single(column: pa.ChunkedArray) -> pa.Array:
    """The one array of a column whose chunks were combined."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
