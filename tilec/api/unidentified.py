"""A model whose files were not read as a whole yet: onnxruntime serves it, until it is known which model it is."""

import logging
import threading
import weakref
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tilec.api.after_fork import left, renew
from tilec.api.errands import Gate, run_later
from tilec.api.feeds import Feeds, Sizes, checked_sizes
from tilec.api.held_files import hold, release
from tilec.api.model_source import Opened, identified
from tilec.api.onnxruntime_peer import OnnxruntimePeer
from tilec.api.request import Request
from tilec.api.serving import Serving
from tilec.errors import TilecError

log = logging.getLogger("tilec")


class Unidentified:
    """A model as `Model` is one, without compiled code. `settle` is called with the request that has all digests, and
    with onnxruntime's model, once the first run has returned; not where the files were written since they were opened.
    Until then they are held open: they may be gone.
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
        self._held = hold(opened.path, opened.weights)
        weakref.finalize(self, release, self._held).atexit = False  # a process that ends hands them down
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
                self._peer = OnnxruntimePeer(self._place(), self._serving.threads, self._serving.named, gate)
                run_later(gate, self._identify, self._request if self._serving.detached else None, self._held)
            return self._peer

    def _place(self) -> Path:
        """Where the model lies now. Raises TilecError."""
        if all(file.in_place for file in self._held):
            return self._opened.path
        return Path(identified(self._request, self._held).model)

    def _identify(self) -> None:
        try:
            request = identified(self._request, self._held)
            opened = Opened(Path(request.model), request.sha256, request.weights, self._opened.header)
            self._settle(opened, self._serve())
        except TilecError as error:
            log.warning("%s stays on onnxruntime: %s", self._opened.path.name, error)
