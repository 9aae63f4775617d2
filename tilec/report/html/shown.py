"""The content of a page: a plan with related artifacts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilec.analysis.scenario_figures import ScenarioFigures
from tilec.ir.plan import Plan
from tilec.spec.device import DeviceSpec


@dataclass(frozen=True)
class Shown:
    """A plan under the name `label`.

    `device` is its target device, None where the file is not available. `report` is the body of its 4-report.json and
    `run` the corresponding record in run.json, None and empty where it was not verified; `stale` means that the report
    belongs to another plan. `measured` maps groups to seconds, where a trace of this plan is beside it. `digests`
    identifies the inputs of the plan; `edited` means that a person changed it.

    Of a plan with symbols `plan` is what runs at the sizes `at`, and `whole` the plan with all of its variants;
    `scenarios` are the figures of its scenarios.
    """

    label: str
    plan: Plan
    device: DeviceSpec | None = None
    report: Mapping[str, Any] | None = None
    run: Mapping[str, Any] = field(default_factory=dict)
    stale: bool = False
    measured: Mapping[str, float] = field(default_factory=dict)
    digests: Mapping[str, str] = field(default_factory=dict)
    edited: bool = False
    whole: Plan | None = None
    at: Mapping[str, int] = field(default_factory=dict)
    scenarios: tuple[ScenarioFigures, ...] = ()

    @property
    def all_variants(self) -> Plan:
        """The plan with all of its variants."""
        return self.plan if self.whole is None else self.whole
