"""Names of onnxruntime's modules that tilec has no part in: sparse tensors, adapters, quantisation of weights."""

from typing import Any

from tilec.onnxruntime_package import import_onnxruntime


def package_name(module: str, name: str) -> Any:
    """What the package has under `name` in `module`. Raises AttributeError where it is not installed or has no such
    name, as for a module without it."""
    if not name.startswith("__"):
        try:
            value: Any = import_onnxruntime()
            for part in module.split(".")[1:]:
                value = getattr(value, part)
            return getattr(value, name)
        except (ImportError, AttributeError):
            pass
    raise AttributeError(f"module {module!r} has no attribute {name!r}: tilec stands in its place")
