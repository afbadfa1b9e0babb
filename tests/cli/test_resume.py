"""Runs that go on, and runs that get more scorers."""

import io
import json
import os
import sys
from pathlib import Path

import pytest

import judgekit
from judgekit.formats.reading import read
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.runs.store import DEFAULT_RUNS_PATH, RunStore

F1, GOAL = "tool_call_f1", "agent_goal_accuracy_without_reference"
BOTH = ("--scorer", F1, "--scorer", GOAL)
NUMBER = 12
KEPT = f"saved as run 1 in {DEFAULT_RUNS_PATH}\n"
FINISHED = "run 1 has already finished, so nothing was scored\n"


def settings(judging, **changes: object) -> None:
    lines = {"model": "openai/test", "base_url": judging.url, "concurrency": 1, **changes}
    tables = {
        "budget": "{{requests = {}}}",
        "temperature": "{{temperature = {}}}",
        "price": "{{input = {0}, output = {0}}}",
    }
    told = [f"{name} = {tables.get(name, '{}').format(json.dumps(value))}" for name, value in lines.items()]
    Path("judgekit.toml").write_text("\n".join(["[judges.default]", *told, ""]).replace("temperature =", "params =", 1))


@pytest.fixture
def broken_off(cli, judging, conversations):
    """A run of twelve samples whose judge could be asked about five of them."""

    def break_off(*words: object, scorers=BOTH, **changes: object) -> Path:
        path = conversations(NUMBER)
        settings(judging, budget=5, **changes)
        ended = cli("run", path, *scorers, *words)
        assert (ended.code, "judgekit resume 1 continues from here" in ended.err) == (1, True)
        settings(judging, **changes)
        return path

    return break_off


# --- going on


def test_a_run_that_went_on_is_what_it_would_have_been(cli, unspent, judging, broken_off):
    path = broken_off()
    before = Run.stored()
    assert ("budget" in before.stop_reason, len(list(before.rows(scorer=GOAL)))) == (True, 5)
    ended = cli("resume", "-o", "rows.jsonl")
    assert (ended.code, ended.err) == (0, f"{KEPT}wrote rows.jsonl\n")
    assert judging.asked.total() == NUMBER
    assert cli("run", path, *BOTH).code == 0
    assert judging.asked.total() == NUMBER
    went_on, undisturbed = Run.stored(1), Run.stored(2)
    assert unspent(went_on) == unspent(undisturbed)
    assert (went_on.stop_reason, went_on.started_at) == ("", before.started_at)
    assert list(went_on.conversations()) == list(undisturbed.conversations()) == list(enumerate(read(path)))
    written = [Row.model_validate_json(line) for line in Path("rows.jsonl").read_text().splitlines()]
    assert written == list(went_on)


@pytest.mark.parametrize("words", [("--limit", 8), ("--limit", 10, "--sample", 7)])
def test_a_run_of_some_goes_on_with_those(cli, unspent, broken_off, words):
    path = broken_off(*words)
    assert cli("resume").code == 0
    assert cli("run", path, *BOTH, *words).code == 0
    assert unspent(Run.stored(1)) == unspent(Run.stored(2))


def test_a_finished_run_has_nothing_left_to_do_and_needs_no_file_for_it(cli, judging, conversations):
    path = conversations(3)
    first = cli("run", path, *BOTH)
    asked, rows = judging.asked.total(), list(Run.stored())
    path.unlink()
    again = cli("resume")
    assert (again.code, again.err, again.out) == (0, FINISHED, first.out)
    assert (judging.asked.total(), list(Run.stored())) == (asked, rows)


def test_what_could_not_be_read_is_still_said_of_a_run_that_went_on(cli, conversations):
    path = conversations(2)
    path.write_text(f"no JSON\n{path.read_text()}")
    assert cli("run", path, "--scorer", F1).code == 1
    assert [row.index for row in Run.stored()] == [1, 2]
    again = cli("resume")
    assert Run.stored().record.notes == ("1 record could not be read",)
    assert (again.code, again.err) == (1, f"{FINISHED}1 record could not be read\n")


