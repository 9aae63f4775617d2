"""Inputs from a file: what must be in it, and types that NumPy's files do not know."""

import ml_dtypes
import numpy as np
import pytest
from cli import models

from tilec.errors import UsageError
from tilec.verify.input_files import InputFile, feedings, feeds_of, labelled, unfeedable
from tilec.verify.inputs import Draw
from verify.plans import node, plan_of, tensor

PLAN = plan_of([node("y[i] = x[i]", {"i": 3})], {"x": tensor("bf16", 3)}, ["y"], {"y": "bf16"})


def test_a_file_stands_for_all_draws(tmp_path):
    model = models.mlp(tmp_path / "m.onnx")
    assert feedings((0, 1), None, model) == (Draw(0), Draw(1, 3.0))
    (given,) = feedings((0, 1), str(tmp_path / "in.npz"), model)
    assert given == InputFile(tmp_path / "in.npz")
    assert labelled(given) == {"inputs": "in.npz"}
    assert labelled(Draw(1, 3.0)) == {"seed": 1, "mean": 3.0}


def test_arrays_keep_their_types(tmp_path):
    np.savez(tmp_path / "in.npz", x=np.array([1, 2, 3], ml_dtypes.bfloat16), more=np.zeros(2))
    found = feeds_of(PLAN, InputFile(tmp_path / "in.npz"))
    assert list(found) == ["x"]
    assert found["x"].dtype == ml_dtypes.bfloat16
    assert found["x"].tolist() == [1, 2, 3]


def test_what_is_wrong_with_a_file_is_said(tmp_path):
    np.savez(tmp_path / "other.npz", xx=np.zeros(3))
    with pytest.raises(UsageError, match=r"the input 'x' is not in it\n  Did you mean 'xx'"):
        feeds_of(PLAN, InputFile(tmp_path / "other.npz"))
    (tmp_path / "text.npz").write_text("no arrays")
    np.save(tmp_path / "one.npy", np.zeros(3))
    (tmp_path / "cut.npz").write_bytes((tmp_path / "other.npz").read_bytes()[:60])
    for name, said in (("none.npz", "no such file"), ("text.npz", "no .npz file"), ("one.npy", "without a name")):
        with pytest.raises(UsageError, match=said):
            feeds_of(PLAN, InputFile(tmp_path / name))
    with pytest.raises(UsageError, match=r"cut\.npz"):
        feeds_of(PLAN, InputFile(tmp_path / "cut.npz"))


def test_what_cannot_be_drawn_can_be_given():
    assert unfeedable(PLAN, None) is None
    assert unfeedable(PLAN, "in.npz") is None
