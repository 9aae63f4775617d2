"""Activations of recurrent cells against onnxruntime: every one, its parameters, clipping."""

from pathlib import Path
from typing import Any

import pytest

from tests.importer.ops.cells import ACTIVATIONS, OUTPUTS, operands
from tests.importer.reference import check, single
from tilec.errors import ConfigError
from tilec.importer import import_model

PARAMETERS: dict[str, dict[str, float]] = {
    "Affine": {"alpha": 0.5, "beta": 0.1},
    "Elu": {"alpha": 0.6},
    "HardSigmoid": {"alpha": 0.3, "beta": 0.6},
    "LeakyRelu": {"alpha": 0.3},
    "Relu": {},
    "ScaledTanh": {"alpha": 0.6, "beta": 0.7},
    "Sigmoid": {},
    "Softplus": {},
    "Softsign": {},
    "Tanh": {},
    "ThresholdedRelu": {"alpha": 0.2},
}


@pytest.mark.parametrize("name", PARAMETERS)
@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_every_activation(tmp_path: Path, kind: str, name: str) -> None:
    number = ACTIVATIONS[kind]
    lists = {f"activation_{p}": [value] * number for p, value in PARAMETERS[name].items()}
    options = {"hidden_size": 3, "outputs": OUTPUTS[kind], "activations": [name] * number, "rtol": 1e-4}
    arrays = operands(kind, (2, 2, 3, 3))
    check(tmp_path, kind, *arrays, **options, **lists)
    check(tmp_path, kind, *arrays, **options)


def test_directions_have_activations_of_their_own_and_share_the_parameters(tmp_path: Path) -> None:
    names = ["HardSigmoid", "Tanh", "LeakyRelu", "Sigmoid", "Affine", "ScaledTanh"]
    options: dict[str, Any] = {"activation_alpha": [0.3, 0.1, 0.5, 0.9], "activation_beta": [0.4, 0.2, 1.1]}
    arrays = operands("LSTM", directions=2, lengths=(4, 2, 3))
    check(tmp_path, "LSTM", *arrays, direction="bidirectional", hidden_size=6, outputs=3, activations=names, **options)


@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_arguments_are_clipped(tmp_path: Path, kind: str) -> None:
    check(tmp_path, kind, *operands(kind), hidden_size=6, outputs=OUTPUTS[kind], clip=0.4)


@pytest.mark.parametrize(
    ("names", "message"),
    [(["Tanh", "Tanh"], "2 activations, the operator has 1"), (["Gelu"], "unknown activation 'Gelu'")],
)
def test_activations_that_do_not_exist(tmp_path: Path, names: list[str], message: str) -> None:
    path, _ = single(tmp_path, "RNN", *operands("RNN"), activations=names)
    with pytest.raises(ConfigError, match=message):
        import_model(path)
