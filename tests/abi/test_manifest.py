from dataclasses import replace

import pytest

from tilec.abi.job_layout import ABI
from tilec.abi.manifest import Constant, LibraryFile, Manifest, Segment, TensorSpec, WeightsFile, read_manifest
from tilec.artifact import Artifact, encode
from tilec.errors import ArtifactError, UsageError

MANIFEST = Manifest(
    abi=ABI,
    library=LibraryFile("kernels.a", "0" * 64),
    inputs=(TensorSpec("x", "f32", (1, 3)),),
    outputs=(TensorSpec("y", "i64", ()),),
    arena_bytes=128,
    segments=(Segment(("a", "b"), 4),),
    weights=(WeightsFile("w.bin", 100, "1" * 64),),
    constants=(Constant(0, 64, 36),),
)


def write(folder, body):
    Artifact("kernels", {}, body).write(folder / "3-kernels.json")


def test_read_returns_what_was_written(tmp_path):
    write(tmp_path, {"runtime": encode(MANIFEST)})
    assert read_manifest(tmp_path) == MANIFEST


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(UsageError, match="3-kernels.json: no such file"):
        read_manifest(tmp_path / "absent")


def test_a_device_without_code_cannot_run(tmp_path):
    write(tmp_path, {})
    with pytest.raises(ArtifactError, match="without a code generator"):
        read_manifest(tmp_path)


def test_another_interface_is_refused(tmp_path):
    write(tmp_path, {"runtime": encode(replace(MANIFEST, abi=ABI + 1))})
    with pytest.raises(ArtifactError, match="run-time interface"):
        read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("constants", [{"file": 1, "offset": 0, "bytes": 4}], "names weights file 1"),
        ("constants", [{"file": 0, "offset": 64, "bytes": 37}], "outside"),
        ("constants", [{"file": 0, "offset": -1, "bytes": 4}], "outside"),
        ("inputs", [{"name": "x", "ttype": "f33", "shape": [1]}], "unknown type 'f33'"),
        ("inputs", [{"name": "x", "ttype": "f32", "shape": [-1]}], "negative"),
        ("segments", [{"groups": ["a"], "width": "four"}], "expected int"),
        ("ranges", [{"input": 1, "extent": 3, "node": "n"}], "a range of input 1, which is no tensor"),
        ("ranges", [{"input": 0, "extent": 3, "node": "n", "column": [2, 0]}], "dimension that input 0 does not have"),
        ("segments", [], "0 calls lie between 0 segments"),
        ("library", None, "launches and no library"),
        ("arena", 3, "arena_bytes"),
        ("arena_bytes", -1, "-1 bytes or launches"),
        ("library", {"file": "../kernels.a", "sha256": ""}, "no name of a file"),
        ("loader", "tilec.runtime.cpu", "no loader"),
        ("weights", [{"file": "/etc/passwd", "bytes": 100, "sha256": ""}], "no name of a file"),
    ],
)
def test_malformed_parts_are_named(tmp_path, key, value, message):
    write(tmp_path, {"runtime": {**encode(MANIFEST), key: value}})
    with pytest.raises(ArtifactError, match=message):
        read_manifest(tmp_path)
