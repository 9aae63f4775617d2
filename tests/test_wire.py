"""The walker of protobuf messages."""

import onnx
import pytest
from onnx import helper

from tilec.wire import BYTES, VARINT, WireError, fields


def _model() -> bytes:
    node = helper.make_node("Relu", ["x"], ["y"])
    info = helper.make_tensor_value_info("x", 1, [300])
    graph = helper.make_graph([node], "g", [info], [helper.make_tensor_value_info("y", 1, [300])])
    data: bytes = helper.make_model(graph).SerializeToString()
    return data


def test_fields_have_numbers_types_and_places() -> None:
    data = _model()
    found = list(fields(data, 0, len(data)))
    assert [f.begin for f in found[1:]] == [f.end for f in found[:-1]]
    assert found[-1].end == len(data)
    version = next(f for f in found if f.number == 1)
    assert version.wire == VARINT
    assert version.value == onnx.ModelProto.FromString(data).ir_version
    graph = next(f for f in found if f.number == 7)
    assert graph.wire == BYTES
    assert onnx.GraphProto.FromString(data[graph.start : graph.end]).name == "g"


def test_every_cut_is_noticed_or_falls_between_fields() -> None:
    data = _model()
    ends = {0} | {f.end for f in fields(data, 0, len(data))}
    for size in range(len(data)):
        if size in ends:
            assert all(f.end <= size for f in fields(data, 0, size))
            continue
        with pytest.raises(WireError) as error:
            list(fields(data, 0, size))
        assert error.value.truncated


@pytest.mark.parametrize("data", [b"\x00\x01", b"\x0b\x01", b"\xff" * 11])
def test_what_is_no_message(data: bytes) -> None:
    with pytest.raises(WireError):
        list(fields(data, 0, len(data)))


def test_fixed_width_fields() -> None:
    data = b"\x09" + bytes(8) + b"\x15" + bytes(4)
    assert [(f.number, f.end - f.start) for f in fields(data, 0, len(data))] == [(1, 8), (2, 4)]
