"""Messages that are read without onnx hold what onnx reads."""

import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from tilec.importer.element_types import ELEMENT_TYPES, element_type_name
from tilec.importer.messages import MODEL, read_message
from tilec.wire import WireError


def typed(elem, shape):
    return helper.make_tensor_type_proto(elem, shape)


TYPES = {
    "tensor": typed(TensorProto.FLOAT, [2, "n", None, 0]),
    "scalar": typed(TensorProto.BFLOAT16, []),
    "no shape": typed(TensorProto.STRING, None),
    "sparse": helper.make_sparse_tensor_type_proto(TensorProto.DOUBLE, [4]),
    "sequence": helper.make_sequence_type_proto(typed(TensorProto.INT64, ["n"])),
    "optional": helper.make_optional_type_proto(helper.make_sequence_type_proto(typed(TensorProto.BOOL, None))),
    "map": helper.make_map_type_proto(TensorProto.INT64, typed(TensorProto.FLOAT, [])),
    "none": onnx.TypeProto(),
}


def model():
    """A model with a port of each type, weights within and beside the file, metadata, and nodes."""
    ports = [helper.make_value_info(name, proto) for name, proto in TYPES.items()]
    beside = TensorProto(name="beside", data_type=1, dims=[1], data_location=TensorProto.EXTERNAL)
    beside.external_data.add(key="location", value="weights.bin")
    beside.external_data.add(key="offset", value="16")
    within = numpy_helper.from_array(numpy_helper.to_array(helper.make_tensor("w", 1, [2], [1, 2])), "within")
    nodes = [helper.make_node("Constant", [], ["c"], value=within), helper.make_node("Add", ["c", "c"], ["d"])]
    graph = helper.make_graph(nodes, "g", ports, ports[:2], [beside, within], doc_string="a graph")
    made = helper.make_model(graph, ir_version=9, producer_name="exporter", model_version=-3, domain="d")
    helper.set_model_props(made, {"author": "ä", "empty": ""})
    return made


def read(data):
    return read_message(MODEL, data, 0, len(data))


def same(mine, theirs):
    """Compare all fields that are read with onnx's."""
    for kind in mine._schema.values():
        one, other = getattr(mine, kind.name), getattr(theirs, kind.name)
        if kind.many:
            assert len(one) == len(other)
            assert all(same(a, b) for a, b in zip(one, other, strict=True))
        elif isinstance(kind.holds, str):
            assert one == other, kind.name
            assert type(one) is type(other)
        else:
            assert mine.HasField(kind.name) == theirs.HasField(kind.name)
            assert not mine.HasField(kind.name) or same(one, other)
    return True


def test_fields_are_those_of_onnx():
    made = model()
    found = read(made.SerializeToString())
    assert same(found, made)
    assert len(found.graph.input) == len(TYPES)


@pytest.mark.parametrize("name", TYPES)
def test_types_say_what_they_are(name):
    found = next(port for port in read(model().SerializeToString()).graph.input if port.name == name)
    assert found.type.WhichOneof("value") == TYPES[name].WhichOneof("value")
    assert [dim.dim_param for dim in found.type.tensor_type.shape.dim] == [
        dim.dim_param for dim in TYPES[name].tensor_type.shape.dim
    ]


def test_text_that_is_none_stays_bytes():
    assert read(b"\x12\x02\xff\xfe").producer_name == b"\xff\xfe"


@pytest.mark.parametrize(
    "data",
    [b"\x3a\x05\x12", b"\x12\x01a\x12\x01b", b"\x10\x01", b"\x00\x01", b"\x0a\x01a"],
    ids=["truncated", "twice", "a number for a text", "no field", "a text for a number"],
)
def test_what_onnx_reads_better_is_refused(data):
    with pytest.raises(WireError):
        read(data)


def test_no_field_that_is_not_in_the_schema():
    with pytest.raises(AttributeError):
        _ = read(b"").nodes


def test_element_types_are_those_of_onnx():
    names = {"f": "FLOAT", "i": "INT", "u": "UINT", "bf": "BFLOAT"}
    for number, ttype in ELEMENT_TYPES.items():
        theirs = TensorProto.DataType.Name(number)
        assert element_type_name(number) == theirs
        letters, digits = ttype.rstrip("0123456789"), ttype[len(ttype.rstrip("0123456789")) :]
        plain = {"FLOAT": "FLOAT32", "DOUBLE": "FLOAT64"}.get(theirs, theirs)
        if letters in names and digits:
            assert plain == f"{names[letters]}{digits}"
        else:
            assert plain.replace("FLOAT8", "").replace("FLOAT4", "") == ttype.upper()
    assert element_type_name(999) == "number 999"
