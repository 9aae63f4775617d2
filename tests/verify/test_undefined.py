"""Conversions that ONNX leaves undefined: found, drawn, and told from those that saturate."""

import numpy as np
import pytest

from tests.programs import tensor as expression
from tilec.ir.evaluate import evaluate
from tilec.verify.undefined import CHOICE, with_undefined_elements


def drawn(text, x, kinds, choice):
    expr = with_undefined_elements(expression(text, {"i": len(x)}), kinds)
    return evaluate(expr, {"x": x, CHOICE: np.array(choice)}).tolist()


def test_elements_outside_of_the_type_take_either_end():
    x = np.array([-1.5, -0.5, 300.0, 7.9, np.nan], np.float32)
    assert drawn("y[i] = u8(x[i])", x, {"x": "f32"}, [True, True, False, False, True]) == [0, 0, 255, 7, 0]
    assert drawn("y[i] = u8(x[i])", x, {"x": "f32"}, [False, False, True, False, False]) == [255, 0, 0, 7, 255]
    wide = np.array([-1.5, 2e19])
    assert drawn("y[i] = u64(x[i])", wide, {"x": "f64"}, [False, True]) == [2**64 - 1, 0]


@pytest.mark.parametrize("text", ["y[i] = u8(round(x[i] / 0.5) + 3.0)", "y[i] = f32(i32(y8[i]))", "y[i] = x[i] * 2.0"])
def test_what_is_defined_stays(text):
    expr = expression(text, {"i": 4})
    assert with_undefined_elements(expr, {"x": "f32", "y8": "u8"}) is expr
