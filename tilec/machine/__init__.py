"""The tile machine: executes tile programs literally on a model of the device, in NumPy, and counts bytes."""

from tilec.ir.traffic import Traffic
from tilec.machine.errors import MachineError
from tilec.machine.execute import Result, execute

__all__ = ["MachineError", "Result", "Traffic", "execute"]
