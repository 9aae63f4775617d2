"""States that a plan rounds, as the model has them: draws, codes, and back."""

import numpy as np
from state_models import growing

from tilec.importer import import_model
from tilec.ir.bind_plan import bind_plan
from tilec.ir.formats import parse_format
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device
from tilec.verify.cases import Case
from tilec.verify.inputs import Draw
from tilec.verify.rounded_states import drawn_states, model_numbers


def test_the_model_gets_the_numbers_that_a_plan_has_rounded(tmp_path):
    graph = import_model(growing(tmp_path / "m.onnx"), state="in-place", types={"past_k": parse_format("i8[8]")}).graph
    plan = schedule(graph, resolve_device("host"), ScheduleOptions(fusion="none", variants=1))
    bound = bind_plan(plan, {"b": 2, "new": 1, "past": 3, "capacity": 5})
    case = Case(Draw(7), bound, {})
    feeds, told = case.feeds, case.model_feeds
    assert set(feeds) - set(told) == {"past_k_scales", "past"}
    exact = drawn_states(bound, 7)["past_k"]
    np.testing.assert_array_equal(told["past_k"], exact[:, :3])
    assert feeds["past_k"].dtype == np.int8
    back = model_numbers(bound, feeds)["past_k"]
    steps = np.repeat(feeds["past_k_scales"], 8, -1)
    assert (np.abs(back - exact) <= steps * 0.51).all()
    assert (np.abs(feeds["past_k"]).reshape(2, 5, -1, 8).max(-1) == 127).all()
