import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from tests.torch_models.judge import error, faults, other_strides  # noqa: E402


def test_an_error_is_a_share_of_the_largest_value():
    exact = torch.tensor([1.0, -50.0, torch.inf, torch.nan])
    assert error(exact, exact) == 0
    assert error(torch.tensor([1.5, -50.0, torch.inf, torch.nan]), exact) == pytest.approx(0.01)
    assert error(torch.zeros(4), exact) == torch.inf


def test_a_result_may_be_as_far_off_as_eager_results_are():
    exact = torch.tensor([1.0], dtype=torch.float64)
    near, far = torch.tensor([1.001]), torch.tensor([1.01])
    assert faults(near, near, exact, "f32") == []
    assert faults(far, near, exact, "f32") == ["result 0: error 1.0e-02, eager's 1.0e-03"]


def test_types_shapes_and_integers_are_those_of_eager():
    whole = torch.arange(3)
    assert faults([whole, whole], [whole, whole + 1], [whole, whole], "f32") == ["result 1: other values than eager"]
    assert faults(whole.int(), whole, whole, "f32") == ["result 0: torch.int32 instead of torch.int64"]
    assert faults(whole[:2], whole, whole, "f32") == ["result 0: shape (2,) instead of (3,)"]
    assert faults([whole], whole, whole, "f32") == []
    assert faults([whole, whole], whole, whole, "f32") == ["2 tensors instead of 1"]


def test_roundings_decide_places_in_16_bits():
    eager, exact = torch.tensor([4, 2, 3]), torch.tensor([4, 3, 2])
    assert faults(torch.tensor([4, 7, 7]), eager, exact, "bf16") == []
    assert faults(torch.tensor([1, 2, 3]), eager, exact, "bf16") == ["result 0: other values than eager"]
    assert faults(torch.tensor([4, 3, 2]), eager, exact, "f32") == ["result 0: other values than eager"]


def test_strides_count_where_there_are_neighbours():
    x = torch.zeros(1, 3, 4)
    assert other_strides(x, x.as_strided((1, 3, 4), (99, 4, 1))) == []
    assert other_strides(x, x.transpose(1, 2).contiguous().transpose(1, 2)) == [
        "result 0: strides (12, 4, 1) instead of (12, 1, 3)"
    ]
