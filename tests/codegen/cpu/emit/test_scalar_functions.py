"""Every function, operator and cast of the scalar language against NumPy, for every type that takes it."""

import itertools
import re
from collections.abc import Iterator
from contextlib import suppress

import numpy as np
import pytest

from tests.codegen.cpu.running import AVX512, NEON, Batch, close
from tests.programs import compute, tensor, whole
from tilec.ir.evaluate import evaluate
from tilec.ir.plan import PlanLevel
from tilec.ir.program import Program
from tilec.ir.scalars import BITCASTS, FUNCTIONS, fits, type_of
from tilec.ir.types import TTYPES, numpy_dtype

COUNT = 21
FLOATS, INTS = ("f32", "f64", "f16", "bf16"), ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
ODD = (np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -2.5, 1e-3)


def values(ttype: str, seed: int) -> np.ndarray:
    """Special values first, then random ones."""
    rng = np.random.default_rng(seed)
    if ttype in FLOATS:
        x = rng.normal(0, 2, COUNT)
        x[: len(ODD)] = rng.permutation(ODD)
        return x.astype(numpy_dtype(ttype))
    if ttype == "bool":
        return rng.integers(0, 2, COUNT).astype(bool)
    limits = np.iinfo(numpy_dtype(ttype))
    x = rng.integers(limits.min, limits.max, COUNT, numpy_dtype(ttype), endpoint=True)
    x[:4] = (limits.min, limits.max, 0, 1)
    return x


def program(bodies: list[tuple[str, str]], operands: dict[str, str]) -> Program:
    """Vectors `y0[i] = ...`, `y1[i] = ...` of the given types from the same operands."""
    inputs = [whole(name, (COUNT,), ttype=ttype) for name, ttype in operands.items()]
    outputs = [whole(f"y{k}", (COUNT,), ttype=ttype) for k, (_, ttype) in enumerate(bodies)]
    tiles = tuple(compute(tensor(f"y{k}[i] = {body}", {"i": COUNT}), f"y{k}", "") for k, (body, _) in enumerate(bodies))
    names = tuple(b.name for b in outputs)
    return Program("k", (PlanLevel("dram", None),), (), (*inputs, *outputs), names, tiles)


PLAIN = tuple(name for name, ttype in TTYPES.items() if not ttype.coded)
CASES: list[tuple[str, dict[str, str], str]] = []
for name, function in FUNCTIONS.items():
    kinds = {"float": FLOATS, "integer": INTS, "number": FLOATS + INTS, "bool": ("bool",)}
    for ttype in kinds.get(function.takes, (*FLOATS, *INTS, "bool")):
        call = f"{name}(a[i])" if function.arity == 1 else f"{name}(a[i], b[i])"
        operands = {"a": ttype} if function.arity == 1 else {"a": ttype, "b": ttype}
        CASES.append(
            (
                f"{'not a[i]' if name == 'not' else call}",
                operands,
                "bool" if function.returns == "bool" else ttype,
            )
        )
for op, ttype in itertools.product(["+", "-", "*"], FLOATS + INTS):
    CASES.append((f"a[i] {op} b[i]", {"a": ttype, "b": ttype}, ttype))
CASES.extend(("a[i] / b[i]", {"a": ttype, "b": ttype}, ttype) for ttype in FLOATS)
for op, ttype in itertools.product(("//", "%"), INTS):
    CASES.append((f"a[i] {op} b[i]", {"a": ttype, "b": ttype}, ttype))
    CASES.append((f"a[i] {op} 3", {"a": ttype}, ttype))
for fn, ttype in itertools.product(("fmod", "truncdiv"), ("i64", "u64")):
    CASES.append((f"{fn}(a[i], {2**53 + 1})", {"a": ttype}, ttype))
for op, ttype in itertools.product(["<", "<=", ">", ">=", "==", "!="], (*FLOATS, "i8", "u64", "i32")):
    CASES.append((f"a[i] {op} b[i]", {"a": ttype, "b": ttype}, "bool"))
CASES.extend((f"a[i] {op} b[i]", {"a": "bool", "b": "bool"}, "bool") for op in ("and", "or", "==", "!="))
CASES.extend((f"{target}(a[i])", {"a": source}, target) for source, target in itertools.product(PLAIN, PLAIN))
CASES.extend(
    (f"{fn}(a[i])", {"a": source}, target)
    for source, (fn, target) in itertools.product((*FLOATS, *INTS), BITCASTS.items())
    if TTYPES[source].bits == TTYPES[target].bits
)
for ttype in (*FLOATS, *INTS, "bool"):
    CASES.append(("where(c[i], a[i], b[i])", {"c": "bool", "a": ttype, "b": ttype}, ttype))
    CASES.append(("a[i]", {"a": ttype}, ttype))