def test_runs_are_named_by_their_number_or_as_the_last(cli, broken_off):
    path = broken_off()
    cli("run", path, "--scorer", F1)
    assert len(Run.stored(1)) < 2 * NUMBER
    assert cli("resume", 2).code == cli("resume", "last").code == 0
    assert len(Run.stored(1)) < 2 * NUMBER
    assert cli("resume", "1").code == 0
    assert len(Run.stored(1)) == 2 * NUMBER
    for wrong, said in {
        "3": f"{DEFAULT_RUNS_PATH}: contains no run 3; judgekit runs lists the runs",
        "0": f"{DEFAULT_RUNS_PATH}: contains no run 0; judgekit runs lists the runs",
        "first": "'first': expected the number of a run, or last; judgekit runs lists them",
        "-1": "",
        "²": "'²': expected the number of a run, or last",
        "9" * 30: "'999999999999999999999999999999': expected the number of a run, or last",
    }.items():
        ended = cli("resume", wrong)
        assert (ended.code, ended.out, ended.err.startswith(f"judgekit: {said}") or not said) == (2, "", True)


def test_only_failed_scores_are_made_again_and_only_when_asked(cli, judging, conversations):
    settings(judging, attempts=1)
    said = judging.answer
    judging.answer = lambda talk: {"odd": 1} if judging.number(talk) in {1, 3} else said(talk)
    path = conversations(5)
    assert cli("run", path, *BOTH).code == 1
    failed = [row.sample_id for row in Run.stored().rows(statuses=["failed"])]
    assert failed == ["s1", "s3"]
    judging.answer = said
    before, asked = list(Run.stored()), judging.asked.total()
    assert cli("resume").code == 1
    assert (list(Run.stored()), judging.asked.total()) == (before, asked)
    assert cli("resume", "--retry-failed").code == 0
    assert judging.asked.total() == asked + len(failed)
    kept = [row for row in before if row.score.status != "failed"]
    after = list(Run.stored())
    assert [row for row in after if row in kept] == kept
    assert [row.sample_id for row in after if row not in kept] == failed
    assert {row.score.status for row in after} == {"scored"}


def test_what_a_stopped_run_paid_amid_a_score_stays_in_its_totals_when_it_goes_on(cli, judging, conversations):
    path = conversations(2)
    scorer = f"{GOAL}:repeats=5"
    settings(judging, budget=8, price=1.0)
    assert cli("run", path, "--scorer", scorer).code == 1
    [line] = Run.stored().summary
    assert (len(Run.stored()), line.requests, line.unscored_requests, judging.asked.total()) == (1, 8, 3, 8)
    settings(judging, price=1.0)
    assert cli("resume").code == 0
    [line] = Run.stored().summary
    assert (line.requests, line.cached, line.unscored_requests, judging.asked.total()) == (10, 3, 3, 10)
    assert line.cost_usd == pytest.approx(0.011)


# --- adding scorers


def test_scorers_are_added_without_asking_old_questions_again(cli, judging, conversations):
    path = conversations(4)
    assert cli("run", path, "--scorer", GOAL).code == 0
    asked = judging.asked.total()
    before = list(Run.stored())
    path.unlink()  # the samples are kept with the run
    added = cli("score", 1, "--scorer", F1, "--scorer", "tool_call_accuracy:as=accuracy")
    assert (added.code, judging.asked.total()) == (0, asked)
    found = Run.stored()
    assert found.number == 1
    assert [row.scorer for row in found] == [GOAL, F1, "accuracy"] * 4
    assert list(found.rows(scorer=GOAL)) == before
    assert all(name in added.out for name in (GOAL, F1, "accuracy"))
    assert [one.name for one in found.scorers] == [GOAL, F1, "accuracy"]
    assert cli("resume").code == 0


def test_a_config_that_is_gone_is_named_with_what_to_do(cli, conversations):
    Path("gone.toml").write_text("")
    cli("run", conversations(2), "--scorer", "tool_call_f1", "--config", "gone.toml")
    Path("gone.toml").unlink()
    ended = cli("score", 1, "--scorer", "tool_call_accuracy")
    assert (ended.code, ended.out) == (2, "")
    assert (
        "gone.toml: cannot be read: No such file or directory; to resume a run that it made, put it back, or an empty file"
        in ended.err
    )


