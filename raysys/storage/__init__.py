"""One door to local folders and S3 buckets.

Every path of the project is a URI: a plain path, ``file://…`` or ``s3://bucket/key``. One settings object names the
endpoint and region for every client, so that no half of a program talks to another store; credentials come only from the
environment or the instance's role.
"""

from raysys.storage.base import Entry, StorageError, is_remote, join
from raysys.storage.door import Storage, StorageSettings

__all__ = ["Entry", "Storage", "StorageError", "StorageSettings", "is_remote", "join"]
