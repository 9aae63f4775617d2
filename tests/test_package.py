"""The package's face: `tilec.load`, imported when it is asked for; and its modules, which stand in no circle."""

import grimp
import pytest

import tilec
from tilec import runtime


def test_load_and_session_are_the_runtimes():
    assert tilec.load is runtime.load
    assert tilec.Session is runtime.Session


def test_unknown_names_are_attribute_errors():
    with pytest.raises(AttributeError, match="laod"):
        tilec.laod  # noqa: B018


def test_no_modules_import_each_other():
    """Imports inside functions and for type checkers count."""
    graph = grimp.build_graph("tilec", cache_dir=None)
    imported = {module: graph.find_modules_directly_imported_by(module) for module in graph.modules}
    while ends := {module for module, of in imported.items() if not of & imported.keys()}:
        imported = {module: of for module, of in imported.items() if module not in ends}
    while ends := imported.keys() - set().union(*imported.values()):
        imported = {module: of for module, of in imported.items() if module not in ends}
    assert not imported
