"""The registry: built-in back ends, those of installed packages, those that a process registers."""

from dataclasses import replace

import pytest

from tilec.codegen import backend
from tilec.codegen.backend import ENTRY_POINTS, backend_of, register
from tilec.codegen.cpu.backend import BACKEND
from tilec.errors import UnavailableError
from tilec.spec.resolve import resolve_device


def device(kind: str):
    spec = resolve_device("avx2")
    return spec.model_copy(update={"target": spec.target.model_copy(update={"backend": kind})})


def install(folder, name: str, value: str) -> None:
    """A package whose back end is of kind `name`."""
    info = folder / "toy-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: toy\nVersion: 1\n")
    (info / "entry_points.txt").write_text(f"[{ENTRY_POINTS}]\n{name} = {value}\n")


def test_a_device_of_an_unknown_kind_has_none():
    assert backend_of(device("cpu")) is BACKEND
    assert backend_of(resolve_device("ipu-mk2")) is None


def test_kinds_of_gpus_have_one_that_serves_blocks_and_units_over_one_memory():
    assert [backend_of(resolve_device(name)).kind for name in ("a100", "mi250")] == ["cuda", "hip"]
    assert backend_of(resolve_device("a100-host")) is None


def test_packages_provide_back_ends_by_entry_points(tmp_path, monkeypatch):
    install(tmp_path, "abacus", "abacus_backend:BACKEND")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UnavailableError, match="back end 'abacus' cannot be imported from abacus_backend:BACKEND"):
        backend_of(device("abacus"))
    (tmp_path / "abacus_backend.py").write_text(
        "from dataclasses import replace\n"
        "from tilec.codegen.cpu.backend import BACKEND as CPU\n"
        "BACKEND = replace(CPU, kind='abacus')\n"
    )
    assert backend_of(device("abacus")) == replace(BACKEND, kind="abacus")


def test_a_registered_back_end_takes_the_place_of_its_kind(monkeypatch):
    monkeypatch.setattr(backend, "_REGISTERED", {})
    other = replace(BACKEND, loader="tests:load")
    register(other)
    assert backend_of(device("cpu")) is other
