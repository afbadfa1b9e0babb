"""``judgekit align``, with a judge and a writer on loopback that follow scripts."""

import json
import random
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from judgekit.judges.prompt_file import load_prompt, prompt_file_text
from judgekit.runs.alignments import assigned_role, read_alignments
from judgekit.runs.audit_records import read_audit_record
from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH, RunStore
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

WORDS = [
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty", "knoll", "lagoon"),
    *("marsh", "north", "ocean", "prairie"),
]
COUNT = 60
RECEIPTS = Path(".judgekit/audits")
ALIGN = ("align", "prompt:tone", "--labels", "labels.csv")
GOOD, EMPTY = "Call it lacking if the agent shouts.", "Weigh all that the agent says with care."


def recordings() -> list[Sample]:
    """Conversations in which the agent shouts in two of five."""
    dice = random.Random(1)  # noqa: S311 - conversations, and no secrets
    found = []
    for number in range(COUNT):
        asked, said = (" ".join(dice.choice(WORDS) for _ in range(6)) for _ in range(2))
        text = f"{said} LOUDLY!" if dice.random() < 0.4 else f"{said}."
        found.append(
            Sample.of([HumanMessage(f"{asked}?"), AIMessage(text)], id=f"s{number}", metadata={"agent": "greeter 1"})
        )
    return found


def write_labels(path: str = "labels.csv", samples: list[Sample] | None = None, name: str = "tone") -> None:
    """What people say: they dislike shouting."""
    rows = [
        f"{one.id},{name},{'lacking' if '!' in one.trace.messages[-1].text else 'fitting'}"
        for one in samples or recordings()
    ]
    Path(path).write_text("\n".join(("sample,scorer,value", *rows)) + "\n")


class Script:
    """What the writer writes, and the judge's verdicts: it hears shouting only if the question names it."""

    def __init__(self) -> None:
        self.rules = [EMPTY]
        self.questions = [""]
        self.read: list[str] = []

    def answer(self, content: str) -> dict:
        if content.startswith("A judge answers this question"):
            self.read.append(content)
            if "Rewrite the question" in content:
                question = self.questions[len(self.read) % len(self.questions)]
                return {"reason": "r", "cases": [1], "question": question or "{{ other }}"}
            rule = self.rules[len(self.read) % len(self.rules)]
            return {"reason": "r", "guidelines": [{"rule": rule, "cases": [1, 2]}]}
        is_lacking = "!" in content and "shouts" in content
        return {"reason": "r", "evidence": [], "verdict": "lacking" if is_lacking else "fitting"}


@pytest.fixture(scope="module")
def once(tmp_path_factory) -> Callable[[Callable[[], None]], None]:
    """Does something once for all tests of this module: others get a copy of the files that it left."""
    folders = tmp_path_factory.mktemp("once")

    def do(work: Callable[[], None]) -> None:
        folder = folders / work.__name__
        if folder.exists():
            shutil.rmtree(".judgekit", ignore_errors=True)  # a log that SQLite left there would change the copied file
            shutil.copytree(folder, ".", dirs_exist_ok=True)
        else:
            work()
            shutil.copytree(".", folder)

    return do


@pytest.fixture
def script(judging, cli, once) -> Script:
    """A run of the old question with labels for it, and the script that judge and writer follow from then on."""
    followed = Script()
    judging.answer = followed.answer

    def run() -> None:
        Path("conversations.jsonl").write_text("".join(f"{one.model_dump_json()}\n" for one in recordings()))
        write_labels()
        assert cli("run", "conversations.jsonl", "--scorer", "prompt:tone").code == 0

    once(run)
    judging.asked.clear()
    return followed


@pytest.fixture
def aligned(script, cli, judging, once) -> Script:
    """An alignment by a rule that improves, after which nothing has been sent."""
    script.rules = [GOOD]

    def align() -> None:
        assert cli(*ALIGN).code == 0

    once(align)
    judging.asked.clear()
    return script


@pytest.fixture
def aligned_run(aligned, cli, judging, once) -> int:
    """The number of a run of the question that the alignment wrote."""

    def run_aligned() -> None:
        assert cli("run", "conversations.jsonl", "--scorer", "prompt:tone_aligned.md").code == 0

    once(run_aligned)
    judging.asked.clear()
    return Run.stored().number


def test_labels_are_stored_by_an_alignment_that_begins_and_count_without_their_file(script, cli):
    script.rules = [GOOD]
    cli(*ALIGN, "--dry-run")
    assert list(Run.stored(1).store.label_rows(1)) == []
    first = cli(*ALIGN)
    assert re.search(r"^labels\.csv: \d+ labels: \d+ added$", first.err, re.MULTILINE)
    again = cli("align", "prompt:tone", "--run", 1)
    assert (again.code, "alignment of tone: shown" in again.out) == (0, True)


