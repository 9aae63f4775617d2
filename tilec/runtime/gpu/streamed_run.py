"""Runs of a model on the streams of its callers: an arena for every stream, graphs for addresses that come again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tilec.runtime.addressed import Copy
from tilec.runtime.gpu.block import Block
from tilec.runtime.gpu.launches import Loaded, Places, launch

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

KEPT = 8
"""Sets of addresses whose graphs a stream keeps, and those of which it knows that they came."""

Key = tuple[bytes, tuple[int, ...]]
"""Sizes and addresses."""


class StreamedRun:
    """The working memory of one stream, on which runs are in order. A caller's addresses are taken as they are. Those
    that come a second time become a graph, which one call launches; a stream that records a graph of its caller's gets
    every launch by itself."""

    def __init__(self, model: Loaded, stream: int) -> None:
        self._model = model
        self._driver = model.driver.on(stream)
        sizes = model.manifest.sizes
        arenas = [model.manifest.arena_bytes] if sizes is None else [0] * len(sizes.arenas)
        self._arenas = [Block(model.driver, self, size) for size in arenas]
        self._came: dict[Key, None] = {}
        self._graphs: dict[Key, Any] = {}

    def run(self, numbers: NDArray[np.int64], addresses: Sequence[int], copies: Sequence[Copy]) -> None:
        """Ask for one run at these sizes, behind `copies` of what does not lie where it is updated."""
        self._resize(numbers)
        for source, target, size in copies:
            if addresses[source] != addresses[target]:
                self._driver.copy(addresses[target], addresses[source], size)
        key = numbers.tobytes(), tuple(addresses)
        if not self._driver.is_capturing and (key in self._graphs or key in self._came):
            self._driver.launch_graph(self._graph(key, numbers, addresses))
            return
        self._came[key] = None
        _limit(self._came)
        for each in self._model.code.segment(0):
            launch(self._model, self._driver, each, self._places(addresses), numbers)

    def _graph(self, key: Key, numbers: NDArray[np.int64], addresses: Sequence[int]) -> Any:
        """All launches as a graph."""
        graph = self._graphs.pop(key, None) or self._recorded(numbers, addresses)
        self._graphs[key] = graph
        _limit(self._graphs)
        return graph

    def _recorded(self, numbers: NDArray[np.int64], addresses: Sequence[int]) -> Any:
        """The launches, recorded on the model's own stream: not every one of a caller's can."""
        driver = self._model.driver
        driver.begin_graph()
        for each in self._model.code.segment(0):
            launch(self._model, driver, each, self._places(addresses), numbers)
        return driver.end_graph()

    def _places(self, addresses: Sequence[int]) -> Places:
        inputs = len(self._model.manifest.inputs)
        return Places(addresses[:inputs], addresses[inputs:], [arena.address for arena in self._arenas])

    def _resize(self, numbers: NDArray[np.int64]) -> None:
        """Let the arenas be large enough; what was recorded on those before is void."""
        sizes = self._model.manifest.sizes
        for block, position in zip(self._arenas, sizes.arenas if sizes is not None else (), strict=False):
            if block.size < int(numbers[position]):
                block.grow(max(int(numbers[position]), block.size * 3 // 2))
                self._graphs.clear()


def _limit(kept: dict[Key, Any]) -> None:
    if len(kept) > KEPT:
        del kept[next(iter(kept))]
