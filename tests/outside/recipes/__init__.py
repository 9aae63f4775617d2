"""Models in the forms of files that packages ship, built anew: their operators and open sizes, random weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from tests.outside.recipes import detection, graphs, sound, steps, text, trees
from tests.outside.recipes.sketch import Sketch

RECIPES: Mapping[str, Callable[[], Sketch]] = MappingProxyType(
    {
        recipe.__name__: recipe
        for recipe in (
            detection.boxes_of_objects,
            detection.line_of_text,
            detection.text_in_pictures,
            graphs.shifts_of_atoms,
            graphs.votes_of_a_set,
            sound.sleep_spindles,
            sound.voice_activity,
            steps.characters_in_a_loop,
            steps.next_letter,
            steps.reversed_sequences,
            steps.unrolled_cells,
            text.columns_apart,
            text.convolved_syllables,
            text.half_precision_morphemes,
            text.masked_tokens,
            trees.scaled_trees,
        )
    }
)
