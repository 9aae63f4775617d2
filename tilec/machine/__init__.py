"""The tile machine: executes a tile program literally on a model of the device, in NumPy, and counts bytes (W31)."""

from tilec.machine.errors import MachineError
from tilec.machine.execute import Result, execute
from tilec.machine.memory import Moved

__all__ = ["MachineError", "Moved", "Result", "execute"]
