"""times: when groups and calls ran."""

from itertools import pairwise
from time import monotonic_ns

import numpy as np
import pytest

from tests.cpu_models import chain, chain_reference, write_model
from tilec.abi.manifest import Segment
from tilec.runtime import load
from tilec.runtime.times import Span, Times


@pytest.mark.parametrize("threads", [1, 2])
def test_every_launch_of_a_run_is_timed(tmp_path, threads):
    write_model(tmp_path, chain(12, 32, 40, repeat=20))
    session = load(tmp_path, threads=threads)
    x = np.random.default_rng(1).standard_normal((32, 40), np.float32)
    out = {"y": np.empty_like(x)}
    session.run({"x": x})
    for _ in range(20):
        spans = session.traced({"x": x}, out)
        assert len(spans) == 12
        assert all(span.begin <= span.end for span in spans)
        assert spans[-1].end <= monotonic_ns(), "noted before the caller may read it"
        assert all(one.end <= other.begin for one, other in pairwise(spans)), "each reads the last"
        np.testing.assert_array_equal(out["y"], chain_reference(x, 12))
    before = [(span.begin, span.end) for span in spans]
    np.testing.assert_array_equal(session.run({"x": x})["y"], chain_reference(x, 12))
    assert [(span.begin, span.end) for span in spans] == before


def test_calls_stand_between_the_launches_of_their_segments():
    times = Times((Segment(("a",), 1), Segment((), 1), Segment(("b", "c"), 2)))
    with times.call("fallback/0.onnx"):
        pass
    times.of(0)[:] = [[1, 2]]
    call = times.spans[-1]
    times.of(2)[:] = [[call.end + 5, call.end + 6], [call.end + 1, call.end + 9]]
    assert [span.name for span in times.spans] == ["a", "fallback/0.onnx", "c", "b"]
    assert times.spans[0] == Span("a", 1, 2)
