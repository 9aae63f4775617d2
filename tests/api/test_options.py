"""onnxruntime's options: taken, and told once when they have no effect."""

import warnings

import pytest

import tilec
from tilec.errors import UsageError


@pytest.mark.parametrize("kind", ["SessionOptions", "RunOptions"])
def test_options_have_onnxruntimes_names_and_defaults(kind):
    import onnxruntime

    mine, theirs = getattr(tilec, kind)(), getattr(onnxruntime, kind)()
    names = {name for name in dir(theirs) if not name.startswith("_") and not callable(getattr(theirs, name))}
    for name in names - {"profile_file_prefix"}:
        ours, default = getattr(mine, name), getattr(theirs, name)
        assert getattr(ours, "name", ours) == getattr(default, "name", default)


@pytest.mark.parametrize("name", ["GraphOptimizationLevel", "ExecutionMode", "ExecutionOrder"])
def test_enumerations_have_onnxruntimes_members(name):
    import onnxruntime

    theirs = {key: int(value) for key, value in getattr(onnxruntime, name).__members__.items()}
    assert {key: value.value for key, value in getattr(tilec, name).__members__.items()} == theirs


def test_an_option_without_effect_is_told_once_where_it_is_set():
    with pytest.warns(UserWarning, match="SessionOptions.optimized_model_filepath has no effect in tilec") as caught:
        [setattr(tilec.SessionOptions(), "optimized_model_filepath", name) for name in ("a.onnx", "b.onnx")]
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_an_unknown_option_is_told_and_ignored():
    with pytest.warns(UserWarning, match="SessionOptions has no option 'intra_op_threads': it is ignored"):
        tilec.SessionOptions().intra_op_threads = 2


def test_options_with_a_meaning_or_at_their_default_are_not_told():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        options = tilec.SessionOptions()
        options.intra_op_num_threads = 1
        options.graph_optimization_level = tilec.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"


def test_entries_that_are_not_there_and_negative_sizes_are_errors():
    with pytest.raises(UsageError, match="no configuration entry is called 'a'"):
        tilec.SessionOptions().get_session_config_entry("a")
    with pytest.raises(UsageError, match="a size cannot be negative: batch=-1"):
        tilec.SessionOptions().add_free_dimension_override_by_name("batch", -1)


def test_foreign_entries_are_told():
    with pytest.warns(UserWarning, match="'ep.dynamic.workload_type' has no effect"):
        tilec.SessionOptions().add_session_config_entry("ep.dynamic.workload_type", "Default")
    with pytest.warns(UserWarning, match="'gpu_graph_id' has no effect"):
        tilec.RunOptions().add_run_config_entry("gpu_graph_id", "1")
