"""The command line."""

import gc
import gzip
import json
import re
import shlex
import signal
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path

import jsonschema
import pytest

import judgekit
from judgekit.cli.app import COMMAND_MODULES
from judgekit.formats.reading import read
from judgekit.jobs.options import RunOptions
from judgekit.runs.rows import Row
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import Sample

TOOLS = ("--scorer", "tool_call_accuracy", "--scorer", "tool_call_f1")
JUDGED = ("topic_adherence", "agent_goal_accuracy_with_reference", "agent_goal_accuracy_without_reference")
KEY = "sk-secret-0123456789"
WRONG_KEY = f"{KEY}-wrong"


@pytest.fixture
def example(examples) -> Path:
    return examples / "conversations.jsonl"


@pytest.fixture
def replayed(examples) -> Path:
    """A config whose judge answers from the replies that were written for the examples."""
    path = Path("replayed.toml")
    path.write_text(
        f"[judges.default]\nmodel = 'demo/handwritten'\ncache = {json.dumps(str(examples / 'replies.jsonl'))}\n"
        "cache_mode = 'replay'\n"
    )
    return path


def rows(path: str | Path) -> list[Row]:
    return [Row.model_validate_json(line) for line in Path(path).read_text(encoding="utf-8").splitlines()]


def write(*samples: Sample, name: str = "samples.jsonl") -> Path:
    path = Path(name)
    path.write_text("".join(one.model_dump_json() + "\n" for one in samples), encoding="utf-8")
    return path


def calling(sample_id: str, made: str = "f", expected: str | None = "f") -> Sample:
    """A conversation in which one call was made and one was expected."""
    references = None if expected is None else [ToolCall(expected)]
    messages = [HumanMessage("Hi"), AIMessage(tool_calls=[ToolCall(made)])]
    return Sample.of(messages, id=sample_id, reference_tool_calls=references)


# --- the examples, counted by hand

# Accuracy where the sequence of names is the expected one; F1 = 2 TP / (expected + made).
TOOL_CALLS = {
    "hotel_clean": ("1", "1"),
    "refund_claimed_not_done": ("1", "1"),
    "wrong_argument": ("11/12", "1/2"),  # 4 of 4 and 5 of 6 arguments; 1 of 2 calls
    "extra_call": ("0", "4/5"),  # 2 expected, 3 made
    "missing_call": ("0", "4/5"),  # 3 expected, 2 made
    "swapped_order": ("0", "1"),
    "parallel_calls": ("1", "1"),
    "tool_error_recovered": ("0", "6/7"),  # 3 expected, 4 made: one was refused and made again
    "off_topic_answered": ("1", "1"),
    "off_topic_refused": ("1", "1"),
    "on_topic_refused": ("1", "1"),
    "chinese_train": ("1", "1"),
    "injected_tool_result": ("1", "1"),  # the mail's text is left out by compare_args
    "broken_arguments": ("0", "4/5"),  # 2 expected, 3 made: one could not be read and was made again
}
# F1 of what the judge listed: TP, FP, FN, TN; whether the desired outcome, and the user's own goal, was reached.
JUDGMENTS = {
    "hotel_clean": ((2, 0, 0, 0), 1, 1),
    "refund_claimed_not_done": ((2, 0, 0, 0), 0, 0),
    "wrong_argument": ((2, 0, 0, 0), 0, 0),
    "extra_call": ((3, 0, 0, 0), 1, 1),
    "missing_call": ((2, 0, 1, 0), 0, 0),
    "swapped_order": ((3, 0, 0, 0), 1, 1),
    "parallel_calls": (None, None, 1),
    "tool_error_recovered": ((2, 0, 0, 0), 1, 1),
    "off_topic_answered": ((2, 1, 0, 0), 1, 1),
    "off_topic_refused": ((2, 0, 0, 1), 1, 1),
    "on_topic_refused": ((2, 0, 1, 0), 0, 0),
    "chinese_train": ((3, 0, 0, 0), 1, 1),
    "injected_tool_result": ((2, 0, 0, 0), 0, 0),
    "broken_arguments": (None, 1, 1),
}


def by_hand() -> dict[str, dict[str, Fraction | None]]:
    """The value of each example by scorer; ``None`` where it is skipped."""
    found: dict[str, dict[str, Fraction | None]] = {
        name: {} for name in ("tool_call_accuracy", "tool_call_f1", *JUDGED)
    }
    for sample, (accuracy, f1) in TOOL_CALLS.items():
        found["tool_call_accuracy"][sample] = Fraction(accuracy)
        found["tool_call_f1"][sample] = Fraction(f1)
    for sample, (counts, outcome, goal) in JUDGMENTS.items():
        tp, fp, fn, _ = counts or (0, 0, 0, 0)
        found["topic_adherence"][sample] = Fraction(2 * tp, 2 * tp + fp + fn) if counts else None
        found["agent_goal_accuracy_with_reference"][sample] = None if outcome is None else Fraction(outcome)
        found["agent_goal_accuracy_without_reference"][sample] = Fraction(goal)
    return found