CASES.extend((f"pow(a[i], {p})", {"a": "f32"}, "f32") for p in ("2", "3", "4.0", "0.5", "-0.5", "-1.0", "-2.0", "1.5"))
CASES += [
    ("maximum(a[i], 0.0)", {"a": "f32"}, "f32"),
    ("minimum(1.0, a[i])", {"a": "f32"}, "f32"),
    ("where(i < 5, a[i], -1.0)", {"a": "f32"}, "f32"),
    ("f32(i) + a[i]", {"a": "f32"}, "f32"),
    ("i * 3 % 5 - i // 2", {"a": "i64"}, "i64"),
    ("True", {"a": "i64"}, "bool"),
    ("-0.0", {"a": "i64"}, "f32"),
]


def constants_of(ttype: str) -> tuple[str, ...]:
    return (
        ("True", "False") if ttype == "bool" else ("1.5", "-2", "inf", "nan") if ttype in FLOATS else ("3", "-1", "0")
    )


def with_constants(cases: list[tuple[str, dict[str, str], str]]) -> Iterator[tuple[str, dict[str, str], str]]:
    """The cases with literals in place of each operand, and of all of them, where the language allows it."""
    for body, operands, result in cases:
        names = [name for name in operands if f"{name}[i]" in body]
        choices = [{name: literal} for name in names for literal in constants_of(operands[name])]
        choices += [{name: constants_of(operands[name])[n] for name in names} for n in range(2)]
        for choice in choices:
            text = re.sub(r"\b([abc])\[i\]", lambda found, to=choice: f"({to.get(found[1], found[0])})", body)
            slow = text.startswith("pow") and operands["a"] in ("i64", "u64")  # LLVM takes a second for each
            with suppress(TypeError, ValueError):
                if fits(type_of(tensor(f"y[i] = {text}", {"i": COUNT}).body, operands), result) and not slow:
                    yield text, operands, result


CASES += [*with_constants(CASES)]


def arrays(operands: dict[str, str]) -> dict[str, np.ndarray]:
    """Values for the operands."""
    return {name: values(ttype, seed) for seed, (name, ttype) in enumerate(operands.items())}


def grouped(step: int = 1) -> list[tuple[dict[str, str], list[tuple[str, str]]]]:
    """Every `step`-th case and all copies, those that read the same operands together."""
    groups: dict[tuple, list[tuple[str, str]]] = {}
    for body, operands, result in [*CASES[::step], *(case for case in CASES if case[0] == "a[i]")]:
        groups.setdefault(tuple(operands.items()), []).append((body, result))
    return [(dict(operands), bodies) for operands, bodies in groups.items()]


@pytest.fixture(
    scope="module",
    params=[pytest.param((AVX512, 1), marks=pytest.mark.slow), (AVX512, 13), (NEON, 17)],
    ids=["all in 64 bytes", "64 bytes", "16 bytes"],
)
def results(request, tmp_path_factory):
    """(groups, their outputs): all cases with wide vectors, some of them, others with narrow ones."""
    target, step = request.param
    batch, groups = Batch(), grouped(step)
    for operands, bodies in groups:
        batch.add(program(bodies, operands), arrays(operands), target)
    return groups, batch.run(tmp_path_factory.mktemp("scalars"))


@pytest.mark.feature("L05")
def test_all_functions_agree_with_numpy(results):
    wrong = []
    for (operands, bodies), made in zip(*results, strict=True):
        inputs = arrays(operands)
        for k, (body, result) in enumerate(bodies):
            with np.errstate(all="ignore"):
                want = evaluate(tensor(f"y[i] = {body}", {"i": COUNT}), inputs, ttype=result)
            got = made[f"y{k}"]
            if not close(got, want, 1e-2 if result in ("f16", "bf16") else 3e-6 if result == "f32" else None):
                bad = [i for i in range(COUNT) if not close(got[i : i + 1], want[i : i + 1], 1e-2)][:3]
                wrong.append(f"{body} {operands}: {[(i, got[i], want[i]) for i in bad]}")
    assert not wrong, "\n".join(wrong)


def test_movement_keeps_bits(results):
    """Copies do not go through arithmetic: payloads of NaN and signs of zero survive."""
    for (operands, bodies), made in zip(*results, strict=True):
        for k, (body, result) in enumerate(bodies):
            if body == "a[i]" and operands["a"] == result:
                assert made[f"y{k}"].tobytes() == arrays(operands)["a"].tobytes(), operands
