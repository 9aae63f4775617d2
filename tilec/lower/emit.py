"""Emission of the statements of a part, level by level upwards (execution routine; Welder, 3.3, figure 8)."""

from __future__ import annotations

from collections.abc import Mapping

from tilec.ir.expr import Const, operands
from tilec.ir.program import ComputeTile, Fill, LoadTiles, Loop, Statement, StoreTiles
from tilec.lower.connected_parts import ConnectedPart
from tilec.lower.iteration_boxes import ProducerRegion, absorbing
from tilec.lower.lowering_context import LoweringContext, Window
from tilec.lower.online_update import online_update
from tilec.lower.padding import unguarded
from tilec.lower.part_frame import LiveRange, PartFrame
from tilec.lower.shared_loops import SharedLoop
from tilec.lower.split import nested
from tilec.lower.staging import allocate, load, neutral_of
from tilec.lower.store_regions import first_tile
from tilec.lower.tile_request import Limit, ReduceNest, RequestTarget, TileRequest
from tilec.lower.windows import window_of


def statements(s: LoweringContext, task: TileRequest) -> tuple[Statement, ...]:
    """The part's tile loops at its level with their bodies."""
    frame = PartFrame(s, task)
    body: list[Statement] = []
    live: LiveRange = {}
    _emit_home(frame, (), body, live)
    for name in task.part:
        body += _store(frame, name)
    return nested(frame.tiling.heads, body)


def _emit(frame: PartFrame, part: ConnectedPart, out: list[Statement], loops: tuple[str, ...], live: LiveRange) -> None:
    """Emit a part one level up (at the top: one node) inside the reduce loops of the nodes `loops`."""
    relays = frame.relays(part)
    for name in frame.leaving(part):
        allocate(frame, name, loops, out, may_skip=not relays)
    if frame.task.level == frame.s.top or relays:
        _in_place(frame, part, out, loops, live)
    else:
        _deferred(frame, part, out, loops, live)


def _in_place(
    frame: PartFrame, part: ConnectedPart, out: list[Statement], loops: tuple[str, ...], live: LiveRange
) -> None:
    """Emit reduce loops around one step: the computation at the top level, or the part's tiles one level up."""
    final = part[-1]
    nest = frame.nests.get(final, ())
    resumed = _resume(frame, final, out)
    if nest and not resumed:
        out.append(Fill(frame.buffers[final].name, neutral_of(frame, final)))
    inner: list[Statement] = []
    if nest:
        loops, live = (*loops, final), {tensor: list(buffers) for tensor, buffers in live.items()}
        _emit_home(frame, loops, inner, live)
    load(frame, part, loops, inner, live)
    accumulate = bool(nest) or resumed
    if frame.task.level == frame.s.top:
        inner.append(_compute(frame, final, loops, accumulate))
    else:
        inner += _above(frame, part, loops, accumulate, {}, {})
    for step in reversed(nest):
        inner = list(nested(step.heads, (*step.body, *inner)))
    out += inner


def _deferred(
    frame: PartFrame,
    part: ConnectedPart,
    out: list[Statement],
    loops: tuple[str, ...],
    live: LiveRange,
    accumulate: bool = False,
) -> None:
    """Emit a part whose reduce loops, with the loads of their steps at this level, go inside the part's tile loops one
    level up."""
    pending: dict[str, tuple[ReduceNest, ...]] = {}
    resumed = _resume(frame, part[-1], out) or accumulate
    stepped = [name for name in part if name in frame.nests and name not in loops]
    limits: dict[str, Limit] = {}
    rest = list(part)
    for name in stepped:
        inner: list[Statement] = []
        nest = (*loops, *(f for f in frame.homes[name] if f not in loops), name)
        within = {tensor: list(buffers) for tensor, buffers in live.items()}
        _emit_home(frame, nest, inner, within)
        members = [m for m in rest if m == name or (m not in stepped and frame.homes[m][-1:] == (name,))]
        load(frame, members, nest, inner, within)
        rest = [m for m in rest if m not in members]
        limits |= {
            m: Limit(frozenset(nest) & set(part), _box(frame, m, frame.view(nest))) for m in members if m != name
        }
        *before, last = frame.nests[name]
        pending[name] = (*before, ReduceNest(last.heads, last.chunk, tuple(inner)))
    load(frame, rest, loops, out, live)
    out += _above(frame, part, loops, resumed, pending, limits)


def _emit_home(frame: PartFrame, loops: tuple[str, ...], out: list[Statement], live: LiveRange) -> None:
    """Emit the parts placed in the reduce loops `loops`."""
    for part in frame.sequence(loops):
        shared = frame.split(part)
        if shared is None:
            _emit(frame, part, out, loops, live)
        else:
            _emit_shared(frame, shared, out, loops, live)