def table_by_hand() -> dict[str, list[str]]:
    """What the table says of the examples: mean, n of N, skipped, failed; requests, cached, tokens and cost if asked."""
    lines = {}
    for name, values in by_hand().items():
        known = [value for value in values.values() if value is not None]
        mean = sum(known) / len(known)
        lines[name] = [f"{float(mean):.3f}", f"{len(known)} of 14", str(14 - len(known)), "0"]
        if name in JUDGED:
            lines[name] += ["0", str(len(known)), "0", "$0.0000"]
    return lines


def test_the_demo_prints_the_numbers_that_counting_by_hand_gives_and_leaves_nothing(cli, tmp_path):
    ended = cli("demo")
    assert (ended.code, ended.err, list(tmp_path.iterdir())) == (0, "", [])
    assert ended.table == table_by_hand()
    assert "topic_adherence: 2 skipped: the sample has no reference_topics" in ended.out
    assert "agent_goal_accuracy_with_reference: 1 skipped: the sample has no reference" in ended.out
    assert ended.out.count("not audited") == len(JUDGED)
    assert [ended.out.count(f"{name}, lowest 1 score:") for name in by_hand()] == [1] * 5
    assert (
        "agent_goal_accuracy_without_reference  corrected mean .50 [.27, .73], kappa .71 [.23, .91], n=14" in ended.out
    )
    assert "rosa: no (0.00): She asked three things and got two of them." in ended.out
    assert "judgekit run FILE --scorer tool_call_f1" in ended.out


def test_the_demo_of_failures_shows_where_each_began_and_leaves_nothing(cli, tmp_path):
    code, out, err = cli("demo", "--failures")
    assert (code, err) == (0, "")
    assert out.startswith("5 of 14 samples failed visibly: 5 issues (5 new)")
    places = ["refund_claimed_not_done message 7", "missing_call message 6", "on_topic_refused message 11"]
    places += ["injected_tool_result message 8", "wrong_argument message 7"]
    assert [out.count(f"\n  {place}: ") for place in places] == [1] * 5
    assert "  create_event: duration_minutes got 30, expected 45 (1 of 14 samples)" in out
    assert list(tmp_path.iterdir()) == []


def test_each_example_has_the_value_that_counting_by_hand_gives(cli, example, replayed):
    asked = [word for name in by_hand() for word in ("--scorer", name)]
    ended = cli("run", example, *asked, "--config", replayed, "-o", "rows.jsonl")
    assert (ended.code, ended.err, ended.table) == (
        0,
        "saved as run 1 in .judgekit/runs.sqlite\nwrote rows.jsonl\n",
        table_by_hand(),
    )
    assert cli("runs", "last").out.count("not audited") == len(JUDGED)
    written = rows("rows.jsonl")
    assert [(row.index, row.sample_id, row.score.scorer) for row in written] == [
        (index, sample, name) for index, sample in enumerate(TOOL_CALLS) for name in by_hand()
    ]
    found = {name: {} for name in by_hand()}
    for row in written:
        found[row.score.scorer][row.sample_id] = row.score.value
    expected = {
        name: {sample: None if value is None else float(value) for sample, value in values.items()}
        for name, values in by_hand().items()
    }
    assert found == {name: pytest.approx(values, abs=1e-12) for name, values in expected.items()}


# --- options of run


def drawn(cli: Callable, example: Path, *words: object) -> list[str]:
    assert cli("run", example, "--scorer", "tool_call_f1", "-o", "rows.jsonl", *words).code == 0
    return [row.sample_id for row in rows("rows.jsonl")]


def test_a_limit_takes_the_first_and_a_sample_is_drawn_by_its_seed_in_the_order_of_the_file(cli, example):
    order = list(TOOL_CALLS)
    assert drawn(cli, example, "--limit", 3) == order[:3]
    assert drawn(cli, example, "--limit", 99) == drawn(cli, example, "--sample", 99) == order
    assert set(drawn(cli, example, "--limit", 4, "--sample", 3)) < set(order[:4])
    first = drawn(cli, example, "--sample", 5)
    assert first == drawn(cli, example, "--sample", 5, "--seed", 0) == sorted(set(first), key=order.index)
    others = [drawn(cli, example, "--sample", 5, "--seed", seed) for seed in range(1, 6)]
    assert [len(one) for one in others] == [5] * 5
    assert len({tuple(one) for one in (first, *others)}) > 3