def test_a_rule_that_improves_is_shown_and_written_with_an_audit_record_of_the_test_labels(script, cli):
    script.rules = [GOOD]
    ended = cli(*ALIGN)
    assert ended.code == 0, ended.err
    assert len(script.read) == 6
    roles = [assigned_role(one) for one in recordings()]
    for one, role in zip(recordings(), roles, strict=True):
        assert role == "train" or not any(one.trace.messages[-1].text in content for content in script.read)
    train, validation, test = (roles.count(role) for role in ("train", "validation", "test"))
    assert f"train {train}, validation {validation}, test {test}" in ended.out
    assert f"alignment of tone: shown. On {test} held-out labels" in ended.out
    assert "+- Call it lacking if the agent shouts.{#- Shown by: s" in ended.out
    judged = 8 * validation + test
    assert f"at most 6 requests to write candidates, and {judged} to the judge, for unknown cost" in ended.err
    assert f"6 requests to openai/test, which is shown {train} labeled samples" in ended.err
    assert f"judging 3 candidates on {validation} labeled samples" in ended.err  # guidelines, examples, and both
    (alignment,) = read_alignments(RECEIPTS)
    (path,) = RECEIPTS.glob("tone_aligned-*.json")
    audit_record = read_audit_record(path)
    assert audit_record.alignment == alignment
    assert audit_record.sample_count == test
    assert audit_record.agreement["agreement"].value == 1.0
    assert (alignment.outcome, alignment.look, alignment.parent) == ("shown", 1, None)
    assert [len(alignment.train), len(alignment.validation), len(alignment.test)] == [train, validation, test]


def test_the_new_prompt_is_the_judge_that_was_tested(aligned, cli, judging):
    assert "shouts.{#- Shown by: s" in Path("tone_aligned.md").read_text()
    assert load_prompt("tone_aligned.md").alignment == read_alignments(RECEIPTS)[0].id
    ended = cli(
        "run", "conversations.jsonl", "--scorer", "prompt:tone_aligned.md", "--gate", "tone_aligned.corrected >= 0.4"
    )
    assert ended.code == 0, ended.err
    assert "audited less than a day ago on run 2" in ended.out
    assert judging.asked.total() == [assigned_role(one) for one in recordings()].count("train")  # others are cached
    assert not any("Shown by" in content or "judgekit" in content for content in judging.asked)


def test_the_same_command_again_sends_nothing_and_is_the_same_look(aligned, cli, judging):
    again = cli(*ALIGN)
    assert judging.asked.total() == 0
    assert "alignment of tone: shown. On " in again.out
    assert [one.look for one in read_alignments(RECEIPTS)] == [1]
    assert [record.number for record in RunStore(DEFAULT_RUNS_PATH).records()] == [
        1,
        2,
    ]  # the test is not kept once more
    assert Run.stored().number == 1  # last is the run that the labels are from
    assert len(list(RECEIPTS.glob("tone_aligned-*.json"))) == 1


def test_too_few_labels_are_refused_before_anything_is_asked(script, cli, judging):
    write_labels(samples=recordings()[:39])
    ended = cli(*ALIGN)
    assert (ended.code, judging.asked.total()) == (1, 0)
    assert "alignment of tone: refused. 39 labeled samples are too few" in ended.out
    planned = cli(*ALIGN, "--dry-run")  # which priced an alignment that would be refused
    assert (planned.code, planned.out) == (1, ended.out)


def test_a_dry_run_says_what_it_would_take_and_sends_nothing(script, cli, judging):
    ended = cli(*ALIGN, "--dry-run")
    roles = [assigned_role(one) for one in recordings()]
    judged = 8 * roles.count("validation") + roles.count("test")
    assert f"at most 6 requests to write candidates, and {judged} to the judge" in ended.out
    assert (ended.code, judging.asked.total()) == (0, 0)


def test_a_scorer_without_a_prompt_of_its_own_cannot_be_aligned(script, cli):
    ended = cli("align", "agent_goal_accuracy_without_reference", "--labels", "labels.csv")
    assert ended.code == 2
    assert "cannot be aligned: only scorers made of a prompt with a scale can" in ended.err


def test_a_spent_budget_stops_and_the_same_command_continues(script, cli, judging):
    script.rules = [GOOD]
    config = Path("judgekit.toml").read_text()
    Path("judgekit.toml").write_text(f"{config}budget = {{requests = 30}}\n")
    ended = cli(*ALIGN)
    assert ended.code == 1
    assert "the same command continues from here" in ended.err
    sent = judging.asked.total()
    assert 0 < sent <= 30
    Path("judgekit.toml").write_text(config)
    assert cli(*ALIGN).code == 0
    assert max(judging.asked.values()) == 1


