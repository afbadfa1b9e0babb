"""What the terms of statistics mean, and where they are found."""

import io
import re
from collections.abc import Callable

import pytest

from judgekit import AIMessage, Run, Sample, Score, compare
from judgekit.analysis.audit import audit
from judgekit.analysis.compare_judges import compare_judges
from judgekit.analysis.labels import HumanLabel
from judgekit.cli.outcome import report_outcome
from judgekit.jobs.options import RunOptions
from judgekit.reports.audit import show_audit
from judgekit.reports.compare import show_changes
from judgekit.reports.compare_judges import show_judges
from judgekit.reports.glossary import HEADING, TERMS, Consoles, command_consoles, terms_in
from judgekit.reports.summary import Shown
from judgekit.runs.problems import ReadingProblems
from judgekit.score import JudgeCall
from judgekit.terminal import printable


def names(text: str) -> list[str]:
    return [term.name for term in terms_in(text)]


FOUND = {
    "a mean of 0.5": [],
    "95 % interval by cluster-robust t, 12 groups": ["95 % interval", "t", "groups", "cluster-robust"],
    "found 0.826 (t, n=14 of 14)": ["n", "t"],
    "it isn't so, and it doesn’t matter; vitamin T, p. 4, n/a, (p)": [],  # noqa: RUF001 - as people type
    "weighted\n   kappa": ["weighted kappa"],
    "weighted kappa and kappa": ["kappa", "weighted kappa"],
    "tool_call_f1  0.9": [],
    "f1; accuracy 0.5, f1_macro 0.5": ["accuracy", "F1", "macro"],
    "kappa .71 [.58, .82]": ["95 % interval", "kappa"],
    "0.268 to 0.732": ["95 % interval"],
    "k = 1 to 3 trials of each: pass^k 0.5; pass@k 1.0": ["pass@k", "pass^k"],
    "p 0.031 by exact McNemar": ["p", "McNemar"],
    "judgekit label 1 draws samples to label": [],
}


def test_a_term_is_found_as_a_word_of_its_own_wherever_lines_break():
    assert {text: names(text) for text in FOUND} == FOUND


def test_each_term_finds_itself_and_its_meaning_needs_no_other():
    as_shown = {"n": "n=3", "t": "t, n", "p": "p (Holm)", "flip": "flips", "groups": "12 groups"}
    for term in TERMS:
        assert term.name in names(as_shown.get(term.name, term.name))
        assert set(names(f" {term.meaning} ")) <= {term.name}, term.name
        assert len(term.meaning) <= 130, term.name
        assert printable(term.meaning) == term.meaning


def test_terms_that_were_shown_are_explained_at_the_end():
    with command_consoles(explain=True) as screen:
        screen.out.file, screen.err.file = io.StringIO(), io.StringIO()
        screen.out.print("kappa 0.5")
        screen.err.print("met: a.lower >= 0.1: found 0.2 (Wilson, n=4 of 4)")
    assert "kappa" not in screen.err.file.getvalue()
    first, *block = screen.out.file.getvalue().splitlines()
    assert (first, block[:2]) == ("kappa 0.5", ["", "glossary"])
    assert [line.split()[0] for line in block[2:] if not line.startswith(" ")] == ["n", "kappa", "Wilson"]


def test_where_no_term_is_shown_nothing_is_explained(monkeypatch):
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    with command_consoles(explain=True) as screen:
        screen.out.file = io.StringIO()
        screen.out.print("audit of run 1")
    assert screen.out.file.getvalue().endswith("audit of run 1\n")


# --- recorded text explains nothing

EVERY_WORD = "corrected kappa bias coverage detectable Wilson sign-flip macro, p, t, n = 3, 12 groups"


def said_of(text: str, run_of: Callable[..., Run], *, turned: bool = False) -> Run:
    """A run of two judges in which all that is recorded, and all reasons, hold a text."""
    calls = [JudgeCall(judge="j", prompt="p")]
    values = (1, 0, 1, 0) if turned else (0, 1, 1, 0)
    first, second = (
        [Score.scored(name, value, label=f"{value:g}", reason=text, calls=calls) for value in found]
        + [Score.skipped(name, text), Score.failed(name, text, error="ValueError"), Score.abstained(name, text)]
        for name, found in (("one", values), ("two", (1, 1, 0, 0)))
    )
    samples = [
        Sample.of([AIMessage("Hi")], id=f"{text} {number}", domain=f"{text} {number % 2}") for number in range(7)
    ]
    found = run_of(first, second, samples=samples)
    scorers = [one.model_copy(update={"judged": True, "signature": "0" * 16}) for one in found.scorers]
    return Run(found.store, found.record.model_copy(update={"scorers": scorers}))


def labels_of(run: Run) -> list[HumanLabel]:
    return [
        HumanLabel(
            sample=row.sample_id, scorer="one", value=float(row.index % 2), annotator="ann", reason=row.sample_id
        )
        for row in run.rows(scorer="one", statuses=["scored"])
    ]


def with_a_gate(run: Run) -> tuple[Run, RunOptions]:
    return run, RunOptions(gates=["one.min >= 0.5"])


SHOWN: dict[str, Callable[[str, Callable[..., Run], Consoles], object]] = {
    "run": lambda text, run_of, screen: report_outcome(
        *with_a_gate(said_of(text, run_of)), ReadingProblems(), screen, Shown(4), []
    ),
    "compare": lambda text, run_of, screen: show_changes(
        compare(said_of(text, run_of), said_of(text, run_of, turned=True)), 3, screen.out
    ),
    "audit": lambda text, run_of, screen: show_audit(
        audit(run := said_of(text, run_of), labels_of(run)), 3, screen.out
    ),
    "judges": lambda text, run_of, screen: show_judges(
        compare_judges(run := said_of(text, run_of), {"a": "one", "b": "two"}, labels_of(run)), 3, screen.out
    ),
}


@pytest.mark.parametrize("command", SHOWN)
def test_recorded_text_explains_nothing(command, run_of):
    def explanations(text: str) -> list[str]:
        with command_consoles(explain=True) as screen:
            screen.out.file, screen.err.file = io.StringIO(), io.StringIO()
            SHOWN[command](text, run_of, screen)
        shown, _, below = screen.out.file.getvalue().partition(f"\n{HEADING}\n")
        assert text in re.sub(r"\s+", " ", shown)
        return [re.split(r"\s{2,}", line)[0] for line in below.splitlines() if not line.startswith(" ")]

    assert len(names(EVERY_WORD)) == 12
    assert explanations(EVERY_WORD) == explanations("plain")
