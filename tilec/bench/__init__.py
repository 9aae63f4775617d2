"""Interleaved timing of compiled models beside other runtimes."""

from tilec.bench.compare import Comparison, Timing, time_interleaved
from tilec.bench.peers import PEERS

__all__ = ["PEERS", "Comparison", "Timing", "time_interleaved"]
