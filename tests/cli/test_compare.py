"""The command ``judgekit compare``."""

import json
from pathlib import Path

import pytest

from judgekit import AIMessage, HumanMessage, Sample, ToolCall, ToolCallF1, run
from judgekit.runs.store import DEFAULT_RUNS_PATH

HOSTILE = "\x1b[2J\u202e"


def kept(right: int, store: Path = DEFAULT_RUNS_PATH, prefix: str = "s", expected: str = "f") -> None:
    """Keeps a run of 12 samples, of which the first ``right`` make the call that is expected."""
    samples = [
        Sample.of(
            [
                HumanMessage(f"Hi {number}"),
                AIMessage(tool_calls=[ToolCall("f" if number < right else f"other{HOSTILE}")]),
            ],
            reference_tool_calls=[ToolCall(expected)],
            id=f"{prefix}{number}",
        )
        for number in range(12)
    ]
    run(samples, [ToolCallF1()], store=store)


def test_what_got_worse_is_shown_with_the_reasons_of_both_runs_and_is_no_error(cli):
    kept(12)
    kept(4)
    code, out, err = cli("compare", 1, "last")
    assert (code, err) == (0, "")
    (line,) = (line.split() for line in out.splitlines() if line.strip().startswith("tool_call_f1 "))
    assert line[:5] == ["tool_call_f1", "worse", "1.000", "0.333", "-0.667"]
    assert line[-1] == "0.00781"  # 2 / 2**8
    assert "tool_call_f1: 0 of 12 pairs better, 8 worse, 4 equal" in out
    assert "tool_call_f1, 8 worse in B, the 3 that changed most:" in out
    assert "A 1.00  1 of 1 expected calls matched" in out
    assert "B 0.00  0 of 1 expected calls matched" in out
    assert out.count("B 0.00") == 3
    assert "  new: missing tool: f (8 of 8 samples)\n" in out
    assert "better in B" not in out
    assert "  gone: missing tool: f (8 of 8 samples)\n" in cli("compare", "last", 1).out


def test_what_was_recorded_cannot_steer_the_terminal(cli):
    kept(12, prefix=f"s{HOSTILE}")
    kept(4, prefix=f"s{HOSTILE}")
    _, out, _ = cli("compare", 1, 2)
    assert "\x1b" not in out
    assert "\u202e" not in out
    assert r"s\x1b[2J\u202e4" in out
    assert r'  new: extra tool: "other\u001b[2J\u202e" (8 of 8 samples)' in out


def test_a_comparison_is_written_as_json_and_as_a_page(cli):
    kept(12, Path("runs.sqlite"))
    kept(4, Path("runs.sqlite"))
    code, _, _ = cli("compare", 1, 2, "--store", "runs.sqlite", "--show", 5, "-o", "found.json", "-o", "Found.HTML")
    assert code == 0
    (one,) = json.loads(Path("found.json").read_text(encoding="utf-8"))["scorers"]
    assert (one["verdict"], one["worse"], len(one["losses"]), one["gains"]) == ("worse", 8, 5, [])
    assert [(loss["kind"], len(loss["samples"]), loss["total"]) for loss in one["new_losses"]] == [
        ("extra_tool", 8, 8),
        ("missing_tool", 8, 8),
    ]
    assert one["gone_losses"] == []
    assert Path("Found.HTML").read_text(encoding="utf-8").lower().startswith("<!doctype html>")


def test_what_cannot_be_compared_says_why(cli):
    for prefix in "sst":
        kept(12, prefix=prefix)
    for words, said in (
        ((1, 2, "-o", "found.pdf"), "found.pdf: unsupported extension '.pdf'; supported: .json, .html"),
        (
            (1, 2, "-o", "found.json", "-o", "nowhere/found.json"),
            "nowhere/found.json: there is no folder nowhere; create it first",
        ),
        ((1, 9), "contains no run 9; judgekit runs lists the runs"),
        ((1, "two"), "'two': expected the number of a run, or last"),
        ((1, 3), "runs 1 (A) and 3 (B) have no sample in common, by id: samples only in A: 12 ('s0', 's1', 's2', ...)"),
        ((1, 2, "--store", "none.sqlite"), "none.sqlite: there are no runs yet"),
    ):
        code, _, err = cli("compare", *words)
        assert (code, Path("found.json").exists()) == (2, False)
        assert said in err.replace("\n", " ")


