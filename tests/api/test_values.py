"""OrtValue and element types, beside onnxruntime's."""

import numpy as np
import pytest

import tilec
from tilec.api.elements import code_of, dtype_of, type_name
from tilec.errors import UsageError

TYPES = [np.float32, np.float64, np.float16, np.int8, np.int16, np.int32, np.int64]
TYPES += [np.uint8, np.uint16, np.uint32, np.uint64, np.bool_]


@pytest.mark.parametrize("dtype", TYPES)
def test_values_tell_what_onnxruntimes_tell(dtype):
    import onnxruntime

    array = np.arange(6).reshape(2, 3).astype(dtype)
    mine, theirs = (module.OrtValue.ortvalue_from_numpy(array) for module in (tilec, onnxruntime))
    for method in ("shape", "data_type", "element_type", "device_name", "is_tensor", "is_sparse_tensor", "has_value"):
        assert getattr(mine, method)() == getattr(theirs, method)()
    assert mine.is_tensor_sequence() == theirs.is_tensor_sequence()
    assert mine.tensor_size_in_bytes() == theirs.tensor_size_in_bytes()
    assert np.array_equal(mine.numpy(), theirs.numpy())
    assert np.array_equal(np.asarray(mine), array)


def test_a_value_shares_the_memory_of_its_array():
    array = np.zeros(3, np.float32)
    value = tilec.OrtValue.ortvalue_from_numpy(array)
    assert value.data_ptr() == array.ctypes.data
    value.update_inplace(np.ones(3, np.float32))
    assert array.tolist() == [1, 1, 1]
    value.update_inplace(tilec.OrtValue.ortvalue_from_numpy(np.full(3, 2, np.float32)))
    assert np.from_dlpack(value).tolist() == [2, 2, 2]
    assert tilec.OrtValue.from_dlpack(array).data_ptr() == array.ctypes.data


def test_update_refuses_what_does_not_fit():
    with pytest.raises(UsageError, match=r"float64\[3\] does not fit into float32\[2\]"):
        tilec.OrtValue.ortvalue_from_shape_and_type([2], np.float32).update_inplace(np.zeros(3))


def test_a_strided_array_is_copied():
    value = tilec.OrtValue.ortvalue_from_numpy(np.arange(6).reshape(2, 3).T)
    assert value.numpy().flags.c_contiguous
    assert value.shape() == [3, 2]


def test_empty_values_by_type():
    assert tilec.OrtValue.ortvalue_from_shape_and_type([2, 0], 16).data_type() == "tensor(bfloat16)"
    assert tilec.OrtValue.ortvalue_from_shape_and_type((), np.int64).shape() == []
    bits = tilec.OrtValue.ortvalue_from_numpy_with_onnx_type(np.array([0x3F80], np.uint16), 16)
    assert float(bits.numpy()[0]) == 1.0
    with pytest.raises(UsageError, match="99 is no element type of ONNX"):
        tilec.OrtValue.ortvalue_from_shape_and_type([1], 99)


def test_another_device_is_told_once_and_is_the_cpu():
    with pytest.warns(UserWarning, match="there is no device 'cuda' here: values stay on the CPU") as caught:
        values = [tilec.OrtValue.ortvalue_from_numpy(np.zeros(1), "cuda", 0) for _ in range(2)]
    assert len(caught) == 1
    assert values[0].device_name() == "cpu"


def test_sequences_and_maps_have_types():
    assert tilec.OrtValue([np.zeros(1, np.float32)]).data_type() == "seq(tensor(float))"
    assert tilec.OrtValue({"a": np.float32(1)}).data_type() == "map(string,tensor(float))"
    assert tilec.OrtValue([{1: np.float32(1)}]).data_type() == "seq(map(int64,tensor(float)))"
    with pytest.raises(UsageError, match="this value is no tensor"):
        tilec.OrtValue([]).numpy()


def test_element_types_go_both_ways():
    from onnx import TensorProto

    for name, code in TensorProto.DataType.items():
        if name not in ("UNDEFINED", "STRING") and not type_name(code).startswith("type"):
            assert code_of(dtype_of(code)) == code
    assert code_of(np.dtype("U3")) == code_of(np.dtype(object)) == TensorProto.STRING
