"""Names of tensors and symbols."""

import pytest

from tilec.importer.names import Names, identifier


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("/encoder/layer.0/MatMul_output_0", "encoder_layer_0_MatMul"),
        ("gpu_0/res_conv1_bn_s_0", "gpu_0_res_conv1_bn_s_0"),
        ("123", "t_123"),
        ("", "t"),
        ("::", "t"),
        ("lambda", "lambda_"),
        ("sum", "sum_"),
        ("exp", "exp_"),
        ("f32", "f32_"),
        ("inf", "inf_"),
        ("größe", "gr_e"),
    ],
)
def test_identifiers_are_readable(given: str, expected: str) -> None:
    assert identifier(given, "t") == expected
    assert identifier(given, "t").isidentifier()


def test_each_name_is_given_once() -> None:
    names = Names()
    assert [names.take(n) for n in ("a", "a", "a_2", "a", "b")] == ["a", "a_2", "a_2_2", "a_3", "b"]
    assert [names.numbered(n) for n in ("a", "a", "c")] == ["a_1", "a_4", "c_1"]


def test_reserved_names_are_never_given() -> None:
    names = Names(["n", "c_1"])
    assert (names.take("n"), names.take("m"), names.numbered("c")) == ("n_2", "m", "c_2")
