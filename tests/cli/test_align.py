"""``judgekit align``, with a judge and a writer on loopback that follow scripts."""

import json
import random
import signal
from pathlib import Path

import pytest

from judgekit.analysis.labels import read_labels
from judgekit.judges.prompt_file import load_prompt, prompt_file_text
from judgekit.runs.alignments import assigned_role, read_alignments
from judgekit.runs.audit_records import AuditRecord
from judgekit.runs.results import Run
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

WORDS = [
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "haven", "inlet", "jetty", "knoll", "lagoon"),
    *("marsh", "north", "ocean", "prairie"),
]
COUNT = 100
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
        self.question = ""
        self.read: list[str] = []

    def answer(self, content: str) -> dict:
        if content.startswith("A judge answers this question"):
            self.read.append(content)
            if "Rewrite the question" in content:
                return {"reason": "r", "cases": [1], "question": self.question or "{{ other }}"}
            rule = self.rules[len(self.read) % len(self.rules)]
            return {"reason": "r", "guidelines": [{"rule": rule, "cases": [1, 2]}]}
        is_lacking = "!" in content and "shouts" in content
        return {"reason": "r", "evidence": [], "verdict": "lacking" if is_lacking else "fitting"}


@pytest.fixture
def script(judging, cli) -> Script:
    """A run of the old question with labels for it, and the script that judge and writer follow from then on."""
    found = Script()
    judging.answer = found.answer
    Path("conversations.jsonl").write_text("".join(f"{one.model_dump_json()}\n" for one in recordings()))
    write_labels()
    assert cli("run", "conversations.jsonl", "--scorer", "prompt:tone").code == 0
    judging.asked.clear()
    return found


def test_a_rule_that_improves_is_shown_and_written_with_an_audit_record_of_the_test_labels(script, cli):
    script.rules = [GOOD]
    ended = cli(*ALIGN)
    assert ended.code == 0, ended.err
    roles = [assigned_role(one) for one in recordings()]
    assert (
        f"train {roles.count('train')}, validation {roles.count('validation')}, test {roles.count('test')}" in ended.out
    )
    assert f"alignment of tone: shown. On {roles.count('test')} held-out labels" in ended.out
    assert "+- Call it lacking if the agent shouts.{#- Shown by: s" in ended.out
    assert "at most 6 requests to write candidates, and 248 to the judge, for unknown cost" in ended.err
    assert "6 requests to openai/test, which reads 20 labeled samples" in ended.err
    assert "judging 3 candidates on 24 labeled samples" in ended.err  # guidelines, examples, and both
    (alignment,) = read_alignments(RECEIPTS)
    (path,) = RECEIPTS.glob("tone_aligned-*.json")
    audit_record = AuditRecord.model_validate_json(path.read_bytes())
    assert audit_record.alignment == alignment
    assert audit_record.sample_count == roles.count("test")
    assert audit_record.agreement["agreement"].value == 1.0
    assert (alignment.outcome, alignment.look, alignment.parent) == ("shown", 1, None)
    assert [len(alignment.train), len(alignment.validation), len(alignment.test)] == [
        roles.count("train"),
        roles.count("validation"),
        roles.count("test"),
    ]


def test_the_writer_reads_no_recording_that_chooses_or_tests(script, cli):
    cli(*ALIGN)
    assert len(script.read) == 6
    for one in recordings():
        is_read = any(one.trace.messages[-1].text in content for content in script.read)
        assert not is_read or assigned_role(one) == "train"


def test_the_new_prompt_is_the_judge_that_was_tested(script, cli, judging):
    script.rules = [GOOD]
    cli(*ALIGN)
    assert "shouts.{#- Shown by: s" in Path("tone_aligned.md").read_text()
    assert load_prompt("tone_aligned.md").alignment == read_alignments(RECEIPTS)[0].id
    judging.asked.clear()
    ended = cli(
        "run", "conversations.jsonl", "--scorer", "prompt:tone_aligned.md", "--gate", "tone_aligned.corrected >= 0.4"
    )
    assert ended.code == 0, ended.err
    assert "audited on run 2" in ended.out
    assert judging.asked.total() == [assigned_role(one) for one in recordings()].count("train")  # others are cached
    assert not any("Shown by" in content or "judgekit" in content for content in judging.asked)


def test_a_rule_that_changes_nothing_is_not_shown(script, cli):
    ended = cli(*ALIGN)
    assert ended.code == 1
    assert "alignment of tone: not shown" in ended.out
    assert "(0 fixed, 0 regressed, p .50); a gain below 11 points would seldom have shown" in ended.out


