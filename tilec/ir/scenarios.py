"""Scenarios: sizes that occur together, as the relations of a decoder's step and of its first call (B06).

Decisions are made for sizes of each scenario: these become the likely sizes of its symbols, each symbol's n-th together
(`further_sizes`), those of the first scenario the pivots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from tilec.errors import ConfigError, UsageError, did_you_mean
from tilec.ir.algebra import linear_form, simplify, simplify_scalar
from tilec.ir.evaluate import integer
from tilec.ir.expr import Binary, Const, Expr, Var, substitute, variables
from tilec.ir.graph import Graph
from tilec.ir.pivots import among_all, nearest_legal
from tilec.ir.plan import Plan
from tilec.ir.sizes import (
    ANY_SIZE,
    DEFAULT_SIZE,
    Constraint,
    Scenario,
    SymbolRange,
    broken_constraints,
    from_origin,
    pivot_sizes,
)
from tilec.ir.text import text_of

Likely = Mapping[str, Sequence[int]]
"""Symbol -> the sizes that somebody says to be likely, the most frequent first."""

NONE_LIKELY: Likely = MappingProxyType({})
NONE_BOUND: Mapping[str, int] = MappingProxyType({})

ALTER = "Correct the scenario, or take it out of `scenarios`."


class ScenarioError(ValueError):
    """Why sizes cannot occur together."""


@dataclass(frozen=True)
class _Facts:
    """What sizes fulfil: ranges and constraints of all symbols, and values of sizes that are none."""

    symbols: tuple[str, ...]
    ranges: Mapping[str, SymbolRange]
    constraints: tuple[Constraint, ...]
    values: Mapping[str, Expr]


@dataclass(frozen=True)
class _Point:
    """Sizes of all symbols, and the symbols that a scenario, or what they fulfil there, says something of."""

    sizes: Mapping[str, int]
    told: frozenset[str]


def with_scenarios(
    graph: Graph,
    named: Mapping[str, Scenario] | None = None,
    likely: Likely = NONE_LIKELY,
    bound: Mapping[str, int] = NONE_BOUND,
) -> Graph:
    """The graph with the `named` scenarios, or its own, and decisions that are made for sizes of them.

    A symbol that a scenario leaves free has its `likely` sizes there, but for those that another scenario gives it,
    else those that it has in the graph's scenarios. `bound` are sizes that were symbols. Of its own scenarios those
    whose relations are broken by now are left out. Raises ConfigError for a named scenario that cannot occur.
    """
    values = {name: known.value for name, known in graph.symbol_values.items()}
    values |= {symbol: Const(size) for symbol, size in bound.items() if symbol not in graph.symbols}
    facts = _Facts(graph.symbols, graph.symbol_ranges, graph.constraints, values)
    wanted = graph.scenarios if named is None else named
    given = {(symbol, expr) for each in wanted.values() for symbol, expr in each.sizes.items()}
    likely = {s: tuple(size for size in sizes if (s, Const(size)) not in given) for s, sizes in likely.items()}
    found: dict[str, tuple[Scenario, tuple[_Point, ...]]] = {}
    for name, each in wanted.items():
        try:
            sizes = _closed(each.sizes, facts)
            found[name] = replace(each, sizes=sizes), _points(name, sizes, facts, graph.scenarios, likely)
        except ScenarioError as error:
            if named is not None:
                raise ConfigError(f"scenario {name!r} cannot occur: {error}", each.origin or None, ALTER) from error
    told = {symbol for _, points in found.values() for point in points for symbol in point.told}
    scenarios = {
        name: replace(each, at=tuple({s: n for s, n in point.sizes.items() if s in told} for point in points))
        for name, (each, points) in found.items()
    }
    ranges = _with_likely(graph, scenarios) if scenarios else graph.symbol_ranges
    if scenarios == graph.scenarios and ranges == graph.symbol_ranges:
        return graph
    return replace(graph, scenarios=scenarios, symbol_ranges=ranges)


def known_scenario(plan: Plan | Graph, name: str) -> str:
    """The name of a scenario. Raises UsageError for one that the plan does not have."""
    if name in plan.scenarios:
        return name
    near = did_you_mean(name, plan.scenarios)
    known = f"Its scenarios are {', '.join(plan.scenarios)}." if plan.scenarios else "It has none: see `scenarios`."
    hint = f"Did you mean {near!r}?" if near else known
    raise UsageError(f"the plan has no scenario {name!r}", f"--scenario {name}", hint)


def scenario_sizes(plan: Plan | Graph, name: str, given: Mapping[str, int]) -> dict[str, int]:
    """The sizes of all symbols in a scenario, with the `given` ones of symbols that it leaves free.

    Raises ScenarioError for a given size that the scenario does not have, and for sizes that the plan does not allow.
    """
    scenario = plan.scenarios[name]
    unknown = next((symbol for symbol in given if symbol not in plan.symbols), None)
    if unknown is not None:
        raise ScenarioError(f"the plan has no symbol {unknown!r}, its symbols are {', '.join(plan.symbols)}")
    point = scenario.at[0] if scenario.at else {}
    sizes = {**pivot_sizes(plan.symbols, plan.symbol_ranges), **point, **given}
    sizes |= {symbol: int(integer(expr, sizes)) for symbol, expr in scenario.sizes.items()}
    other = next((symbol for symbol, size in given.items() if sizes[symbol] != size), None)
    if other is not None:
        raise ScenarioError(f"{name} is {scenario_text(scenario)}, and {other} is {given[other]}")
    sizes = with_room(sizes, {*scenario.sizes, *given}, plan)
    problems = broken_constraints(plan.constraints, plan.symbol_ranges, sizes)
    if problems:
        raise ScenarioError(problems[0])
    return sizes


def scenario_sizes_of(plan: Plan | Graph, name: str, given: Mapping[str, int]) -> dict[str, int]:
    """The same for what a user names. Raises UsageError for a scenario or sizes that the plan does not have."""
    try:
        return scenario_sizes(plan, known_scenario(plan, name), given)
    except ScenarioError as error:
        raise UsageError(str(error), f"--scenario {name}", "Take sizes that the scenario leaves free.") from error


def scenario_text(scenario: Scenario) -> str:
    """The relations in one line: `seq = 1, total = past + 1`."""
    return ", ".join(f"{symbol} = {text_of(expr)}" for symbol, expr in scenario.sizes.items()) or "any sizes"


def free_symbols(scenario: Scenario, symbols: Iterable[str]) -> tuple[str, ...]:
    """The symbols that a scenario is made for and leaves free, in the order of `symbols`; none that it says nothing
    of."""
    told = {*(s for expr in scenario.sizes.values() for s in variables(expr)), *(s for p in scenario.at for s in p)}
    return tuple(symbol for symbol in symbols if symbol in told - scenario.sizes.keys())


def governed_symbols(scenarios: Mapping[str, Scenario]) -> frozenset[str]:
    """The symbols of which scenarios say something."""
    told = {symbol for each in scenarios.values() for symbol in each.sizes}
    return frozenset(told | {s for each in scenarios.values() for point in each.at for s in point})


def with_room(sizes: Mapping[str, int], told: Iterable[str], plan: Plan | Graph) -> dict[str, int]:
    """Sizes of which one that nothing is told of is as large as the others need."""
    rest = [symbol for symbol in plan.symbols if symbol not in told]
    return {**sizes, **nearest_legal(sizes, rest, sizes, plan.symbol_ranges, plan.constraints)}


def _closed(sizes: Mapping[str, Expr], facts: _Facts) -> dict[str, Expr]:
    """The symbols that are fixed, as expressions of those that are free. Raises ScenarioError."""
    known = {*facts.symbols, *facts.values}
    for symbol in dict.fromkeys((*sizes, *(s for expr in sizes.values() for s in sorted(variables(expr))))):
        if symbol not in known:
            near = did_you_mean(symbol, known)
            which = f"did you mean {near}?" if near else f"the model's sizes are {', '.join(sorted(known)) or 'fixed'}"
            raise ScenarioError(f"the model has no size {symbol!r}: {which}")
    told = {symbol: _written_out(symbol, sizes, facts, ()) for symbol in sizes}
    fixed = {symbol: expr for symbol, expr in told.items() if symbol in facts.symbols}
    for symbol, expr in told.items():
        if symbol in facts.values:
            value = simplify(substitute(substitute(facts.values[symbol], fixed), fixed))
            found = _solved(symbol, value, simplify(substitute(expr, fixed)), facts)
            fixed = {**{name: simplify(substitute(each, found)) for name, each in fixed.items()}, **found}
    for symbol, expr in fixed.items():
        if isinstance(expr, Const) and not facts.ranges.get(symbol, ANY_SIZE).holds(int(expr.value)):
            entry = facts.ranges.get(symbol, ANY_SIZE)
            raise ScenarioError(f"{symbol} is {text_of(expr)}, the model takes {entry.text}{from_origin(entry.origin)}")
    for each in facts.constraints:
        if simplify_scalar(substitute(each.holds, fixed)) == Const(False):
            raise ScenarioError(f"the model demands {text_of(each.holds)}{from_origin(each.origin)}")
    return fixed


def _written_out(symbol: str, sizes: Mapping[str, Expr], facts: _Facts, within: tuple[str, ...]) -> Expr:
    """What a scenario says of a symbol, in symbols that it says nothing of and that have no values."""
    if symbol in within:
        raise ScenarioError(f"{' -> '.join((*within[within.index(symbol) :], symbol))} goes round in a circle")
    expr = sizes[symbol]
    inner: dict[str, Expr] = {}
    for name in variables(expr):
        if name in sizes:
            inner[name] = _written_out(name, sizes, facts, (*within, symbol))
        elif name in facts.values:
            inner[name] = facts.values[name]
    return simplify(substitute(expr, inner))


def _solved(symbol: str, value: Expr, told: Expr, facts: _Facts) -> dict[str, Expr]:
    """What makes a size that has a value in the model be what a scenario says: one more symbol that is fixed."""
    apart = simplify(Binary("-", told, value))
    if apart == Const(0):
        return {}
    terms, _ = linear_form(apart)
    for name in reversed(facts.symbols):
        factor = terms.get(Var(name))
        if factor in (1, -1):
            rest = simplify(Binary("-", apart, Binary("*", Var(name), Const(factor))))
            if name not in variables(rest):
                return {name: simplify(Binary("*", rest, Const(-factor)))}
    raise ScenarioError(f"{symbol} is {text_of(value)} in the model, {text_of(told)} in the scenario")


def _points(
    name: str, sizes: Mapping[str, Expr], facts: _Facts, known: Mapping[str, Scenario], likely: Likely
) -> tuple[_Point, ...]:
    """Sizes of a scenario that decisions are made for, one set for each of the likely sizes of free symbols."""
    told = {*sizes, *(s for expr in sizes.values() for s in variables(expr)), *governed_symbols(known)}
    free = [symbol for symbol in facts.symbols if symbol not in sizes]
    count = max((len(likely[s]) for s in free if s in told and likely.get(s)), default=1)
    points: list[_Point] = []
    for place in range(count):
        usual = pivot_sizes(facts.symbols, facts.ranges)
        for symbol in (each for each in free if each in told):
            usual[symbol] = _usual(symbol, name, place, facts, known, likely)
        there = _legal(usual, sizes, free, facts)
        altered = {symbol for symbol in free if there[symbol] != usual[symbol]}
        point = _Point(there, frozenset(altered | told & there.keys()))
        if point not in points:
            points.append(point)
    return tuple(points)


def _usual(symbol: str, name: str, place: int, facts: _Facts, known: Mapping[str, Scenario], likely: Likely) -> int:
    """The size of a symbol that a scenario leaves free, where nothing else demands another."""
    entry = facts.ranges.get(symbol, ANY_SIZE)
    if likely.get(symbol):
        return likely[symbol][min(place, len(likely[symbol]) - 1)]
    others = sorted(known, key=lambda each: each != name)
    points = [(each, point) for each in others for point in known[each].at[place : place + 1]]
    told = [point[symbol] for each, point in points if symbol in point and symbol not in known[each].sizes]
    if told:
        return entry.nearest(told[0])
    return entry.nearest(DEFAULT_SIZE) if symbol in governed_symbols(known) else entry.pivot


def _legal(usual: Mapping[str, int], sizes: Mapping[str, Expr], free: Sequence[str], facts: _Facts) -> dict[str, int]:
    """The usual sizes with those of a scenario; free ones are others where constraints and ranges demand it. Raises
    ScenarioError where none are found."""
    demands = [replace(each, holds=simplify_scalar(substitute(each.holds, sizes))) for each in facts.constraints]
    demands += [each for s, expr in sizes.items() for each in _within(expr, facts.ranges.get(s, ANY_SIZE))]
    open_ = tuple(replace(each, holds=_at_most(each.holds)) for each in demands if each.holds != Const(True))
    start = {symbol: usual[symbol] for symbol in free}
    found = dict(nearest_legal(start, free, start, facts.ranges, open_))
    broken = [each for each in open_ if not integer(each.holds, found)]
    if broken:
        tried = sorted({s for each in broken for s in variables(each.holds)})
        found |= among_all(tried, found, facts.ranges, [each.holds for each in open_]) if tried else {}
        broken = [each for each in open_ if not integer(each.holds, found)]
    if broken:
        raise ScenarioError(f"no sizes fulfil {text_of(broken[0].holds)}{from_origin(broken[0].origin)}")
    return {symbol: int(integer(sizes.get(symbol, Var(symbol)), found)) for symbol in facts.symbols}


def _at_most(holds: Expr) -> Expr:
    """A demand that one size is less than another as one that it is at most so large: the sides are sizes to try."""
    match holds:
        case Binary("<", left, right):
            return Binary("<=", simplify(Binary("+", left, Const(1))), right)
        case Binary(">", left, right):
            return Binary("<=", simplify(Binary("+", right, Const(1))), left)
    return holds


def _within(expr: Expr, entry: SymbolRange) -> list[Constraint]:
    """That an expression is in a range."""
    demands: list[Expr] = [Binary(">=", expr, Const(entry.least))]
    if entry.most is not None:
        demands.append(Binary("<=", expr, Const(entry.most)))
    if entry.divisor > 1:
        demands.append(Binary("==", Binary("%", expr, Const(entry.divisor)), Const(0)))
    return [Constraint(simplify_scalar(each), entry.origin) for each in demands]


def _with_likely(graph: Graph, scenarios: Mapping[str, Scenario]) -> dict[str, SymbolRange]:
    """The ranges with the sizes of all scenarios as likely ones, the first of each scenario first."""
    most = max(len(each.at) for each in scenarios.values())
    points = [each.at[n] for n in range(most) for each in scenarios.values() if n < len(each.at)]
    ranges = dict(graph.symbol_ranges)
    for symbol in (symbol for symbol in graph.symbols if symbol in points[0]):
        sizes = tuple(point[symbol] for point in points)
        same = len(set(sizes)) == 1
        ranges[symbol] = replace(ranges.get(symbol, ANY_SIZE), likely=sizes[:1] if same else sizes)
    return ranges
