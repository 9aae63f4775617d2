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
