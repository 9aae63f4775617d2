"""Interleaved timing of compiled models against other runtimes."""

from tilec.bench.compare import Comparison, Timing, time_interleaved
from tilec.bench.peers import PEERS, chosen
from tilec.bench.runners import Needs

__all__ = ["PEERS", "Comparison", "Needs", "Timing", "chosen", "time_interleaved"]
