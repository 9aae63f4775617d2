"""sha256 digests of objects and files, by which every stage identifies its inputs."""

import hashlib
import os
from functools import lru_cache
from pathlib import Path

from tilec.artifact.canonical import Json, compact
from tilec.errors import unreadable


def digest_bytes(data: bytes) -> str:
    """sha256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def digest_object(value: Json) -> str:
    """sha256 of a JSON value; independent of the order of keys and of formatting."""
    return digest_bytes(compact(value).encode())


def digest_file(path: Path) -> str:
    """sha256 of a file, read in pieces; cached while the file is unchanged. Raises UsageError when it cannot be
    read."""
    try:
        state = os.stat(path)
        return _digest_of(str(path.resolve()), state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns)
    except OSError as error:
        raise unreadable(error, str(path)) from error


@lru_cache(maxsize=256)
def _digest_of(path: str, *_state: int) -> str:
    """sha256 of the file in this state; a new state is a new cache key."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
