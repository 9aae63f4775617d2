"""sha256 digests of objects and files, by which every stage names its inputs."""

import hashlib
from pathlib import Path

from tilec.artifact.canonical import Json, compact
from tilec.errors import UsageError


def digest_bytes(data: bytes) -> str:
    """sha256 of `data` in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def digest_object(value: Json) -> str:
    """sha256 of a JSON value; independent of the order of keys and of formatting."""
    return digest_bytes(compact(value).encode())


def digest_file(path: Path) -> str:
    """sha256 of a file, read in pieces. Raises UsageError when it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UsageError(f"cannot read the file: {error.strerror}", str(path)) from error
