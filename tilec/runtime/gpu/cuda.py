"""The driver of NVIDIA's GPUs: the CUDA driver API, by ctypes on libcuda."""

import ctypes
import weakref
from collections.abc import Mapping, Sequence
from copy import copy
from ctypes import byref, c_char_p, c_float, c_int, c_int32, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from tilec.abi.gpu_code import GpuCode, GpuKernel
from tilec.artifact import digest_bytes
from tilec.errors import ArtifactError, UnavailableError
from tilec.extras import install
from tilec.spec import gpus

if TYPE_CHECKING:
    from numpy.typing import NDArray

_ALLOW = "cuFuncSetAttribute"

_MOST_SHARED_BYTES = 8
"""CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES."""

_RELAXED_CAPTURE = 2
"""CU_STREAM_CAPTURE_MODE_RELAXED: threads may allocate and free meanwhile, this one too, whose garbage may be graphs
and memory of another model."""

_SIGNATURES: dict[str, tuple[Any, ...]] = {
    "cuInit": (c_uint,),
    "cuDeviceGetCount": (c_void_p,),
    "cuDeviceGet": (c_void_p, c_int),
    "cuDeviceGetName": (c_void_p, c_int, c_int),
    "cuDevicePrimaryCtxRetain": (c_void_p, c_int),
    "cuCtxSetCurrent": (c_void_p,),
    "cuModuleLoadData": (c_void_p, c_char_p),
    "cuModuleGetFunction": (c_void_p, c_void_p, c_char_p),
    "cuFuncSetAttribute": (c_void_p, c_int, c_int),
    "cuMemAlloc_v2": (c_void_p, c_size_t),
    "cuMemFree_v2": (c_uint64,),
    "cuMemcpyHtoDAsync_v2": (c_uint64, c_void_p, c_size_t, c_void_p),
    "cuMemcpyDtoHAsync_v2": (c_void_p, c_uint64, c_size_t, c_void_p),
    "cuMemcpyDtoDAsync_v2": (c_uint64, c_uint64, c_size_t, c_void_p),
    "cuMemsetD8Async": (c_uint64, c_ubyte, c_size_t, c_void_p),
    "cuLaunchKernel": (c_void_p, *(c_uint,) * 7, c_void_p, c_void_p, c_void_p),
    "cuStreamCreate": (c_void_p, c_uint),
    "cuStreamSynchronize": (c_void_p,),
    "cuStreamIsCapturing": (c_void_p, c_void_p),
    "cuStreamBeginCapture_v2": (c_void_p, c_int),
    "cuStreamEndCapture": (c_void_p, c_void_p),
    "cuGraphInstantiateWithFlags": (c_void_p, c_void_p, c_uint64),
    "cuGraphDestroy": (c_void_p,),
    "cuGraphLaunch": (c_void_p, c_void_p),
    "cuGraphExecDestroy": (c_void_p,),
    "cuEventCreate": (c_void_p, c_uint),
    "cuEventRecord": (c_void_p, c_void_p),
    "cuEventDestroy_v2": (c_void_p,),
    "cuEventElapsedTime": (c_void_p, c_void_p, c_void_p),
    "cuGetErrorString": (c_int, c_void_p),
}


