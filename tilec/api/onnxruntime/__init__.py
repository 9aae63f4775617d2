"""tilec in onnxruntime's interface: the package that `tilec.as_onnxruntime()` loads under the name `onnxruntime`.

Folders of the package itself that are plain Python (`onnxruntime.quantization`) are found behind this one. A name that
tilec has no part in is the package's own, where it is installed.
"""

from importlib.metadata import PackageNotFoundError, version
from typing import Any

from tilec.api import *  # noqa: F403
from tilec.api.onnxruntime_names import package_name

from . import capi as capi

INTERFACE = "1.31.1"
"""The version of onnxruntime whose interface this is; packages ask for a least one."""

try:
    __version__ = version("onnxruntime")
except PackageNotFoundError:
    __version__ = INTERFACE


def get_version_string() -> str:  # type: ignore[no-redef]
    """The version of onnxruntime in whose place this stands."""
    return __version__


def preload_dlls(*_arguments: Any, **_options: Any) -> None:
    """Taken for onnxruntime's sake: there are no libraries of a GPU to load."""


def __getattr__(name: str) -> Any:
    return package_name("onnxruntime", name)