def test_a_rule_that_copies_a_recording_is_refused_before_it_is_judged(script, cli, judging):
    copied = " ".join(recordings()[3].trace.messages[0].text.rstrip("?").split()[:5])
    script.rules = [f"An answer to {copied} is lacking if it shouts."]
    ended = cli(*ALIGN)
    assert ended.code == 1
    assert f"refused: it copies '{copied}' from a labeled recording" in " ".join(ended.out.split())
    assert not any("How people here decide" in content for content in judging.asked if content not in script.read)


def test_a_rule_that_changes_the_scale_is_refused(script, cli):
    script.rules = ['If in doubt, say "borderline".', "Rate the tone from 1 to 5.", "Name {{ reference }}.", GOOD]
    out = " ".join(cli(*ALIGN).out.split())
    assert "refused: it quotes 'borderline', which is no label of the scale" in out
    assert "refused: it names another scale, '1 to 5'" in out
    assert "refused: it has braces, which stand for placeholders" in out
    assert "refused: its placeholders changed: none missing, ['other'] new" in out


@pytest.mark.parametrize(("old", "new", "told"), [('"lacking"', '"bad"', "it quotes 'bad', which is no label"), ("evidence:", "proof:", "it no longer asks for evidence"), ("lacking", "wanting", "it no longer names the label 'lacking'")])  # fmt: skip
def test_a_rewritten_question_must_keep_its_labels_and_fields(script, cli, old, new, told):
    script.question = load_prompt("tone").question.replace(old, new)
    assert f"refused: {told}" in " ".join(cli(*ALIGN).out.split())


def test_a_rewritten_question_may_be_chosen(script, cli):
    script.question = load_prompt("tone").question.replace("Short or dry is not lacking.", "Short or dry is not lacking. An agent that shouts is.")  # fmt: skip
    ended = cli(*ALIGN)
    assert ended.code == 0
    assert "+Short or dry is not lacking. An agent that shouts is." in ended.out
    assert "{#- Rewritten by judgekit align from human labels. Shown by: s" in Path("tone_aligned.md").read_text()


def test_max_t_gives_a_verdict_but_no_audit_record(script, cli):
    script.rules = [GOOD]
    ended = cli(*ALIGN, "--design", "max-t")
    assert ended.code == 0
    assert "there is no audit record, since these labels chose the question" in ended.out
    assert not list(RECEIPTS.glob("tone_aligned-*.json"))


def test_the_same_command_again_sends_nothing_and_is_the_same_look(script, cli, judging):
    first = cli(*ALIGN)
    sent = judging.asked.total()
    again = cli(*ALIGN)
    assert judging.asked.total() == sent > 0
    assert [line for line in again.out.splitlines() if "alignment of tone" in line] == [
        line for line in first.out.splitlines() if "alignment of tone" in line
    ]
    assert [one.look for one in read_alignments(RECEIPTS)] == [1]
    assert Run.stored().number == 2  # the test is not kept once more
    assert len(list(RECEIPTS.glob("tone_aligned-*.json"))) == 1


def test_other_candidates_on_the_same_test_labels_are_another_look(script, cli):
    cli(*ALIGN)
    for number, rule in enumerate((GOOD, "Weigh what the agent does."), 2):
        script.rules = [rule]
        Path("tone_aligned.md").unlink()
        for path in Path(".judgekit").glob("*cache*"):
            path.unlink()
        out = cli(*ALIGN).out
        assert f"this is look {number} at these test labels" in out
    assert "after 3 looks, test by new labels" in out
    assert sorted(one.look for one in read_alignments(RECEIPTS)) == [1, 2, 3]


def test_too_few_labels_are_refused_before_anything_is_asked(script, cli, judging):
    write_labels(samples=recordings()[:39])
    ended = cli(*ALIGN)
    assert (ended.code, judging.asked.total()) == (1, 0)
    assert "alignment of tone: refused. 39 labeled samples are too few" in ended.out


def test_a_dry_run_says_what_it_would_take_and_sends_nothing(script, cli, judging):
    ended = cli(*ALIGN, "--dry-run")
    roles = [assigned_role(one) for one in recordings()]
    judged = 8 * roles.count("validation") + roles.count("test")
    assert f"at most 6 requests to write candidates, and {judged} to the judge" in ended.out
    assert (ended.code, judging.asked.total()) == (0, 0)


def test_roles_on_the_sheet_stand(script, cli):
    rows = Path("labels.csv").read_text().splitlines()
    roles = ["role", *(("train", "validation", "test", "test")[number % 4] for number in range(COUNT))]
    Path("labels.csv").write_text("\n".join(f"{row},{role}" for row, role in zip(rows, roles, strict=True)))
    assert read_labels("labels.csv")[1].role == "validation"
    assert "train 25, validation 25, test 50" in cli(*ALIGN).out


