"""A model being served: what it takes, which sizes a call has, and the compiled code for them."""

import threading

from tilec.api.feeds import FeedError, Feeds, Sizes, check
from tilec.api.model_dispatch import ModelDispatch, Runnable
from tilec.api.model_source import Opened
from tilec.api.onnxruntime_peer import OnnxruntimePeer
from tilec.api.options import SessionOptions
from tilec.api.request import Request
from tilec.api.warn_once import warn_once
from tilec.errors import UsageError


class Model:
    """One model file. `fixed` is its code when its sizes are known from the start and it is compiled; `types` maps
    inputs to their types, `defaults` are those that may be left out, `count` is the number of the others."""

    def __init__(self, opened: Opened, request: Request, options: SessionOptions, fallback: bool) -> None:
        header = opened.header
        self._header = header
        self._options = options
        self.types = {port.name: port.type for port in (*header.inputs, *header.overridable)}
        self.defaults = frozenset(port.name for port in header.overridable)
        self.count = len(header.inputs)
        self._sizes = Sizes(header.inputs, self._overridden())
        threads = options.intra_op_num_threads or None
        self._peers: list[OnnxruntimePeer] = []
        self._peer_lock = threading.Lock()
        self._path = opened.path
        self._serving = ModelDispatch(request, threads, self._peer if fallback else None)
        self.fixed: Runnable | None = None
        if not self._sizes.names and fallback:
            self._serving.begin((), self._sizes.fixed)
        elif not self._sizes.names:
            self._settle()

    def explained(self, feeds: Feeds, error: UsageError) -> UsageError:
        """The error that says best why these feeds do not fit, where a run raised `error`."""
        try:
            check(feeds, self._header.inputs, self.defaults)
            self._sizes.read(feeds)
        except UsageError as better:
            return better
        return FeedError(error.message, error.place, error.hint)

    def specialised(self, feeds: Feeds) -> Runnable:
        """The compiled code for the sizes of these feeds, or what serves in its place. Raises FeedError."""
        if not self._sizes.names:
            return self._settle()
        key = self._sizes.key(feeds)
        found = self._serving.ready(key) if key is not None else None
        if found is None:
            check(feeds, self._header.inputs, self.defaults)
            found = self._serving.get(key, self._sizes.read(feeds))
        return found

    def _settle(self) -> Runnable:
        """The code of a model of fixed sizes; once it is compiled it is not asked for again."""
        runnable = self._serving.get((), self._sizes.fixed)
        if not isinstance(runnable, OnnxruntimePeer):
            self.fixed = runnable
            self._peers.clear()
        return runnable

    def _peer(self) -> Runnable:
        """onnxruntime for the time being, opened once."""
        with self._peer_lock:
            if not self._peers:
                self._peers.append(
                    OnnxruntimePeer(self._path, self._options.intra_op_num_threads, self._options.given_sizes())
                )
            return self._peers[0]

    def _overridden(self) -> dict[str, int]:
        """Symbol -> size for the dimensions that options fix; a name that no input has is warned about once."""
        symbols = {
            text: extent
            for port in self._header.inputs
            for extent, text in zip(port.shape or (), port.extents or (), strict=False)
            if text in self._header.symbols
        }
        given = self._options.given_sizes()
        for name in given:
            if name not in symbols.values():
                warn_once(f"no input has a dimension {name!r}: its size has no effect")
        return {symbol: given[name] for symbol, name in symbols.items() if isinstance(name, str) and name in given}
