import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilec.abi.archive import pack, unpack
from tilec.errors import ArtifactError

MEMBERS = [("a.o", b"12345"), ("a-much-longer-name-than-sixteen.o", b""), ("c.o", bytes(range(256)))]


@given(st.lists(st.tuples(st.text("abc.-_", min_size=1), st.binary(max_size=40)), max_size=6))
def test_unpack_returns_what_was_packed(members):
    assert unpack(pack(members)) == members


@pytest.mark.parametrize("cut", [3, 20, 70, 150])
def test_a_cut_archive_is_refused(cut):
    with pytest.raises(ArtifactError, match=r"library|object files"):
        unpack(pack(MEMBERS)[:cut], "lib.a")


def test_foreign_bytes_are_refused():
    with pytest.raises(ArtifactError, match="not a library"):
        unpack(b"\x7fELF")
    with pytest.raises(ArtifactError, match="damaged"):
        unpack(pack(MEMBERS)[:8] + b"x" * 60)


def test_archives_do_not_depend_on_the_process():
    code = "from tilec.abi.archive import pack; import sys; sys.stdout.buffer.write(pack([('a.o', b'12345')]))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout == pack(MEMBERS[:1])


@pytest.mark.parametrize("seed", range(100))
def test_a_damaged_archive_is_refused_or_read(seed):
    random = np.random.default_rng(seed)
    whole = bytearray(pack([("first.o", b"\x7fELF" + bytes(40)), ("a longer name than sixteen.o", b"abc")]))
    for _ in range(int(random.integers(1, 5))):
        whole[random.integers(len(whole))] = int(random.integers(256))
    data = bytes(whole[: random.integers(len(whole))] if seed % 3 == 0 else whole)
    with suppress(ArtifactError):
        members = unpack(data, "here")
        assert all(isinstance(name, str) and isinstance(content, bytes) for name, content in members)
