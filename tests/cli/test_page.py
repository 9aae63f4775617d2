"""Text for people: aligned columns, bold heads and wrapped last columns on a terminal, plain text elsewhere."""

from tilec.cli.page import Page

HEADS = ("size", "what")
ROWS = [["4B", "one word"], ["16MiB", "many words that go on and on for longer than a line"]]


def test_plain_text_is_aligned_and_ends_where_it_ends():
    assert list(Page().columns(HEADS, ROWS, ("size",))) == [
        " size  what",
        "   4B  one word",
        "16MiB  many words that go on and on for longer than a line",
    ]
    assert list(Page().columns(HEADS, [], ())) == ["size  what"]
    assert list(Page().columns(HEADS, [["", ""]], ())) == ["size  what", ""]


def test_on_a_terminal_the_last_column_wraps_and_heads_are_bold():
    lines = list(Page(36, styles=True).columns(HEADS, ROWS, ()))
    assert lines[0] == "\x1b[1msize   what\x1b[0m"
    assert lines[1:] == ["4B     one word", "16MiB  many words that go on and on", "       for longer than a line"]
    assert max(map(len, lines[1:])) <= 36


def test_a_narrow_terminal_still_shows_words():
    assert "       many words that go" not in Page(5).columns(HEADS, ROWS, ())
    assert "16MiB  many words that go" in list(Page(5).columns(HEADS, ROWS, ()))


def test_no_color_keeps_the_width(monkeypatch):
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "50")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert Page.of_stdout() == Page(50, styles=True)
    monkeypatch.setenv("NO_COLOR", "1")
    assert Page.of_stdout() == Page(50)
    assert Page.of_stdout().bold("x") == "x"
    monkeypatch.setattr("sys.stdout.isatty", lambda: False, raising=False)
    assert Page.of_stdout() == Page()


def test_a_row_is_folded_under_its_last_column_and_never_wider_than_the_terminal():
    rows = [("name", "what it is"), ("one", "a word " * 30), ("x" * 70, "y" * 90)]
    assert Page().rows(rows).splitlines()[1] == f"{'one':<70}  {'a word ' * 30}".rstrip()
    for width in (80, 100, 120):
        lines = Page(width).rows(rows).splitlines()
        assert max(map(len, lines)) <= width
        assert "".join("".join(lines).split()) == "".join("".join(map("".join, rows)).split())
    assert Page(120).rows(rows).splitlines()[2].startswith(" " * 72 + "a word")
    assert Page(20).folded("  a: " + "b " * 10) == "  a: b b b b b b b b\n    b b"
