"""A model whose files were not read as a whole yet: onnxruntime serves it, until it is known which model it is."""

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from tilec.api.after_fork import left, renew
from tilec.api.cache import FileState, file_state
from tilec.api.errands import Gate, run_later
from tilec.api.feeds import Feeds, Sizes, checked_sizes
from tilec.api.model_source import Opened, identified
from tilec.api.onnxruntime_peer import OnnxruntimePeer
from tilec.api.request import Request
from tilec.api.serving import Serving
from tilec.errors import TilecError

log = logging.getLogger("tilec")


class Unidentified:
    """A model as `Model` is one, without compiled code. `settle` is called with the request that has all digests, and
    with onnxruntime's model, once the first run has returned; not where the files have changed since they were opened.
    """

    fixed = None

    def __init__(
        self, opened: Opened, request: Request, serving: Serving, settle: Callable[[Opened, OnnxruntimePeer], None]
    ) -> None:
        """Raises TilecError where onnxruntime cannot load the model."""
        header = opened.header
        self.types = {port.name: port.type for port in (*header.inputs, *header.overridable)}
        self.defaults = frozenset(port.name for port in header.overridable)
        self.count = len(header.inputs)
        self._opened, self._request, self._serving, self._settle = opened, request, serving, settle
        self._sizes = Sizes(header.inputs, request.sizes)
        self._files = tuple(opened.path.parent / name for name in opened.weights)
        self._states = self._seen()
        self._lock = threading.Lock()
        self._peer: OnnxruntimePeer | None = None
        self._serve()
        renew(self)

    def after_fork(self) -> None:
        """onnxruntime's threads are not in a copied process: it is opened again there, and the files are read there."""
        self._lock = threading.Lock()
        left.append(self._peer)
        self._peer = None

    def run(self, feeds: Feeds, out: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """All outputs by name, those in `out` in its arrays. Raises FeedError."""
        checked_sizes(self._sizes, feeds, self._opened.header.inputs, self.defaults)
        return self._serve().run(feeds, out)

    def addressed(self, _shapes: Any) -> None:
        """There is no compiled code."""

    def streamed(self, _shapes: Any) -> None:
        """There is no compiled code."""

    def _serve(self) -> OnnxruntimePeer:
        with self._lock:
            if self._peer is None:
                gate = Gate()
                self._peer = OnnxruntimePeer(self._opened.path, self._serving.threads, self._serving.named, gate)
                run_later(gate, self._identify, self._request if self._serving.detached else None)
            return self._peer

    def _seen(self) -> list[FileState]:
        return [file_state(path) for path in (self._opened.path, *self._files)]

    def _identify(self) -> None:
        try:
            request = identified(self._request)
            if self._seen() != self._states:
                log.warning("%s changed since the session was opened: it stays on onnxruntime", self._opened.path.name)
                return
            opened = Opened(self._opened.path, request.sha256, request.weights, self._opened.header)
            self._settle(opened, self._serve())
        except TilecError as error:
            log.warning("%s stays on onnxruntime: %s", self._opened.path.name, error)