def test_show_prints_the_reasons_of_the_lowest(cli, example):
    ended = cli("run", example, "--scorer", "tool_call_f1", "--show", 2)
    lines = [line.strip() for line in ended.out.splitlines()]
    at = lines.index("tool_call_f1, lowest 2 scores:")
    assert [re.sub(" +", " ", line) for line in lines[at + 1 : at + 8]] == [
        "0.50 wrong_argument 1 of 2 expected calls matched; create_event: args.duration_minutes expected 45, got 30",
        "= find_free_slots 3: find_free_slots",
        "~ create_event duration_minutes: 45 7: create_event duration_minutes: 30",
        "0.80 extra_call 2 of 2 expected calls matched; extra: get_reviews (message 7)",
        "= search_restaurants 3: search_restaurants",
        '+ 7: get_reviews restaurant_id: "r_118", limit: 5',
        "= book_table 9: book_table",
    ]
    assert "lowest" not in cli("run", example, "--scorer", "tool_call_f1").out


def test_a_config_names_scorers_and_the_command_line_goes_before_it(cli, example, replayed):
    with replayed.open("a") as file:
        file.write("[[scorers]]\nname = 'topic_adherence'\nas = 'topic_recall'\nmode = 'recall'\n")
    ended = cli("run", example, "--config", replayed)
    # recall is 1 but for two conversations with 2 of 3 requests on their topics answered
    assert list(ended.table) == ["topic_recall"]
    assert ended.table["topic_recall"][:3] == [f"{float(Fraction(10 * 3 + 2 * 2, 12 * 3)):.3f}", "12 of 14", "2"]
    assert list(cli("run", example, "--config", replayed, *TOOLS).table) == ["tool_call_accuracy", "tool_call_f1"]


def test_ids_of_more_than_one_sample_are_reported(cli):
    path = write(calling("a"), calling("b\x1b[2J"), calling("a"), calling("b\x1b[2J"), calling("c"))
    ended = cli("run", path, "--scorer", "tool_call_f1")
    assert ended.table["tool_call_f1"][1] == "5 of 5"
    assert r"2 ids used by more than one sample: 'a', 'b\x1b[2J'" in ended.err


# --- bad input


def test_a_file_that_cannot_be_read_says_why(cli):
    for name, content, message in (
        ("missing.jsonl", None, "missing.jsonl: does not exist\n"),
        ("a\x1b[2J\u202e.jsonl", None, "a\\x1b[2J\\u202e.jsonl: does not exist\n"),
        ("x" * 5_000 + ".jsonl", None, "[Errno 36] File name too long: "),
        (".", None, ".: contains no readable files; known suffixes: .json, "),
        ("a.jsonl", b"", "a.jsonl: is empty"),
        ("a.jsonl", b" \n\n", "a.jsonl: has only blank lines"),
        ("a.json", b"[]", "a.json: unknown format: found an empty list. Known formats: "),
        ("a.json", b"Dear diary", "a.json: not JSON: expected value at line 1 column 1"),
        ("a.jsonl", b"Dear diary\n", "a.jsonl (line 1): not JSON: expected value at column 1"),
        ("a.jsonl.gz", b"\x1f\x8b{}", "a.jsonl.gz: cannot be read: "),
        ("a.jsonl", b'{"foo": 1}\n', "a.jsonl (line 1): unknown format"),
    ):
        if content is not None:
            Path(name).write_bytes(content)
        ended = cli("run", name, *TOOLS, "-o", "rows.jsonl")
        assert (ended.code, ended.out, Path("rows.jsonl").exists()) == (2, "", False), name[:20]
        assert ended.err.startswith(f"judgekit: {message}"), ended.err
        for path in Path().glob("a.json*"):
            path.unlink()


def test_a_folder_is_scored_and_ends_with_1_where_a_file_of_it_could_not_be_read(cli):
    Path("all").mkdir()
    for name in ("a", "b"):
        Path(f"all/{name}.jsonl").write_text(
            '{"messages": [{"role": "user", "content": "x"}], "reference_tool_calls": []}\n'
        )
    ended = cli("run", "all", *TOOLS)
    assert (ended.code, "2 of 2" in ended.out) == (0, True)
    Path("all/c.json").write_text("{oops")
    for source in ("all", "all/*"):
        ended = cli("run", source, *TOOLS)
        assert (ended.code, "2 of 2" in ended.out) == (1, True)
        assert "all/c.json: not JSON" in ended.err


