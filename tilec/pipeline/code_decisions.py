"""How `schedule` gets the rules of a device's back end: one stage may not import another, so they are bound here."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from tilec.codegen.backend import backend_of

if TYPE_CHECKING:
    from tilec.scheduler.building.code_decisions import Decide
    from tilec.spec.device import DeviceSpec


def decide_for(device: DeviceSpec) -> Decide | None:
    """The rules for a device; None where its back end has none, or it has no back end."""
    backend = backend_of(device)
    return None if backend is None or backend.decide is None else partial(backend.decide, device)
