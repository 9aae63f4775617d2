"""What users do around compiled modules: programs, by theme, whose results are compared with PyTorch's."""

from torch_backend.scenarios import (
    copies,
    graphs,
    memory,
    modes,
    modules,
    processes,
    sizes,
    state,
    transforms,
    weights,
)
from torch_backend.scenarios.program import LEAVES, SCENARIOS, Wrap

__all__ = ["LEAVES", "SCENARIOS", "Wrap"]
assert all((copies, graphs, memory, modes, modules, processes, sizes, state, transforms, weights))
