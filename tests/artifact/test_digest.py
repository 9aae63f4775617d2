"""sha256 of bytes, values and files."""

import hashlib
from pathlib import Path

import pytest

from tilec.artifact import digest_bytes, digest_file, digest_object
from tilec.errors import UsageError


def test_digests_are_sha256(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"abc" * 100_000)
    assert digest_file(tmp_path / "f") == hashlib.sha256(b"abc" * 100_000).hexdigest()
    assert digest_bytes(b"abc") == hashlib.sha256(b"abc").hexdigest()
    assert digest_object({"b": 1, "a": [2.5]}) == hashlib.sha256(b'{"a":[2.5],"b":1}').hexdigest()


def test_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        digest_file(tmp_path / "gone")
