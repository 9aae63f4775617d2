"""ONNX's element types: their numbers, and what they are called here."""

ELEMENT_TYPES = {
    1: "f32",
    2: "u8",
    3: "i8",
    4: "u16",
    5: "i16",
    6: "i32",
    7: "i64",
    9: "bool",
    10: "f16",
    11: "f64",
    12: "u32",
    13: "u64",
    16: "bf16",
    17: "e4m3fn",
    18: "e4m3fnuz",
    19: "e5m2",
    20: "e5m2fnuz",
    21: "u4",
    22: "i4",
    23: "e2m1",
    24: "e8m0",
    25: "u2",
    26: "i2",
}
"""ONNX element type -> tType."""

LEFT_TO_ONNXRUNTIME = "Let onnxruntime run it: leave --strict out."


def element_type_name(code: int) -> str:
    """ONNX's name of an element type, for messages."""
    from onnx import TensorProto

    try:
        return str(TensorProto.DataType.Name(code))
    except ValueError:
        return f"number {code}"
