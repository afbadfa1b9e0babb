"""What a run shows on a terminal."""

import io
import re
import sys
from collections.abc import Iterable, Mapping
from itertools import count
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from rich.console import Console

from judgekit import AIMessage, Sample, run, scorer
from judgekit.aggregates.total import Total
from judgekit.reports.summary import Shown, show_plan, show_summary
from judgekit.runs.rows import Row
from judgekit.runs.summary import Summary
from judgekit.score import JudgeCall, Score
from judgekit.terminal import console
from judgekit.traces.message import Usage

JOINERS = {"\u200c", "\u200d"}


@pytest.fixture(autouse=True)
def own_code(monkeypatch) -> None:
    """All functions are the user's own."""
    monkeypatch.setattr("judgekit.registry._named", {"*"})


@pytest.fixture(autouse=True)
def _no_settings(monkeypatch):
    """Nothing of the terminal that the tests are started from."""
    for name in ("FORCE_COLOR", "NO_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@scorer
def labeled(sample: Sample) -> float:
    """What the label says."""
    return float(sample.label or 0)


def row(index: int, score: Score, sample_id: str | None = None) -> Row:
    return Row(sample_id=str(index) if sample_id is None else sample_id, index=index, score=score)


def shown(rows: Iterable[Row], show: int = 0, on: Console | None = None, thin: Mapping[str, str] = {}) -> str:
    """All that a summary of these rows prints."""
    out = io.StringIO()
    made = on or console()
    made.file = out
    summary, lowest = Summary(), dict[str, list[Row]]()
    rows = list(rows)
    for one in rows:
        summary.add(one)
    for one in sorted((one for one in rows if one.score.value is not None), key=lambda row: row.score.value):
        lowest.setdefault(one.scorer, []).append(one)
    show_summary(summary, made, {name: found[:show] for name, found in lowest.items()}, low_coverage=thin)
    return out.getvalue()


def cells(line: str) -> list[str]:
    return re.split(r"\s{2,}", line.strip())


def tables(text: str) -> list[list[list[str]]]:
    """The lines of each table, its header first."""
    lines = [line.strip() for line in text.splitlines()]
    rules = [index for index, line in enumerate(lines) if line.startswith("─")]
    return [[cells(line) for line in (lines[at - 1], *lines[at + 1 : lines.index("", at)])] for at in rules]


def table(text: str) -> list[list[str]]:
    """The lines of the first one."""
    return tables(text)[0]


# --- what comes from a recording is harmless


anything = st.text(st.characters() | st.sampled_from("\x1b[]/\n\r\u202e\u2066"), max_size=30)


@given(st.lists(st.tuples(anything, anything, anything), min_size=1, max_size=4))
def test_a_report_prints_no_control_character_whatever_was_recorded(texts):
    rows = []
    for index, (name, sample_id, reason) in enumerate(texts):
        details = calls([name], [reason], [sample_id])
        scored = Score.scored(name, 0.5, reason=reason, details=details, label=reason, warnings=[sample_id])
        rows.append(row(index, scored, sample_id))
        rows.append(row(index, Score.skipped(name, reason), sample_id))
    sides = [one.model_copy(update={"domain": one.sample_id, "labels": {one.scorer: one.score.reason}}) for one in rows]
    text = shown(sides * 2, show=4, thin={name: reason for name, _, reason in texts})
    assert {char for char in text if not char.isprintable() and char not in JOINERS} <= {"\n"}


NASTY = "[red]x[/red] [/] \x1b[2J \u202e :boom: [link=http://evil]y[/link]"
HARMLESS = r"[red]x[/red] [/] \x1b[2J \u202e :boom: [link=http://evil]y[/link]"


@pytest.mark.parametrize("terminal_too", [False, True])
def test_markup_escapes_and_overrides_are_shown_as_they_were_recorded(terminal_too):
    rows = [
        row(0, Score.scored(NASTY, 0.25, reason=f"because {NASTY}", details=calls([], [NASTY])), f"id {NASTY}"),
        row(1, Score.skipped(NASTY, f"skipped {NASTY}"), "b"),
    ]
    on = console()
    if terminal_too:
        on = Console(force_terminal=True, color_system="truecolor", markup=False, highlight=False, emoji=False)
    on.width = 300
    text = re.sub(r"\x1b\[[0-9;]*m", "", shown(rows, 1, on))  # rich's own bold headers
    assert "\x1b" not in text
    assert "\u202e" not in text
    lines = text.splitlines()
    assert [line.startswith((HARMLESS, f" {HARMLESS}")) for line in lines].count(True) == 3
    assert f"  0.25  id {HARMLESS}  because {HARMLESS}" in [line.rstrip() for line in lines]
    assert f"{HARMLESS}: 1 skipped: skipped {HARMLESS}" in [line.rstrip() for line in lines]
    assert f"{HARMLESS}, lowest 1 score:" in lines


# --- the table


def call(**changes: object) -> JudgeCall:
    usage = Usage(input_tokens=1_000, output_tokens=234)
    return JudgeCall.model_validate({"judge": "j", "prompt": "p", "usage": usage, "cost_usd": 0.01, **changes})


def test_the_table_has_a_line_a_scorer_with_its_mean_and_its_counts():
    rows = [
        row(0, Score.scored("tool_call_f1", 1)),
        row(1, Score.scored("tool_call_f1", 0.3333)),
        row(2, Score.skipped("tool_call_f1", "no")),
        row(3, Score.failed("tool_call_f1", "no")),
        row(0, Score.skipped("nothing_scored", "no")),
    ]
    assert table(shown(rows)) == [
        ["scorer", "mean", "95 % interval", "n", "skipped", "failed"],
        ["tool_call_f1", "0.667", "0.007 to 0.998", "2 of 4", "1", "1"],
        ["nothing_scored", "-", "-", "0 of 1", "1", "0"],
    ]


def test_where_a_judge_was_asked_a_table_says_what_it_took():
    rows = [
        row(0, Score.scored("goal", 1, calls=[call(), call()])),
        row(1, Score.scored("goal", 1, calls=[call(cached=True, cost_usd=0.0)])),
        row(0, Score.failed("topics", "no", calls=[call(usage=None, cost_usd=None)])),
        row(0, Score.scored("tool_call_f1", 1)),
    ]
    assert tables(shown(rows))[1] == [
        ["judged scorer", "requests", "cached", "tokens", "cost"],
        ["goal", "2", "1", "2,468", "$0.0200"],
        ["topics", "1", "0", "unknown", "unknown"],
    ]
    assert len(tables(shown(rows[-1:]))) == 1


def test_beside_each_judged_mean_stands_whether_its_judge_was_audited(run_with_audit):
    out = io.StringIO()
    made = console()
    made.file = out
    run = run_with_audit("kappa\x1b[2J")
    show_summary(run.summary, made)
    assert tables(out.getvalue())[1] == [
        ["judged scorer", "audit", "requests", "cached", "tokens", "cost"],
        ["a", r"audited less than a day ago: kappa\x1b[2J .71 [.58, .82], n=120", "1", "0", "unknown", "$0.0000"],
        ["b", "not audited", "1", "0", "unknown", "$0.0000"],
    ]
    assert str(run).splitlines()[-3:] == [
        r"a  1.00 (n=1 of 1)  1 judge requests, 0 from cache, tokens unknown, $0.0000  'audited less than a day ago: kappa\x1b[2J .71 [.58, .82], n=120'",
        "b  1.00 (n=1 of 1)  1 judge requests, 0 from cache, tokens unknown, $0.0000  not audited",
        "c  1.00 (n=1 of 1)",
    ]


def test_abstentions_have_a_column_where_there_are_any():
    rows = [row(0, Score(scorer="panel", status="abstained", reason="a tie")), row(1, Score.scored("panel", 0))]
    text = shown(rows)
    assert table(text) == [
        ["scorer", "mean", "95 % interval", "n", "skipped", "failed", "abstained"],
        ["panel", "0.000", "0.000 to 0.793", "1 of 2", "0", "0", "1"],
    ]
    assert "panel: 1 abstained: a tie" in text


@pytest.mark.parametrize("width", [60, 80, 100])
def test_on_a_narrow_terminal_numbers_stay_whole_and_names_break_between_words(width):
    on = Console(force_terminal=True, width=width, color_system=None, markup=False, highlight=False)
    rows = [row(index, Score.scored("agent_goal_accuracy_without_reference", index % 2)) for index in range(100)]
    lines = shown(rows, on=on).splitlines()
    (numbers,) = (line for line in lines if "0.404 to 0.596" in line)
    assert cells(numbers)[1:] == ["0.500", "0.404 to 0.596", "100 of 100", "0", "0"]
    assert all(len(line) <= width for line in lines)
    names = [line.split()[0] for line in lines[lines.index(numbers) :] if line.strip()]
    assert "".join(names) == "agent_goal_accuracy_without_reference"
    assert width < 80 or all(name.endswith("_") for name in names[:-1])


def test_how_intervals_were_found_is_said_where_it_is_not_as_usual():
    trials = [
        row(index, Score.scored("s", index % 3 / 2)).model_copy(update={"group": str(index // 4)})
        for index in range(20)
    ]
    assert "95 % interval by modified Wilson, 5 groups" in shown(trials).splitlines()
    usual = [row(index, Score.scored("t", index % 2)) for index in range(4)]
    assert "s: 95 % interval by modified Wilson, 5 groups" in shown([*trials, *usual]).splitlines()
    assert "interval by" not in shown(usual)


def test_a_number_of_too_few_samples_is_marked():
    lines = shown([row(0, Score.scored("s", 1)), row(0, Score.scored("t", 1))], thin={"t": "only 1 of 9"}).splitlines()
    assert [cells(line)[:2] for line in lines if "1 of 1" in line] == [["s", "1.000"], ["t", "! 1.000"]]
    assert "t: ! only 1 of 9" in [line.rstrip() for line in lines]


def test_repeated_trials_of_tasks_that_succeed_or_not_have_a_line():
    """Two tasks, one solved in 2 of 3 trials, the other always, twice; and one of which no trial was scored."""
    rows = [
        row(index, Score.scored("s", value)).model_copy(update={"group": group})
        for index, (group, value) in enumerate([("a", 1), ("a", 0), ("a", 1), ("b", 1), ("b", 1)])
    ]
    figures = "k = 1 to 3 trials of each: pass^k 0.833, 0.667, 0.000; pass@k 0.833, 1.000, 1.000;"
    assert f"s: 2 tasks, {figures} over the 2, 2, 1 tasks with k scored trials" in " ".join(shown(rows).split())
    failed = row(5, Score.failed("s", "broken")).model_copy(update={"group": "c"})
    more = " ".join(shown([*rows, failed]).split())
    assert f"s: 3 tasks, {figures} over the 2, 2, 1 tasks with k scored trials" in more
    assert "trials" not in shown([one.model_copy(update={"group": None}) for one in rows])


def sliced(index: int, score: Score, domain: str | None, **labels: str) -> Row:
    return row(index, score).model_copy(update={"domain": domain, "labels": labels})


def test_by_each_name_that_tells_samples_apart_there_is_a_table_of_means_and_of_how_many_samples():
    rows = [sliced(index, Score.scored("s", index % 2), "ab"[index > 1], kind="xy"[index % 2]) for index in range(6)]
    rows += [sliced(0, Score.skipped("t", "no"), "a", kind="x"), sliced(3, Score.scored("t", 0.25), "b", kind="y")]
    assert tables(shown(rows))[1:] == [
        [["by domain", "s", "t"], ["b", "0.500 (4)", "0.250 (1)"], ["a", "0.500 (2)", "- (0 of 1)"]],
        [["by kind", "s", "t"], ["x", "0.000 (3)", "- (0 of 1)"], ["y", "1.000 (3)", "0.250 (1)"]],
    ]


def test_a_name_that_nearly_each_sample_has_a_value_of_its_own_for_makes_no_table():
    assert len(tables(shown(sliced(index, Score.scored("s", 1), str(index // 2 * 2)) for index in range(4)))) == 2
    assert len(tables(shown(sliced(index, Score.scored("s", 1), str(index)) for index in range(4)))) == 1


def test_of_many_slices_the_largest_are_shown_and_the_others_counted():
    rows = [sliced(index, Score.scored("s", 1), f"d{index % 20}") for index in range(50)]
    text = shown(rows)
    assert [line[0] for line in tables(text)[1][1:]] == [f"d{index}" for index in range(12)]
    assert "and 8 more by domain" in text
    labels = {f"label {number}": "ab" for number in range(6)}
    rows = [
        sliced(index, Score.scored("s", 1), None, **{name: of[index % 2] for name, of in labels.items()})
        for index in range(4)
    ]
    assert len(tables(shown(rows))) == 5
    assert "other ways to slice the samples: label 4, label 5" in shown(rows)


@pytest.mark.parametrize("width", [60, 80])
def test_slices_of_many_scorers_fit_a_narrow_terminal(width):
    on = Console(width=width, markup=False, highlight=False)
    scorers = [f"agent_goal_accuracy_with_reference_{number}" for number in range(7)]
    rows = [sliced(index, Score.scored(name, 1), "ab"[index % 2]) for index in range(4) for name in scorers]
    text = shown(rows, on=on)
    assert len(re.findall(r"1\.000 \(2\)", text)) == 2 * len(scorers)
    assert all(len(line) <= width for line in text.splitlines())


# --- single rows


def test_the_lowest_rows_are_shown_with_their_reasons():
    rows = [
        row(0, Score.scored("s", 0.5, reason="half")),
        row(1, Score.scored("s", 0, reason="nothing")),
        row(2, Score.scored("s", 1, reason="all")),
        row(3, Score.scored("s", 0.25)),
        row(4, Score.failed("s", "broken")),
    ]
    lines = [line.rstrip() for line in shown(rows, show=3).splitlines()]
    at = lines.index("s, lowest 3 scores:")
    assert [cells(line) for line in lines[at + 1 :]] == [
        *(["0.00", "1", "nothing"], ["0.25", "3", "no reason given"], ["0.50", "0", "half"])
    ]
    assert "lowest" not in shown(rows)


def calls(names: Iterable[str] = (), missing: Iterable[str] = (), extra: Iterable[str] = ()) -> dict[str, JsonValue]:
    """Details of a score: names of calls that agree, and then others."""
    told = list(names)
    return {
        "pairs": [{"expected": at, "actual": at, "message": 2, "name": name} for at, name in enumerate(told)],
        "missing": [{"expected": len(told) + at, "name": name} for at, name in enumerate(missing)],
        "extra": [{"actual": len(told) + at, "message": 4, "name": name} for at, name in enumerate(extra)],
    }


def below(text: str, reason: str) -> list[list[str]]:
    """The lines behind the one that ends with a reason."""
    lines = [line.rstrip() for line in text.splitlines()]
    at = next(index for index, line in enumerate(lines) if line.endswith(reason))
    return [cells(line) for line in lines[at + 1 :]]


def test_under_a_reason_stand_the_calls_side_by_side():
    details = calls(["search"], ["send_email"], ["pay"])
    text = shown([row(0, Score.scored("s", 0.5, reason="half", details=details))], show=1)
    assert below(text, "half") == [["=", "search", "2: search"], ["-", "send_email"], ["+", "4: pay"]]


def test_of_many_calls_those_that_agree_are_left_out_first_and_all_that_agree_are_not_shown():
    for details, marks in (
        *(({}, []), (calls(), []), (calls(["search", "pay"]), []), ({"pairs": [1]}, [])),
        (calls(["f"] * 11, ["g"]), ["="] * 11 + ["-"]),
        (calls(["f"] * 12, ["g"]), ["-"]),
        (calls(["f"] * 30, ["g"] * 4, ["h"] * 8), ["-"] * 4 + ["+"] * 8),
        (calls(["f"] * 30, ["g"] * 20), ["-"] * 12 + ["and 8 more"]),
    ):
        text = shown([row(0, Score.scored("s", 0.5, reason="half", details=details))], show=1)
        assert [line[0] for line in below(text, "half")] == marks


def test_on_a_terminal_calls_that_differ_have_colors():
    on = Console(force_terminal=True, width=100, color_system="standard", markup=False, highlight=False)
    details = calls(["search"], ["send_email"], ["pay"])
    text = shown([row(0, Score.scored("s", 0.5, reason="half", details=details))], 1, on)
    lines = {name: line for line in text.splitlines() for name in ("search", "send_email", "pay") if name in line}
    assert {name: re.search(r"\x1b\[(\d+)m", line)[1] for name, line in lines.items()} == {
        "search": "2",  # dim
        "send_email": "31",  # red
        "pay": "32",  # green
    }


@given(st.lists(st.sampled_from([0, 0.25, 0.5, 0.5, 1]), max_size=15), st.integers(1, 6))
def test_the_lowest_of_a_run_are_those_that_sorting_puts_first(values, show):
    made = run([Sample.of([AIMessage("")], id=str(at), label=str(value)) for at, value in enumerate(values)], [labeled])
    found = [(row.score.value, row.index) for row in Shown(show).rows(made)["labeled"]]
    assert found == sorted((value, index) for index, value in enumerate(values))[:show]


def test_reasons_beyond_the_most_common_ones_are_counted_together():
    reasons = ["no topics"] * 5 + ["no reference"] * 3 + ["no calls"] * 2 + ["rare", "odd"]
    rows = [row(index, Score.skipped("s", reason)) for index, reason in enumerate(reasons)]
    rows += [row(index, Score.failed("s", f"broken {index}")) for index in range(200)]
    lines = [line.rstrip() for line in shown(rows).splitlines()]
    at = lines.index("s: 5 skipped: no topics")
    assert lines[at + 3] == "s: 2 skipped: other reasons"
    assert lines[-1] == "s: 197 failed: other reasons"
    assert "other reasons" not in shown(rows[:10])


def test_samples_that_a_judge_skipped_are_grouped_by_its_label():
    rows = [row(index, Score.skipped("s", f"words {index}", label="not_applicable")) for index in range(306)]
    assert shown(rows).splitlines()[-1].rstrip() == "s: 306 skipped: not_applicable"


def test_what_failed_is_counted_by_its_class_where_there_is_more_than_one():
    errors = ["ReplyError", "LostError", "ReplyError"]
    failed = [row(index, Score.failed("s", f"reason {index}", error=error)) for index, error in enumerate(errors)]
    lines = [line.rstrip() for line in shown(failed).splitlines()]
    assert lines[lines.index("s: 3 failed: 2 ReplyError, 1 LostError") + 1] == "s: 1 failed: reason 0"
    assert "ReplyError" not in shown(failed[:1])  # its reason begins with it


def test_the_shares_of_labels_stand_below_the_table():
    labels = [("better", 1), ("worse", 0), ("better", 1), ("position\x1b[2J bias", 0.5)]
    rows = [row(index, Score.scored("s", value, label=label)) for index, (label, value) in enumerate(labels)]
    lines = [line.rstrip() for line in shown([*rows, row(4, Score.skipped("s", "no baseline"))]).splitlines()]
    at = lines.index(r's: of 4, better 2 (50%), worse 1 (25%), "position\u001b[2J bias" 1 (25%)')
    assert lines[at + 1] == "s: 1 skipped: no baseline"
    assert "better" not in shown(rows[:2])


CONFUSION = {"refund": {"refund": 7, "can\x1b[2Jcel": 2}, "can\x1b[2Jcel": {"can\x1b[2Jcel": 5}}


@pytest.fixture
def confused(monkeypatch) -> str:
    """The path of an aggregate with a table of counts."""

    def confused(scores) -> Total:
        return Total(0.857, "macro F1", f"of {len(scores)}", {"accuracy": 12 / 14}, CONFUSION)

    monkeypatch.setitem(sys.modules, "theirs", SimpleNamespace(confused=confused))
    return "theirs:confused"


def test_a_number_that_is_no_mean_is_not_called_one(confused):
    rows = [row(0, Score.scored("labels", 1, aggregate=confused)), row(0, Score.scored("f1", 0.25))]
    said = shown(rows)
    assert table(said)[0][:2] == ["scorer", "score"]
    assert [line[:2] for line in table(said)[1:3]] == [["labels", "0.857"], ["f1", "0.250"]]
    assert "labels: macro F1; accuracy 0.857; of 1" in said


def test_a_confusion_matrix_stands_below_the_table(confused):
    lines = [cells(line) for line in shown([row(0, Score.scored("s", 1, aggregate=confused))]).splitlines()]
    at = lines.index(["true (rows), predicted (columns)", "1", "2"])
    assert lines[at + 2 : at + 4] == [["1", "refund", "7", "2"], ["2", r"can\x1b[2Jcel", "0", "5"]]


def counted(monkeypatch, table: dict[str, dict[str, int]], width: int) -> list[str]:
    """What stands below the table of a run in which labels were counted so."""
    theirs = SimpleNamespace(counts=lambda scores: Total(0.5, "accuracy", table=table))
    monkeypatch.setitem(sys.modules, "theirs", theirs)
    on = Console(width=width, markup=False, highlight=False)
    text = shown([row(0, Score.scored("labels", 0.5, aggregate="theirs:counts"))], on=on)
    assert max(map(len, text.splitlines())) <= width
    return text.splitlines()


def test_every_count_of_nine_classes_of_long_names_can_be_attributed_on_a_narrow_terminal(monkeypatch):
    names = [f"a customer who asks for {'very ' * index}much" for index in range(9)]
    numbers = count(12_345)
    table = {true: {other: next(numbers) for other in names} for true in names}
    lines = counted(monkeypatch, table, 80)
    head = next(line for line in lines if re.search(r"1 +2 +3 +4 +5 +6 +7 +8 +9 *$", line))
    columns = [head.rindex(str(number)) + 1 for number in range(1, 10)]  # where each ends
    found = [line for line in lines if re.match(r"  +[1-9]  a ", line)]
    assert [line.split()[0] for line in found] == list("123456789")
    for line, true in zip(found, names, strict=True):
        assert [int(line[:end].split()[-1]) for end in columns] == list(table[true].values())


def test_a_class_that_was_never_true_and_no_answer_have_a_number_too(monkeypatch):
    lines = counted(monkeypatch, {"refund": {"refund": 1, "cancel": 2, "no answer": 3}}, 80)
    at = next(index for index, line in enumerate(lines) if "true (rows), predicted (columns)" in line)
    assert [line.split() for line in lines[at + 2 : at + 5]] == [
        ["1", "refund", "1", "2", "3"],
        ["2", "cancel", "0", "0", "0"],
        ["3", "no", "answer", "0", "0", "0"],
    ]


def test_a_label_without_end_is_cut_and_keeps_its_number(monkeypatch):
    names = ["x" * 10_000, "x" * 10_001]
    lines = counted(monkeypatch, {name: dict.fromkeys(names, 5) for name in names}, 140)
    assert sum(re.match(rf" +[12]  {'x' * 34}\.\.\. +5 +5 *$", line) is not None for line in lines) == 2
    assert len(lines) < 20


def test_of_more_than_twelve_classes_the_most_frequent_errors_are_shown(monkeypatch):
    names = [f"class {index:02}" for index in range(13)]
    table = {name: {name: 1_000} for name in names}
    for index in range(12):
        table[names[index]][names[index + 1]] = 100 - index
    table["class 00"]["class 07"] = 1
    lines = [cells(line) for line in counted(monkeypatch, table, 80)]
    at = lines.index(["true", "predicted", "errors, the most frequent of 13 classes"])
    expected = [[names[index], names[index + 1], str(100 - index)] for index in range(12)]
    assert lines[at + 2 : at + 15] == [*expected, [""]]


def test_warnings_stand_below_the_table():
    rows = [row(0, Score.scored("ndcg", 1, warnings=["every document is relevant"]))]
    assert "ndcg: 1 with a warning: every document is relevant" in shown(rows)


def test_more_than_one_judge_is_said():
    answers = [Score.scored("s", 1, calls=[call(judge=judge)]) for judge in ("a", "b", "a")]
    assert "s: more than one judge answered: 2 a, 1 b" in shown(row(*one) for one in enumerate(answers))
    assert "more than one judge" not in shown(row(*one) for one in enumerate(answers[::2]))


def test_a_plan_says_what_would_be_asked_and_what_would_fail():
    summary, out = Summary(), io.StringIO()
    planned = [call(cost_usd=0.25, error="PlannedError"), call(cost_usd=0.5, cached=True, error="PlannedError")]
    for score in (
        *(Score.failed("s", "PlannedError: would be asked", error="PlannedError", calls=[one]) for one in planned),
        Score.failed("s", "broken", error="ValueError"),
        Score.skipped("s", "no reference"),
    ):
        summary.add(row(0, score))
    show_plan(summary, Console(file=out, width=140))
    used = call().usage
    tokens = f"{used.input_tokens + used.output_tokens:,}"
    assert table(out.getvalue())[1:] == [["s", "4", "1", "1", "1", tokens, "$0.2500"]]
    assert "s: 1 failed: broken" in out.getvalue()


def test_a_long_reason_hangs_under_its_beginning():
    on = console()
    on.width = 40
    lines = shown([row(0, Score.failed("s", "word " * 12))], on=on).splitlines()
    first = next(index for index, line in enumerate(lines) if line.startswith("s: 1 failed: "))
    assert [line.rstrip() for line in lines[first:]] == [
        "s: 1 failed: word word word word word",
        "             word word word word word",
        "             word word",
    ]


def test_a_long_word_is_broken_and_not_cut():
    """An id that is cut cannot be looked up."""
    on = console()
    on.width = 60
    rows = [row(0, Score.failed("s", "b" * 200)), row(1, Score.scored("s", 0.0, reason="c" * 200))]
    text = shown(rows, show=1, on=on)
    assert "…" not in text
    assert (text.count("b"), text.count("c")) == (200, 202)  # two in the heads