@pytest.mark.parametrize(
    ("gates", "code", "said"),
    [
        (["tool_call_f1.difference >= -0.7"], 0, ["met: tool_call_f1.difference >= -0.7: found -0.667 (12 pairs)"]),
        (
            ["tool_call_f1.worse <= 5", "tool_call_f1.pairs >= 90%"],
            1,
            [
                "not met: tool_call_f1.worse <= 5: found 8 (of 12 pairs)",
                "met: tool_call_f1.pairs >= 90%: found 100% (12 of 12 samples)",
            ],
        ),
    ],
)
def test_gates_decide_about_the_exit_code(gates, code, said, cli):
    kept(12)
    kept(4)
    words = [word for gate in gates for word in ("--gate", gate)]
    found, out, err = cli("compare", 1, 2, *words, "-o", "found.json", "-o", "found.html")
    assert (found, err.splitlines()) == (code, ["wrote found.json", "wrote found.html", *said])
    assert "tool_call_f1, 8 worse in B" in out
    results = json.loads(Path("found.json").read_text(encoding="utf-8"))["gates"]
    assert [(one["text"], one["met"]) for one in results] == [
        (gate, line.startswith("met")) for gate, line in zip(gates, said, strict=True)
    ]


def test_a_gate_that_cannot_be_read_stops_everything_before_anything_is_compared(cli, monkeypatch):
    def never(*_: object) -> None:
        raise AssertionError("it was compared")

    monkeypatch.setattr("judgekit.analysis.sample_pairs.SamplePairs.of", never)
    kept(12)
    kept(4)
    code, out, err = cli("compare", 1, 2, "--gate", "tool_cal_f1.difference.lower >= 0", "-o", "found.json")
    assert (code, out) == (2, "")
    assert "no scorer of both runs is called 'tool_cal_f1'. Did you mean 'tool_call_f1'?" in err
    assert "a gate looks like 'tool_call_f1.difference.lower >= -0.02'" in err
    assert not Path("found.json").exists()


def test_changed_references_are_refused_unless_they_are_allowed(cli):
    kept(12)
    kept(12, expected="g")
    code, out, err = cli("compare", 1, 2, "-o", "found.json")
    assert (code, out) == (2, "")
    assert "runs 1 (A) and 2 (B): references or tasks differ in 12 of 12 pairs ('s0', 's1', 's2', ...)" in err
    assert not Path("found.json").exists()
    code, out, err = cli("compare", 1, 2, "--allow-changed-references", "-o", "found.json")
    assert (code, err) == (0, "wrote found.json\n")
    assert "warning: references or tasks differ in 12 of 12 pairs" in out
    (warning,) = json.loads(Path("found.json").read_text(encoding="utf-8"))["warnings"]
    assert "so the difference may come from them" in warning


def human_labels(path: str, run: int | str, right: int) -> None:
    """Writes human labels, by which the first ``right`` of 12 samples of a run are right."""
    lines = [f"s{number},tool_call_f1,{'yes' if number < right else 'no'},{run}" for number in range(12)]
    Path(path).write_text("\n".join(["sample,scorer,value,run", *lines]), encoding="utf-8")


def test_labels_of_both_runs_correct_the_difference(cli):
    kept(12)
    kept(4)
    human_labels("a.csv", 1, 9)
    human_labels("b.csv", 2, 6)
    code, out, _ = cli("compare", 1, 2, "--labels", "a.csv", "--labels", "b.csv", "-o", "found.html")
    assert code == 0
    told = " ".join(out.split())
    assert "tool_call_f1: corrected difference -0.250 (" in told
    assert "A 0.750, B 0.500, by PPI++ and labels of 12 pairs on A, 12 on B, 12 on both" in told
    assert "corrected difference -0.250" in Path("found.html").read_text(encoding="utf-8")
    first = "tool_call_f1: the judge and human labels disagree: corrected by the labels, there is no evidence of a"
    assert told.startswith(first)
    assert "tool_call_f1, 8 worse in B by the judge alone, the 3 that changed most:" in out


def test_recorded_labels_of_either_run_are_used(cli):
    for right, labels in ((12, '{"name": "fine", "value": true, "source": "human"}'), (4, "")):
        lines = [
            f'{{"id": "s{number}", "reference_tool_calls": [{{"name": "f"}}], "trace": {{"labels": [{labels}], "messages": '
            f'[{{"role": "assistant", "tool_calls": [{{"name": "{"f" if number < right else "g"}"}}]}}]}}}}'
            for number in range(12)
        ]
        Path("samples.jsonl").write_text("\n".join(lines), encoding="utf-8")
        assert cli("run", "samples.jsonl", "--scorer", "tool_call_f1")[0] == 0
    code, out, _ = cli("compare", 1, 2, "--label", "fine=tool_call_f1")
    assert code == 0
    assert "no corrected difference (labels of 12 pairs on A, 0 on B, 0 on both)" in " ".join(out.split())
    code, _, err = cli("compare", 1, 2, "--label", "other=tool_call_f1")
    assert code == 2
    assert "label that was recorded" in err
    code, _, err = cli("compare", 1, 2, "--label", "fine")
    assert code == 2
    assert "--label fine: expected a recorded label and a scorer" in err
