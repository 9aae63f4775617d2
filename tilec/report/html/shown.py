"""What a page shows: a plan with what is known beside it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tilec.ir.plan import Plan
from tilec.spec.device import DeviceSpec


@dataclass(frozen=True)
class Shown:
    """A plan under the name `label`.

    `device` is the one that it was planned for, None where its file is not at hand. `report` is the body of its
    4-report.json and `run` what run.json records of that, None and nothing where it was not verified; `stale` says that
    there is a report of another plan. `digests` names what the plan was made from; `edited` that a person changed it.
    """

    label: str
    plan: Plan
    device: DeviceSpec | None = None
    report: Mapping[str, Any] | None = None
    run: Mapping[str, Any] = field(default_factory=dict)
    stale: bool = False
    digests: Mapping[str, str] = field(default_factory=dict)
    edited: bool = False