def _emit_shared(
    frame: PartFrame, shared: SharedLoop, out: list[Statement], loops: tuple[str, ...], live: LiveRange
) -> None:
    """Emit one loop whose steps run several parts: accumulators are allocated in front of it and stay at this level."""
    for name in shared.members:
        allocate(frame, name, loops, out, may_skip=False)
        out.append(Fill(frame.buffers[name].name, neutral_of(frame, name)))
    loops, live = (*loops, shared.leader), {tensor: list(buffers) for tensor, buffers in live.items()}
    inner: list[Statement] = []
    for part in frame.parts:
        if part[-1] in shared.members:
            _member(frame, shared, part, inner, loops, live)
        elif frame.home(part) == loops:
            _emit(frame, part, inner, loops, live)
    for step in reversed(frame.nests[shared.leader]):
        inner = list(nested(step.heads, (*step.body, *inner)))
    out += inner


def _member(
    frame: PartFrame,
    shared: SharedLoop,
    part: ConnectedPart,
    out: list[Statement],
    loops: tuple[str, ...],
    live: LiveRange,
) -> None:
    """Emit a part whose final node rescales its accumulator and adds the contribution of one step."""
    final = part[-1]
    for name in frame.leaving(part):
        if name != final:
            allocate(frame, name, loops, out, may_skip=False)
    out += online_update(frame, shared, final, loops, statements)
    if frame.task.level == frame.s.top:
        load(frame, part, loops, out, live)
        out.append(_compute(frame, final, loops, accumulate=True))
    else:
        _deferred(frame, part, out, loops, live, accumulate=True)


def _resume(frame: PartFrame, name: str, out: list[Statement]) -> bool:
    """Load the partial result of the level below, if the part continues one."""
    if not (frame.task.accumulate and name == frame.final):
        return False
    target = frame.task.targets[name].buffer
    if frame.buffers[name] != target:
        out.append(LoadTiles(frame.buffers[name].name, target.name))
    return True


def _compute(frame: PartFrame, name: str, loops: tuple[str, ...], accumulate: bool) -> ComputeTile:
    s, expr = frame.s, frame.s.nodes[name]
    read_from = {tensor: frame.sources[name, tensor].name for tensor in operands(expr)}
    fills = absorbing(s, name)
    filled = {tensor: fill.value for tensor, fill in fills.items() if s.filled.get(read_from[tensor]) == fill.value}
    box = frame.view(loops).boxes[name]
    return ComputeTile(
        expr=unguarded(expr, filled, s.shapes),
        box=tuple((i, *box[i]) for i in expr.iterators),
        target=frame.buffers[name].name,
        operands=tuple(read_from.items()),
        accumulate=accumulate and expr.reducer is not None,
        unit=s.variant.units.get(name, ""),
    )


def _above(
    frame: PartFrame,
    part: ConnectedPart,
    loops: tuple[str, ...],
    accumulate: bool,
    pending: Mapping[str, tuple[ReduceNest, ...]],
    limits: Mapping[str, Limit],
) -> tuple[Statement, ...]:
    """The statements of the part one level up."""
    region = frame.view(loops)
    task = TileRequest(
        part=part,
        level=frame.task.level + 1,
        box=region.boxes[part[-1]],
        targets={
            name: RequestTarget(frame.buffers[name], _region(frame, name, region)) for name in frame.leaving(part)
        },
        sources={key: buffer for key, buffer in frame.sources.items() if key[0] in part},
        limits={
            name: (Limit(frozenset(), _box(frame, name, region)), *([limits[name]] if name in limits else []))
            for name in part
        },
        accumulate=accumulate,
        pending=pending,
    )
    return statements(frame.s, task)


def _box(frame: PartFrame, name: str, region: ProducerRegion) -> Window:
    return tuple(region.boxes[name][i] for i in frame.s.nodes[name].spatial)


def _region(frame: PartFrame, name: str, region: ProducerRegion) -> Window:
    """The region of a tensor that the level above stores: its box, or its share of the target if it skips this
    level."""
    target = frame.task.targets.get(name)
    skips = target is not None and frame.buffers[name] == target.buffer
    return region.owned[name] if skips else _box(frame, name, region)


def _store(frame: PartFrame, name: str) -> list[Statement]:
    """The store of the region of a tensor that this tile owns, to the level below."""
    target = frame.task.targets.get(name)
    if target is None or frame.buffers[name] == target.buffer:
        return []
    source, owned = frame.buffers[name], frame.view(()).owned[name]
    if not owned:
        # A scalar has no region to restrict: it is stored in a loop that runs once, in the first tile.
        once, store = first_tile(frame.tiling), StoreTiles(target.buffer.name, source.name)
        return [store] if once == Const(1) else [Loop(frame.s.names.new(f"once_{name}"), once, (store,))]
    if owned == window_of(source):
        return [StoreTiles(target.buffer.name, source.name)]
    return [StoreTiles(target.buffer.name, source.name, tuple(lo for lo, _ in owned), tuple(hi for _, hi in owned))]