def test_scorers_that_cannot_be_added_say_why(cli, broken_off):
    path = broken_off()
    said = "judgekit: run 1 is not finished; finish it with judgekit resume 1\n"
    assert cli("score", 1, "--scorer", "tool_call_accuracy") == (2, "", said)
    store = RunStore(DEFAULT_RUNS_PATH)
    store.change(store.record(1).model_copy(update={"stop_reason": "", "ended_at": None}))  # as if it were under way
    assert cli("score", 1, "--scorer", "tool_call_accuracy") == (2, "", said)
    cli("run", path, "--scorer", F1)
    for words in (("--scorer", F1), ("--scorer", "tool_call_accuracy:as=tool_call_f1")):
        ended = cli("score", "last", *words)
        assert (ended.code, ended.out) == (2, "")
        assert ended.err.startswith("judgekit: two scorers are called 'tool_call_f1'; rename one of them")
    assert cli("score", "last", "--scorer", "no_such").code == 2
    assert [one.name for one in Run.stored().scorers] == [F1]


# --- scorers of one run that ask different judges

AGAIN = f"{GOAL}:as=again"


def two_judges(judging, other: str = "") -> None:
    settings(judging)
    with Path("judgekit.toml").open("a") as file:
        file.write(f'[judges.other]\nmodel = "openai/other"\nbase_url = "{judging.url}"\n{other}\n')


def judges_of(number: int | None = None) -> dict[str, set[str]]:
    """By scorer, the judges that were asked."""
    asked: dict[str, set[str]] = {}
    for row in Run.stored(number):
        asked.setdefault(row.scorer, set()).update(call.judge for call in row.score.calls)
    return asked


def test_a_scorer_that_is_added_with_a_judge_of_its_own_is_what_it_would_have_been_in_a_run_of_that_judge(
    cli, unspent, judging, conversations
):
    two_judges(judging)
    path = conversations(4)
    assert cli("run", path, "--scorer", GOAL).code == 0
    before = list(Run.stored())
    added = cli("score", 1, "--scorer", AGAIN, "--scorer", F1, "--judge", "other")
    assert (added.code, added.err) == (0, KEPT)
    assert judges_of(1) == {GOAL: {"openai/test"}, "again": {"openai/other"}, F1: set()}
    assert list(Run.stored(1).rows(scorer=GOAL)) == before
    cli("run", path, "--scorer", AGAIN, "--judge", "other")
    assert Run.stored(1).scorers[1] == Run.stored(2).scorers[0]
    assert unspent(Run.stored(1).rows(scorer="again")) == unspent(Run.stored(2))
    assert cli("resume", 1).code == 0
    assert cli("score", 1, "--scorer", f"{GOAL}:as=third").code == 0  # asks the run's
    assert judges_of(1)["third"] == {"openai/test"}
    assert '"judge": "other"' in cli("runs", 1).out


def test_scorers_of_several_judges_go_on_with_the_one_that_each_was_added_with(cli, judging, conversations):
    two_judges(judging)
    path = conversations(NUMBER)
    cli("run", path, "--scorer", GOAL)
    two_judges(judging, "budget = {requests = 5}\nconcurrency = 1")
    assert cli("score", 1, "--scorer", AGAIN, "--judge", "other").code == 1
    two_judges(judging)
    assert cli("resume").code == 0
    assert judges_of() == {GOAL: {"openai/test"}, "again": {"openai/other"}}
    assert len(Run.stored()) == 2 * NUMBER
    assert judging.asked.total() == 2 * NUMBER
    Path("judgekit.toml").write_text(Path("judgekit.toml").read_text().replace("openai/other", "openai/another"))
    refused = cli("resume")
    assert refused.code == 2
    assert "again has changed: judge.model was 'openai/other' and is 'openai/another'" in refused.err


def test_the_judge_of_a_run_goes_before_that_of_the_environment_which_is_kept_with_a_scorer(
    cli, judging, conversations, monkeypatch
):
    two_judges(judging)
    path = conversations(2)
    cli("run", path, "--scorer", F1)
    cli("run", path, "--scorer", F1, "--judge", "default")
    monkeypatch.setenv("JUDGEKIT_JUDGE", "other")
    for number in (1, 2):
        assert cli("score", number, "--scorer", GOAL).code == 0
    assert (judges_of(1)[GOAL], judges_of(2)[GOAL]) == ({"openai/other"}, {"openai/test"})
    monkeypatch.delenv("JUDGEKIT_JUDGE")
    assert [cli("resume", number).code for number in (1, 2)] == [0, 0]


