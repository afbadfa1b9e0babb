"""Runs that are stopped: of how many samples they scored some does not depend on how many were read until then."""

import io
import json
import re
import signal
import sqlite3
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from judgekit.analysis.gates import check_gates
from judgekit.runs.results import Run
from judgekit.runs.rows import SampleCount
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.runs.summary_table import summary_columns

F1 = ("--scorer", "tool_call_f1")
GOAL = "agent_goal_accuracy_without_reference"
JUDGED = ("--scorer", GOAL)
NUMBER = 200
MANY = 100_000


def settings(judging, *, concurrency: int = 4, budget: int | None = 5, cached: bool = False) -> None:
    lines = ["[judges.default]", 'model = "openai/test"', f'base_url = "{judging.url}"', f"concurrency = {concurrency}"]
    lines += [] if budget is None else [f"budget = {{requests = {budget}}}"]
    lines += [] if cached else ['cache_mode = "off"']
    Path("judgekit.toml").write_text("\n".join(lines))


def shares(out: str) -> dict[str, str]:
    """The column n of the table, by scorer."""
    return dict(re.findall(r"^ (\S+) +\S+ +\S+(?: to \S+)? +([\d,]+ of [a-z ]*[\d,]+) ", out, re.MULTILINE))


def held(table: str) -> int:
    with closing(sqlite3.connect(DEFAULT_RUNS_PATH)) as db:
        return db.execute(f"SELECT count(*) FROM {table}").fetchone()[0]  # noqa: S608 - words of this file


def chat(number: int) -> dict:
    call = {"id": "1", "type": "function", "function": {"name": f"tool_{number}", "arguments": "{}"}}
    messages = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    return {"id": f"s{number}", "messages": messages}


def span(number: int) -> dict:
    asked = [{"role": "user", "parts": [{"type": "text", "content": f"Hi {number}"}]}]
    call = {"type": "tool_call", "id": "1", "name": f"tool_{number}", "arguments": {}}
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.input.messages": json.dumps(asked),
        "gen_ai.output.messages": json.dumps([{"role": "assistant", "parts": [call]}]),
    }
    return {
        "trace_id": f"t{number}", "span_id": f"{number}", "parent_span_id": None, "name": "chat",
        "start_time": 1_767_225_600 + number, "end_time": 1_767_225_601 + number, "attributes": attributes,
    }  # fmt: skip


def lines(path: str, records: list) -> str:
    Path(path).parent.mkdir(exist_ok=True)
    Path(path).write_text("".join(f"{one if isinstance(one, str) else json.dumps(one)}\n" for one in records))
    return path


def folder() -> str:
    lines("all/a.jsonl", [chat(number) for number in range(150)])
    lines("all/b.jsonl", [span(number) for number in range(150, NUMBER)])
    return "all"


def broken() -> str:
    """Every tenth record cannot be read, the first ones among them."""
    return lines("broken.jsonl", [chat(number) if number % 10 else "no JSON" for number in range(NUMBER)])


GIVEN = {
    "spans": (lambda: lines("spans.jsonl", [span(number) for number in range(NUMBER)]), (), NUMBER),
    "a folder": (folder, (), NUMBER),
    "the first few": (broken, ("--limit", 50), 50),
    "a draw": (broken, ("--sample", 30), 30),
}


