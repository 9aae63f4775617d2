"""Lowering: a group's plan becomes a tile program, level by level (Welder figure 8; W31)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tilec.ir.expr import Const, Scalar, operands
from tilec.ir.plan import Group, Plan, Variant
from tilec.ir.program import Allocate, Buffer, ComputeTile, Fill, LoadTiles, Loop, Program, Statement, StoreTiles
from tilec.lower.barriers import with_barriers
from tilec.lower.boxes import View, absorbing, clipped_reads, view
from tilec.lower.hoist import hoisted
from tilec.lower.owned import first_tile
from tilec.lower.padding import unguarded
from tilec.lower.parts import Part, connected_parts
from tilec.lower.placement import homes
from tilec.lower.resolve import resolved
from tilec.lower.setting import Box, Setting, Window, neutral, setting
from tilec.lower.split import Tiling, nested, reduce_steps, tile
from tilec.lower.task import ReduceNest, Target, Task
from tilec.lower.windows import buffer, contains, hull, leaves, widened, window_of

Live = dict[str, list[Buffer]]
"""Tensor -> buffers at a level that hold part of it at this point of the program."""


def lower(group: Group, variant: Variant, plan: Plan) -> Program:
    """The tile program of a group under one of its variants. Raises PlanError for a plan that is not legal."""
    s = setting(group, variant, plan)
    part = tuple(s.nodes)
    inputs = dict.fromkeys(t for expr in s.nodes.values() for t in operands(expr) if t not in s.nodes)
    parameters = {name: _parameter(s, name) for name in (*inputs, *s.outputs)}
    targets = {name: Target(parameters[name], window_of(parameters[name])) for name in s.outputs}
    sources = {(name, t): parameters[t] for name in part for t in operands(s.nodes[name]) if t in inputs}
    box: Box = {i: (Const(0), extent) for i, extent in s.nodes[part[-1]].domain.items()}
    body = _Frame(s, Task(part, 0, box, targets, sources)).statements()
    return Program(
        name=variant.kernel,
        levels=s.levels,
        symbols=plan.symbols,
        parameters=tuple(parameters.values()),
        outputs=s.outputs,
        body=with_barriers(hoisted(resolved(s.sizes, body), s.levels), tuple(parameters.values()), s.levels),
    )


def _parameter(s: Setting, tensor: str) -> Buffer:
    shape = s.shapes[tensor]
    layout = s.variant.layouts.get(s.levels[0].name, {}).get(tensor, ())
    zero = (Const(0),) * len(shape)
    return Buffer(tensor, tensor, s.levels[0].name, zero, shape, shape, s.tensors[tensor].ttype, layout)


class _Frame:
    """One part at one level: its tile loops, the buffers inside them, and what is left to the level above."""

    def __init__(self, s: Setting, task: Task) -> None:
        self.s, self.task = s, task
        self.final = task.part[-1]
        self.below = task.level == 0
        plain = Tiling((), dict(task.box), {})
        self.tiling = plain if self.below else tile(s, self.final, task.level, task.box, task.accumulate)
        self.parts = connected_parts(s, task.part, task.level + 1)
        self.owner = {name: part for part in self.parts for name in part}
        self.nests: dict[str, tuple[ReduceNest, ...]] = {}
        self.chunks: dict[str, Box] = {}
        for name in task.part:
            self._place_steps(name)
        kept = [name for name in task.part if name in task.targets]
        self.homes = homes(s, task.part, self.chunks, kept)
        self.views: dict[tuple[str, ...], View] = {}
        self.buffers: dict[str, Buffer] = {}
        self.sources: dict[tuple[str, str], Buffer] = {}

    def _place_steps(self, name: str) -> None:
        expr, pending = self.s.nodes[name], self.task.pending.get(name, ())
        box: Box = {i: (Const(0), expr.domain[i]) for i in expr.reduce}
        if name == self.final:
            box = {i: self.task.box[i] for i in expr.reduce}
        for nest in pending:
            box |= nest.chunk
        heads, chunk = ((), {}) if self.below else reduce_steps(self.s, name, self.task.level, box)
        if heads or pending:
            self.nests[name] = (*pending, ReduceNest(heads, chunk))
            self.chunks[name] = {i: ends for nest in self.nests[name] for i, ends in nest.chunk.items()}

    def view(self, loops: tuple[str, ...]) -> View:
        """Boxes inside some reduce loops."""
        if loops not in self.views:
            self.views[loops] = view(self.s, self.task, self.tiling, self.chunks, loops)
        return self.views[loops]

    def statements(self) -> tuple[Statement, ...]:
        """The part's tile loops with everything in them."""
        body: list[Statement] = []
        live: Live = {}
        for part in self.parts:
            if not self._home(part):
                self._emit(part, body, (), live)
        for name in self.task.part:
            body += self._store(name)
        return nested(self.tiling.heads, body)

    def _leaving(self, part: Part) -> list[str]:
        """Tensors of a part one level up that are needed here."""
        return [
            name
            for name in part
            if name in self.task.targets or any(c not in part for c in self.s.consumers(name, self.task.part))
        ]

    def _home(self, part: Part) -> tuple[str, ...]:
        chains = [self.homes[name] for name in self._leaving(part)]
        shortest = min(chains, key=len)
        while any(chain[: len(shortest)] != shortest for chain in chains):
            shortest = shortest[:-1]
        return shortest if not set(shortest) & set(part) else ()

    def _emit(self, part: Part, out: list[Statement], loops: tuple[str, ...], live: Live) -> None:
        """The statements of a part one level up (at the top: of one node), inside the reduce loops `loops`."""
        relays = self._relays(part)
        for name in self._leaving(part):
            self._allocate(name, loops, out, direct=not relays)
        if self.task.level == self.s.top or relays:
            self._in_place(part, out, loops, live)
        else:
            self._deferred(part, out, loops, live)

    def _relays(self, part: Part) -> bool:
        """Whether partial results go through this level: the reduce loops stand outside the tile loops one level up.

        That is so for the final node of a part whose tiles run one after another; on several units, and before
        epilogues, the tile loops stand outside and the accumulators stay in place.
        """
        level, final = self.task.level, part[-1]
        if level == self.s.top or final not in self.nests or self.s.spread(level + 1):
            return False
        if self._leaving(part) != [final] or any(name in self.nests for name in part[:-1]):
            return False
        box = self.view(self.homes[final]).boxes[final]
        sizes = self.s.variant.tiles.get(self.s.levels[level + 1].name, {}).get(final, {})
        return any(
            not self.s.sizes.at_most(box[i][1], self.s.sizes.add(box[i][0], Const(sizes[i])))
            for i in self.s.nodes[final].spatial
            if i in sizes
        )

    def _allocate(self, name: str, loops: tuple[str, ...], out: list[Statement], direct: bool) -> None:
        """A buffer for a tensor that the part computes; with a constant around it if that spares its readers a guard.

        A tensor that only leaves the part may skip this level.
        """
        s, level = self.s, self.task.level
        readers = [c for c in s.consumers(name, self.task.part) if c not in self.owner[name]]
        repeated = not s.shapes[name] and first_tile(self.tiling) != Const(1)
        skips = direct and not readers and not repeated and level < s.top and not s.copied(name, level)
        if name in self.task.targets and (self.below or skips):
            self.buffers[name] = self.task.targets[name].buffer
            return
        seen = self.view(loops)
        window = tuple(seen.boxes[name][i] for i in s.nodes[name].spatial)
        fill = self._common_fill(name, readers) if readers and not self.below else None
        if fill is not None and name in self.nests and fill.value != self._neutral(name):
            fill = None  # the accumulator is filled as a whole, with its neutral element
        outside = fill is not None and leaves(s, seen.wanted[name], s.shapes[name])
        if outside:
            pairs = zip(seen.wanted[name], window, s.shapes[name], strict=True)
            window = tuple(widened(s, wanted, box, extent) for wanted, box, extent in pairs)
        held = self.buffers[name] = buffer(s, name, level, window)
        out.append(Allocate(held))
        if fill is not None:
            s.filled[held.name] = fill.value
        if outside and fill is not None:
            out.append(Fill(held.name, fill.value))

    def _neutral(self, name: str) -> Scalar:
        return neutral(self.s.nodes[name].reducer or "sum", self.s.tensors[name].ttype)

    def _common_fill(self, tensor: str, readers: Sequence[str]) -> Const | None:
        fills = {absorbing(self.s, reader).get(tensor) for reader in readers}
        return fills.pop() if len(fills) == 1 else None

    def _in_place(self, part: Part, out: list[Statement], loops: tuple[str, ...], live: Live) -> None:
        """Reduce loops, then what one step does: the top level's computation or the part's tiles one level up."""
        s, final = self.s, part[-1]
        nest = self.nests.get(final, ())
        resumed = self._resume(final, out)
        if nest and not resumed:
            out.append(Fill(self.buffers[final].name, self._neutral(final)))
        inner: list[Statement] = []
        if nest:
            loops, live = (*loops, final), {t: list(held) for t, held in live.items()}
            self._emit_home(loops, inner, live)
        self._load(part, loops, inner, live)
        if self.task.level == s.top:
            inner.append(self._compute(final, loops, bool(nest) or resumed))
        else:
            inner += self._above(part, loops, bool(nest) or resumed, {})
        for step in reversed(nest):
            inner = list(nested(step.heads, (*step.body, *inner)))
        out += inner

    def _deferred(self, part: Part, out: list[Statement], loops: tuple[str, ...], live: Live) -> None:
        """Reduce loops, and what their steps load here, go inside the part's tile loops one level up."""
        pending: dict[str, tuple[ReduceNest, ...]] = {}
        resumed = self._resume(part[-1], out)
        stepped = [name for name in part if name in self.nests]
        rest = list(part)
        for name in stepped:
            inner: list[Statement] = []
            chain = (*loops, *(f for f in self.homes[name] if f not in loops), name)
            within = {t: list(held) for t, held in live.items()}
            self._emit_home(chain, inner, within)
            members = [m for m in rest if m == name or (m not in stepped and self.homes[m][-1:] == (name,))]
            self._load(members, chain, inner, within)
            rest = [m for m in rest if m not in members]
            *before, own = self.nests[name]
            pending[name] = (*before, ReduceNest(own.heads, own.chunk, tuple(inner)))
        self._load(rest, loops, out, live)
        out += self._above(part, loops, resumed, pending)

    def _emit_home(self, loops: tuple[str, ...], out: list[Statement], live: Live) -> None:
        for part in self.parts:
            if self._home(part) == loops:
                self._emit(part, out, loops, live)

    def _resume(self, name: str, out: list[Statement]) -> bool:
        """Load the partial result of the level below, if the part continues one."""
        if not (self.task.accumulate and name == self.final):
            return False
        target = self.task.targets[name].buffer
        if self.buffers[name] != target:
            out.append(LoadTiles(self.buffers[name].name, target.name))
        return True

    def _load(self, nodes: Sequence[str], loops: tuple[str, ...], out: list[Statement], live: Live) -> None:
        """Bring what some nodes read from outside their part to this level."""
        readers: dict[tuple[str, str], list[str]] = {}
        held: dict[str, Buffer] = {}
        for name in nodes:
            for tensor in operands(self.s.nodes[name]):
                if tensor in self.owner:
                    if tensor not in self.owner[name]:
                        self.sources[name, tensor] = self.buffers[tensor]
                    continue
                source = self.task.sources[name, tensor]
                held[source.name] = source
                readers.setdefault((tensor, source.name), []).append(name)
        for (tensor, origin), names in readers.items():
            here = held[origin]
            if not self.below and self.s.copied(tensor, self.task.level):
                here = self._loaded(tensor, here, names, loops, out, live)
            for name in names:
                self.sources[name, tensor] = here

    def _loaded(
        self, tensor: str, source: Buffer, names: list[str], loops: tuple[str, ...], out: list[Statement], live: Live
    ) -> Buffer:
        """A buffer here with a tensor's hull over its readers, an earlier one if it holds all that."""
        s, seen = self.s, self.view(loops)
        fill = self._common_fill(tensor, names)
        if fill is None:
            windows = [clipped_reads(s, name, seen.boxes[name])[tensor] for name in names]
        else:
            windows = [seen.reads[name][tensor] for name in names]
        window = hull(s, windows) or ()
        outside = fill is not None and leaves(s, window, s.shapes[tensor])
        for held in live.get(tensor, []):
            same_fill = not outside or (fill is not None and s.filled.get(held.name) == fill.value)
            if same_fill and contains(s, window_of(held), window):
                return held
        held = buffer(s, tensor, self.task.level, window)
        out.append(Allocate(held))
        out.append(LoadTiles(held.name, source.name, fill.value if outside and fill else None, held.copies))
        if fill is not None:
            s.filled[held.name] = fill.value
        live.setdefault(tensor, []).append(held)
        return held

    def _compute(self, name: str, loops: tuple[str, ...], accumulate: bool) -> ComputeTile:
        s, expr = self.s, self.s.nodes[name]
        read_from = {tensor: self.sources[name, tensor].name for tensor in operands(expr)}
        fills = absorbing(s, name)
        filled = {t: f.value for t, f in fills.items() if s.filled.get(read_from[t]) == f.value}
        box = self.view(loops).boxes[name]
        return ComputeTile(
            expr=unguarded(expr, filled, s.shapes),
            box=tuple((i, *box[i]) for i in expr.iterators),
            target=self.buffers[name].name,
            operands=tuple(read_from.items()),
            accumulate=accumulate,
            unit=s.variant.units.get(name, ""),
        )

    def _above(
        self, part: Part, loops: tuple[str, ...], accumulate: bool, pending: Mapping[str, tuple[ReduceNest, ...]]
    ) -> tuple[Statement, ...]:
        """The part one level up."""
        seen = self.view(loops)
        targets = {name: Target(self.buffers[name], self._region(name, seen)) for name in self._leaving(part)}
        sources = {key: held for key, held in self.sources.items() if key[0] in part}
        task = Task(part, self.task.level + 1, seen.boxes[part[-1]], targets, sources, accumulate, pending)
        return _Frame(self.s, task).statements()

    def _region(self, name: str, seen: View) -> Window:
        """What the level above must store of a tensor: its box, or its share of the target if it skips this level."""
        if name in self.task.targets and self.buffers[name] == self.task.targets[name].buffer:
            return seen.owned[name]
        return tuple(seen.boxes[name][i] for i in self.s.nodes[name].spatial)

    def _store(self, name: str) -> list[Statement]:
        target = self.task.targets.get(name)
        if target is None or self.buffers[name] == target.buffer:
            return []
        held, owned = self.buffers[name], self.view(()).owned[name]
        if not owned:
            # A scalar has no part to own: it is stored in a loop that runs once, in the first tile.
            once = first_tile(self.tiling)
            store = StoreTiles(target.buffer.name, held.name)
            return [store] if once == Const(1) else [Loop(self.s.names.new(f"once_{name}"), once, (store,))]
        if owned == window_of(held):
            return [StoreTiles(target.buffer.name, held.name)]
        return [StoreTiles(target.buffer.name, held.name, tuple(lo for lo, _ in owned), tuple(hi for _, hi in owned))]
