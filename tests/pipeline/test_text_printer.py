"""Kernels between passes: all of one at first, then the lines that a pass alters, kernel by kernel."""

from tilec.pipeline.text_printer import TextPrinter


def test_lines_that_come_and_go_are_told_for_each_kernel():
    notes: list[str] = []
    printer = TextPrinter(notes.append)
    printer("k0", "assign_storage", "a\nb\nd\n")
    printer("k1", "assign_storage", "z\n")
    printer("k0", "fuse_dimensions", "a\nc\nd\n")
    printer("k0", "outline_reductions", "a\nc\nd\n")
    assert notes == [
        "k0 after assign_storage: 3 lines\n  + a\n  + b\n  + d",
        "k1 after assign_storage: 1 lines\n  + z",
        "k0 after fuse_dimensions: 3 lines\n  - b\n  + c",
        "k0 after outline_reductions: 3 lines, unchanged",
    ]
