"""Weight files: readable by the safetensors library, aligned, deterministic."""

import hashlib

import ml_dtypes
import numpy as np
from safetensors import deserialize
from safetensors.numpy import load

from tilec.artifact.safetensors import ALIGNMENT, pack


def test_the_library_reads_what_is_packed() -> None:
    arrays = {
        "weight": np.arange(15, dtype=np.float32).reshape(3, 5).T,
        "empty": np.empty((0, 4), np.float16),
        "flag": np.array(True),
        "line": np.arange(16, dtype=np.int64),
        "last": np.arange(3, dtype=np.uint8),
    }
    packed = pack(arrays)
    data = b"".join(packed.pieces)
    assert packed.sha256 == hashlib.sha256(data).hexdigest()
    read = load(data)
    for name, array in arrays.items():
        offset, size = packed.places[name]
        assert offset % ALIGNMENT == 0
        assert data[offset : offset + size] == array.tobytes()
        np.testing.assert_array_equal(read[name], array)
        assert read[name].dtype == array.dtype


def test_bfloat16_is_written_as_it_lies_in_memory() -> None:
    array = np.arange(3).astype(ml_dtypes.bfloat16)
    packed = pack({"half": array})
    read = dict(deserialize(b"".join(packed.pieces)))
    assert read["half"]["dtype"] == "BF16"
    assert bytes(read["half"]["data"]) == array.tobytes()


def test_nothing_is_packed_into_no_file() -> None:
    assert pack({}).pieces == ()
