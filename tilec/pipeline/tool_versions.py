"""The programs that take part in compiling: what they make may change when one of them does."""

import os
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_PACKAGES = ("tilec", "apache-tvm", "apache-tvm-ffi", "apache-tvm-ffi-orcjit", "numpy", "onnx", "onnxruntime")

_DIGITS = 12
"""Of a sha256."""


@cache
def tools() -> dict[str, str]:
    """Package -> version, empty for one that is not installed; tilec's with a digest of its files, which change between
    versions in a checkout."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = ""
    return {**found, "tilec": " ".join((found["tilec"], *_sources(Path(__file__).parents[1])))}


def _sources(root: Path) -> tuple[str, ...]:
    """The digest of a package's files, the same wherever they lie; none for a package in an archive."""
    files = sorted(
        os.path.join(folder, name)
        for folder, _, names in os.walk(root)
        for name in names
        if name.endswith((".py", ".ll"))
    )
    digest = sha256()
    for file in files:
        digest.update(f"{os.path.relpath(file, root)}\n".encode())
        digest.update(Path(file).read_bytes())
    return (digest.hexdigest()[:_DIGITS],) if files else ()
