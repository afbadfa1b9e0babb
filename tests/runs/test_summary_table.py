"""The numbers of a run as a table."""

from judgekit.analysis.gates import GateResults
from judgekit.reports.html import html_report
from judgekit.reports.markdown import markdown_report
from judgekit.reports.summary import show_summary
from judgekit.runs.intervals import Estimate
from judgekit.runs.rows import Row
from judgekit.runs.summary import Summary
from judgekit.runs.summary_table import column_rows, summary_columns
from judgekit.score import JudgeCall, Score
from judgekit.terminal import console


def summary(*scores: Score) -> Summary:
    made = Summary()
    for index, score in enumerate(scores):
        made.add(Row(index=index, sample_id=f"s{index}", score=score))
    return made


def test_a_column_is_there_where_a_scorer_has_something_to_say():
    plain = summary(Score.scored("a", 1), Score.scored("b", 0.5))
    assert [column.name for column in summary_columns(plain)] == [
        *("scorer", "mean", "95 % interval", "n", "skipped", "failed")
    ]
    judged = summary(
        Score.scored("a", 1), Score.abstained("b", "unsure", calls=[JudgeCall(judge="j", prompt="p", cost_usd=0.25)])
    )
    judged["b"].audited, judged["a"].missing = "not audited", 2
    columns = summary_columns(judged, {"a": Estimate(value=0.75, low=0.5, high=1)})
    assert [(column.name, column.cells) for column in columns] == [
        ("scorer", ("a", "b")),
        ("mean", ("0.750", "-")),
        ("95 % interval", ("0.500 to 1.000", "-")),
        ("raw", ("1.000", "")),
        ("n", ("1 of 3", "0 of 1")),
        ("skipped", ("0", "0")),
        ("failed", ("0", "0")),
        ("abstained", ("0", "1")),
        ("missing", ("2", "0")),
        ("audit", ("", "not audited")),
        ("requests", ("", "1")),
        ("cached", ("", "0")),
        ("tokens", ("", "unknown")),
        ("cost", ("", "$0.2500")),
    ]
    assert column_rows(columns)[0][:3] == ("a", "0.750", "0.500 to 1.000")


def test_all_that_shows_a_run_has_the_same_cells(run_of, capsys):
    call = JudgeCall(judge="j", prompt="p", cost_usd=0.25)
    scores = (Score.scored("a", 0.25, calls=[call]), Score.abstained("a", "unsure", calls=[call]))
    run = run_of(*(Row(index=index, sample_id=f"s{index}", score=score) for index, score in enumerate(scores)))
    show_summary(run.summary, console())
    shown = {
        "terminal": capsys.readouterr().out,
        "Markdown": "".join(markdown_report(run, GateResults())),
        "page": "".join(html_report(run)),
    }
    columns = summary_columns(run.summary)
    cells = {cell for column in columns for cell in (column.name, *column.cells)}
    assert {name: {cell for cell in cells if cell not in text} for name, text in shown.items()} == {
        "terminal": set(),
        "Markdown": set(),
        "page": set(),
    }
