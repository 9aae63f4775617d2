"""Products of words: every instruction, and what stands for it where there is none, against integers and float64."""

from pathlib import Path

import numpy as np
import pytest

from tests.codegen.cpu.running import AVX2, AVX512, Array, Batch
from tests.lower.cases import Case
from tilec.codegen.cpu.dot_instructions import INSTRUCTIONS
from tilec.codegen.cpu.target import CpuTarget
from tilec.ir.dots import DOTS, Dot
from tilec.ir.types import TTYPES, numpy_dtype
from tilec.spec.host import read_host

M, K, N = 5, 7, 37


def gemm(function: Dot, native: bool) -> Case:
    """Rows of elements joined to words, times words of weights; 37 columns are vectors of all widths."""
    joined = ", ".join(f"X[m, {function.count}*k + {j}]" for j in range(function.count))
    return Case(
        [f"A[m, k] = word({joined})", f"Y[m, n] = sum(k, {function.name}(A[m, k], W[k, n]))"],
        {"m": M, "k": K, "n": N},
        {"X": (M, K * function.count), "W": (K, N)},
        {"l2": {"Y": {"m": 5}}, "reg": {"A": {"m": 1, "k": 4}, "Y": {"m": 2, "n": 32}}},
        ttypes={"X": function.inputs[0], "W": "u32", "A": "u32", "Y": function.accumulator},
        more={"units": {"Y": "unit"}} if native else {},
    )


def elements(rng: np.random.Generator, ttype: str, shape: tuple[int, ...]) -> Array:
    """All codes of small integers, the ends of wider ones; floats of normal size."""
    if TTYPES[ttype].kind == "float":
        return rng.standard_normal(shape).astype(numpy_dtype(ttype))
    info = np.iinfo(numpy_dtype(ttype))
    drawn = rng.integers(info.min, info.max, shape, dtype=info.dtype, endpoint=True)
    return np.where(rng.random(shape) < 0.2, rng.choice([info.min, info.max], shape), drawn).astype(info.dtype)


def known(function: Dot) -> bool:
    """Whether this processor has the instruction."""
    instruction = INSTRUCTIONS.get((AVX512.architecture, function.name))
    features = set(instruction.features.values()) if instruction is not None else set()
    return {f"+{feature}" for feature in features} <= set(read_host().features)


@pytest.mark.feature("L21")
@pytest.mark.parametrize(("target", "native"), [(AVX512, True), (AVX2, True), (AVX512, False)])
def test_products_of_words(target: CpuTarget, native: bool, tmp_path: Path) -> None:
    rng, batch = np.random.default_rng(0), Batch()
    wanted = []
    for function in DOTS.values():
        x = elements(rng, function.inputs[0], (M, K * function.count))
        w = elements(rng, function.inputs[1], (K, N, function.count))
        words = {"X": x, "W": w.view(np.uint8).view(np.uint32)[..., 0]}
        batch.add(gemm(function, native and known(function)).program(), words, target)
        columns = w.transpose(0, 2, 1).reshape(K * function.count, N)
        exact = float if function.accumulator == "f32" else np.int64
        wanted.append((x.astype(exact) @ columns.astype(exact), function))
    for outputs, (exact_sum, function) in zip(batch.run(tmp_path), wanted, strict=True):
        (made,) = outputs.values()
        if function.accumulator == "f32":
            np.testing.assert_allclose(made, exact_sum, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_array_equal(made, exact_sum.astype(np.int32))
