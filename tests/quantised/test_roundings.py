"""Products whose activations are rounded: integers of 8 or 15 bits, native, as near as promised, and told."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray
from onnx import helper

from quantised.compile import compiled
from quantised.test_few_bits import written
from tilec import load

M, K, N, BLOCK = 3, 256, 96, 32
NEAR = {"a8": 1e-2, "a15": 3e-5}
"""Distance from the product of real numbers that is allowed, of the largest one."""

Array = NDArray[Any]


def nibbles(packed: Array) -> Array:
    """Elements of 4 bits, the lower ones first."""
    return np.stack([packed & 15, packed >> 4], -1).reshape(*packed.shape[:-1], -1).astype(np.float64)


def contrib(path: Path, zeros: bool, level: int = 4) -> tuple[Path, Array]:
    """MatMulNBits, and its weight."""
    rng = np.random.default_rng(7)
    arrays = {
        "q": rng.integers(0, 256, (N, K // BLOCK, BLOCK // 2), np.uint8),
        "s": rng.uniform(0.005, 0.015, (N, K // BLOCK)).astype(np.float32),
    }
    if zeros:
        arrays["z"] = rng.integers(0, 256, (N, K // BLOCK // 2), np.uint8)
    options = {"K": K, "N": N, "bits": 4, "block_size": BLOCK, "domain": "com.microsoft", "accuracy_level": level}
    node = helper.make_node("MatMulNBits", ["x", *arrays], ["y"], **options)
    zero = nibbles(arrays["z"])[..., None] if zeros else 8.0
    weight = (nibbles(arrays["q"]) - zero) * arrays["s"][..., None]
    return written(path, [node], arrays, PORTS), weight.reshape(N, K).T


def blocked(path: Path) -> tuple[Path, Array]:
    """DequantizeLinear in blocks and MatMul, and its weight."""
    rng = np.random.default_rng(8)
    codes, zero = rng.integers(0, 16, (K, N)), rng.integers(0, 16, (K // BLOCK, N))
    scale = rng.uniform(0.005, 0.015, (K // BLOCK, N)).astype(np.float32)
    arrays = {"q": codes.astype(ml_dtypes.uint4), "s": scale, "z": zero.astype(ml_dtypes.uint4)}
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["w"], axis=0, block_size=BLOCK),
        helper.make_node("MatMul", ["x", "w"], ["y"]),
    ]
    weight = (codes - np.repeat(zero, BLOCK, 0)) * np.repeat(scale, BLOCK, 0)
    return written(path, nodes, arrays, PORTS), weight


def floats(path: Path) -> tuple[Path, Array]:
    """MatMul with a weight of integers times a power of two, which rounding to integers leaves as they are."""
    codes = np.random.default_rng(9).integers(-7, 8, (K, N))
    codes[::BLOCK] = 7
    weight = codes * 0.25
    return written(
        path, [helper.make_node("MatMul", ["x", "w"], ["y"])], {"w": weight.astype(np.float32)}, PORTS
    ), weight


PORTS = {"x": (1, [M, K]), "y": (1, [M, N])}
CASES: dict[str, tuple[Callable[[Path], tuple[Path, Array]], dict[str, Any], str]] = {
    "accuracy_level": (lambda path: contrib(path, zeros=False), {}, "a8"),
    "accuracy_level and zero points": (lambda path: contrib(path, zeros=True), {}, "a8"),
    "contrib a15": (lambda path: contrib(path, zeros=True), {"compute": {"q": "a15"}}, "a15"),
    "blocked a8": (blocked, {"compute": {"*": "a8"}}, "a8"),
    "blocked a15": (blocked, {"compute": {"q": "a15"}}, "a15"),
    "signed a15": (floats, {"types": {"w": f"i4[{BLOCK}]*f32"}, "compute": {"w": "a15"}}, "a15"),
    "bytes of a column a8": (floats, {"types": {"w": "i8[column]"}, "compute": {"w": "a8"}}, "a8"),
}


def recipe(folder: Path, keys: dict[str, Any]) -> list[str]:
    """Options for a recipe with these keys."""
    path = folder / "recipe.yaml"
    path.write_text(json.dumps({"kind": "compile", **keys}), encoding="utf-8")
    return ["--recipe", str(path)]


@pytest.mark.slow
@pytest.mark.feature("L01", "L05", "L27")
@pytest.mark.parametrize("case", CASES)
def test_rounded_activations_are_near_and_as_onnxruntime_rounds_them(tmp_path: Path, case: str) -> None:
    make, keys, compute = CASES[case]
    path, weight = make(tmp_path / "model.onnx")
    result = compiled(path, "--no-bounds", "--strict", *recipe(tmp_path, keys))
    assert result.code == 0, result.error
    build = path.with_suffix(".tilec")
    (rounding,) = json.loads((build / "2-plan.json").read_text())["roundings"].values()
    assert rounding["compute"] == compute
    assert rounding["unit"]
    x = np.random.default_rng(1).standard_normal((M, K)).astype(np.float32)
    (made,) = load(build).run({"x": x}).values()
    exact = x @ weight
    error = np.abs(made - exact).max() / np.abs(exact).max()
    assert 0 < error <= NEAR[compute]
    if not keys:
        import onnxruntime

        (wanted,) = onnxruntime.InferenceSession(path).run(None, {"x": x})
        np.testing.assert_allclose(made, wanted, rtol=0, atol=1e-6 * np.abs(exact).max())


@pytest.mark.feature("L13")
def test_products_are_exact_where_no_unit_takes_their_words_and_the_plan_says_why(tmp_path: Path) -> None:
    path, _ = contrib(tmp_path / "model.onnx", zeros=False)
    options = ("--no-bounds", "--device", "neon", "--to", "schedule")
    assert compiled(path, *options, *recipe(tmp_path, {"compute": {"*": "a15"}})).code == 0
    plan = json.loads((path.with_suffix(".tilec") / "2-plan.json").read_text())
    assert [each["reason"] for each in plan["roundings"].values()] == ["no-unit"]
    assert not any(name.endswith("_codes1") for name in plan["tensors"])


@pytest.mark.feature("L01")
def test_a_recipe_overrides_the_model_and_must_match_a_weight(tmp_path: Path) -> None:
    path, _ = contrib(tmp_path / "model.onnx", zeros=False)
    assert compiled(path, "--to", "schedule", *recipe(tmp_path, {"compute": {"q": "exact"}})).code == 0
    assert "roundings" not in json.loads((path.with_suffix(".tilec") / "2-plan.json").read_text())
    result = compiled(path, "--to", "schedule", *recipe(tmp_path, {"compute": {"nothing": "a8"}}))
    assert (result.code, "'nothing' matches no weight" in result.error) == (2, True)
