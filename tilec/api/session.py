"""InferenceSession: onnxruntime's interface over compiled models."""

import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from tilec.api.binding import IOBinding
from tilec.api.cache import Cache
from tilec.api.choices import Choices
from tilec.api.compile_queue import CompileQueue
from tilec.api.environment import chosen_providers
from tilec.api.feeds import FeedError, Feeds, arrays, choose
from tilec.api.header import ModelMetadata, NodeArg
from tilec.api.model import Model
from tilec.api.model_source import (
    Opened,
    Source,
    open_file,
    open_model,
    open_unread,
    request_for,
    with_inputs,
    with_values,
)
from tilec.api.onnxruntime_peer import OnnxruntimePeer
from tilec.api.options import RunOptions, SessionOptions
from tilec.api.profile import Profile
from tilec.api.recording import FOLDER
from tilec.api.request import Request
from tilec.api.serving import Range, Serving, bound_symbols, named_sizes
from tilec.api.specializations import chosen_mode
from tilec.api.unidentified import Unidentified
from tilec.api.values import OrtValue
from tilec.api.warn_once import warn_once
from tilec.api.while_compiling import Meanwhile, WhileCompiling, chosen_while_compiling
from tilec.errors import TilecError, UsageError
from tilec.spec.source import HOST

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

    from tilec.runtime.addressed import AddressedCall, Shape
    from tilec.runtime.streamed import StreamedCall


