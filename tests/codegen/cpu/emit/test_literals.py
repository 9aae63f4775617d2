"""Literals of every type are those of NumPy in machine code and on the tile machine."""

import numpy as np

from tests.codegen.cpu.emit.test_emit_kernel import plain
from tests.codegen.cpu.running import Batch
from tests.codegen.literals import NUMBERS, values_of
from tilec.ir.expr import Const
from tilec.ir.text import text_of
from tilec.ir.types import TTYPES, numpy_dtype
from tilec.machine import execute


def of_its_kind(ttype, value):
    """Whether a literal stands beside tensors of a type: truths beside truths, floats beside floats."""
    return isinstance(value, bool) == (ttype == "bool") and (
        not isinstance(value, float) or TTYPES[ttype].kind == "float"
    )


def test_literals_are_those_of_numpy(tmp_path):
    batch, cases = Batch(), []
    for ttype in NUMBERS:
        values = [value for value in values_of(ttype) if of_its_kind(ttype, value)]
        body = "X[i]"
        for place, value in enumerate(values):
            body = f"where(i == {place}, {text_of(Const(value))}, {body})"
        n = len(values) + 1
        case = plain(f"Y[i] = {body}", {"i": n}, {"X": (n,)}, ttypes={"X": ttype, "Y": ttype})
        arrays = {"X": np.zeros(n, numpy_dtype(ttype))}
        batch.add(case.program(), arrays)
        cases.append((ttype, case, arrays))
    for (ttype, case, arrays), made in zip(cases, batch.run(tmp_path), strict=True):
        with np.errstate(all="ignore"):
            expected = case.reference(arrays)["Y"].tobytes()
            assert (ttype, execute(case.program(), arrays).outputs["Y"].tobytes()) == (ttype, expected)
        assert (ttype, made["Y"].tobytes()) == (ttype, expected)
