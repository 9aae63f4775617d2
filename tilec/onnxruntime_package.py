"""The onnxruntime package itself, for tilec's own use: also where tilec stands in its place in `sys.modules`."""

import importlib
import sys
import threading
from pathlib import Path
from types import ModuleType
from typing import Any

NAME = "onnxruntime"

_FOLDER = Path(__file__).parent
_lock = threading.RLock()
_aside: dict[str, ModuleType] = {}
"""Modules of the package that are loaded and not in `sys.modules`, by name."""


def import_onnxruntime() -> Any:
    """The module `onnxruntime` of the package of that name. Raises ImportError when it is not installed.

    While the package is imported, what stands in its place is out of `sys.modules`: its modules import each other by
    name.
    """
    with _lock:
        if not _stand_ins():
            return importlib.import_module(NAME)
        if NAME not in _aside:
            _import_aside()
        return _aside[NAME]


def set_aside() -> None:
    """Take everything called onnxruntime out of `sys.modules`, so that something else can stand there. What was loaded
    of the package remains what `import_onnxruntime` returns."""
    with _lock:
        stand_ins = _stand_ins()
        for name in stand_ins:
            del sys.modules[name]
        _aside.update({name: sys.modules.pop(name) for name in _loaded()})


def is_stand_in(module: object) -> bool:
    """Whether a module is tilec's, whatever it is called."""
    file = getattr(module, "__file__", None)
    return isinstance(file, str) and Path(file).is_relative_to(_FOLDER)


def _import_aside() -> None:
    """Import the package and leave `sys.modules` as it is."""
    before = dict.fromkeys(_loaded())
    stand_ins = {name: sys.modules.pop(name) for name in _stand_ins()}
    sys.modules.update(_aside)
    try:
        importlib.import_module(NAME)
        _aside.update({name: sys.modules[name] for name in _loaded()})
    finally:
        for name in _loaded():
            if name not in before:
                del sys.modules[name]
        sys.modules.update(stand_ins)


def _loaded() -> list[str]:
    """Names in `sys.modules` of onnxruntime and of its modules."""
    return [
        name
        for name, module in list(sys.modules.items())
        if (name == NAME or name.startswith(f"{NAME}.")) and module is not None
    ]


def _stand_ins() -> list[str]:
    """Those of the names under which modules of tilec are found."""
    return [name for name in _loaded() if is_stand_in(sys.modules[name])]
