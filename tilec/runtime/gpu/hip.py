"""The driver of AMD's GPUs: the HIP API, by ctypes on libamdhip64, whose functions answer to those of CUDA's driver."""

from collections.abc import Mapping
from typing import ClassVar

from tilec.runtime.gpu.cuda import CudaDriver


class HipDriver(CudaDriver):
    """Device number `device` of AMD's, and a stream on it. Raises UnavailableError without a driver or a device."""

    LIBRARIES: ClassVar[tuple[str, ...]] = (
        "libamdhip64.so",
        "libamdhip64.so.7",
        "libamdhip64.so.6",
        "libamdhip64.so.5",
    )
    ADVICE: ClassVar[str] = "Install ROCm; without a GPU, `tilec verify` checks kernels in the emulator."
    FUNCTIONS: ClassVar[Mapping[str, str]] = {
        "cuInit": "hipInit",
        "cuDeviceGetCount": "hipGetDeviceCount",
        "cuDeviceGet": "hipDeviceGet",
        "cuDeviceGetName": "hipDeviceGetName",
        "cuDevicePrimaryCtxRetain": "hipDevicePrimaryCtxRetain",
        "cuCtxSetCurrent": "hipCtxSetCurrent",
        "cuModuleLoadData": "hipModuleLoadData",
        "cuModuleGetFunction": "hipModuleGetFunction",
        "cuMemAlloc_v2": "hipMalloc",
        "cuMemFree_v2": "hipFree",
        "cuMemcpyHtoDAsync_v2": "hipMemcpyHtoDAsync",
        "cuMemcpyDtoHAsync_v2": "hipMemcpyDtoHAsync",
        "cuMemcpyDtoDAsync_v2": "hipMemcpyDtoDAsync",
        "cuMemsetD8Async": "hipMemsetD8Async",
        "cuLaunchKernel": "hipModuleLaunchKernel",
        "cuStreamCreate": "hipStreamCreateWithFlags",
        "cuStreamSynchronize": "hipStreamSynchronize",
        "cuStreamIsCapturing": "hipStreamIsCapturing",
        "cuStreamBeginCapture_v2": "hipStreamBeginCapture",
        "cuStreamEndCapture": "hipStreamEndCapture",
        "cuGraphInstantiateWithFlags": "hipGraphInstantiateWithFlags",
        "cuGraphDestroy": "hipGraphDestroy",
        "cuGraphLaunch": "hipGraphLaunch",
        "cuGraphExecDestroy": "hipGraphExecDestroy",
        "cuEventCreate": "hipEventCreateWithFlags",
        "cuEventRecord": "hipEventRecord",
        "cuEventDestroy_v2": "hipEventDestroy",
        "cuEventElapsedTime": "hipEventElapsedTime",
        "cuGetErrorString": "hipDrvGetErrorString",
    }
    """CUDA's name -> HIP's; what is missing here a GPU of AMD does not need: every block may have all shared memory."""