def test_a_run_that_goes_on_asks_no_judge_of_the_environment(cli, broken_off, monkeypatch):
    broken_off()
    monkeypatch.setenv("JUDGEKIT_JUDGE", "openai/another")
    assert cli("resume").code == 0
    assert judges_of()[GOAL] == {"openai/test"}


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("othr", "no judge is called 'othr'. Did you mean 'other'?"),
        ("openai/x", "no key for https://api.openai.com/v1: set the environment variable OPENAI_API_KEY"),
    ],
)
def test_a_judge_that_cannot_be_asked_changes_no_run(cli, judging, conversations, judge, said):
    two_judges(judging)
    cli("run", conversations(2), "--scorer", F1)
    before = Run.stored().record
    ended = cli("score", 1, "--scorer", GOAL, "--judge", judge)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"judgekit: {said}")
    assert Run.stored().record == before


def test_an_audit_of_one_judge_is_none_of_the_other_that_answers_in_the_same_run(cli, judging, conversations):
    two_judges(judging)
    path = conversations(NUMBER)
    cli("run", path, "--scorer", GOAL, "--judge", "other")
    labels = "".join(f"s{number},{GOAL},{number % 2 == 0},ann\n" for number in range(NUMBER))
    Path("labels.csv").write_text(f"sample,scorer,value,annotator\n{labels}")
    assert cli("audit", 1, "--labels", "labels.csv").code == 0
    for judge in ("other", "default"):
        cli("run", path, "--scorer", F1, "--judge", "default")
        cli("score", "last", "--scorer", GOAL, "--judge", judge)
    assert Run.stored(2).summary[GOAL].audited.startswith("audited less than a day ago: kappa 1.00")
    assert Run.stored(3).summary[GOAL].audited.startswith("not audited")


# --- what has changed


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": "openai/other"}, "judge.model was 'openai/test' and is 'openai/other'"),
        ({"base_url": "http://127.0.0.1:9/v1"}, "base_url was 'http://127.0.0.1:"),
    ],
)
def test_with_another_judge_a_run_does_not_go_on(cli, judging, broken_off, changes, said):
    broken_off()
    asked, before = judging.asked.total(), list(Run.stored())
    settings(judging, **changes)
    ended = cli("resume")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"judgekit: run 1 cannot be resumed: {GOAL} has changed: ")
    assert said in ended.err
    assert ended.err.endswith("; start a new run with judgekit run\n")
    assert (judging.asked.total(), list(Run.stored())) == (asked, before)


def test_with_a_judge_that_is_asked_faster_or_pays_more_a_run_goes_on(cli, judging, broken_off):
    broken_off()
    settings(judging, concurrency=7, budget=500, attempts=2)
    assert cli("resume").code == 0


QUESTION = "---\ndescription: d\ninputs: [conversation]\nscale: {good: 1.0, bad: 0.0}\nsource: us\n---\nWas it good?\n"


def test_with_other_words_in_a_prompt_a_run_does_not_go_on(cli, judging, broken_off):
    judging.answer = lambda _: {"reason": "r", "evidence": [2], "verdict": "good"}
    prompt = Path("mine.md")
    prompt.write_text(QUESTION)
    broken_off(scorers=("--scorer", "prompt:mine.md"))
    prompt.write_text(QUESTION.replace("good", "very good"))
    ended = cli("resume")
    assert (ended.code, ended.out) == (2, "")
    assert "run 1 cannot be resumed: mine has changed: " in ended.err
    assert "prompt.question was 'Was it good?' and is 'Was it very good?'" in ended.err
    prompt.write_text(QUESTION)
    assert cli("resume").code == 0


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.rename("other.jsonl"),
        lambda path: path.write_text(path.read_text().replace("tool_3", "tool_5")),
    ],
    ids=["renamed", "changed"],
)
def test_with_other_recordings_a_run_does_not_go_on(cli, judging, broken_off, change):
    path = broken_off()
    asked = judging.asked.total()
    change(path)
    ended = cli("resume")
    assert (ended.code, ended.out, judging.asked.total()) == (2, "", asked)
    assert "samples.jsonl" in ended.err
    assert "start a new run with judgekit run" in ended.err or "does not exist" in ended.err


