"""Reasons why a tuning record did not decide about a group, as counted in the tuning line of `schedule`."""

from __future__ import annotations

from tilec.report.codes.page import Page

_PROFILE = "Measure: `tilec schedule MODEL --profile --record FILE`."

_PAGES: tuple[tuple[str, str, str, str, tuple[str, ...]], ...] = (
    (
        "no-entry",
        "the record has no measurement of this group's content, shapes and types",
        _PROFILE,
        "tuning: 3 left to the model (no entry for this group: 3)",
        (r"no entry for this group",),
    ),
    (
        "setting-differs",
        "the group was measured with another device file, code generation option or version of a tool",
        f"Use what was recorded, or measure again. {_PROFILE}",
        "tvm differs: recorded 0.26, here 0.27",
        (r".* differs: recorded .*, here .*",),
    ),
    (
        "fewer-measured",
        "fewer candidates were measured than the budget asks for",
        "Nothing to mend: the rest is measured now.",
        "4 candidates measured, 20 asked for",
        (r".* candidates measured, .* asked for",),
    ),
    (
        "no-candidate",
        "what the record has chosen is not among the candidates that the scheduler has now",
        _PROFILE,
        "what it has chosen is no candidate now",
        (r"what it has chosen is no candidate now",),
    ),
    (
        "none-ran",
        "no candidate of the group could be built and run",
        "Run with -v to see what failed; the cost model's choice is taken.",
        "no candidate could be built and run",
        (r"no candidate could be built and run",),
    ),
)


def pages() -> tuple[Page, ...]:
    """One page for each reason."""
    return tuple(
        Page(code, "tuning", meaning, remedy, example, says=says) for code, meaning, remedy, example, says in _PAGES
    )
