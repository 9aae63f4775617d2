"""A design study of `tilec report`: runs, writes and draws it."""

from collections.abc import Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING

from tilec.cli.console import Console
from tilec.cli.tables import Format, table
from tilec.errors import UsageError

if TYPE_CHECKING:
    from tilec.spec.located import Located


def study(
    console: Console,
    located: "Located",
    given: Set[str],
    folders: Mapping[str, Path],
    form: Format,
    plot: Path | None,
    workers: str | None,
) -> None:
    """Run the study of a recipe of kind sweep with workloads, whose keys `given` flags replace.

    Raises UsageError for flags that do not apply to workloads, and the errors of the study.
    """
    from tilec.pipeline import study as studies
    from tilec.pipeline.workers import workers_of
    from tilec.report.studies.forms import NAMES, study_cells, study_csv, study_to_json
    from tilec.spec.located import validate
    from tilec.spec.study import StudyRecipe

    for key in sorted(given - {"devices"}):
        flag = "MODEL" if key == "models" else f"--{key.removesuffix('s')}"
        raise UsageError(f"a design study takes no {flag}", flag, "Its workloads are in the recipe.")
    if plot is not None:
        from tilec.report.bounds.picture import require_drawable

        require_drawable(plot)
    recipe = validate(StudyRecipe, located)
    with workers_of(workers) as work, console.stage("report") as advance:
        result = studies.study(recipe, located, advance, folders, work)
    if form is Format.JSON:
        console.json(study_to_json(recipe.convention, result.mapspaces, result.rows))
    elif form is Format.CSV:
        console.data(study_csv(result.rows))
    else:
        notes = [f"convention: {recipe.convention}", *(f"{name}: {text}" for name, text in result.mapspaces.items())]
        console.data("\n".join([table(study_cells(result.rows), NAMES), "", *notes]))
    if plot is not None:
        from tilec.report.bounds.picture import draw
        from tilec.report.studies.picture import study_panels

        draw(study_panels(result.rows), recipe.convention, plot)
        console.note(f"plot: {plot}")
