"""The JSON artifacts between stages: canonical text, digests, atomic files, headers, dataclass codec."""

from tilec.artifact.cache_folder import cache_folder
from tilec.artifact.canonical import Json, compact, pretty
from tilec.artifact.codec import decode, encode, register_form
from tilec.artifact.digest import digest_bytes, digest_file, digest_object
from tilec.artifact.document import FORMAT, WRITERS, Artifact, is_fresh, parse_artifact, read_artifact
from tilec.artifact.links import bring_files, require_files
from tilec.artifact.lock import folder_locked, is_locked, locked, locked_within
from tilec.artifact.store import (
    atomic_open,
    put_text,
    remove_leftovers,
    touch,
    unwritable,
    write_bytes,
    write_text,
)
from tilec.artifact.tool_versions import SETTLED, source_version, tools

__all__ = [
    "FORMAT",
    "SETTLED",
    "WRITERS",
    "Artifact",
    "Json",
    "atomic_open",
    "bring_files",
    "cache_folder",
    "compact",
    "decode",
    "digest_bytes",
    "digest_file",
    "digest_object",
    "encode",
    "folder_locked",
    "is_fresh",
    "is_locked",
    "locked",
    "locked_within",
    "parse_artifact",
    "pretty",
    "put_text",
    "read_artifact",
    "register_form",
    "remove_leftovers",
    "require_files",
    "source_version",
    "tools",
    "touch",
    "unwritable",
    "write_bytes",
    "write_text",
]