def test_what_is_read_of_a_file_that_breaks_off_is_scored(cli):
    """The file was cut while it was copied."""
    path = Path("a.jsonl.gz")
    row = '{"id": "%d", "messages": [{"role": "user", "content": "x"}], "reference_tool_calls": []}\n'
    path.write_bytes(gzip.compress("".join(row % number for number in range(300)).encode(), mtime=0)[:-9])
    ended = cli("run", path, *TOOLS)
    assert (ended.code, "failed" in ended.out) == (1, True)
    assert "a.jsonl.gz: cannot be read: Compressed file ended" in ended.err


def three_with_one_broken() -> Path:
    path = write(calling("a"), calling("b"), calling("c"))
    lines = path.read_text().splitlines(keepends=True)
    lines[1] = '{"id": "b", "trace": {"messages": [{"role": "user", "content": 5}]}}\n'
    path.write_text("".join(lines))
    return path


def test_one_broken_record_is_reported_with_its_index_and_the_rest_is_scored(cli):
    ended = cli("run", three_with_one_broken(), "--scorer", "tool_call_f1", "-o", "rows.jsonl")
    assert (ended.code, ended.table["tool_call_f1"]) == (1, ["1.000", "2 of 2", "0", "0"])
    assert "1 record could not be read:\n  samples.jsonl (line 2): trace.messages[0].content: " in ended.err
    assert [(row.index, row.sample_id) for row in rows("rows.jsonl")] == [(0, "a"), (2, "c")]


def test_of_many_broken_records_five_are_shown_and_all_are_counted(cli):
    path = write(calling("a"))
    with path.open("a") as file:
        file.write("no JSON\n" * 8)
    ended = cli("run", path, "--scorer", "tool_call_f1")
    assert ended.code == 1
    assert "8 records could not be read:" in ended.err
    assert ended.err.count("not JSON") == 5
    assert "  and 3 more" in ended.err


def test_a_sample_without_what_a_scorer_needs_is_skipped_with_the_reason(cli, replayed):
    path = write(calling("a"), calling("b", expected=None))
    ended = cli("run", path, *TOOLS, "--scorer", "topic_adherence", "--config", replayed)
    assert (ended.code, ended.table["tool_call_f1"]) == (1, ["1.000", "1 of 2", "1", "0"])
    assert "exit code 1: topic_adherence scored none of 2 samples: 2 skipped: " in ended.err
    assert ended.table["topic_adherence"] == ["-", "0 of 2", "2", "0"]
    assert "tool_call_f1: 1 skipped: the sample has no reference_tool_calls" in ended.out
    assert "topic_adherence: 2 skipped: the sample has no reference_topics" in ended.out


def test_what_cannot_be_run_says_why(cli, example):
    for words, message in (
        (["--scorer", "tool_cal_f1"], "no scorer is called 'tool_cal_f1'. Did you mean 'tool_call_f1'? Known: "),
        (["--scorer", "tool_call_f1:mode=x"], "no option of tool_call_f1 is called 'mode'. Known: args, scope, requestor, include_failed, include_delegations"),
        (["--scorer", "topic_adherence:mode=1", "--judge", "openai/a"], "topic_adherence: no mode of topic adherence is called 1"),
        (["--scorer", "topic_adherence:mode", "--judge", "openai/a"], "topic_adherence: no mode of topic adherence is called 'mode'"),
        (["--scorer", "json_match:mode"], "json_match: expected option=value"),
        (["--scorer", "topic_adherence"], "topic_adherence asks a judge: name one with --judge"),
        (["--scorer", "prompt:tone"], "prompt:tone asks a judge: name one with --judge"),
        (["--scorer", "topic_adherence", "--judge", "gpt-x"], "no judge is called 'gpt-x'. Did you mean 'openai/gpt-x'? Known: none, or any model as provider/model"),
        (["--scorer", "prompt:ton", "--judge", "openai/a"], "no prompt is called 'ton'. Did you mean 'tone'? Known: agent_goal_with_reference, "),
        (["--scorer", "tone", "--judge", "openai/a"], "no scorer is called 'tone'. Did you mean 'prompt:tone'? Known: "),
        (["--scorer", "ToolCallF1"], "no scorer is called 'ToolCallF1'. Did you mean 'tool_call_f1'? Known: "),
        (["--scorer", "topic_adherence", "--judge", "openia/a"], "no judge provider is called 'openia'. Did you mean 'openai'"),
        (["--scorer", "tool_call_f1", "--scorer", "tool_call_f1"], "two scorers are called 'tool_call_f1'; rename one of them: as= in a config file or on the command line, name= in Python"),
        ([], "no scorers: name some with --scorer NAME or [[scorers]] in a config file; judgekit scorers lists them"),
        (["--config", "missing.toml"], "missing.toml: cannot be read: "),
        ([*TOOLS, "--format", "openai-chatt"], "no format is called 'openai-chatt'. Did you mean 'openai-chat'? Known: "),
        ([*TOOLS, "--references", "missing.jsonl"], "missing.jsonl: does not exist"),
        ([*TOOLS, "-o", "no/such/folder/rows.jsonl"], "no/such/folder/rows.jsonl: there is no folder no/such/folder; create it first"),
        ([*TOOLS, "-o", "."], ".: unsupported extension ''; supported: .html, .json, .jsonl, "),
    ):  # fmt: skip
        ended = cli("run", example, *words)
        assert (ended.code, ended.out) == (2, ""), words
        assert ended.err.startswith(f"judgekit: {message}"), ended.err