@pytest.mark.parametrize(("make", "words", "number"), GIVEN.values(), ids=GIVEN)
def test_a_spent_budget_leaves_the_same_share_whatever_was_under_way(cli, judging, make, words, number):
    path = make()
    for run, concurrency in enumerate((1, 32), 1):
        settings(judging, concurrency=concurrency)
        ended = cli("run", path, *JUDGED, *words)
        assert (ended.code, shares(ended.out)) == (1, {GOAL: f"5 of {number}"})
        assert f"saved as run {run} in {DEFAULT_RUNS_PATH}\nstopped: " in ended.err
        assert ended.err.count("20 records could not be read") == ("broken" in path and "--limit" not in words)
        assert shares(cli("runs", run).out) == {GOAL: f"5 of {number}"}
        found = Run.stored()
        assert found.samples == SampleCount(number, "exactly")
        assert f"(n=5 of {number}; {number - 5} missing)" in str(found)
        assert re.search(rf"\bmissing\n.*\n +{GOAL} .* {number - 5} *\n", ended.out)
        assert {one.name: one.cells for one in summary_columns(found.summary)}["missing"] == (str(number - 5),)
    assert held("samples") <= 2 * 5 + 1 + 32  # those that are counted are not kept
    assert held("conversations") == held("samples")
    listed = [line.split() for line in cli("runs").out.splitlines() if "stopped" in line]
    assert [words[-3:] for words in listed] == [[str(number), "5", "0"]] * 2


def test_gates_and_reports_know_all_samples_of_a_stopped_run(cli, judging, conversations):
    settings(judging, concurrency=32)
    files = ("page.html", "junit.xml", "summary.md")
    written = [word for name in files for word in ("-o", name)]
    gates = ("--gate", f"{GOAL}.coverage >= 2.5%", "--gate", f"{GOAL}.coverage > 2.5%", "--gate", f"{GOAL} >= 0.1")
    Path("judgekit.toml").write_text(f"min_coverage = 0.03\n{Path('judgekit.toml').read_text()}")
    ended = cli("run", conversations(NUMBER), *JUDGED, *gates, *written)
    assert ended.code == 1
    assert f"met: {GOAL}.coverage >= 2.5%: found 5 of 200, 2.5%" in ended.err
    assert f"not met: {GOAL}.coverage > 2.5%: found 5 of 200, 2.5%" in ended.err
    assert f"not met: {GOAL} >= 0.1: found " in ended.err
    assert "only 5 of 200 samples were scored, and min_coverage is 3%" in ended.err
    assert [line for line in ended.err.splitlines() if line.startswith("wrote")] == [f"wrote {name}" for name in files]
    page, junit, summary = (Path(name).read_text(encoding="utf-8") for name in files)
    assert '"n":5,"about":"","total":200' in page.replace(" ", "")
    assert f"{GOAL}: n=5 of 200; 195 missing" in junit
    assert "| 5 of 200 |" in summary


def test_standard_input_is_read_to_its_end(cli, judging, monkeypatch, conversations):
    text = conversations(NUMBER).read_bytes()
    for concurrency in (1, 32):
        settings(judging, concurrency=concurrency)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text)))
        ended = cli("run", "-", *JUDGED)
        assert shares(ended.out) == {GOAL: "5 of 200"}
        assert "cannot continue, since standard input can be read only once" in ended.err
        assert "continues from here" not in ended.err


def test_runs_that_go_on_and_get_scorers_keep_the_number(cli, judging, conversations):
    path = conversations(60)
    for scored in (5, 10, 15):
        settings(judging, budget=scored, cached=True)
        ended = cli("run" if scored == 5 else "resume", *((path, *F1, *JUDGED) if scored == 5 else ()))
        assert shares(ended.out)[GOAL] == f"{scored} of 60"
    settings(judging, budget=None, cached=True)
    assert shares(cli("resume").out) == {"tool_call_f1": "60 of 60", GOAL: "60 of 60"}
    settings(judging, budget=20)  # of which the run has spent 15
    added = cli("score", 1, "--scorer", f"{GOAL}:as=again")
    assert shares(added.out) == {"tool_call_f1": "60 of 60", GOAL: "60 of 60", "again": "5 of 60"}
    assert Run.stored().samples == SampleCount(60, "exactly")


# --- real processes