class InferenceSession:
    """A model, compiled for a device when it is first needed, in the place of onnxruntime's class of that name.

    `device` and `recipe` are names or files as the command line takes them. A model is compiled here, once for all
    sizes that it can have; `sizes` binds some of them, by name, or limits them to a range, `(1, 512)`: then it takes no
    others. What was compiled before comes from `cache` (default: tilec's folder in the user's cache).

    onnxruntime serves until the compiled model is ready, and for good when compiling fails; a process of its own
    compiles, and goes on when this one ends. With `while_compiling="wait"` (or TILEC_WHILE_COMPILING=wait) the session
    opens when the model is compiled; so it is, unless `"fallback"` is asked for, on another device than this machine,
    and where `use_deterministic_compute` asks for the same bytes in every call. With `specialize="likely"` (default:
    TILEC_SPECIALIZE, else "off") sizes that are seen often get compiled models of their own, in the background. Runs
    may be called from any number of threads.

    Options of onnxruntime that mean nothing here are warned about once. Raises UsageError, ConfigError for a broken
    model, UnavailableError for a device that is not here, UnsupportedError.
    """

    _meanwhile: ClassVar[Meanwhile | None] = None
    _detached: ClassVar[bool] = True

    def __init__(
        self,
        path_or_bytes: Source,
        sess_options: SessionOptions | None = None,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        device: str = "host",
        while_compiling: WhileCompiling | None = None,
        recipe: str | None = None,
        sizes: Mapping[str, int | Range] | None = None,
        specialize: Literal["off", "likely"] | None = None,
        cache: str | os.PathLike[str] | None = None,
        **unknown: Any,
    ) -> None:
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            kind = f"{type(sess_options).__module__}.{type(sess_options).__name__}"
            raise UsageError(f"sess_options is {kind}", hint="Pass tilec.SessionOptions.")
        for name in unknown:
            warn_once(f"InferenceSession has no option {name!r} in tilec: it is ignored")
        self._options = sess_options if sess_options is not None else SessionOptions()
        self._providers = chosen_providers(providers, provider_options)
        self._cache = Cache(Path(cache).absolute() if cache is not None else _default_cache())
        self._place = (device, recipe)
        self._profile = Profile(self._options.profile_file_prefix) if self._options.enable_profiling else None
        self._lock = threading.Lock()
        self._queue = CompileQueue()
        self._variants: dict[frozenset[str], Model | Choices] = {}
        self._executor: ThreadPoolExecutor | None = None
        began = time.perf_counter()
        mode = chosen_mode(specialize)
        waits = device != HOST or self._options.use_deterministic_compute or bool(os.environ.get(FOLDER))
        usual: WhileCompiling = "wait" if waits else "fallback"  # what is recorded are runs of compiled code
        meanwhile = self._meanwhile or chosen_while_compiling(while_compiling, recipe, usual)
        usual_place = meanwhile == "fallback" and self._place == (HOST, None)  # where no error hides in the request
        unread = open_unread(path_or_bytes, self._options, self._cache) if usual_place else None
        self._opened = unread or open_model(path_or_bytes, self._options, self._cache)
        bound, ranges = named_sizes(self._opened.header, sizes or {})
        named = {**self._options.given_sizes(), **bound}
        threads = self._options.intra_op_num_threads or None
        self._serving = Serving(threads, meanwhile, self._detached, mode, named, ranges)
        self._names = [port.name for port in self._opened.header.outputs]
        self._model: Model | Unidentified | Choices = self._first_served()
        if self._profile:
            self._profile.add("session_initialization", began)

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Feeds,
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """The outputs named, or all, in that order. Inputs that have a default value may be left out.

        Arrays of any memory layout, lists, numbers and OrtValues are taken. Raises FeedError for feeds that do not
        fit; what is wrong with the model when it is compiled in this call.
        """
        del run_options
        began = time.perf_counter() if self._profile else 0.0
        results = self._computed(input_feed)
        if self._profile:
            self._profile.add("model_run", began)
        if not output_names:
            return list(results.values())
        try:
            return [results[name] for name in output_names]
        except KeyError:
            choose(output_names, self._names)
            raise

    def addressed(self, shapes: "Sequence[Shape]") -> "AddressedCall | None":
        """The model for inputs of these shapes as a call on addresses, once a run has compiled it; None where runs are
        profiled, recorded, or need more than compiled code."""
        return None if self._profile else self._model.addressed(shapes)

    def streamed(self, shapes: "Sequence[Shape]") -> "StreamedCall | None":
        """The model for inputs of these shapes as a call on addresses of its GPU; None where there is none, and where
        runs are profiled, recorded, or need more than compiled code."""
        return None if self._profile else self._model.streamed(shapes)

    def _computed(self, feeds: Feeds, out: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """All outputs, those in `out` in its arrays."""
        model = self._model
        try:
            values = feeds.values()
        except AttributeError:
            kind = type(feeds).__name__
            raise FeedError(f"inputs are fed as a mapping of names to arrays, this is a {kind}") from None
        for value in values:
            if type(value) is not np.ndarray:
                feeds = arrays(feeds, model.types)
                break
        if len(feeds) != model.count and any(name in model.defaults for name in feeds):
            model = self._variant(frozenset(name for name in feeds if name in model.defaults))
        return model.run(feeds, out)

    def _first_served(self) -> Model | Unidentified | Choices:
        if not self._opened.sha256:
            with suppress(TilecError):  # onnxruntime cannot load the model: it is read and compiled first
                if not self._opened.header.choices:
                    return Unidentified(self._opened, self._request(self._opened), self._serving, self._settle)
            self._opened = open_file(self._opened.path, self._cache.root)
        return self._served(self._opened)

    def _settle(self, opened: Opened, peer: OnnxruntimePeer) -> None:
        """It is known which model this is."""
        model = self._served(opened, peer)
        with self._lock:
            self._opened, self._model = opened, model

    def _served(self, opened: Opened, peer: OnnxruntimePeer | None = None) -> Model | Choices:
        if opened.header.choices:
            return Choices(opened.header, lambda values: self._of(with_values(opened, values, self._cache)))
        return self._of(opened, peer)

    def _of(self, opened: Opened, peer: OnnxruntimePeer | None = None) -> Model:
        return Model(opened, self._request(opened), self._serving, self._queue, peer)

    def _request(self, opened: Opened) -> Request:
        bound = bound_symbols(opened.header, self._serving.named)
        return request_for(opened, *self._place, bound, self._cache.root, self._serving.ranges)

    def _variant(self, names: frozenset[str]) -> Model | Choices:
        """The model with these initializers as inputs."""
        with self._lock:
            model = self._variants.get(names)
            if model is None:
                model = self._variants[names] = self._served(with_inputs(self._opened, names, self._cache))
            return model

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """As `run`, with OrtValues in and out."""
        return [OrtValue(result) for result in self.run(output_names, input_dict_ort_values, run_options)]

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Feeds,
        callback: Callable[[list[Any], Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Run on another thread; it calls `callback(results, user_data, error)`, where error is "" when all is well."""
        with self._lock:
            if self._executor is None:
                from concurrent.futures import ThreadPoolExecutor

                self._executor = ThreadPoolExecutor(1, "tilec-run")

        def work() -> None:
            try:
                results, error = self.run(output_names, input_feed, run_options), ""
            except Exception as raised:  # whatever it is, the caller has to hear of it
                results, error = [], str(raised) or type(raised).__name__
            callback(results, user_data, error)

        self._executor.submit(work)

    def io_binding(self) -> IOBinding:
        """Inputs and outputs to bind for `run_with_iobinding`."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Run on bound inputs, into bound outputs. Raises FeedError as `run` does."""
        del run_options
        began = time.perf_counter() if self._profile else 0.0
        out = {name: array for name, array in iobinding.outputs.items() if array is not None}
        results = self._computed(iobinding.inputs, out)
        iobinding.keep([results[name] for name in iobinding.outputs])
        if self._profile:
            self._profile.add("model_run", began)

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that have to be fed: name, type, shape."""
        return [port.arg(self._serving.named) for port in self._opened.header.inputs]

    def get_outputs(self) -> list[NodeArg]:
        """The outputs: name, type, shape."""
        return [port.arg(self._serving.named) for port in self._opened.header.outputs]

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The inputs that have a default value."""
        return [port.arg(self._serving.named) for port in self._opened.header.overridable]

    def get_modelmeta(self) -> ModelMetadata:
        """Metadata that the model's author wrote into it."""
        return self._opened.header.metadata

    def get_session_options(self) -> SessionOptions:
        """The options that the session was opened with."""
        return self._options

    def get_providers(self) -> list[str]:
        """Names of what runs the model: compiled code, and onnxruntime's CPU provider for the nodes that are not."""
        return list(self._providers)

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Options of the providers: there are none."""
        return {name: {} for name in self._providers}

    def set_providers(
        self,
        providers: Sequence[str | tuple[str, Mapping[str, Any]]] | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Taken for onnxruntime's sake: models always run on the device that they are compiled for."""
        self._providers = chosen_providers(providers, provider_options)

    def enable_fallback(self) -> None:
        """Taken for onnxruntime's sake, which tries other providers when one fails."""

    def disable_fallback(self) -> None:
        """Taken for onnxruntime's sake, which tries other providers when one fails."""

    def end_profiling(self) -> str:
        """Write the profile, when `enable_profiling` was set, and return the file's name; "" when there is none."""
        profile, self._profile = self._profile, None
        return profile.write() if profile else ""

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began, in nanoseconds of the monotonic clock; 0 when it did not."""
        return self._profile.began_ns if self._profile else 0


def _default_cache() -> Path:
    from tilec.artifact import cache_folder

    return cache_folder()
