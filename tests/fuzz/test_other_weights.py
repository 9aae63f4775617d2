"""Random models whose weights change: code that is taken over gives the bits of code that is compiled for them."""

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

import tilec
from fuzz.draw import draw
from tilec.api import compiling, worker

WEIGHTS = (np.float32, np.float16, np.int8, np.uint8)


def with_other_weights(proto: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The model with its weights in another order, floats half as large."""
    made, rng = onnx.ModelProto(), np.random.default_rng(seed)
    made.CopyFrom(proto)
    for tensor in made.graph.initializer:
        values = numpy_helper.to_array(tensor)
        if values.size > 1 and values.dtype in WEIGHTS:
            scale = values.dtype.type(0.5 if values.dtype.kind == "f" else 1)
            other = np.ascontiguousarray(rng.permutation(values.ravel()).reshape(values.shape) * scale)
            tensor.CopyFrom(numpy_helper.from_array(other, tensor.name))
    return made


@pytest.mark.slow_cases("4")
@pytest.mark.parametrize("first", [0, 4])
def test_code_that_is_taken_over_is_that_of_the_weights(tmp_path, monkeypatch, first):
    compilations = []
    monkeypatch.setattr(compiling, "_run", lambda request: (compilations.append(request), worker.build(request)))
    taken = 0
    for index in range(first, first + 4):
        model = draw(5, index, 8)
        proto = with_other_weights(model.proto, index)

        def run(made, cache, feeds=model.feeds):
            return tilec.InferenceSession(made.SerializeToString(), cache=cache, device="host").run(None, feeds)

        run(model.proto, tmp_path / f"{index}")
        before = len(compilations)
        found = run(proto, tmp_path / f"{index}")
        taken += len(compilations) == before
        for ours, fresh in zip(found, run(proto, tmp_path / f"{index}-fresh"), strict=True):
            np.testing.assert_array_equal(ours, fresh)
    assert taken
