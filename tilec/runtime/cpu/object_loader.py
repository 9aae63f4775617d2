"""Links object files through the C interface of tvm_ffi and its object loader.

Their Python packages are not imported: tvm_ffi imports PyTorch wherever that is installed, which takes a program that
runs one model seconds, and hundreds of MiB.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

LOADER, RUNTIME = "tvm_ffi_orcjit", "tvm_ffi"
"""The packages; each has its library in the folder `lib`."""

_NONE, _INT, _BOOL, _TEXT, _BYTES, _OBJECTS, _ERROR = 0, 1, 2, 8, 9, 64, 67
"""Kinds of values in calls (tvm/ffi/c_api.h): from `_OBJECTS` on they are counted references."""


class LinkError(Exception):
    """What the object loader says of objects that cannot be linked."""


class _Value(ctypes.Structure):
    _fields_ = (("kind", ctypes.c_int32), ("zero", ctypes.c_uint32), ("bits", ctypes.c_int64))


class _Span(ctypes.Structure):
    _fields_ = (("data", ctypes.c_char_p), ("size", ctypes.c_size_t))


class _Error(ctypes.Structure):
    _fields_ = (("header", ctypes.c_uint64 * 3), ("kind", _Span), ("message", _Span))


class _Reference:
    """A counted reference to an object of tvm_ffi."""

    def __init__(self, runtime: ctypes.CDLL, kind: int, address: int) -> None:
        self.kind, self.address = kind, address
        self._give_back = partial(runtime.TVMFFIObjectDecRef, ctypes.c_void_p(address))

    def __del__(self) -> None:
        self._give_back()


class Linked:
    """Linked objects; their code stays in memory while this object lives."""

    def __init__(self, loader: _Loader, module: Any) -> None:
        self._loader, self._module = loader, module

    def function(self, name: str) -> Callable[..., Any]:
        """An exported function of integers. Raises LinkError where there is none."""
        found = self._loader.call("ffi.ModuleGetFunction", self._module, name, False)
        if found is None:
            raise LinkError(f"there is no function {name}")
        return lambda *arguments: self._loader.called(found.address, arguments)


class _Loader:
    """The libraries, loaded once for the process, and calls of their functions."""

    def __init__(self) -> None:
        self._runtime = ctypes.CDLL(str(_library_of(RUNTIME)), ctypes.RTLD_GLOBAL)
        self._loader = ctypes.CDLL(str(_library_of(LOADER)))
        self._session = self.call("tvm_ffi_orcjit.GlobalDefaultSession")

    def link(self, objects: Sequence[bytes]) -> Linked:
        """Link objects. Raises LinkError."""
        files = self.call("ffi.Array", *objects)
        return Linked(self, self.call("tvm_ffi_orcjit.SessionLoadModule", self._session, files, "", None, None))

    def call(self, name: str, *arguments: Any) -> Any:
        """Call a function that has a name. Raises LinkError."""
        found = ctypes.c_void_p()
        told = self._runtime.TVMFFIFunctionGetGlobal(ctypes.byref(_span(name.encode())), ctypes.byref(found))
        if told or found.value is None:
            raise LinkError(f"there is no function {name}")
        function = _Reference(self._runtime, _OBJECTS, found.value)
        return self.called(function.address, arguments)

    def called(self, function: int, arguments: Sequence[Any]) -> Any:
        """Call a function. Raises LinkError with what it raises."""
        spans: list[Any] = []
        values = (_Value * len(arguments))(*(_value(each, spans) for each in arguments))
        result = _Value(_NONE, 0, 0)
        told = self._runtime.TVMFFIFunctionCall(
            ctypes.c_void_p(function), values, ctypes.c_int32(len(arguments)), ctypes.byref(result)
        )
        if told:
            raise LinkError(self._raised())
        if result.kind >= _OBJECTS:
            return _Reference(self._runtime, result.kind, result.bits)
        return None if result.kind == _NONE else result.bits

    def _raised(self) -> str:
        found = ctypes.c_void_p()
        self._runtime.TVMFFIErrorMoveFromRaised(ctypes.byref(found))
        if found.value is None:
            return "it says nothing"
        error = _Reference(self._runtime, _ERROR, found.value)
        message = ctypes.cast(error.address, ctypes.POINTER(_Error)).contents.message
        return ctypes.string_at(ctypes.cast(message.data, ctypes.c_void_p), message.size).decode(errors="replace")


@cache
def object_loader() -> _Loader:
    """The object loader. Raises ImportError where it is not installed."""
    return _Loader()


def _library_of(package: str) -> Path:
    """The library in a package's folder. Raises ImportError."""
    spec = find_spec(package)
    for folder in spec.submodule_search_locations or () if spec else ():
        for file in sorted((Path(folder) / "lib").glob(f"*{package}.*")):
            return file
    raise ImportError(f"No module named '{package}'", name=package)


def _span(data: bytes) -> _Span:
    return _Span(data, len(data))


def _value(given: Any, kept: list[Any]) -> _Value:
    """A value for a call; `kept` holds what it points to."""
    if given is None:
        return _Value(_NONE, 0, 0)
    if isinstance(given, bool):
        return _Value(_BOOL, 0, given)
    if isinstance(given, int):
        return _Value(_INT, 0, given)
    if isinstance(given, _Reference):
        return _Value(given.kind, 0, given.address)
    if isinstance(given, str):
        kept.append(ctypes.create_string_buffer(given.encode()))
        return _Value(_TEXT, 0, ctypes.addressof(kept[-1]))
    kept.append(_span(given))
    return _Value(_BYTES, 0, ctypes.addressof(kept[-1]))
