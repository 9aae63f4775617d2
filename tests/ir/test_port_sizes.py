"""Sizes read off the shapes of inputs."""

from tilec.ir.graph import Port, Tensor
from tilec.ir.port_sizes import port_sizes, told_symbols
from tilec.ir.text import parse_expr


def test_sizes_are_read_off_dimensions_that_are_symbols() -> None:
    tensors = {"t": Tensor(tuple(map(parse_expr, ("batch", "seq + 1", "8"))), "f32"), "u": Tensor((), "f32")}
    ports = [Port("x", "t"), Port("y", "u"), Port("text", "opaque")]
    assert told_symbols(ports, tensors) == {"batch", "seq"}
    assert port_sizes(ports, tensors, {"x": (3, 5, 8), "y": (), "text": (2,)}) == {"batch": 3, "seq": 4}
