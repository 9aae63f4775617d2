"""Elements of words."""

from tilec.ir.dots import joined
from tilec.ir.text import parse_expr


def test_what_is_joined_is_read_nowhere_else() -> None:
    body = parse_expr("dot_bf16_bf16(word(x[m, k], x[m, k + i[m]]), w[k])")
    assert joined(body) == {"x", "i"}
    assert joined(parse_expr("dot_bf16_bf16(word(x[m, k], z[k]), w[k]) + f32(x[m, 0])")) == {"z"}
    assert joined(parse_expr("x[m] * w[m]")) == set()