def test_a_file_that_no_alignment_wrote_is_not_overwritten(script, cli, judging):
    Path("tone_aligned.md").write_text(prompt_file_text(load_prompt("tone")))
    ended = cli(*ALIGN)
    assert (ended.code, judging.asked.total()) == (2, 0)
    assert "tone_aligned.md exists and was not written by an alignment" in ended.err


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


def scored_by_the_new_judge(cli, script, name: str = "conversations.jsonl") -> int:
    script.rules = [GOOD]
    assert cli(*ALIGN).code == 0
    assert cli("run", name, "--scorer", "prompt:tone_aligned.md").code == 0
    return Run.stored().number


def test_an_audit_leaves_out_labels_that_were_read_or_that_chose(script, cli):
    number = scored_by_the_new_judge(cli, script)
    ended = cli("audit", number, "--labels", "labels.csv", "-o", "audit.json")
    roles = [assigned_role(one) for one in recordings()]
    (found,) = json.loads(Path("audit.json").read_text())["scorers"]
    assert found["sample_count"] == roles.count("test")
    assert list(found["unused_labels"].values()) == [COUNT - roles.count("test")]
    assert "read, or used to choose, when the judge was aligned" in " ".join(ended.out.split())


def test_an_audit_finds_them_in_another_file_under_other_ids(script, cli):
    renamed = [one.model_copy(update={"id": f"new {one.id}", "metadata": {"seen": "later"}}) for one in recordings()]
    Path("later.jsonl").write_text("".join(f"{one.model_dump_json()}\n" for one in renamed))
    number = scored_by_the_new_judge(cli, script, "later.jsonl")
    write_labels("later.csv", renamed, "tone_aligned")
    cli("audit", number, "--labels", "later.csv", "-o", "audit.json")
    (found,) = json.loads(Path("audit.json").read_text())["scorers"]
    assert found["sample_count"] == [assigned_role(one) for one in recordings()].count("test")


def test_an_audit_without_the_record_of_the_alignment_uses_no_label(script, cli):
    number = scored_by_the_new_judge(cli, script)
    for path in RECEIPTS.glob("*.json"):
        path.unlink()
    write_labels(name="tone_aligned")
    cli("audit", number, "--labels", "labels.csv", "-o", "audit.json")
    (found,) = json.loads(Path("audit.json").read_text())["scorers"]
    assert found["sample_count"] == 0
    assert "which is not recorded here" in next(iter(found["unused_labels"]))
    assert not list(RECEIPTS.glob("tone_aligned-*.json"))


def test_an_aligned_judge_that_is_aligned_again_is_not_tested_by_what_chose_it(script, cli):
    script.rules = [GOOD]
    cli(*ALIGN)
    cli("run", "conversations.jsonl", "--scorer", "prompt:tone_aligned.md")
    ended = cli("align", "prompt:tone_aligned.md", "--labels", "labels.csv", "-o", "second.md")
    roles = [assigned_role(one) for one in recordings()]
    assert ended.code == 1
    assert (
        f"labeled samples: train {COUNT - roles.count('test')}, validation 0, test {roles.count('test')}" in ended.out
    )
    assert "alignment of tone_aligned: refused. No labeled sample has the role validation: label more" in ended.out


# Several prompts on one set of labels.


def test_prompts_are_compared_without_the_labels_that_one_of_them_was_aligned_by(script, cli):
    script.rules = [GOOD]
    cli(*ALIGN)
    prompts = ("--scorer", "prompt:tone", "--scorer", "prompt:tone_aligned.md")
    ended = cli("compare-judges", "conversations.jsonl", *prompts, "--labels", "labels.csv", "--show", 0)
    assert ended.code == 0, ended.err
    tested = [assigned_role(one) for one in recordings()].count("test")
    assert f"of n={tested}, tone is right on" in " ".join(ended.out.split())
    assert f"{COUNT - tested} labels left out: read, or used to choose" in " ".join(ended.out.split())


@pytest.mark.parametrize(("options", "told"), [(("--judge", "default", "--judge", "openai/b"), "found 2 judges"), (("--scorer", "prompt:answer_correctness"), "tone and answer_correctness have different scales"), (("--scorer", "tool_call_f1"), "tool_call_f1 asks no judge")])  # fmt: skip
def test_prompts_that_cannot_be_compared_are_refused(script, cli, judging, options, told):
    Path("other.md").write_text(prompt_file_text(load_prompt("tone")))
    ended = cli("compare-judges", "conversations.jsonl", "--scorer", "prompt:tone", "--scorer", "prompt:other.md", *options)  # fmt: skip
    assert ended.code == 2
    assert told in ended.err
    assert judging.asked.total() == 0