def test_a_command_that_is_not_one_is_answered_with_its_usage(cli):
    for words in ("run", "run a --limit 0", "run a --shwo 1", "rnu", "schema samples", "run a b"):
        ended = cli(*words.split())
        assert (ended.code, ended.out, ended.err[:15]) == (2, "", "Usage: judgekit"), words


def test_the_input_is_never_overwritten_by_the_output(cli, example):
    path = Path("mine.jsonl")
    path.write_bytes(example.read_bytes())
    Path("refs.jsonl").write_text('{"id": "hotel_clean", "label": "good"}\n')
    Path("link.jsonl").symlink_to(path)
    for target in ("mine.jsonl", "./mine.jsonl", "link.jsonl", "refs.jsonl"):
        ended = cli("run", path, *TOOLS, "--references", "refs.jsonl", "-o", target)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err == f"judgekit: --output {Path(target)}: is an input file; choose another\n"
    for source in (".", "*.jsonl"):
        ended = cli("run", source, *TOOLS, "-o", "mine.jsonl")
        assert (ended.code, ended.out, path.read_bytes()) == (2, "", example.read_bytes())
    assert path.read_bytes() == example.read_bytes()
    assert Path("refs.jsonl").read_text() == '{"id": "hotel_clean", "label": "good"}\n'


def test_what_a_recording_holds_cannot_steer_the_terminal(cli):
    nasty = "\x1b[2J[red]\u202e\r\x9b31m"
    path = write(calling(f"id {nasty}", made=f"tool {nasty}"), calling(f"id {nasty}"))
    with path.open("a") as file:
        file.write(json.dumps({"id": "c", "trace": {"messages": [], nasty: 1}}) + "\n")
    ended = cli("run", path, *TOOLS, "--show", 2)
    assert ended.code == 1
    assert {char for char in ended.out + ended.err if not char.isprintable()} == {"\n"}
    assert r"id \x1b[2J[red]\u202e \x9b31m" in ended.out


# --- judges


GOAL = ("--scorer", "agent_goal_accuracy_without_reference")


def configured(judging, *lines: str) -> None:
    """Writes the config of the judge, with more lines."""
    path = Path("judgekit.toml")
    head = f'[judges.default]\nmodel = "openai/test"\nbase_url = "{judging.url}"'
    path.write_text("\n".join([head, *lines, ""]))


def always_achieved(judging) -> None:
    goal = {"goal": "g", "end_state": "e", "reason": "as message 2 shows", "evidence": [2], "verdict": "achieved"}
    judging.answer = lambda _: {"goals": [goal]}


def test_a_judge_is_asked_once_a_sample_and_what_it_took_is_said(cli, judging, conversations):
    path = conversations(5)
    always_achieved(judging)
    configured(judging, "price = {input = 2.0, output = 10.0}")
    ended = cli("run", path, *GOAL, "-o", "rows.jsonl")
    # 5 requests of 1,000 tokens in at 2 dollars and 100 out at 10 dollars a million
    assert (ended.code, ended.table) == (0, {GOAL[1]: ["1.000", "5 of 5", "0", "0", "5", "0", "5,500", "$0.0150"]})
    assert [request["model"] for request in judging.requests] == ["test"] * 5
    assert [len(row.score.calls) for row in rows("rows.jsonl")] == [1] * 5
    configured(judging)
    again = cli("run", path, *GOAL)
    assert again.table == {GOAL[1]: ["1.000", "5 of 5", "0", "0", "0", "5", "0", "$0.0000"]}
    assert len(judging.requests) == 5