@pytest.mark.processes
def test_an_alignment_that_is_killed_continues_without_paying_twice(script, judging, started, until):
    script.rules = [GOOD]
    for moment in (20, 80):
        process = started(*ALIGN)
        until(lambda: judging.asked.total() > moment or process.poll() is not None)  # noqa: B023 - called at once
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
    ended = started(*ALIGN)
    out, err = ended.communicate(timeout=50)
    assert ended.returncode == 0, err
    assert "alignment of tone: shown" in out
    assert judging.asked.total() <= len(judging.asked) + 2 * 16  # what was under way at each kill
    assert [one.look for one in read_alignments(RECEIPTS)] == [1]


@pytest.mark.processes
def test_an_interrupted_alignment_says_how_it_continues(script, judging, started, until):
    judging.seconds = 0.05
    process = started(*ALIGN)
    until(lambda: judging.asked.total() > 6 or process.poll() is not None)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=50)
    assert process.returncode == 128 + signal.SIGINT
    assert "interrupted; the same command continues from here, as far as replies are cached" in err
    assert "Traceback" not in err


# Audits afterwards.


def test_an_audit_leaves_out_labels_that_were_read_or_that_chose(aligned_run, cli):
    ended = cli("audit", aligned_run, "--labels", "labels.csv", "-o", "audit.json")
    roles = [assigned_role(one) for one in recordings()]
    (found,) = json.loads(Path("audit.json").read_text())["scorers"]
    assert found["sample_count"] == roles.count("test")
    assert list(found["unused_labels"].values()) == [COUNT - roles.count("test")]
    assert "read, or used to choose, when the judge was aligned" in " ".join(ended.out.split())


def test_an_audit_finds_them_in_another_file_under_other_ids(aligned, cli):
    renamed = [one.model_copy(update={"id": f"new {one.id}", "metadata": {"seen": "later"}}) for one in recordings()]
    Path("later.jsonl").write_text("".join(f"{one.model_dump_json()}\n" for one in renamed))
    assert cli("run", "later.jsonl", "--scorer", "prompt:tone_aligned.md").code == 0
    number = Run.stored().number
    write_labels("later.csv", renamed, "tone_aligned")
    cli("audit", number, "--labels", "later.csv", "-o", "audit.json")
    (found,) = json.loads(Path("audit.json").read_text())["scorers"]
    assert found["sample_count"] == [assigned_role(one) for one in recordings()].count("test")


def test_an_audit_without_the_record_of_the_alignment_uses_no_label(aligned_run, cli):
    for path in RECEIPTS.glob("*.json"):
        path.unlink()
    write_labels(name="tone_aligned")
    cli("audit", aligned_run, "--labels", "labels.csv", "-o", "audit.json")
    (found,) = json.loads(Path("audit.json").read_text())["scorers"]
    assert found["sample_count"] == 0
    assert "which is not recorded here" in next(iter(found["unused_labels"]))
    assert not list(RECEIPTS.glob("tone_aligned-*.json"))


# Several prompts on one set of labels.


def test_prompts_are_compared_without_the_labels_that_one_of_them_was_aligned_by(aligned, cli):
    prompts = ("--scorer", "prompt:tone", "--scorer", "prompt:tone_aligned.md")
    ended = cli("compare-judges", "conversations.jsonl", *prompts, "--labels", "labels.csv", "--show", 0)
    assert ended.code == 0, ended.err
    tested = [assigned_role(one) for one in recordings()].count("test")
    assert f"of n={tested}, tone is right on" in " ".join(ended.out.split())
    assert f"{COUNT - tested} labels left out: read, or used to choose" in " ".join(ended.out.split())


def test_prompts_that_cannot_be_compared_are_refused(script, cli, judging):
    Path("other.md").write_text(prompt_file_text(load_prompt("tone")))
    prompts = ("--scorer", "prompt:tone", "--scorer", "prompt:other.md")
    for options, message in (
        (("--judge", "default", "--judge", "openai/b"), "found 2 judges"),
        (("--scorer", "prompt:answer_correctness"), "tone and answer_correctness have different scales"),
        (("--scorer", "tool_call_f1"), "tool_call_f1 asks no judge"),
    ):
        ended = cli("compare-judges", "conversations.jsonl", *prompts, *options)
        assert ended.code == 2
        assert message in ended.err
    assert judging.asked.total() == 0
