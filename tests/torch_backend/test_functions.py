"""Single functions of torch through the backend: a quarter at known sizes, of which every eighth is no slow case; the
rest in `make torch-functions`."""

import pytest

torch = pytest.importorskip("torch", reason="pip install tilec[torch]")

from torch_backend.function_judge import Outcome, difference, judged, share  # noqa: E402
from torch_backend.functions import FUNCTIONS  # noqa: E402

QUARTER = [
    pytest.param(name, marks=[] if number % 8 == 0 else [pytest.mark.slow])
    for number, name in enumerate(list(FUNCTIONS)[1::4])
]
VARIES = [
    "roll",
    "index_put of a cache",
    "adaptive_avg_pool2d uneven",
    "unfold of a dimension",
    "an integer that varies",
    "a size as a fraction",
    "rotary by complex numbers",
    "stft of a size",
]


@pytest.mark.parametrize("name", QUARTER)
def test_functions_are_those_of_pytorch(name, tmp_path):
    function = FUNCTIONS[name]
    outcome = judged(function, function.types[0], False, {"cache": str(tmp_path)})
    assert outcome is not None
    assert outcome.trouble == ""


@pytest.mark.slow_cases("index_put of a cache", "stft of a size", "unfold of a dimension")
@pytest.mark.parametrize("name", VARIES)
def test_functions_of_sizes_that_vary_are_native(name, tmp_path):
    outcome = judged(FUNCTIONS[name], torch.float32, True, {"cache": str(tmp_path)})
    assert outcome is not None
    assert (outcome.trouble, outcome.kept) == ("", [])


@pytest.mark.parametrize(
    ("name", "dtype"),
    [
        ("group_norm", torch.bfloat16),
        ("layer_norm under autocast", torch.float32),
        ("select_scatter", torch.bool),
        ("shifts of negative numbers", torch.int64),
        ("sign of special numbers", torch.float32),
        ("scatter_reduce without self", torch.float32),
        ("index_put of the last dimensions", torch.float32),
        ("index_put of dimensions apart", torch.float32),
        ("max_pool2d with indices", torch.float32),
        ("bucketize right", torch.float32),
        ("attention of groups", torch.float32),
        ("atan2", torch.float32),
        ("as_strided", torch.float32),
        ("irfft", torch.float32),
        ("isnan", torch.int64),
        ("where", torch.bool),
        ("addbmm of NaN that counts nothing", torch.float32),
        ("bilinear", torch.float32),
        ("cdist of itself", torch.float32),
        ("ldexp", torch.float16),
        ("median of NaN", torch.float32),
    ],
)
def test_functions_of_types_are_native(name, dtype, tmp_path):
    outcome = judged(FUNCTIONS[name], dtype, False, {"cache": str(tmp_path)})
    assert outcome is not None
    assert (outcome.trouble, outcome.kept) == ("", [])


def test_the_judge_sees_values_types_shapes_and_nan():
    x = torch.tensor([1.0, float("nan"), 3.0])
    assert difference(x, x.clone(), x.double()) == ""
    assert "for" in difference(torch.tensor([1.0, float("nan"), 3.1]), x, x.double())
    assert "NaN" in difference(torch.tensor([1.0, 2.0, 3.0]), x, x.double())
    assert "float64" in difference(x.double(), x, x.double())
    assert difference((x, x), (x,), (x,)) == "2 results for 1"
    assert difference(3, 4, None) == "result 0: 3 for 4"
    assert share([Outcome(4, 4), Outcome(4, 1)]) == pytest.approx(0.5)
