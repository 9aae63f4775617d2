"""Weights in slabs: the same bytes as at once, whatever the slabs."""

from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from tilec.abi.weights_file import is_weights_file
from tilec.codegen import prepare_weights as module
from tilec.codegen.prepare_weights import prepare_weights
from tilec.ir.expr import Const
from tilec.ir.graph import Inline, Node, Port, Tensor, WeightRef
from tilec.ir.plan import Cost, Group, Plan
from tilec.ir.text import parse_tensor


def plan(rows: int, columns: int) -> Plan:
    """A weight that is transposed, and that with one added; a group reads both."""
    values = tuple(float(v) for v in range(rows * columns))
    moved = parse_tensor("t[j, i] = w[i, j]", {"i": rows, "j": columns})
    more = parse_tensor("u[j, i] = t[j, i] + 1.0", {"i": rows, "j": columns})
    sums = parse_tensor("y[j, i] = t[j, i] + u[j, i]", {"i": rows, "j": columns})
    shape = (Const(columns), Const(rows))
    tensors = {name: Tensor(shape, "f32") for name in ("t", "u", "y")} | {"w": Tensor(shape[::-1], "f32")}
    group = Group("g", (Node(sums),), ("y",), {}, (), Cost({}, {}, {}))
    return Plan(
        "m", "d", (), (), (), (Port("y", "y"),), tensors, {"w": Inline(values)}, (Node(moved), Node(more)), (group,), ()
    )


@pytest.mark.parametrize(("rows", "columns"), [(3, 5), (1, 1), (7, 16), (16, 7)])
@pytest.mark.parametrize("slab", [1, 40, 1 << 20])
def test_slabs_give_the_same_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: int, columns: int, slab: int
) -> None:
    monkeypatch.setattr(module, "SLAB", slab)
    found = prepare_weights(plan(rows, columns), tmp_path, tmp_path)
    (file,) = found.files
    data = (tmp_path / file).read_bytes()
    w = np.arange(rows * columns, dtype=np.float32).reshape(rows, columns)
    for name, expected in (("t", w.T), ("u", w.T + 1)):
        place = found.places[name]
        held = np.frombuffer(data, np.float32, rows * columns, place.offset).reshape(columns, rows)
        np.testing.assert_array_equal(held, expected)
        assert place.offset % 64 == 0
    end = max(place.offset + place.size for place in found.places.values())
    assert len(data) == -(-end // 64) * 64
    digest = sha256(data).hexdigest()
    assert found.files == {f"weights-{digest[:16]}.safetensors": digest}


def test_a_large_weight_is_never_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    largest = 0
    evaluated = module.evaluate_box

    def watched(expr, points, ttype):  # type: ignore[no-untyped-def]
        nonlocal largest
        result = evaluated(expr, points, ttype)
        largest = max(largest, result.nbytes)
        return result

    monkeypatch.setattr(module, "SLAB", 256)
    monkeypatch.setattr(module, "evaluate_box", watched)
    prepare_weights(plan(16, 64), tmp_path, tmp_path)
    assert 0 < largest <= 256


def test_small_constants_are_copied_and_large_ones_stay_where_they_are(tmp_path: Path) -> None:
    sizes = {"small": 16, "large": module.SMALL // 4}
    rng = np.random.default_rng(0)
    values = {name: rng.standard_normal(size).astype(np.float32) for name, size in sizes.items()}
    data = b"".join(value.tobytes() for value in values.values())
    (tmp_path / "model.onnx").write_bytes(data)
    refs = {"small": WeightRef("model.onnx", 0, 64), "large": WeightRef("model.onnx", 64, 4 * sizes["large"])}
    sums = parse_tensor("y[i] = small[i] + large[i]", {"i": 16})
    tensors = {name: Tensor((Const(size),), "f32") for name, size in {**sizes, "y": 16}.items()}
    group = Group("g", (Node(sums),), ("y",), {}, (), Cost({}, {}, {}))
    files = {"model.onnx": sha256(data).hexdigest()}
    whole = Plan("m", "d", (), (), (), (Port("y", "y"),), tensors, refs, (), (group,), (), files=files)
    found = prepare_weights(whole, tmp_path, tmp_path)
    assert found.places["large"] == module.Place("model.onnx", 64, 4 * sizes["large"])
    place = found.places["small"]
    assert is_weights_file(place.file)
    held = np.frombuffer((tmp_path / place.file).read_bytes(), np.float32, 16, place.offset)
    np.testing.assert_array_equal(held, values["small"])


@pytest.mark.parametrize("offset", [64, 66, 68])
def test_a_large_constant_between_elements_of_its_file_is_copied(tmp_path: Path, offset: int) -> None:
    """Kernels read whole elements at multiples of their size from the start of the file."""
    value = np.random.default_rng(0).standard_normal(module.SMALL // 4).astype(np.float32)
    data = bytes(offset) + value.tobytes()
    (tmp_path / "model.onnx").write_bytes(data)
    tensors = {name: Tensor((Const(value.size),), "f32") for name in ("w", "y")}
    node = Node(parse_tensor("y[i] = w[i] * 2.0", {"i": value.size}))
    refs = {"w": WeightRef("model.onnx", offset, value.nbytes)}
    group = Group("g", (node,), ("y",), {}, (), Cost({}, {}, {}))
    files = {"model.onnx": sha256(data).hexdigest()}
    whole = Plan("m", "d", (), (), (), (Port("y", "y"),), tensors, refs, (), (group,), (), files=files)
    place = prepare_weights(whole, tmp_path, tmp_path).places["w"]
    assert (place.file == "model.onnx") is (offset % 4 == 0)
    held = np.frombuffer((tmp_path / place.file).read_bytes(), np.float32, value.size, place.offset)
    np.testing.assert_array_equal(held, value)
