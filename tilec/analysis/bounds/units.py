"""The compute unit of a device that computes a subject."""

from __future__ import annotations

from tilec.analysis.bounds.subject import Subject
from tilec.ir.types import TTYPES
from tilec.spec.device import ComputeUnit, DeviceSpec


def unit_of(device: DeviceSpec, subject: Subject) -> ComputeUnit:
    """The fastest unit whose input types are at least as wide as the subject's elements; the fastest of all if there is
    none."""
    fitting = [unit for unit in device.compute if min(TTYPES[t].bits for t in unit.inputs) >= subject.width]
    return max(fitting or device.compute, key=lambda unit: unit.rate)


def peak(device: DeviceSpec, subject: Subject) -> int:
    """Operations per second of that unit."""
    return unit_of(device, subject).rate
