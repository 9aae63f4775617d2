"""Models with weights, inputs and outputs of few bits compile native in full, stay small, and verify says so."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import TensorProto as T
from onnx import helper, numpy_helper

from quantised.compile import SLOW_MEMORY, compiled
from tilec.ir.types import TTYPES
from tilec.ir.words import pack_codes

K, N, BLOCK = 256, 192, 32
DRAW = np.random.default_rng(5)


def written(
    path: Path, nodes: list[Any], arrays: dict[str, NDArray[Any]], ports: dict[str, tuple[int, list[int]]]
) -> Path:
    """A model with inputs `x...` and outputs `y...`."""
    infos = {name: helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in ports.items()}
    inputs, outputs = ([infos[n] for n in infos if n.startswith(letter)] for letter in "xy")
    tensors = [numpy_helper.from_array(array, name) for name, array in arrays.items()]
    domains = [helper.make_opsetid(name, 1) for name in sorted({node.domain for node in nodes} - {""})]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23), *domains], ir_version=10), path)
    return path


def blocks(path: Path) -> Path:
    q = DRAW.integers(0, 16, (K, N)).astype(ml_dtypes.uint4)
    arrays = {"q": q, "s": np.full((K // BLOCK, N), 0.01, np.float32), "z": q[:: K // 8][: K // BLOCK]}
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], axis=0, block_size=BLOCK),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    return written(path, nodes, arrays, {"x": (1, [1, K]), "y": (1, [1, N])})


def contrib(path: Path) -> Path:
    arrays = {
        "q": DRAW.integers(0, 256, (N, K // BLOCK, BLOCK // 2), np.uint8),
        "s": np.full((N, K // BLOCK), 0.01, np.float32),
        "z": DRAW.integers(0, 256, (N, K // BLOCK // 2), np.uint8),
    }
    options = {"K": K, "N": N, "bits": 4, "block_size": BLOCK, "domain": "com.microsoft"}
    return written(
        path,
        [helper.make_node("MatMulNBits", ["x", "q", "s", "z"], ["y"], **options)],
        arrays,
        {"x": (1, [3, K]), "y": (1, [3, N])},
    )


def described(path: Path) -> Path:
    k = 42 * TTYPES["i5"].per_word
    words = pack_codes(DRAW.integers(0, 32, (N, k)), "i5")
    nodes = [
        helper.make_node("Decode", ["q"], ["d"], domain="ai.tilec", ttype="i5", size=k),
        helper.make_node("Cast", ["d"], ["f"], to=T.FLOAT),
        helper.make_node("Transpose", ["f"], ["w"]),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    return written(path, nodes, {"q": words}, {"x": (1, [1, k]), "y": (1, [1, N])})


def ports(path: Path) -> Path:
    nodes = [
        helper.make_node("Cast", ["xi"], ["i"], to=T.FLOAT),
        helper.make_node("Cast", ["xf"], ["f"], to=T.FLOAT),
        helper.make_node("Mul", ["i", "f"], ["p"]),
        helper.make_node("Cast", ["p"], ["ye"], to=T.FLOAT8E5M2),
        helper.make_node("Cast", ["xf"], ["yh"], to=T.FLOAT16),
        helper.make_node("Identity", ["xi"], ["yi"]),
    ]
    kinds = {"xi": T.INT4, "xf": T.FLOAT8E4M3FN, "ye": T.FLOAT8E5M2, "yh": T.FLOAT16, "yi": T.INT4}
    return written(path, nodes, {}, {name: (kind, [3, 33]) for name, kind in kinds.items()})


@pytest.mark.quick_cases("blocks")
@pytest.mark.feature("L17", "L19", "L27")
@pytest.mark.parametrize("make", [blocks, contrib, described, ports])
def test_models_of_few_bits_are_native_right_and_small(tmp_path: Path, make: Any) -> None:
    path = make(tmp_path / "model.onnx")
    result = compiled(path, "--no-bounds", "--strict", "--device", SLOW_MEMORY)
    assert result.code == 0, result.error
    assert result.native == result.total
    assert set(result.verdicts) <= {"exact", "within rounding"}
    for weights in path.with_suffix(".tilec").glob("weights-*.safetensors"):
        assert weights.stat().st_size <= 1.05 * path.stat().st_size
