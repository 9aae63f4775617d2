"""Errors of kernels in the emulator."""

from tilec.errors import TilecError


class KernelFault(TilecError):
    """A kernel that races, leaves its memory or waits for ever; `place` is the kernel."""
