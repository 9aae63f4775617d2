"""The models of the sweep over exporters, with feeds of two sizes."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from tests.exports.models import EXPORTS, Export
from tests.torch_models.case import Call, Case, by_position


def _calls(export: Export) -> Callable[[nn.Module], list[Call]]:
    return lambda _model: [by_position(*export.feeds(export.sizes[number]).values()) for number in (1, 2, 1)]


def _family(export: Export) -> str:
    module = export.build.__module__
    return module.split(".")[0] if not module.startswith("tests") else "transformers and others"


CASES = tuple(Case(each.name, _family(each), each.build, _calls(each)) for each in EXPORTS if each.exporter == "dynamo")
