"""A model being served: what it takes, and the compiled code for a call."""

import threading
import weakref
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilec.api.after_fork import left, renew
from tilec.api.any_size import NEEDS_SIZES, Attempt
from tilec.api.cache import Cache
from tilec.api.compile_queue import CompileQueue
from tilec.api.errands import Gate
from tilec.api.feeds import FeedError, Feeds, ShapeKey, Sizes, check, checked_sizes
from tilec.api.model_dispatch import ModelDispatch
from tilec.api.model_source import Opened
from tilec.api.observed_sizes import ObservedSizes
from tilec.api.onnxruntime_peer import OnnxruntimePeer
from tilec.api.recording import Runnable
from tilec.api.request import Request, keyed, keyed_if_known
from tilec.api.serving import Serving
from tilec.api.specializations import Specializations
from tilec.api.warn_once import warn_once
from tilec.api.while_compiling import NotReadyError
from tilec.errors import UsageError

if TYPE_CHECKING:
    from tilec.runtime.addressed import AddressedCall, Shape
    from tilec.runtime.streamed import StreamedCall

ANY = ()
"""Key of the model that takes all sizes that are not bound."""


class Model:
    """One model file. `fixed` is its code once it is compiled, for any size that is not bound; `types` maps inputs to
    their types, `defaults` are those that may be left out, `count` is the number of the others.

    A model that only compiles with its sizes known is compiled for each set of sizes. `peer` is onnxruntime's model
    where it was opened before.
    """

    def __init__(
        self,
        opened: Opened,
        request: Request,
        serving: Serving,
        queue: CompileQueue,
        peer: OnnxruntimePeer | None = None,
    ) -> None:
        header = opened.header
        self._header = header
        self._serving = serving
        self.types = {port.name: port.type for port in (*header.inputs, *header.overridable)}
        self.defaults = frozenset(port.name for port in header.overridable)
        self.count = len(header.inputs)
        self._bound = dict(request.sizes)
        self._sizes = Sizes(header.inputs, self._bound)
        self._peers = [peer] if peer is not None else []
        self._gate = Gate() if peer is None else peer.gate
        self._peer_lock = threading.Lock()
        self._path = opened.path
        self._dispatch = ModelDispatch(request, serving, self._peer, queue, self._gate)
        self._often = Specializations(request, serving.threads, queue)
        self._observed: ObservedSizes | None = None
        self._attempt: Attempt | None = None
        self._needs_sizes = False
        self._specializes = serving.specialize == "likely"
        self.fixed: Runnable | None = None
        if self._sizes.names:
            self._observed = ObservedSizes(self._sizes, Cache(Path(request.cache)), request.sha256)
            weakref.finalize(self, self._observed.keep)
            self._attempt = Attempt(keyed_if_known(request) if serving.meanwhile != "wait" else keyed(request))
            self._refuse_any_size(self._attempt.refusal)
        renew(self)
        if not self._needs_sizes:
            with suppress(NotReadyError):
                self._settle()

    def after_fork(self) -> None:
        """onnxruntime's threads are not in a copied process: it is opened again there."""
        self._peer_lock = threading.Lock()
        left.extend(self._peers)
        self._peers = []

    def run(self, feeds: Feeds, out: Feeds | None = None) -> dict[str, Any]:
        """All outputs by name, those in `out` in its arrays. Raises FeedError, and what is wrong with the model when it
        is compiled in this call."""
        code, key = self.fixed, None
        if code is None or self._observed is not None:
            key = self._sizes.key(feeds)
            code = self._often.ready(key) or code or self._found(feeds, key)
        try:
            results = code.run(feeds, out)
        except UsageError as error:
            raise self._explained(feeds, error) from None
        if self._observed is not None and key is not None:
            frequent = self._observed.add(key)
            if frequent and self._specializes and self.fixed is not None and self._often.wants(key):
                self._often.ask(key, self._sizes.of(key))
        return results

    def addressed(self, shapes: "Sequence[Shape]") -> "AddressedCall | None":
        """The model for inputs of these shapes as a call on addresses; None where it is not compiled, where a recorder
        looks at calls, and where other sizes may get models of their own."""
        from tilec.runtime import Session

        if self._specializes or not isinstance(self.fixed, Session):
            return None
        call = self.fixed.addressed(shapes)
        if call is None or self._observed is None:
            return call
        shape_of = dict(zip([port.name for port in self._header.inputs], shapes, strict=True))
        return call.told(partial(self._observed.add, tuple(shape_of[name] for name in self._sizes.names)))

    def streamed(self, shapes: "Sequence[Shape]") -> "StreamedCall | None":
        """The model for inputs of these shapes as a call on addresses of its GPU; None where `addressed` has none,
        and where there is no GPU. Raises NotReadyError where the caller has something that serves meanwhile."""
        from tilec.runtime import Session

        if self.fixed is None and not self._needs_sizes:
            self._settle()
        return None if self._specializes or not isinstance(self.fixed, Session) else self.fixed.streamed(shapes)

    def _explained(self, feeds: Feeds, error: UsageError) -> UsageError:
        """The error that says best why these feeds do not fit, where a run raised `error`."""
        try:
            check(feeds, self._header.inputs, self.defaults)
            if self._bound:
                self._sizes.read(feeds)
        except UsageError as better:
            return better
        return FeedError(error.message, error.place, error.hint)

    def _found(self, feeds: Feeds, key: ShapeKey | None) -> Runnable:
        """The compiled code for these feeds, or what serves in its place. Raises FeedError."""
        if not self._needs_sizes:
            found = self._settle()
            if found is not None:
                if isinstance(found, OnnxruntimePeer) and self._sizes.names:
                    self._checked_sizes(feeds)
                return found
        ready = self._dispatch.ready(key) if key is not None else None
        return ready if ready is not None else self._dispatch.get(key, self._checked_sizes(feeds))

    def _checked_sizes(self, feeds: Feeds) -> dict[str, int]:
        """The sizes of feeds, which are checked first, for nothing else does. Raises FeedError."""
        return checked_sizes(self._sizes, feeds, self._header.inputs, self.defaults)

    def _settle(self) -> Runnable | None:
        """The code for any size, or onnxruntime while it is made; None where only known sizes compile. Once it is there
        it is not asked for again."""
        future = self._dispatch.begin(ANY, self._bound)
        if self._attempt is not None and (future.done() or self._serving.meanwhile == "wait"):
            error = future.exception()
            if isinstance(error, NEEDS_SIZES):
                self._attempt.remember(error)
                self._refuse_any_size(error.message)
                return None
        runnable = self._dispatch.serving(future)
        if not isinstance(runnable, OnnxruntimePeer):
            self.fixed = runnable
            self._peers.clear()
        return runnable

    def _refuse_any_size(self, reason: str | None) -> None:
        """Compile for each set of sizes from now on, and say why, once."""
        if reason is not None:
            self._needs_sizes = True
            anew = f"{self._path.name} is compiled for each set of sizes anew: {reason}"
            warn_once(f"{anew}; InferenceSession(..., sizes=...) binds or limits sizes")

    def _peer(self) -> Runnable:
        """onnxruntime for the time being, opened once."""
        with self._peer_lock:
            if not self._peers:
                self._peers.append(OnnxruntimePeer(self._path, self._serving.threads, self._serving.named, self._gate))
            return self._peers[0]
