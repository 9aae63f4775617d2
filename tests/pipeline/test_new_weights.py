"""A folder that is compiled again for other values of weights: no search, no compiler, the bytes of a fresh one."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from acceptance.building import Quiet, contents, host
from cli.models import save, value
from onnx import helper, numpy_helper

from tilec.pipeline import Job, compile_model
from tilec.spec.resolve import resolve_device


class Told(Quiet):
    """Keeps the notes and the stages that ran."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def note(self, message: str) -> None:
        self.notes.append(message)


def job(listener: Told) -> Job:
    return Job(host().recipe, listener, host().device, device_text=host().device_source.text)


def write(path: Path, seed: int, width: int = 40, scale: float = 2.0) -> Path:
    """Two products, the first of weights that are packed, a vector, and a single number."""
    values = np.random.default_rng(seed)
    arrays = {
        "a": values.normal(size=(24, width)),
        "b": values.normal(size=width),
        "c": values.normal(size=(width, 16)),
        "s": np.asarray([scale]),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "a"], ["h"]),
        helper.make_node("Add", ["h", "b"], ["i"]),
        helper.make_node("Mul", ["i", "s"], ["j"]),
        helper.make_node("MatMul", ["j", "c"], ["y"]),
    ]
    weights = [numpy_helper.from_array(array.astype(np.float32), name) for name, array in arrays.items()]
    return save(path, nodes, [value("x", 8, 24)], [value("y", 8, 16)], weights)


def files(folder: Path) -> dict[str, bytes]:
    """All that a run of the model needs."""
    return contents(folder, "3-kernels.json") | {
        path.name: path.read_bytes() for path in folder.iterdir() if path.suffix in (".a", ".safetensors")
    }


KEPT = "schedule, codegen: kept, for only values of weights changed"


def test_other_values_of_weights_need_no_compiler(tmp_path: Path) -> None:
    model, folder = write(tmp_path / "model.onnx", seed=1), tmp_path / "out"
    compile_model(job(Told()), model, folder)
    write(model, seed=2)
    fresh = tmp_path / "fresh"
    compile_model(job(Told()), model, fresh)
    listener = Told()
    compile_model(job(listener), model, folder)
    assert KEPT in listener.notes
    assert files(folder) == files(fresh)
    assert (folder / "4-report.json").read_bytes() == (fresh / "4-report.json").read_bytes()


@pytest.mark.parametrize("last", ["import", "schedule"])
def test_a_folder_whose_artifacts_are_of_two_versions_is_compiled_anew(tmp_path: Path, last: str) -> None:
    model, folder = write(tmp_path / "model.onnx", seed=1), tmp_path / "out"
    compile_model(job(Told()), model, folder)
    write(model, seed=2)
    compile_model(job(Told()), model, folder, last=last)  # as a compilation does that ended there
    write(model, seed=3)
    listener, fresh = Told(), tmp_path / "fresh"
    compile_model(job(listener), model, folder)
    compile_model(job(Told()), model, fresh)
    assert KEPT not in listener.notes
    assert files(folder) == files(fresh)
    assert (folder / "4-report.json").read_bytes() == (fresh / "4-report.json").read_bytes()


@pytest.mark.parametrize("changed", [{"scale": 3.0}, {"width": 48}])
def test_numbers_in_code_and_shapes_are_planned_anew(tmp_path: Path, changed: dict[str, float]) -> None:
    model, folder = write(tmp_path / "model.onnx", seed=1), tmp_path / "out"
    compile_model(job(Told()), model, folder)
    write(model, seed=1, **changed)
    listener, fresh = Told(), tmp_path / "fresh"
    compile_model(job(listener), model, folder)
    compile_model(job(Told()), model, fresh)
    assert KEPT not in listener.notes
    assert files(folder) == files(fresh)


def test_code_for_a_gpu_is_kept(tmp_path: Path) -> None:
    source = resolve_device("a100")
    jobs = [replace(job(Told()), device=source, device_text="") for _ in range(3)]
    model, folder, fresh = write(tmp_path / "model.onnx", seed=1), tmp_path / "out", tmp_path / "fresh"
    compile_model(jobs[0], model, folder, last="codegen")
    write(model, seed=2)
    compile_model(jobs[1], model, folder, last="codegen")
    compile_model(jobs[2], model, fresh, last="codegen")
    assert KEPT in jobs[1].listener.notes
    same = {path.name: path.read_bytes() for path in fresh.iterdir() if path.is_file() and path.name != "run.json"}
    assert {name: (folder / name).read_bytes() for name in same} == same


def test_what_another_job_made_is_not_taken_over(tmp_path: Path) -> None:
    model, folder = write(tmp_path / "model.onnx", seed=1), tmp_path / "out"
    compile_model(job(Told()), model, folder, last="codegen")
    write(model, seed=2)
    listener = Told()
    recipe = host().recipe.model_copy(
        update={"schedule": host().recipe.schedule.model_copy(update={"fusion": "register"})}
    )
    compile_model(replace(job(listener), recipe=recipe), model, folder, last="codegen")
    assert KEPT not in listener.notes


def test_a_folder_without_code_is_compiled(tmp_path: Path) -> None:
    model, folder = write(tmp_path / "model.onnx", seed=1), tmp_path / "out"
    compile_model(job(Told()), model, folder)
    next(folder.glob("*.a")).unlink()
    write(model, seed=2)
    listener, fresh = Told(), tmp_path / "fresh"
    compile_model(job(listener), model, folder)
    compile_model(job(Told()), model, fresh)
    assert KEPT not in listener.notes
    assert files(folder) == files(fresh)
