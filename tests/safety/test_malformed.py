"""Malformed and hostile models, YAML files and artifacts: an error with the right exit code, nothing else."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import onnx
import pytest

from tests.safety import seeds
from tests.safety.cases import DRAWN, RECIPE, Case
from tests.safety.hostile import HOSTILE
from tests.safety.sandbox import Sandbox, complaint, listing
from tests.safety.text import HOSTILE_YAML

SECRET = b"keep this to yourself" * 64


@pytest.fixture(scope="module")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sandbox]:
    box = Sandbox(tmp_path_factory.mktemp("cache"))
    yield box
    box.close()


@pytest.fixture(scope="module")
def build(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A compiled model that is copied for every artifact that is spoilt."""
    folder = tmp_path_factory.mktemp("build")
    model = seeds.mlp()
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_value = 4
    (folder / "model.onnx").write_bytes(model.SerializeToString())
    ran = sandbox.run(folder, "compile", "model.onnx", "--device", "avx2", "-o", ".")
    assert ran.code == 0, ran.err
    return folder


def check(sandbox: Sandbox, folder: Path, case: Case) -> None:
    """Write the file and run the commands until one refuses it."""
    (folder / case.file).write_bytes(case.data)
    for command in case.commands:
        before = listing(folder)
        ran = sandbox.run(folder, *command)
        wrong = complaint(ran, listing(folder) != before)
        assert wrong is None, f"tilec {' '.join(command)}: {wrong}\n{ran.err}"
        assert SECRET.decode() not in ran.out + ran.err
        if ran.code:
            break


QUICK = {"model": 12, "spec": 8, "artifact": 8}
"""How many of each kind every run takes; the rest is slow."""


@pytest.mark.parametrize(
    ("kind", "seed", "make"),
    [
        pytest.param(*each, id=f"{each[0]}-{each[1]}", marks=() if each[1] < QUICK[each[0]] else pytest.mark.slow)
        for each in DRAWN
    ],
)
def test_drawn(sandbox: Sandbox, tmp_path: Path, build: Path, kind: str, seed: int, make: Callable[..., Case]) -> None:
    if kind == "artifact":
        shutil.copytree(build, tmp_path, symlinks=True, dirs_exist_ok=True)
        check(sandbox, tmp_path, make(seed, build))
        return
    (tmp_path / "model.onnx").write_bytes(seeds.mlp().SerializeToString())
    check(sandbox, tmp_path, make(seed))


def test_there_are_three_hundred() -> None:
    assert len(DRAWN) == 300


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_models(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    """Sizes, depths and counts beyond everything; weights in files that are not the model's."""
    made = HOSTILE[name]()
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(SECRET)
    (folder / "weights.bin").write_bytes(bytes(384))
    (folder / "link.bin").symlink_to("../secret.bin")
    (folder / "loop.bin").symlink_to("loop.bin")
    (folder / "folder").symlink_to("..")
    os.mkfifo(folder / "pipe")
    data = made if isinstance(made, bytes) else made.SerializeToString()
    check(sandbox, folder, Case("model.onnx", data, (("import", "model.onnx", "-o", "out"),)))


@pytest.mark.parametrize("name", [name for name in HOSTILE if name.startswith("file-")])
def test_files_of_others_are_never_read(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    found: Any = HOSTILE[name]()
    folder = tmp_path / "models"
    folder.mkdir()
    (tmp_path / "secret.bin").write_bytes(bytes(384))
    (folder / "link.bin").symlink_to("../secret.bin")
    (folder / "folder").symlink_to("..")
    (folder / "model.onnx").write_bytes(found.SerializeToString())
    ran = sandbox.run(folder, "import", "model.onnx")
    assert ran.code == 2, ran.err
    assert "external data" in ran.err


@pytest.mark.slow_cases("bomb", "deep-list", "recipe-budget", "recipe-device", "recipe-itself")
@pytest.mark.parametrize("name", HOSTILE_YAML)
def test_hostile_yaml(sandbox: Sandbox, tmp_path: Path, name: str) -> None:
    """Bombs, depths, tags, what is no text: as a device and as a recipe."""
    data = HOSTILE_YAML[name]
    (tmp_path / "model.onnx").write_bytes(seeds.mlp().SerializeToString())
    data = data if isinstance(data, bytes) else data.encode()
    for command in (("device", "show", "spec.yaml"), RECIPE):
        check(sandbox, tmp_path, Case("spec.yaml", data, (command,)))
        shutil.rmtree(tmp_path / "out", ignore_errors=True)


@pytest.mark.parametrize("key", ["file", "weights", "programs", "files"])
def test_artifacts_name_files_of_their_folder_only(sandbox: Sandbox, tmp_path: Path, build: Path, key: str) -> None:
    shutil.copytree(build, tmp_path / "build", symlinks=True)
    (tmp_path / "secret.bin").write_bytes(SECRET)
    kernels, plan = (tmp_path / "build" / name for name in ("3-kernels.json", "2-plan.json"))
    weights = next((tmp_path / "build").glob("weights-*.safetensors")).name
    for path, name in ((kernels, weights), (plan, "model.onnx")):
        written = path.read_text(encoding="utf-8")
        assert name in written
        path.write_text(written.replace(f'"{name}"', '"../secret.bin"'), encoding="utf-8")
    command = {"file": ("run", "."), "weights": ("run", "."), "programs": ("verify", "."), "files": ("codegen", ".")}
    before = listing(tmp_path)
    ran = sandbox.run(tmp_path / "build", *command[key])
    assert ran.code == 2, ran.err
    assert listing(tmp_path) == before


def test_a_model_too_deep_for_protobuf(sandbox: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="MaxDepth|parsing|recursion"):
        onnx.ModelProto.FromString(_nested(200))
    check(sandbox, tmp_path, Case("model.onnx", _nested(200), (("import", "model.onnx"),)))


def _nested(depth: int) -> bytes:
    """`If` in `If`, as bytes: what protobuf itself refuses to build."""
    from tests.safety.protobuf import BYTES, Item, write

    graph = b""
    for _ in range(depth):
        attribute = write([Item(1, BYTES, b"then_branch"), Item(6, BYTES, graph)])
        graph = write([Item(1, BYTES, write([Item(4, BYTES, b"If"), Item(5, BYTES, attribute)]))])
    return write([Item(8, BYTES, b"\x10\x14"), Item(7, BYTES, graph)])
