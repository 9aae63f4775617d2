"""tilec compiles ONNX models for devices described in YAML and writes every decision down as JSON."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tilec.runtime import Session, load

__all__ = ["Session", "__version__", "load"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """`tilec.load` and `tilec.Session`, imported when they are first asked for: `tilec --help` needs no NumPy."""
    if name in ("load", "Session"):
        import tilec.runtime

        return getattr(tilec.runtime, name)
    raise AttributeError(f"module 'tilec' has no attribute {name!r}")