def test_as_many_samples_are_judged_at_once_as_the_judge_may_be_asked(cli, judging, conversations, monkeypatch):
    """The server answers nobody before three have asked, and would in the end be lost on fewer."""
    monkeypatch.setattr("judgekit.judges.structured_output._FIRST_REQUEST_SECONDS", 0.1)
    judging.waits_for = 3
    configured(judging, "concurrency = 3", "attempts = 1")
    assert cli("run", conversations(6), *GOAL).table[GOAL[1]][:5] == ["0.500", "6 of 6", "0", "0", "6"]


def test_the_judge_of_the_flag_goes_before_that_of_the_environment(cli, judging, conversations, monkeypatch):
    others = (f'[judges.{name}]\nmodel = "openai/{name}"\nbase_url = "{judging.url}"' for name in ("other", "third"))
    configured(judging, *others)
    path = conversations(1)
    assert cli("run", path, *GOAL).code == 0
    monkeypatch.setenv("JUDGEKIT_JUDGE", "other")
    assert cli("run", path, *GOAL).code == 0
    assert cli("run", path, *GOAL, "--judge", "third").code == 0
    assert [request["model"] for request in judging.requests] == ["test", "other", "third"]


def test_a_missing_key_is_named_before_any_request(cli, judging, conversations):
    configured(judging, 'api_key_env = "MY_KEY"')
    for words, key in (((), f"{judging.url}: set the environment variable MY_KEY"), (("--judge", "openai/a"), "https://api.openai.com/v1: set the environment variable OPENAI_API_KEY")):  # fmt: skip
        ended = cli("run", conversations(1), *GOAL, *words, "-o", "rows.jsonl")
        assert (ended.code, ended.out, ended.err) == (2, "", f"judgekit: no key for {key}\n")
    assert (judging.requests, Path("rows.jsonl").exists()) == ([], False)


def test_scores_that_failed_are_an_exit_code_and_the_rest_is_scored(cli, example, examples):
    """Replies are there for the first two example alone; for the others nothing is sent."""
    kept = [line for line in (examples / "replies.jsonl").read_text(encoding="utf-8").splitlines() if any(name in line for name in ('"hotel_clean"', '"refund_claimed_not_done"'))]  # fmt: skip
    Path("some.jsonl").write_text("\n".join(kept) + "\n", encoding="utf-8")
    Path("some.toml").write_text(
        "[judges.default]\nmodel = 'demo/handwritten'\ncache = 'some.jsonl'\ncache_mode = 'replay'\n"
    )
    asked = ("run", example, *GOAL, "--scorer", "tool_call_f1", "--config", "some.toml", "--gate")
    ended = cli(*asked, "tool_call_f1 >= 0.5")
    assert ended.code == 1
    assert "\nmet: tool_call_f1 >= 0.5: " in ended.err
    assert ended.err.endswith(f"\nno gate covers the failures of {GOAL[1]}\n")
    assert ended.table[GOAL[1]][:4] == ["0.500", "2 of 14", "0", "12"]
    assert ended.table["tool_call_f1"][:4] == table_by_hand()["tool_call_f1"]
    assert f"{GOAL[1]}: 12 failed: ReplayError: no reply is recorded for this request" in ended.out


# --- the end


@pytest.mark.parametrize("unread", [0, 1])
def test_ctrl_c_shows_and_writes_what_is_done(cli, monkeypatch, unread):
    done = 3
    path = write(*(calling(str(index)) for index in range(done + 1)))
    path.write_text("broken\n" * unread + path.read_text())
    reading = RunOptions.samples

    def interrupted(*given: object, **named: object) -> Iterator[tuple[int, Sample]]:
        yield from islice(reading(*given, **named), done)
        raise KeyboardInterrupt

    monkeypatch.setattr(RunOptions, "samples", interrupted)
    try:
        ended = cli("run", path, "--scorer", "tool_call_f1", "-o", "rows.jsonl")
    except KeyboardInterrupt:
        pytest.fail("Ctrl-C got through")
    assert (ended.code, ended.err.splitlines()[-1]) == (130, "interrupted; judgekit resume 1 continues from here")
    assert [row.sample_id for row in rows("rows.jsonl")] == [str(index) for index in range(done)]
    assert ended.table["tool_call_f1"][1] == "3 of at least 3"  # reading broke off, so that nobody knows what follows
    gc.collect()  # asyncio logs that a task was interrupted when the task goes: here, and not in another test


# --- the other commands


