"""The tile machine: executes a tile program literally on a model of the device, in NumPy, and counts bytes (W31)."""

from tilec.ir.moved import Moved
from tilec.machine.errors import MachineError
from tilec.machine.execute import Result, execute

__all__ = ["MachineError", "Moved", "Result", "execute"]