@pytest.mark.processes
@pytest.mark.parametrize(("concurrency", "words"), [(4, ("--workers", 2)), (32, ("--limit", 150))])
def test_an_interrupt_leaves_the_same_number(started, judging, conversations, until, concurrency, words):
    judging.seconds = 0.1
    settings(judging, concurrency=concurrency, budget=None)
    process = started("run", conversations(NUMBER), *JUDGED, *F1, *words)
    until(lambda: judging.asked.total() > concurrency)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    number = 150 if "--limit" in words else NUMBER
    assert process.returncode == 130
    scored = len(list(Run.stored().rows(scorer=GOAL)))
    assert 0 < scored < number
    assert shares(out)[GOAL] == f"{scored} of {number}"
    assert shares(out)["tool_call_f1"].endswith(f" of {number}")
    assert err.splitlines()[-1] == "interrupted; judgekit resume 1 continues from here"


@pytest.mark.processes
def test_one_sigterm_ends_a_run_whose_replies_hang_and_loses_nothing(cli, started, judging, conversations, until):
    judging.hangs_from = 21
    settings(judging, concurrency=4, budget=None)
    process = started("run", conversations(NUMBER), *JUDGED, *F1, "--workers", 2)
    until(lambda: judging.asked.total() == 20 + 4)
    process.send_signal(signal.SIGTERM)
    began = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert time.monotonic() - began < 10  # Kubernetes grants 30 s
    assert process.returncode == 128 + signal.SIGTERM
    assert shares(out)[GOAL] == f"20 of {NUMBER}"
    assert err.splitlines()[-1] == "interrupted; judgekit resume 1 continues from here"
    judging.hangs_from = None
    assert shares(cli("resume").out) == dict.fromkeys(("tool_call_f1", GOAL), f"{NUMBER} of {NUMBER}")
    assert judging.asked.total() == 4 + NUMBER  # only what hung is asked again


@pytest.mark.processes
def test_a_signal_ends_the_counting(cli, started, judging, until):
    settings(judging)
    line = json.dumps(chat(7))
    Path("many.jsonl").write_text("".join(f"{line.replace('s7', f's{index}')}\n" for index in range(MANY)))
    process = started("run", "many.jsonl", *JUDGED)
    notice = "counting the samples that the run did not reach; press Ctrl-C to skip this\n"
    assert process.stderr.readline() == notice
    until(lambda: len(Run.stored()) == 5)  # a request that is still under way would end with the counting
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 128 + signal.SIGINT
    share = re.fullmatch(r"5 of at least ([\d,]+)", shares(out)[GOAL])
    least = int(share[1].replace(",", ""))
    assert 5 < least < MANY
    assert f"saved as run 1 in {DEFAULT_RUNS_PATH}\nstopped: " in err
    found = Run.stored()
    assert f"(n=5 of at least {least}; at least {least - 5} missing)" in str(found)
    gates = check_gates(found, [f"{GOAL}.coverage >= 1%", f"{GOAL}.n >= 5", f"{GOAL} >= 0"], min_coverage=0.01).gates
    assert [gate.met for gate in gates] == [False, True, False]
    assert str(gates[0]).endswith(f"found 5 of at least {share[1]}, so the share is unknown")
    assert f"of at least {share[1]} samples were scored, and min_coverage is 1%" in str(gates[2])
    assert check_gates(found, [f"{GOAL} >= 0"], min_coverage=0).met
    assert f"5 of at least {share[1]}" in cli("runs", 1).out
    assert cli("runs", 1, "-o", "page.html").code == 0
    assert '"about":"at least "' in re.sub(r'": +', '":', Path("page.html").read_text(encoding="utf-8"))


@pytest.mark.processes
def test_of_a_run_that_was_killed_it_says_what_is_known(cli, started, judging, until):
    settings(judging, budget=None)
    judging.seconds = 0.1
    process = started("run", lines("chat.jsonl", [chat(number) for number in range(NUMBER)]), *JUDGED)
    until(lambda: judging.asked.total() > 20)
    process.kill()
    process.communicate()
    found = Run.stored()
    share = shares(cli("runs", 1).out)[GOAL]
    assert share == f"{len(found)} of about 200"
    assert f"about {NUMBER - len(found)} missing)" in str(found)
    settings(judging, budget=None, concurrency=32)
    assert shares(cli("resume").out) == {GOAL: "200 of 200"}
    assert Run.stored().samples == SampleCount(NUMBER, "exactly")