def test_scorers_are_listed_with_what_1_means_and_whether_they_ask(cli):
    ended = cli("scorers")
    assert (ended.code, ended.err) == (0, "")
    lines = ended.out.splitlines()
    others = ("handoff_quality", "groundedness", "failure_analysis", "weighted_criteria", "pairwise", "panel")
    judged = [f"{name} (asks a judge)" for name in (*JUDGED, *others)]
    heads = lines[: lines.index(f"{judged[-1]}") + 1 : 2]
    own = heads[: -len(judged)]
    assert heads[-len(judged) :] == judged
    assert own[:4] == ["tool_call_accuracy", "tool_call_f1", "tool_call_match", "tool_constraints"]
    assert {"exact_match", "bleu", "rouge", "answer_match", "ndcg", "adaptability", "max_tokens"} < {*own}
    assert all(line.startswith("    1 if ") for line in lines[1 : 2 * len(heads) : 2])
    prompts = lines[2 * len(heads) :]
    assert all(re.fullmatch(r"prompt:\w+ \(asks a judge\)", line) for line in prompts[::2])
    assert all(re.match(r"    [A-Z].*[?)] \w+ 1, \w+ [\d.]+", line) for line in prompts[1::2])


def test_version(cli):
    ended = cli("--version")
    assert (ended.code, ended.out) == (0, f"{judgekit.__version__}\n")


def test_help_lists_the_commands_and_so_does_no_command_at_all(cli):
    ended = cli("--help")
    assert ended.code == 0
    assert "..." not in ended.out.partition("Options:")[2]  # each line is whole
    groups = re.findall(r"^(\w+):\n((?:  .+\n?)+)", ended.out, re.MULTILINE)
    listed = {title: re.findall(r"^  ([a-z-]+) +[A-Z]", lines, re.MULTILINE) for title, lines in groups}
    del listed["Options"]
    assert list(listed) == ["Score", "Results", "Judges", "Recordings"]
    assert [name for names in listed.values() for name in names] == list(COMMAND_MODULES)
    assert cli() == (2, "", ended.out)


def test_what_judgekit_writes_is_what_the_schemas_describe(cli, example):
    cli("run", example, *TOOLS, "-o", "rows.jsonl")
    found = [json.loads(sample.model_dump_json()) for sample in read(example)]
    written = {
        "sample": found,
        "trace": [one["trace"] for one in found],
        "score": [json.loads(line) for line in Path("rows.jsonl").read_text(encoding="utf-8").splitlines()],
    }
    assert cli("schema").out == cli("schema", "sample").out
    for kind, values in written.items():
        text = cli("schema", kind).out
        schema = json.loads(text)
        assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
        assert set(re.findall(r'"#/\$defs/(.*?)"', text)) <= schema["$defs"].keys()
        jsonschema.Draft202012Validator.check_schema(schema)
        validator = jsonschema.Draft202012Validator(schema)
        assert [list(validator.iter_errors(value)) for value in values] == [[]] * len(values)
        assert list(validator.iter_errors({"id": "a", "unknown": 1}))


def test_what_a_terminal_has_no_letters_for_is_no_reason_to_stop(cli):
    path = write(calling("巴黎 é"))
    sys.stdout.reconfigure(encoding="ascii", errors="strict")
    ended = cli("run", path, "--scorer", "tool_call_f1", "--show", "1")
    assert (ended.code, r"\u5df4\u9ece \xe9" in ended.out) == (0, True)


# --- before a run: what it would take, and whether it may leave the machine


