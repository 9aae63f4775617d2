"""Runs one case with open sizes: whether it is native with its sizes and without, and right at all sizes."""

from __future__ import annotations

import resource
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

from tests.conformance.cases import Case
from tests.conformance.judge import Result, described, ended, placement_of
from tests.open_conformance.opened import Opened, opened, resized
from tests.open_conformance.other_sizes import other_sizes
from tests.open_conformance.references import Outputs, References
from tilec.errors import ConfigError, TilecError
from tilec.importer import import_model
from tilec.importer.convert import Imported
from tilec.ir.evaluate import integer
from tilec.ir.expr import variables
from tilec.ir.graph import Graph
from tilec.ir.sizes import ANY_SIZE

LEFT_OUT = "left out"
"""The status of a case that is not native with its sizes, or that has no sizes to open."""

MOST_ELEMENTS = 1 << 16
"""Elements of an input at sizes that are proposed, unless the case has half as many: ONNX's reference loops in Python
over some of them, and seven dimensions may all be four times as large."""

IMPORTED = "imported"
"""The status of a case that was imported only."""


def judged_open(case: Case, import_only: bool = False) -> Result:
    """How a case ends: `native` where it is with open sizes, `seconds` of a processor."""
    before = _processor_seconds()
    status, native, reason = _judged(case, import_only)
    return ended(case, status, native, reason, _processor_seconds() - before)


def _judged(case: Case, import_only: bool) -> tuple[str, bool, str]:
    model = case.model()
    inputs, outputs = case.data()[0]
    stored = {tensor.name for tensor in model.graph.initializer}
    names = [info.name for info in model.graph.input if info.name not in stored]
    feeds = dict(zip(names, inputs, strict=True))
    if not _native(model):
        return LEFT_OUT, False, "not native with its sizes"
    try:
        open_case = opened(model, feeds)
        if not open_case.sizes:
            return LEFT_OUT, False, "no sizes to open"
        imported = _imported(open_case.model)
        if not _allows(imported.graph, open_case.sizes):
            # Where an operator repeats an operand of extent 1, the model declares the 1.
            open_case = opened(model, feeds, {symbol for symbol, size in open_case.sizes.items() if size == 1})
            imported = _imported(open_case.model)
        native, reason = placement_of(imported.graph.placement)
        return (IMPORTED, native, reason) if import_only else _run(case, open_case, feeds, outputs)
    except AssertionError as error:
        return "failed", False, described(error)
    except TilecError as error:
        return "refused", False, described(error)
    except Exception as error:
        return "failed", False, described(error)


def _native(model: Any) -> bool:
    try:
        return not _imported(model).graph.placement.fallback
    except TilecError:
        return False


def _is_valid(model: Any) -> bool:
    """Whether a model with its sizes is none that ONNX's definitions rule out; peers look at less of it."""
    try:
        _imported(model)
    except ConfigError:
        return False
    return True


def _imported(model: Any) -> Imported:
    with tempfile.TemporaryDirectory(prefix="tilec-open-") as folder:
        file = Path(folder) / "model.onnx"
        onnx.save(model, file)
        return import_model(file, fallback="allow")


def _allows(graph: Graph, sizes: Mapping[str, int]) -> bool:
    """Whether sizes are what import recorded of them, as far as inputs tell."""
    ranges = all(graph.symbol_ranges.get(symbol, ANY_SIZE).holds(size) for symbol, size in sizes.items())
    values = all(integer(each.value, sizes) == sizes[symbol] for symbol, each in graph.symbol_values.items())
    told = (each.holds for each in graph.constraints if variables(each.holds) <= sizes.keys())
    return ranges and values and all(integer(holds, sizes) for holds in told)


def _run(case: Case, open_case: Opened, feeds: Mapping[str, Any], outputs: Outputs) -> tuple[str, bool, str]:
    """Compile once and run at all sizes. Raises AssertionError where no peer's results are the same."""
    from tilec.backend.build import compiled

    done = compiled(open_case.model, strict=False)
    names = [info.name for info in open_case.model.graph.output]
    peers = References(open_case.model, feeds, names)
    at: dict[tuple[int, ...], list[Outputs]] = {}

    def expected(sizes: Mapping[str, int]) -> list[Outputs]:
        key = tuple(sizes.values())
        if key not in at:
            at[key] = peers.expected(resized(feeds, open_case, sizes))
        return at[key]

    most = max(MOST_ELEMENTS, 2 * open_case.elements(open_case.sizes))

    def legal(sizes: Mapping[str, int]) -> bool:
        if open_case.elements(sizes) > most:
            return False
        return bool(expected(sizes)) and _is_valid(opened(open_case.model, resized(feeds, open_case, sizes), own).model)

    own = open_case.sizes
    for sizes in (own, *other_sizes(own, legal)):
        if 0 in sizes.values() and done.placement.fallback:
            continue  # onnxruntime leaves results of no steps as they are in memory
        given = resized(feeds, open_case, sizes)
        accepted = [outputs] if sizes == own else []
        if sizes != own or done.placement.fallback:  # onnxruntime's own results are what it is asked for
            accepted = [*accepted, *expected(sizes)]
        try:
            found = done.session.run({spec.name: given[spec.name] for spec in done.session.inputs})
            _compare([found[name] for name in names], accepted, case.tolerances)
        except Exception as error:
            error.add_note(f"at {', '.join(f'{symbol}={size}' for symbol, size in sizes.items())}")
            raise
    return "passed", *placement_of(done.placement)


def _compare(found: Outputs, accepted: list[Outputs], tolerances: tuple[float, float]) -> None:
    """Raise AssertionError unless the results are those of a peer, as ONNX's runner compares them."""
    from onnx.backend.test.runner import Runner

    wrong: AssertionError | None = None
    for each in accepted:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                Runner.assert_similar_outputs(each, found, *tolerances)
                return
        except AssertionError as error:
            wrong = wrong or error
    assert wrong is not None
    raise wrong


def _processor_seconds() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)
