import numpy as np
import pytest

from tilec.abi.manifest import Constant, WeightsFile
from tilec.artifact import digest_bytes
from tilec.errors import ArtifactError
from tilec.runtime.memory import address, aligned_array, constant_address, map_weights


@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (5, 7), (1 << 18,)])
def test_arrays_start_at_a_cache_line(shape):
    for _ in range(5):
        array = aligned_array(shape, np.dtype(np.float32))
        assert array.shape == shape
        assert address(array) % 64 == 0
        assert array.flags.c_contiguous
        assert array.flags.writeable


def test_weights_are_mapped_not_copied(tmp_path):
    data = np.arange(100000, dtype=np.float32)
    data.tofile(tmp_path / "w.bin")
    spec = WeightsFile("w.bin", data.nbytes, digest_bytes(data.tobytes()))
    mapped = map_weights(tmp_path, spec, check=True)
    assert not mapped.flags.writeable
    np.testing.assert_array_equal(mapped.view(np.float32), data)
    with (tmp_path / "w.bin").open("r+b") as file:
        file.write(np.float32(7).tobytes())
    assert mapped.view(np.float32)[0] == 7
    assert constant_address([mapped], Constant(0, 8, 4)) == address(mapped) + 8


def test_an_empty_weights_file_maps(tmp_path):
    (tmp_path / "w.bin").write_bytes(b"")
    assert map_weights(tmp_path, WeightsFile("w.bin", 0, digest_bytes(b"")), check=True).size == 0


def test_changed_weights_are_refused(tmp_path):
    spec = WeightsFile("w.bin", 4, digest_bytes(b"abcd"))
    with pytest.raises(ArtifactError, match="cannot read the weights"):
        map_weights(tmp_path, spec, check=False)
    (tmp_path / "w.bin").write_bytes(b"abc")
    with pytest.raises(ArtifactError, match="3 bytes, 4 were compiled"):
        map_weights(tmp_path, spec, check=False)
    (tmp_path / "w.bin").write_bytes(b"abce")
    assert bytes(map_weights(tmp_path, spec, check=False)) == b"abce"
    with pytest.raises(ArtifactError, match="not those that were compiled"):
        map_weights(tmp_path, spec, check=True)
