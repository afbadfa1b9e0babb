"""What the terms of statistics mean, and where they are found."""

import io

import pytest

from judgekit.reports.glossary import TERMS, explained, terms_in
from judgekit.reports.terminal import printable


def names(text: str) -> list[str]:
    return [term.name for term in terms_in(text)]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("a mean of 0.5", []),
        ("95 % interval by cluster-robust t, 12 groups", ["95 % interval", "t", "groups", "cluster-robust"]),
        ("found 0.826 (t, n=14 of 14)", ["n", "t"]),
        ("it isn't so, and it doesn’t matter; vitamin T, p. 4, n/a, (p)", []),  # noqa: RUF001 - as people type
        ("weighted\n   kappa", ["weighted kappa"]),
        ("weighted kappa and kappa", ["kappa", "weighted kappa"]),
        ("tool_call_f1  0.9", []),
        ("f1; accuracy 0.5, f1_macro 0.5", ["accuracy", "F1", "macro"]),
        ("kappa .71 [.58, .82]", ["95 % interval", "kappa"]),
        ("0.268 to 0.732", ["95 % interval"]),
        ("k = 1 to 3 trials of each: pass^k 0.5; pass@k 1.0", ["pass@k", "pass^k"]),
        ("p 0.031 by exact McNemar", ["p", "McNemar"]),
        ("judgekit label 1 draws samples for people", []),
    ],
)
def test_a_term_is_found_as_a_word_of_its_own_wherever_lines_break(text, terms):
    assert names(text) == terms


@pytest.mark.parametrize("term", TERMS, ids=[term.name for term in TERMS])
def test_each_term_finds_itself_and_its_meaning_needs_no_other(term):
    assert term.name in names(
        {"n": "n=3", "t": "t, n", "p": "p (Holm)", "flip": "flips", "groups": "12 groups"}.get(term.name, term.name)
    )
    assert set(names(f" {term.meaning} ")) <= {term.name}
    assert len(term.meaning) <= 130
    assert printable(term.meaning) == term.meaning


def test_terms_that_were_shown_are_explained_at_the_end():
    with explained() as screen:
        screen.out.file, screen.err.file = io.StringIO(), io.StringIO()
        screen.out.print("kappa 0.5")
        screen.err.print("met: a.lower >= 0.1: found 0.2 (Wilson, n=4 of 4)")
    assert "kappa" not in screen.err.file.getvalue()
    first, *block = screen.out.file.getvalue().splitlines()
    assert (first, block[:2]) == ("kappa 0.5", ["", "what the words mean"])
    assert [line.split()[0] for line in block[2:] if not line.startswith(" ")] == ["n", "kappa", "Wilson"]


def test_where_no_term_is_shown_nothing_is_explained(monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with explained() as screen:
        screen.out.file = io.StringIO()
        screen.out.print("audit of run 1")
    assert screen.out.file.getvalue().endswith("audit of run 1\n")
