"""Staging buffers of a level: targets of a part's nodes, and copies of windows loaded from below."""

from __future__ import annotations

from collections.abc import Sequence

from tilec.ir.expr import Const
from tilec.ir.group_windows import hull, widen
from tilec.ir.program import Allocate, Buffer, Fill, LoadTiles, Statement
from tilec.ir.reads import is_gathered
from tilec.lower.iteration_boxes import absorbing, clipped_reads
from tilec.lower.lowering_context import Window, neutral
from tilec.lower.part_frame import LiveRange, PartFrame
from tilec.lower.store_regions import first_tile
from tilec.lower.windows import buffer, contains, cut, leaves, window_of


def allocate(frame: PartFrame, name: str, loops: tuple[str, ...], out: list[Statement], may_skip: bool) -> None:
    """Allocate a buffer for a tensor that the part computes, surrounded by a constant if that replaces its readers'
    guards.

    The final tensor may skip this level if nothing at this level reads it.
    """
    s, task = frame.s, frame.task
    readers = [c for c in s.consumers(name, task.part) if c not in frame.owner[name]]
    whole = s.shapes[name] or first_tile(frame.tiling) == Const(1)
    skips = may_skip and name == frame.final and whole and task.level < s.top and not s.copied(name, task.level)
    if name in task.targets and (frame.lowest or skips):
        frame.buffers[name] = task.targets[name].buffer
        return
    region = frame.view(loops)
    window = tuple(region.boxes[name][i] for i in s.nodes[name].spatial)
    fill = _common_fill(frame, name, readers) if readers and not frame.lowest else None
    if fill is not None and name in frame.nests and fill.value != neutral_of(frame, name):
        fill = None  # the accumulator is filled as a whole, with its neutral element
    outside = fill is not None and leaves(s, region.wanted[name], s.shapes[name])
    if outside:
        pairs = zip(region.wanted[name], window, s.shapes[name], strict=True)
        window = tuple(widen(wanted, box, extent, s.sizes) for wanted, box, extent in pairs)
    target = frame.buffers[name] = buffer(s, name, task.level, window)
    out.append(Allocate(target))
    if fill is not None:
        s.filled[target.name] = fill.value
    if outside and fill is not None:
        out.append(Fill(target.name, fill.value))


def neutral_of(frame: PartFrame, name: str) -> bool | int | float:
    """Initial value of the accumulator of a node with reduce loops."""
    return neutral(frame.s.nodes[name].reducer or "sum", frame.s.tensors[name].ttype)


def load(frame: PartFrame, nodes: Sequence[str], loops: tuple[str, ...], out: list[Statement], live: LiveRange) -> None:
    """Load the operands of some nodes from outside their part one level up into this level."""
    readers: dict[tuple[str, str], list[str]] = {}
    origins: dict[str, Buffer] = {}
    for name in nodes:
        for tensor in frame.s.operands[name]:
            if tensor in frame.owner:
                if tensor not in frame.owner[name] or tensor == name:
                    frame.sources[name, tensor] = frame.buffers[tensor]
                continue
            origin = frame.task.sources[name, tensor]
            origins[origin.name] = origin
            readers.setdefault((tensor, origin.name), []).append(name)
    for (tensor, origin_name), names in readers.items():
        source = origins[origin_name]
        copying = [] if frame.lowest else [name for name in names if _copies(frame, name, tensor)]
        loaded = _loaded(frame, tensor, source, copying, loops, out, live) if copying else source
        for name in names:
            frame.sources[name, tensor] = loaded if name in copying else source


def _copies(frame: PartFrame, reader: str, tensor: str) -> bool:
    """Whether a node reads a copy of a tensor at this level; a gathered tensor is copied only where the plan lists
    it."""
    if tensor not in frame.s.variant.loads and is_gathered(frame.s.nodes[reader], tensor):
        return False
    return frame.s.copied(tensor, frame.task.level)


def _common_fill(frame: PartFrame, tensor: str, readers: Sequence[str]) -> Const | None:
    fills = {absorbing(frame.s, reader).get(tensor) for reader in readers}
    return fills.pop() if len(fills) == 1 else None


def _loaded(
    frame: PartFrame,
    tensor: str,
    source: Buffer,
    names: list[str],
    loops: tuple[str, ...],
    out: list[Statement],
    live: LiveRange,
) -> Buffer:
    """A buffer at this level with the hull of a tensor's windows over its readers; an earlier one if it contains the
    hull."""
    s, region = frame.s, frame.view(loops)
    fill = _common_fill(frame, tensor, names)
    if fill is None:
        windows = [clipped_reads(s, name, region)[tensor] for name in names]
    else:
        windows = [region.reads[name][tensor] for name in names]
    window: Window = hull(windows, s.sizes) or ()
    below = window_of(source)
    comparable = source.level != s.levels[0].name and (fill is None or s.filled.get(source.name) == fill.value)
    if comparable and not contains(s, below, window):
        window = cut(s, window, below)
    outside = fill is not None and leaves(s, window, s.shapes[tensor])
    for candidate in live.get(tensor, []):
        same_fill = not outside or (fill is not None and s.filled.get(candidate.name) == fill.value)
        if same_fill and contains(s, window_of(candidate), window):
            return candidate
    candidate = buffer(s, tensor, frame.task.level, window)
    out.append(Allocate(candidate))
    out.append(LoadTiles(candidate.name, source.name, fill.value if outside and fill else None, candidate.copies))
    if fill is not None:
        s.filled[candidate.name] = fill.value
    live.setdefault(tensor, []).append(candidate)
    return candidate
