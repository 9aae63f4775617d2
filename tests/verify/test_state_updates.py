"""States beside the model's: those with room have the model's rows first, and behind them what was there."""

import numpy as np

from tests.language_models.written import CHANNELS, GROUPS, standard
from tilec.importer import import_model
from tilec.ir.bind_plan import bind_plan
from tilec.scheduler import schedule
from tilec.spec.recipe import ScheduleOptions
from tilec.spec.resolve import resolve_device
from tilec.verify.state_updates import model_feeds, state_names, with_rooms

PAST, PRESENT = "past_key_values.0.key", "present.0.key"


def test_the_model_takes_the_rows_that_there_are_and_its_outputs_come_before_what_was_behind(tmp_path):
    graph = import_model(standard(tmp_path / "m.onnx"), state="in-place").graph
    plan = schedule(graph, resolve_device("zen5-avx512"), ScheduleOptions(effort="quick", variants=1))
    assert state_names(plan) == {}
    bound = bind_plan(plan, {"batch": 2, "new": 3, "past": 4, "capacity": 9})
    state = np.arange(2 * GROUPS * 9 * CHANNELS, dtype="f4").reshape(2, GROUPS, 9, CHANNELS)
    feeds = {"input_ids": np.zeros((2, 3), int), PAST: state, "past": np.zeros(4, bool)}
    taken = model_feeds(bound, feeds)
    assert list(taken) == ["input_ids", PAST]
    np.testing.assert_array_equal(taken[PAST], state[:, :, :4])
    made = with_rooms(bound, feeds, {"logits": np.ones(3), PRESENT: np.full((2, GROUPS, 7, CHANNELS), -1, "f4")})
    assert (made[PRESENT][:, :, :7] == -1).all()
    np.testing.assert_array_equal(made[PRESENT][:, :, 7:], state[:, :, 7:])
    assert made["logits"].shape == (3,)