class CudaDriver:
    """Device number `device` of this machine and a stream on it, which waits for the default stream and the reverse.

    Raises UnavailableError where there is no driver or no device.
    """

    LIBRARIES: ClassVar[tuple[str, ...]] = gpus.LIBRARIES
    ADVICE: ClassVar[str] = "Install NVIDIA's driver; without a GPU, `tilec verify` checks kernels in the emulator."
    FUNCTIONS: ClassVar[Mapping[str, str]] = {name: name for name in _SIGNATURES}
    """Name of a function here -> its name in the library."""

    def __init__(self, device: int = 0) -> None:
        library = gpus.first_library(self.LIBRARIES)
        if library is None:
            raise UnavailableError(f"no GPU here: {self.LIBRARIES[0]}, the driver, is not found", hint=self.ADVICE)
        self._functions = {here: getattr(library, there) for here, there in self.FUNCTIONS.items()}
        for name, function in self._functions.items():
            function.argtypes = _SIGNATURES[name]
        self._context = c_void_p()
        self._allowed: dict[int, int] = {}
        self._ask("cuInit", 0)
        count = c_int()
        self._ask("cuDeviceGetCount", byref(count))
        if device >= count.value:
            raise UnavailableError(f"no GPU here: the driver knows {count.value} devices", hint=self.ADVICE)
        number, text = c_int(), ctypes.create_string_buffer(256)
        self._ask("cuDeviceGet", byref(number), device)
        self._ask("cuDeviceGetName", text, 256, number)
        self._ask("cuDevicePrimaryCtxRetain", byref(self._context), number)
        self._name = text.value.decode()
        self._stream = c_void_p()
        self._call("cuStreamCreate", byref(self._stream), 0)

    @property
    def name(self) -> str:
        """The device as the driver calls it."""
        return self._name

    def on(self, stream: int) -> "CudaDriver":
        """The same device, asked on another stream."""
        other = copy(self)
        other._stream = c_void_p(stream)
        return other

    @property
    def is_capturing(self) -> bool:
        """Whether the stream is captured."""
        status = c_int()
        self._call("cuStreamIsCapturing", self._stream, byref(status))
        return status.value != 0

    def load(self, code: GpuCode, folder: Path) -> dict[str, c_void_p]:
        """Functions by symbol, from the binary, else from the portable code, which the driver compiles now.

        Raises ArtifactError where neither was compiled or a file is another one.
        """
        file = code.binary or code.portable
        if file is None:
            hint = f"Install the compiler ({install('cuda')}) and run `tilec codegen` again."
            raise ArtifactError("the kernels were written but not compiled", str(folder / code.text.file), hint)
        data = (folder / file.file).read_bytes()
        if digest_bytes(data) != file.sha256:
            raise ArtifactError(
                "the kernels are not those that were compiled", str(folder / file.file), "Run `tilec codegen` again."
            )
        module = c_void_p()
        self._call("cuModuleLoadData", byref(module), data + b"\0")
        functions = {}
        for kernel in code.kernels:
            function = c_void_p()
            self._call("cuModuleGetFunction", byref(function), module, kernel.symbol.encode())
            functions[kernel.symbol] = function
        return functions

    def allocate(self, size: int) -> int:
        """Memory of the device."""
        address = c_uint64()
        self._call("cuMemAlloc_v2", byref(address), size)
        return address.value

    def free(self, address: int) -> None:
        """Give memory back; waits for the device."""
        self._call("cuMemFree_v2", address)

    def upload(self, address: int, array: "NDArray[Any]") -> None:
        """Copy to the device."""
        if array.nbytes:
            self._call("cuMemcpyHtoDAsync_v2", address, array.ctypes.data, array.nbytes, self._stream)

    def download(self, array: "NDArray[Any]", address: int) -> None:
        """Copy from the device, and wait for it."""
        if array.nbytes:
            self._call("cuMemcpyDtoHAsync_v2", array.ctypes.data, address, array.nbytes, self._stream)
        self.synchronize()

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy on the device."""
        if size:
            self._call("cuMemcpyDtoDAsync_v2", target, source, size, self._stream)

    def fill(self, address: int, byte: int, size: int) -> None:
        """Set every byte."""
        if size:
            self._call("cuMemsetD8Async", address, byte, size, self._stream)

    def launch(
        self, module: dict[str, c_void_p], kernel: GpuKernel, pointers: Sequence[int], sizes: Sequence[int] = ()
    ) -> None:
        """Launch a kernel; one without blocks is none."""
        if kernel.grid == 0:
            return
        self._allow(module[kernel.symbol], kernel.shared_bytes)
        values = [*(c_uint64(pointer) for pointer in pointers), *(c_int32(size) for size in sizes)]
        arguments = (c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        self._call(
            "cuLaunchKernel", module[kernel.symbol], kernel.grid, 1, 1, kernel.block, 1, 1, kernel.shared_bytes,
            self._stream, arguments, None,
        )  # fmt: skip

    def _allow(self, function: c_void_p, shared_bytes: int) -> None:
        """Let a function have as much shared memory, if it had less before."""
        if _ALLOW in self._functions and shared_bytes > self._allowed.get(function.value or 0, 0):
            self._call(_ALLOW, function, _MOST_SHARED_BYTES, shared_bytes)
            self._allowed[function.value or 0] = shared_bytes

    def begin_graph(self) -> None:
        """Capture the stream."""
        self._call("cuStreamBeginCapture_v2", self._stream, _RELAXED_CAPTURE)

    def end_graph(self) -> c_void_p:
        """The captured graph, instantiated."""
        graph, ready = c_void_p(), c_void_p()
        self._call("cuStreamEndCapture", self._stream, byref(graph))
        self._call("cuGraphInstantiateWithFlags", byref(ready), graph, 0)
        self._call("cuGraphDestroy", graph)
        return self._kept(ready, "cuGraphExecDestroy")

    def launch_graph(self, graph: c_void_p) -> None:
        """Run a graph."""
        self._call("cuGraphLaunch", graph, self._stream)

    def event(self) -> c_void_p:
        """An event in the stream."""
        event = c_void_p()
        self._call("cuEventCreate", byref(event), 0)
        self._call("cuEventRecord", event, self._stream)
        return self._kept(event, "cuEventDestroy_v2")

    def elapsed(self, first: c_void_p, last: c_void_p, /) -> float:
        """Seconds between two events."""
        milliseconds = c_float()
        self._call("cuEventElapsedTime", byref(milliseconds), first, last)
        return milliseconds.value / 1e3

    def synchronize(self) -> None:
        """Wait for the stream."""
        self._call("cuStreamSynchronize", self._stream)

    def _kept(self, handle: c_void_p, destroy: str) -> c_void_p:
        """The handle, which is destroyed with the object that holds it."""
        weakref.finalize(handle, self._call, destroy, c_void_p(handle.value)).atexit = False
        return handle

    def _call(self, name: str, *arguments: Any) -> None:
        """Call a function in the device's context, whatever thread this is."""
        self._ask("cuCtxSetCurrent", self._context)
        self._ask(name, *arguments)

    def _ask(self, name: str, *arguments: Any) -> None:
        status = self._functions[name](*arguments)
        if status:
            text, told = c_char_p(), self.FUNCTIONS[name]
            self._functions["cuGetErrorString"](status, byref(text))
            words = (text.value or b"unknown error").decode()
            raise UnavailableError(f"the GPU's driver refuses {told}: {words} ({status})", hint=self.ADVICE)
