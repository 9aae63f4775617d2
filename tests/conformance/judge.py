"""Runs one case through a backend and says how it ended."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.conformance.cases import Case
from tilec.errors import TilecError
from tilec.ir.graph import Placement

NEWEST_IR = 13
"""onnxruntime reads no newer files."""


@dataclass(frozen=True)
class Result:
    """How a case ended: `status` is passed, failed (a wrong answer or an error that explains nothing), refused (one of
    tilec's own errors), crashed or timeout; `native` when onnxruntime took no part; `reason` why it failed or is not
    native."""

    name: str
    family: str
    operator: str
    expanded: bool
    status: str
    native: bool = False
    reason: str = ""
    seconds: float = 0.0


def ended(case: Case, status: str, native: bool = False, reason: str = "", seconds: float = 0.0) -> Result:
    """The result of a case."""
    return Result(case.name, case.family, case.operator, case.expanded, status, native, reason, round(seconds, 3))


def judged(case: Case, backend: str) -> Result:
    """Run a case through `tilec` or `onnxruntime` and compare with onnx's own tolerance."""
    from onnx.backend.test.runner import Runner

    start = time.perf_counter()
    rtol, atol = case.tolerances
    try:
        prepared = BACKENDS[backend](case)
        for inputs, expected in case.data():
            found = list(prepared.run([_fed(value) for value in inputs]))
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                Runner.assert_similar_outputs(expected, found, rtol, atol)
    except AssertionError as error:
        return ended(case, "failed", reason=_line(error), seconds=time.perf_counter() - start)
    except Exception as error:
        status = "refused" if isinstance(error, TilecError) else "failed"
        return ended(case, status, reason=described(error), seconds=time.perf_counter() - start)
    native, reason = placement_of(getattr(prepared, "placement", None))
    return ended(case, "passed", native, reason, time.perf_counter() - start)


def _tilec(case: Case) -> Any:
    import tilec.backend

    return tilec.backend.prepare(case.model())


def _onnxruntime(case: Case) -> Any:
    import onnxruntime
    from onnxruntime import backend

    onnxruntime.set_default_logger_severity(4)
    model = case.model()
    model.ir_version = min(model.ir_version, NEWEST_IR)
    return backend.prepare(model, "CPU", intra_op_num_threads=1, log_severity_level=4)


BACKENDS: dict[str, Callable[[Case], Any]] = {"tilec": _tilec, "onnxruntime": _onnxruntime}


def _fed(value: Any) -> Any:
    """Scalars as arrays; sequences and absent optionals as they are."""
    return value if value is None or isinstance(value, list) else np.asarray(value)


def placement_of(placement: Placement | None) -> tuple[bool, str]:
    """Whether onnxruntime has no part in a model, and why it has one; a peer's model has no placement."""
    if placement is None:
        return False, ""
    return not placement.fallback, "; ".join(dict.fromkeys(f"{n.op}: {n.reason}" for n in placement.fallback))


def described(error: Exception) -> str:
    """The error's class, message and notes; for a model with unsupported nodes their reasons."""
    nodes = getattr(error, "nodes", ())
    if nodes:
        return "; ".join(dict.fromkeys(f"{node.op}: {node.reason}" for node in nodes))
    message = f"{type(error).__name__}: {getattr(error, 'message', '') or _line(error)}"
    return " ".join((message, *getattr(error, "__notes__", ())))


def _line(error: Exception) -> str:
    """The first lines of a message as one."""
    return " ".join(str(error).split())[:300]
