import re
import shutil

import pytest

from tests.cpu_models import HOST, chain, write_model
from tilec.abi.archive import INTERFACE, unpack
from tilec.codegen.cpu.compile.build_library import compile_model
from tilec.codegen.cpu.compile.compile_tir import threads_text
from tilec.errors import TilecError, UnsupportedError
from tilec.spec.device import Target


def test_same_sources_give_the_same_bytes(tmp_path):
    first = compile_model(chain(4, 8, 3), HOST, tmp_path / "a", jobs=1)
    second = compile_model(chain(4, 8, 3), HOST, tmp_path / "b", jobs=2)
    assert first == second
    assert (tmp_path / "a" / first.library.file).read_bytes() == (tmp_path / "b" / first.library.file).read_bytes()


def test_other_sources_or_targets_give_another_library(tmp_path):
    names = {
        compile_model(chain(4, 8, 3), HOST, tmp_path).library.file,
        compile_model(chain(5, 8, 3), HOST, tmp_path).library.file,
        compile_model(chain(4, 8, 4), HOST, tmp_path).library.file,
        compile_model(chain(4, 8, 3), Target(backend="cpu", features=("+sse4.2",)), tmp_path).library.file,
    }
    assert len(names) == 4


def test_a_library_that_is_there_is_not_compiled_again(tmp_path):
    manifest = write_model(tmp_path, chain(4, 8, 3))
    file = tmp_path / manifest.library.file
    before = file.stat().st_mtime_ns
    assert compile_model(chain(4, 8, 3), HOST, tmp_path) == manifest
    assert file.stat().st_mtime_ns == before


def test_a_cache_that_cannot_be_written_costs_time_only(tmp_path):
    (tmp_path / "file").touch()
    assert compile_model(chain(4, 8, 3), HOST, tmp_path / "a", tmp_path / "file" / "cache").library is not None


def test_objects_are_kept_in_the_cache(tmp_path, monkeypatch):
    cache = tmp_path / "cache"
    manifest = compile_model(chain(4, 8, 3), HOST, tmp_path / "a", cache)
    kept = {path.name for path in cache.iterdir()}
    members = {name for name, _ in unpack((tmp_path / "a" / manifest.library.file).read_bytes())}
    assert kept == members - {INTERFACE}
    shutil.rmtree(tmp_path / "a")
    monkeypatch.setattr(
        "tilec.codegen.cpu.compile.object_files.compile_function", lambda *_: pytest.fail("compiled again")
    )
    assert compile_model(chain(4, 8, 3), HOST, tmp_path / "a", cache) == manifest


def test_an_unwritable_folder_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(TilecError, match="cannot write"):
        compile_model(chain(1, 1, 1), HOST, tmp_path / "file" / "folder")


def test_members_are_relocatable_objects_without_foreign_symbols(tmp_path):
    """Nothing of TVM's runtime is referenced; only libc is."""
    manifest = compile_model(chain(4, 8, 3), HOST, tmp_path)
    members = dict(unpack((tmp_path / manifest.library.file).read_bytes()))
    assert members.pop(INTERFACE).decode() == manifest.interface
    for name, data in members.items():
        assert data[:4] == b"\x7fELF", name
        assert not re.search(rb"TVM(Backend|FFI)", data), name


@pytest.mark.parametrize("triple", ["x86_64-linux-gnu", "aarch64-linux-gnu"])
def test_threads_text_is_complete_for_each_architecture(triple):
    assert "$" not in threads_text(Target(backend="cpu", triple=triple)).split("source_filename")[1]


@pytest.mark.parametrize("triple", ["riscv64-linux-gnu", "arm64-apple-darwin"])
def test_unknown_architectures_are_refused(triple):
    with pytest.raises(UnsupportedError, match="no threads"):
        threads_text(Target(backend="cpu", triple=triple))
