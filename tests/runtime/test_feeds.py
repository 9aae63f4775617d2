import ml_dtypes
import numpy as np
import pytest

from tilec.abi.manifest import TensorSpec
from tilec.errors import UsageError
from tilec.runtime.feeds import describe, gather_inputs, gather_outputs

SPECS = (TensorSpec("image", "f32", (2, 3)), TensorSpec("count", "i64", ()))
FEEDS = {"image": np.arange(6, dtype=np.float32).reshape(2, 3), "count": np.array(5)}


def layouts():
    base = np.arange(6, dtype=np.float32).reshape(2, 3)
    raw = np.zeros(25, np.uint8)
    unaligned = raw[1:].view(np.float32).reshape(2, 3)
    unaligned[:] = base
    return {
        "fortran": np.asfortranarray(base),
        "transposed": base.T.copy().T,
        "negative steps": base[::-1, ::-1].copy()[::-1, ::-1],
        "strided": np.repeat(np.repeat(base, 2, 0), 3, 1)[::2, ::3],
        "big endian": base.astype(">f4"),
        "unaligned": unaligned,
        "read-only": np.frombuffer(base.tobytes(), np.float32).reshape(2, 3),
        "list": base.tolist(),
    }


@pytest.mark.parametrize("layout", list(layouts()))
def test_any_layout_becomes_contiguous(layout):
    array = layouts()[layout]
    if layout == "list":
        array = np.float32(array)
    image, count = gather_inputs(SPECS, {**FEEDS, "image": array})
    np.testing.assert_array_equal(image, FEEDS["image"])
    assert image.flags.c_contiguous
    assert image.flags.aligned
    assert image.dtype == np.dtype("=f4")
    assert count == 5


def test_broadcast_arrays_are_copied_out():
    wide = np.broadcast_to(np.float32([1, 2, 3]), (2, 3))
    np.testing.assert_array_equal(gather_inputs(SPECS, {**FEEDS, "image": wide})[0], wide)


def test_contiguous_arrays_are_not_copied():
    assert gather_inputs(SPECS, FEEDS)[0] is FEEDS["image"]


def test_scalars_keep_their_rank():
    spec = TensorSpec("s", "f32", ())
    assert gather_inputs((spec,), {"s": np.array(3, ">f4")})[0].shape == ()


@pytest.mark.parametrize(("ttype", "dtype"), [("bf16", ml_dtypes.bfloat16), ("f16", np.float16), ("bool", np.bool_)])
def test_other_element_types(ttype, dtype):
    array = np.ones((2, 4), dtype)[:, ::2]
    given = gather_inputs((TensorSpec("x", ttype, (2, 2)),), {"x": array})[0]
    assert given.dtype == dtype
    assert given.flags.c_contiguous


@pytest.mark.parametrize(
    ("feeds", "message"),
    [
        ({"count": np.array(5)}, r"input 'image' is missing\n  It is float32\[2, 3\]"),
        ({**FEEDS, "imagee": 1}, r"no input 'imagee'\n  Did you mean 'image'"),
        ({**FEEDS, "zzz": 1}, r"no input 'zzz'\n  The inputs are 'image', 'count'"),
        ({**FEEDS, "image": np.zeros((2, 3))}, r"element type float64, the model has float32"),
        (
            {**FEEDS, "image": np.zeros((3, 2), "f4")},
            r"shape \[3, 2\], the model has \[2, 3\]\n  It runs at other sizes only where",
        ),
        ({**FEEDS, "count": np.array([5])}, r"'count' has shape \[1\], the model has \[\]"),
        ({**FEEDS, "image": "text"}, r"element type str"),
    ],
)
def test_unfit_feeds_are_explained(feeds, message):
    with pytest.raises(UsageError, match=message):
        gather_inputs(SPECS, feeds)


def test_outputs_are_fresh_unless_given():
    given = np.empty((2, 3), np.float32)
    image, count = gather_outputs(SPECS, {"image": given}, [])
    assert image is given
    assert count.shape == ()


@pytest.mark.parametrize(
    "given",
    [
        np.empty((3, 2), np.float32).T,
        np.empty((2, 3), ">f4"),
        np.empty(25, np.uint8)[1:].view(np.float32).reshape(2, 3),
    ],
)
def test_unusable_outputs_are_replaced(given):
    assert gather_outputs(SPECS, {"image": given}, [])[0] is not given


def test_outputs_that_share_memory_are_replaced():
    memory = np.zeros(9, np.float32)
    first, second = memory[:6].reshape(2, 3), memory[3:].reshape(2, 3)
    assert gather_outputs(SPECS, {"image": first}, [memory])[0] is not first
    specs = (SPECS[0], TensorSpec("other", "f32", (2, 3)))
    kept, replaced = gather_outputs(specs, {"image": first, "other": second}, [])
    assert kept is first
    assert replaced is not second


def test_unfit_outputs_are_explained():
    read_only = np.zeros((2, 3), np.float32)
    read_only.flags.writeable = False
    for out, message in [
        ({"image": read_only}, "read-only"),
        ({"image": [1]}, "no NumPy array"),
        ({"image": np.zeros((2, 3))}, "float64"),
        ({"imag": np.zeros(1)}, r"no output 'imag'\n  Did you mean 'image'"),
    ]:
        with pytest.raises(UsageError, match=message):
            gather_outputs(SPECS, out, [])


def test_describe():
    assert describe(TensorSpec("x", "bf16", (1, 0))) == "bfloat16[1, 0]"


def test_arrays_of_a_gpu_are_refused_by_code_on_the_cpu():
    class OnDevice:
        __cuda_array_interface__ = np.zeros((2, 3), np.float32).__array_interface__

    with pytest.raises(UsageError, match="input 'x' lies on a GPU"):
        gather_inputs([TensorSpec("x", "f32", (2, 3))], {"x": OnDevice()})
