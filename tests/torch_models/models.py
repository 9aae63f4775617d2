"""All models of the sweep, by name. Imported in its environment only."""

from __future__ import annotations

from tests.torch_models import diffusion, exported, graphs, quantized, sound, tables, text, vision

CASES = {
    case.name: case
    for module in (exported, vision, text, sound, diffusion, graphs, tables, quantized)
    for case in module.CASES
}
