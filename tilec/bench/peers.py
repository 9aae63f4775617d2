"""The runtimes that a compiled model can be timed against."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tilec.bench.runners import Array, Runner, onnxruntime
from tilec.errors import UsageError, did_you_mean

Peer = Callable[[Path, Mapping[str, Array], int], Runner]
"""Makes a runner of (model, feeds, threads)."""

PEERS: dict[str, Peer] = {"onnxruntime": onnxruntime}


def chosen(names: Sequence[str]) -> dict[str, Peer]:
    """The peers of these names. Raises UsageError for one that is not known."""
    for name in names:
        if name not in PEERS:
            near = did_you_mean(name, PEERS)
            hint = f"Did you mean {near!r}?" if near else f"Known: {', '.join(PEERS)}."
            raise UsageError(f"nothing to compare with is called {name!r}", "--against", hint)
    return {name: PEERS[name] for name in dict.fromkeys(names)}