def test_a_dry_run_says_what_it_would_take_and_sends_nothing(cli, judging, conversations):
    path = conversations(5)
    first, *_ = lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, first.replace('"id":"s0"', '"id":"again"')]))
    configured(judging, "price = {input = 2.0, output = 10.0}", "params = {max_tokens = 100}", "concurrency = 1")
    words = ("run", path, *GOAL, "--scorer", "tool_call_f1")
    cli(*words, "--limit", 2)
    assert len(judging.requests) == 2
    ended = cli(*words, "--dry-run", "-o", "rows.jsonl")
    assert (ended.code, ended.err, len(judging.requests), Path("rows.jsonl").exists()) == (0, "", 2, False)
    # 6 samples of 5 conversations, of which 2 are answered: one of those is there twice
    samples, skipped, requests, cached, tokens, cost = ended.table[GOAL[1]]
    assert (samples, skipped, requests, cached) == ("6", "0", "3", "3")
    (sent,) = {len(json.dumps(request["messages"])) // 4 for request in judging.requests}
    assert 3 * (sent + 100) < int(tokens.replace(",", "")) < 3 * (sent + 100 + 300)  # the schema takes its part
    paid = (int(tokens.replace(",", "")) - 300) * 2.0 / 1e6 + 300 * 10.0 / 1e6
    assert cost == f"${paid:.4f}"
    assert ended.table["tool_call_f1"] == ["6", "0"]
    assert "dry run: nothing was sent" in ended.out
    assert cli(*words).table[GOAL[1]][4:6] == ["3", "3"]  # and so it is


def test_an_expensive_dry_run_prints_the_command_that_scores_a_sample(cli, conversations):
    path = conversations(60)
    Path("judgekit.toml").write_text(
        '[judges.default]\nmodel = "openai/a"\nprice = {input = 0, output = 500_000}\nparams = {max_tokens = 100}\n'
    )
    ended = cli("run", path, "--dry-run", *GOAL, "-o", "my report.html")
    command = ended.out.splitlines()[-1]
    assert command == f"judgekit run {path} {' '.join(GOAL)} -o 'my report.html' --sample 20%"
    note = " ".join(ended.out.split())
    assert "over $1,000: --sample 20% scores about 12 samples" in note
    again = cli(*shlex.split(command)[1:], "--dry-run")
    assert 0 < int(again.table[GOAL[1]][0]) < 60


def test_offline_only_loopback_is_asked_and_what_is_cached_is_used(cli, judging, conversations):
    path = conversations(1)
    assert cli("run", path, *GOAL, "--offline").table[GOAL[1]][4:6] == ["1", "0"]
    assert cli("run", path, *GOAL, "--offline").table[GOAL[1]][4:6] == ["0", "1"]
    assert len(judging.requests) == 1
    ended = cli("run", path, *GOAL, "--judge", "openai/a", "--offline")
    assert (ended.code, ended.table[GOAL[1]][1:4]) == (1, ["0 of 1", "0", "1"])
    assert f"{GOAL[1]}: 1 failed: OfflineError: openai/a at https://api.openai.com/v1: " in ended.out


# --- what ends a run


def test_a_spent_budget_ends_a_run_that_can_go_on_later(cli, judging, conversations):
    path = conversations(5)
    always_achieved(judging)
    configured(judging, "concurrency = 1", "budget = {requests = 3}")
    ended = cli("run", path, *GOAL, "-o", "rows.jsonl")
    assert (ended.code, ended.table[GOAL[1]][:6]) == (1, ["1.000", "3 of 5", "0", "0", "2", "3"])
    assert ended.err.splitlines() == [
        "saved as run 1 in .judgekit/runs.sqlite",
        "wrote rows.jsonl",
        "stopped: openai/test: one more request would exceed the budget of 3 requests (spent: 3): raise it to continue; judgekit resume 1 continues from here",
    ]
    assert [row.sample_id for row in rows("rows.jsonl")] == ["s0", "s1", "s2"]
    assert "\n3 conversations. Per conversation, mean (median): " in ended.out
    again = cli("resume")  # the budget is that of the run, and not of the command
    assert (again.code, again.table[GOAL[1]][:6]) == (1, ["1.000", "3 of 5", "0", "0", "2", "3"])
    assert "stopped: openai/test: one more request would exceed the budget of 3 requests (spent: 3)" in again.err
    assert len(judging.requests) == 3
    configured(judging, "concurrency = 1", "budget = {requests = 5}")
    again = cli("resume", "-o", "rows.jsonl")
    assert (again.code, again.table[GOAL[1]][:6]) == (0, ["1.000", "5 of 5", "0", "0", "5", "0"])
    assert len(judging.requests) == 5
    other = cli("run", path, *GOAL)
    assert (other.code, other.table[GOAL[1]][:6]) == (0, ["1.000", "5 of 5", "0", "0", "0", "5"])


def test_a_dry_run_says_within_which_budget_and_output_limit(cli, judging, conversations):
    configured(judging, "price = {input = 1, output = 2}", "budget = {usd = 2.5, requests = 1000}")
    ended = cli("run", conversations(1), *GOAL, "--dry-run")
    assert ended.out.splitlines()[-1] == "openai/test: budget of $2.5, 1,000 requests; max_output_tokens: 8,192"


# --- signals


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.processes
def test_what_is_under_way_is_finished_after_a_signal(judging, conversations, started, until, number, code):
    judging.waits_for = 3  # two requests, and this test
    configured(judging, "concurrency = 2")
    process = started("run", conversations(8), *GOAL, "-o", "rows.jsonl")
    until(lambda: len(judging.requests) == 2)
    process.send_signal(number)
    assert process.stderr.readline().startswith("finishing the samples in progress")
    judging.waits_for = 0
    _, err = process.communicate()
    assert (process.returncode, len(judging.requests)) == (code, 2)
    assert err.splitlines() == [
        "saved as run 1 in .judgekit/runs.sqlite",
        "wrote rows.jsonl",
        "interrupted; judgekit resume 1 continues from here",
    ]
    assert [row.sample_id for row in rows("rows.jsonl")] == ["s0", "s1"]
