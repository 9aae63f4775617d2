"""A model with an open size is planned, lowered and written as code for devices of every kind."""

from __future__ import annotations

import pytest

from tests.open_zoo.__main__ import DEVICES, main


@pytest.mark.slow
@pytest.mark.feature("B01")
def test_a_model_with_open_sizes_compiles_for_every_kind_of_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["nerf-mlp"]) == 0
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [(device, code, nodes) for _, device, code, _, _, nodes in rows] == [
        (device, "0", "13 of 13 nodes compiled |") for device in DEVICES
    ]
