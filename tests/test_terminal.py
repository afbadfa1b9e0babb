"""Text of recordings steers no terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.terminal import console, printable

JOINERS = {"\u200c", "\u200d"}


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    """Nothing of the terminal that the tests are started from."""
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("plain text, with é, 巴黎, 👍 and \u0301 accents", "plain text, with é, 巴黎, 👍 and \u0301 accents"),
        ("\x1b[2J\x1b[31mred", r"\x1b[2J\x1b[31mred"),
        ("\x9b31mred", r"\x9b31mred"),
        ("\x1b]8;;http://evil\x07link\x1b]8;;\x07", r"\x1b]8;;http://evil\x07link\x1b]8;;\x07"),
        ("a\nb\r\nc\td", "a b  c d"),
        ("a\x0bb\x0cc\x1cd\x85e\u2028f", r"a\x0bb\x0cc\x1cd\x85e\u2028f"),
        ("bell\x07, back\x08, null\x00, delete\x7f", r"bell\x07, back\x08, null\x00, delete\x7f"),
        ("gpj.\u202egnp", r"gpj.\u202egnp"),
        ("\u2066left\u2069 \u200f \ufeff", r"\u2066left\u2069 \u200f \ufeff"),
        ("no\u200bspace", r"no\u200bspace"),
        ("family 👩\u200d👧, क्\u200cष", "family 👩\u200d👧, क्\u200cष"),
        ("tags \U000e0041", r"tags \U000e0041"),
        ("lone \ud800", r"lone \ud800"),
        ("[bold]marked[/bold] :smile:", "[bold]marked[/bold] :smile:"),
        ("", ""),
    ],
)
def test_what_would_steer_a_terminal_is_made_visible(text, safe):
    assert printable(text) == safe


anything = st.text(st.characters() | st.sampled_from("\x1b[]/\n\r\u202e\u2066"), max_size=30)


@given(anything)
def test_the_printable_text_is_one_line_without_control_characters(text):
    safe = printable(text)
    assert all(char.isprintable() or char in JOINERS for char in safe)
    assert printable(safe) == safe
    assert len(safe.splitlines()) <= 1


def test_where_nobody_knows_the_width_lines_have_room(capsys):
    console().print("x" * 140)
    assert capsys.readouterr().out == "x" * 140 + "\n"


def test_on_a_terminal_lines_are_as_long_as_it_is_wide(monkeypatch, capsys):
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    monkeypatch.setenv("COLUMNS", "50")
    assert console().is_terminal
    console().print("word " * 12)
    assert [len(line.rstrip()) for line in capsys.readouterr().out.splitlines()] == [49, 9]


def test_a_console_takes_text_as_it_is(capsys):
    console().print("[bold]1[/bold] :smile: 'a' http://x")
    console(stderr=True).print("[red]")
    assert capsys.readouterr() == ("[bold]1[/bold] :smile: 'a' http://x\n", "[red]\n")