def test_files_that_come_and_go_in_a_folder_are_noticed_and_a_touched_one_is_the_same(cli, judging, conversations):
    Path("all").mkdir()
    for name in "ab":
        conversations(4, f"all/{name}.jsonl")
    settings(judging, budget=2)
    assert cli("run", "all", *BOTH).code == 1
    settings(judging)
    conversations(1, "all/c.jsonl")
    ended = cli("resume")
    assert (ended.code, "all/c.jsonl changed, appeared or" in ended.err) == (2, True)
    Path("all/c.jsonl").unlink()
    os.utime("all/a.jsonl", (0, 0))
    assert cli("resume").code == 0


def test_a_run_that_was_made_in_python_goes_on_there_alone(cli, conversations):
    judgekit.run(read(conversations(2)), [judgekit.ToolCallF1()], store=DEFAULT_RUNS_PATH)
    told = (
        "judgekit: run 1 cannot be resumed by itself: tool_call_f1 was passed as an object in Python; pass the same one there: "
        "judgekit.resume(run, scorers=[...])\n"
    )
    assert cli("resume") == (2, "", told)
    assert cli("score", 1, "--scorer", "tool_call_accuracy").code == 0
    assert [(row.scorer, row.index) for row in Run.stored()] == [
        (name, index) for index in range(2) for name in (F1, "tool_call_accuracy")
    ]


def test_a_run_of_a_later_make_says_so(cli, conversations):
    cli("run", conversations(1), "--scorer", F1)
    store = RunStore(DEFAULT_RUNS_PATH)
    record = store.record()
    store.change(record.model_copy(update={"options": {**record.options, "color": "blue"}, "read_to_end": False}))
    ended = cli("resume")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith("judgekit: run 1 was made by another version of judgekit: color")


# --- without text


def words_in_files(*but: Path) -> bytes:
    return b"".join(one.read_bytes() for one in Path().rglob("*") if one.is_file() and one not in but)


def test_without_text_a_run_goes_on_and_gets_scorers_and_keeps_no_word(cli, judging, conversations):
    judging.reason = "SECRET words"
    path = conversations(NUMBER)
    path.write_text(path.read_text().replace('"Hi"', '"SECRET"'))

    def told(**changes: object) -> None:
        settings(judging, **changes)
        Path("judgekit.toml").write_text("store_text = false\n" + Path("judgekit.toml").read_text())

    told(budget=5)
    assert cli("run", path, *BOTH).code == 1
    assert b"SECRET" not in words_in_files(path)
    told()
    assert cli("resume").code == 0
    assert cli("score", 1, "--scorer", "tool_call_accuracy").code == 0
    assert b"SECRET" not in words_in_files(path)
    found = Run.stored()
    assert (len(found), list(found.conversations()), list(found.exchanges())) == (3 * NUMBER, [], [])
    assert judging.asked.total() == NUMBER
    before = path.read_text()
    path.write_text(before.replace("tool_3", "tool_5"))
    ended = cli("score", 1, "--scorer", "tool_call_f1:as=again")
    assert (ended.code, "samples.jsonl changed" in ended.err) == (2, True)
    path.write_text(before)
    assert cli("score", 1, "--scorer", "tool_call_f1:as=again").code == 0


def test_a_finished_run_of_standard_input_gets_scorers_and_an_unfinished_one_is_lost(
    cli, judging, conversations, monkeypatch
):
    given = conversations(4).read_bytes()
    Path("samples.jsonl").unlink()

    def run_input(*words: object) -> int:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(given)))
        return cli("run", "-", "--format", "judgekit", *words).code

    settings(judging, budget=2)
    assert run_input(*BOTH) == 1
    settings(judging)
    lost = "judgekit: run 1 read standard input, which cannot be read again; start a new run with judgekit run\n"
    assert cli("resume") == (2, "", lost)
    assert run_input("--scorer", F1) == 0
    assert cli("score", "last", "--scorer", GOAL).code == 0
    assert len(Run.stored()) == 8


@pytest.mark.processes
def test_two_may_go_on_with_one_run_at_once(judging, broken_off, started, monkeypatch):
    monkeypatch.setenv("TEST_LEASE", "30")  # neither is killed, and a busy machine may stop one for a while
    broken_off()
    judging.seconds = 0.02
    both = [started("resume"), started("resume")]
    assert [(process.communicate()[1], process.returncode) for process in both] == [(KEPT, 0)] * 2
    assert len(Run.stored()) == 2 * NUMBER
    assert judging.asked.total() == NUMBER  # the cache joins equal questions of both
