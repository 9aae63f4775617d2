"""tilec under the name `onnxruntime` in this process, for programs that import it themselves."""

import importlib.machinery
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from tilec.onnxruntime_package import NAME, is_stand_in, set_aside

FOLDER = Path(__file__).parent / "onnxruntime"


def stand_in() -> ModuleType:
    """Put the module that `import onnxruntime` returns from now on into `sys.modules`, and return it.

    What was imported from onnxruntime before remains onnxruntime's.
    """
    present = sys.modules.get(NAME)
    if present is not None and present.__name__ == NAME and is_stand_in(present):
        return present
    set_aside()
    package = importlib.machinery.PathFinder.find_spec(NAME)
    behind = list(package.submodule_search_locations or ()) if package is not None else []
    spec = importlib.util.spec_from_file_location(
        NAME, FOLDER / "__init__.py", submodule_search_locations=[str(FOLDER), *behind]
    )
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[NAME] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
