"""Facts of NVIDIA's driver about the GPUs of this machine: name, processor, multiprocessors, memory."""

import ctypes
from ctypes import byref, c_int, c_size_t
from dataclasses import dataclass

LIBRARIES = ("libcuda.so.1", "nvcuda.dll")
"""Names of NVIDIA's driver."""

_MAJOR, _MINOR, _MULTIPROCESSORS = 75, 76, 16
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT."""


@dataclass(frozen=True)
class Gpu:
    """A GPU in its driver's words; its compute capability, its multiprocessors, bytes of its memory."""

    name: str
    major: int
    minor: int
    multiprocessors: int
    memory: int

    @property
    def processor(self) -> str:
        """The processor as compilers name it: sm_90."""
        return f"sm_{self.major}{self.minor}"

    def runs(self, processor: str) -> bool:
        """Whether machine code for a processor runs here: of this one, or of an earlier one of its generation; code
        for all of a processor's own instructions (sm_90a) runs on that processor only."""
        own, number = processor.endswith("a"), processor.removeprefix("sm_").removesuffix("a")
        if not number.isdecimal() or int(number) // 10 != self.major:
            return False
        return int(number) % 10 == self.minor if own else int(number) % 10 <= self.minor


def driver_library() -> ctypes.CDLL | None:
    """NVIDIA's driver; None where it is not installed."""
    for name in LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def gpus() -> tuple[Gpu, ...]:
    """The GPUs that the driver knows, in its order; none without a driver, or where it refuses."""
    library, count = driver_library(), c_int()
    if library is None or library.cuInit(0) or library.cuDeviceGetCount(byref(count)):
        return ()
    return tuple(_gpu(library, number) for number in range(count.value))


def _gpu(library: ctypes.CDLL, number: int) -> Gpu:
    device, text, memory = c_int(), ctypes.create_string_buffer(256), c_size_t()
    library.cuDeviceGet(byref(device), number)
    library.cuDeviceGetName(text, 256, device)
    library.cuDeviceTotalMem_v2(byref(memory), device)

    def attribute(which: int) -> int:
        value = c_int()
        library.cuDeviceGetAttribute(byref(value), which, device)
        return value.value

    facts = (attribute(_MAJOR), attribute(_MINOR), attribute(_MULTIPROCESSORS))
    return Gpu(text.value.decode(errors="replace"), *facts, memory.value)
