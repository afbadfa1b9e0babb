"""Alignments in Python, with scripted judges: what is read, what is written, and what is left in the audit record."""

import asyncio
import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from judgekit import HumanLabel, PromptScorer, Run, Sample, ScriptedJudge, aalign, align, audit, load_prompt, run
from judgekit.analysis.sampling import draw_samples
from judgekit.analysis.stored_labels import add_labels
from judgekit.errors import BudgetError, ConfigError, StoreError
from judgekit.judges.request import Request
from judgekit.runs.alignments import assigned_role, read_alignments
from judgekit.runs.audit_records import AuditRecord, read_audit_record
from judgekit.scoring import signature
from judgekit.traces.message import AIMessage, HumanMessage
from tests.alignment.conftest import GOOD_RULE, WRITTEN, judge, labels, recordings, shouts, tone


def answer(request: Request, *, lacking: bool) -> Mapping[str, object]:
    """What a judge says, or what a writer writes."""
    if request.prompt.startswith("align_"):
        return WRITTEN
    return {"reason": "heard", "evidence": [], "verdict": "lacking" if lacking else "fitting"}


def record_of(path: str | None) -> AuditRecord:
    """The audit record of an alignment."""
    assert path is not None
    return read_audit_record(Path(path))


def test_an_improvement_leaves_a_prompt_a_run_and_an_audit_record_of_the_test_labels(scored: Run) -> None:
    asked = judge()
    found = align(tone(asked), scored, labels(recordings()), sources=["labels.csv"])
    tested = [one for one in recordings() if assigned_role(one) == "test"]
    assert (found.outcome, found.roles["test"], found.run) == ("shown", len(tested), 2)
    audit_record = record_of(found.audit_record_path)
    assert (audit_record.sample_count, audit_record.run, audit_record.sources) == (len(tested), 2, ("labels.csv",))
    assert audit_record.correction.corrected is not None
    assert audit_record.correction.corrected.value == pytest.approx(1 - sum(map(shouts, tested)) / len(tested))
    kept = Run.stored(2, Path(".judgekit/runs.sqlite"))
    assert [one.name for one in kept.scorers] == ["tone", "tone_aligned"]
    assert [sample.id for _, sample in kept.conversations()] == [one.id for one in tested]
    assert audit_record.fingerprint == kept.scorers[1].signature
    sent = [request.messages[1].content for request in asked.requests if not request.prompt.startswith("align_")]
    assert not any("{#" in text or "Shown by" in text for text in sent)
    assert any(GOOD_RULE in text for text in sent)
    judged = len({one.kind for one in found.candidates if not one.refusal_reason})
    # the old question on all, candidates on those that choose, and old and new on those that test
    assert len(sent) == 60 + judged * found.roles["validation"] + 2 * found.roles["test"]


def test_a_judge_that_is_asked_together_is_aligned_and_audited_as_one_that_is_asked_alone(scored: Run) -> None:
    asked = judge(together=True)
    found = align(tone(asked), scored, labels(recordings()))
    audited = replace(tone(judge()), prompt=load_prompt("tone_aligned.md"), name="tone_aligned")
    assert record_of(found.audit_record_path).fingerprint == signature(audited)
    assert {request.questions for request in asked.requests} == {1}


def test_stored_labels_count_in_an_alignment(scored: Run) -> None:
    given = [label.model_copy(update={"file": "sheet.csv"}) for label in labels(recordings())]
    add_labels(scored, given)
    found = asyncio.run(aalign(tone(judge()), scored, [], output="other.md"))
    assert (found.outcome, found.prompt_path) == ("shown", "other.md")
    assert record_of(found.audit_record_path).sources == ("sheet.csv",)


def test_a_run_in_memory_is_aligned_without_an_audit_record(tmp_path: Path) -> None:
    scorer = tone(judge())
    found = align(scorer, run(recordings(), [scorer]), labels(recordings()), output=tmp_path / "new.md")
    assert (found.outcome, found.run, found.audit_record_path) == ("shown", None, None)
    assert load_prompt(tmp_path / "new.md").alignment == found.id


def test_a_worse_question_is_not_written(scored: Run) -> None:
    def says(request: Request) -> Mapping[str, object]:
        text = request.messages[1].content
        return answer(request, lacking="!" in text and "shouts" not in text and "amber" not in text)

    found = align(tone(ScriptedJudge(lambda request: dict(says(request)))), scored, labels(recordings()))
    assert (found.outcome, found.prompt_path, found.audit_record_path) == ("worse", None, None)
    assert not Path("tone_aligned.md").exists()
    assert [one.outcome for one in read_alignments(Path(".judgekit/audits"))] == ["worse"]


def test_a_judge_that_is_right_on_all_that_may_be_read_is_refused(scored: Run) -> None:
    asked = ScriptedJudge(lambda request: dict(answer(request, lacking="!" in request.messages[1].content)))
    found = align(tone(asked), scored, labels(recordings()))
    assert found.outcome == "refused"
    assert f"agrees with people on all {found.roles['train']} labeled samples that may be read" in str(found)


def test_a_judge_that_is_as_good_as_people_is_refused(scored: Run) -> None:
    said = [one.model_copy(update={"annotator": "Ana"}) for one in labels(recordings())]
    other = [one.model_copy(update={"annotator": "Bo", "value": "fitting"}) for one in said]
    found = align(tone(judge()), scored, [*said, *other])
    assert found.outcome == "refused"
    assert "as much as they agree with each other" in found.reason


def test_samples_on_which_the_old_question_failed_are_left_out_and_a_failing_candidate_is_wrong(scored: Run) -> None:
    def says(request: Request) -> Mapping[str, object] | str:
        text = request.messages[1].content
        if "knoll?" in text or ("prairie." in text and "shouts" in text):
            return "no JSON"
        return answer(request, lacking="!" in text and "shouts" in text)

    def script(request: Request) -> dict[str, object] | str:
        said = says(request)
        return said if isinstance(said, str) else dict(said)

    found = align(tone(ScriptedJudge(script)), scored, labels(recordings()))
    tested = [one for one in recordings() if assigned_role(one) == "test"]
    left = [one for one in tested if not one.trace.messages[0].text.endswith("knoll?")]
    failing = [one for one in left if one.trace.messages[1].text.endswith("prairie.")]
    assert found.verdict is not None
    assert (found.outcome, found.verdict.sample_count) == ("shown", len(left))
    assert len(left) < len(tested)
    assert found.verdict.regressed == len(failing) > 0


def test_an_answer_that_cannot_be_used_refuses_its_candidate_and_a_spent_budget_stops(scored: Run) -> None:
    found = align(tone(judge({"reason": "none"})), scored, labels(recordings()))
    reasons = {one.kind: one.refusal_reason for one in found.candidates}
    assert "the writing model gave no usable answer" in reasons["guidelines"]
    assert reasons["guidelines and examples"] == "no guidelines were accepted"
    assert reasons["examples"] == ""
    broke = ScriptedJudge(lambda _: BudgetError("spent"))
    with pytest.raises(BudgetError, match="spent"):
        align(tone(judge()), scored, labels(recordings()), writer=broke, output="other.md")


def test_hostile_recordings_leave_a_prompt_that_can_be_read(tmp_path: Path) -> None:
    hostile = [
        replaced
        for number, one in enumerate(recordings())
        if (
            replaced := Sample.of(
                [
                    one.trace.messages[0],
                    AIMessage(f"{one.trace.messages[1].text} {{{{ x }}}} {{% raw %}} {{# {number}"),
                ],
                id=f"#}}{{{{ 7 }}}} \x1b[31m {number}",
            )
        )
    ]
    scorer = tone(judge())
    found = align(scorer, run(hostile, [scorer]), labels(hostile), output=tmp_path / "new.md")
    assert found.outcome == "shown"
    assert "Shown by: ?????7?????" in found.diff
    assert "\x1b" not in found.diff
    assert GOOD_RULE in load_prompt(tmp_path / "new.md").instructions
    (examples,) = (one for one in found.candidates if one.kind == "examples")
    assert "fewer than two labeled recordings" in examples.refusal_reason


def test_what_is_redacted_is_neither_read_nor_shown_as_an_example(tmp_path: Path) -> None:
    samples = [
        Sample.of([HumanMessage(f"I am ann{at}@x.org"), one.trace.messages[1]], id=one.id)
        for at, one in enumerate(recordings())
    ]
    given = [one.model_copy(update={"reason": "bo@x.org shouts"}) for one in labels(samples)]
    redacting = judge(redact=["email"])
    scorer = tone(redacting)
    found = align(scorer, run(samples, [scorer]), given, output=tmp_path / "new.md")
    assert "x.org" not in found.diff
    sent = [request.messages[1].content for request in redacting.requests]
    shown = next(text for text in sent if "Examples of how people decide" in text)
    assert "| people say: lacking, because <email 1> shouts" in shown
    assert "| assistant: " in shown.partition("Examples of how people decide")[2]
    assert not any("@x.org" in text for text in sent)


def test_scales_with_more_labels_count_by_distance(tmp_path: Path) -> None:
    def says(request: Request) -> Mapping[str, object]:
        said = answer(request, lacking=False)
        is_heard = "!" in request.messages[1].content and "shouts" in request.messages[1].content
        return {**said, "verdict": "middling"} if is_heard and "verdict" in said else said

    prompt = replace(load_prompt("tone"), scale=(("fitting", 1.0), ("middling", 0.5), ("lacking", 0.0)))
    said = [
        HumanLabel(sample=one.id, scorer="tone", value="lacking" if shouts(one) else ("fitting", "middling")[at % 2])
        for at, one in enumerate(recordings())
    ]
    scorer = PromptScorer(prompt, ScriptedJudge(lambda request: dict(says(request))))
    found = align(scorer, run(recordings(), [scorer]), said, output=tmp_path / "new.md")
    assert found.verdict is not None
    assert (found.outcome, found.verdict.test) == ("shown", "sign-flip")
    assert found.verdict.gain.value == pytest.approx(found.verdict.fixed / 2 / found.verdict.sample_count)


def test_labels_drawn_by_verdict_are_weighted_as_they_were_drawn(tmp_path: Path) -> None:
    def says(request: Request) -> Mapping[str, object]:
        text = request.messages[1].content
        return answer(request, lacking="!" in text and ("shouts" in text or "amber" in text or "birch" in text))

    scorer = tone(ScriptedJudge(lambda request: dict(says(request))))
    samples = recordings(400)
    first = run(samples, [scorer], store=tmp_path / "runs.sqlite")
    drawn = {one.id for one in draw_samples(first, "tone", 160, by_verdict=True)}
    said = [one.model_copy(update={"selection": "stratified"}) for one in labels(samples) if one.sample in drawn]
    found = align(scorer, first, said, output=tmp_path / "new.md")
    audit_record = record_of(found.audit_record_path)
    assert audit_record.selection == "stratified"
    assert audit_record.correction.corrected is None
    assert "drawn by the verdicts of another question" in audit_record.correction.unavailable_reason
    assert audit_record.counts is not None
    share = audit_record.counts.tn / (audit_record.counts.tn + audit_record.counts.tp)
    assert share == pytest.approx(sum(map(shouts, samples)) / 400, abs=0.12)
    unweighted = [shouts(one) for one in samples if one.id in drawn and assigned_role(one) == "test"]
    assert sum(unweighted) / len(unweighted) > share + 0.1


def test_labels_picked_by_hand_are_pointed_out_and_make_an_audit_record_that_says_so(scored: Run) -> None:
    picked = [one.model_copy(update={"selection": "convenience"}) for one in labels(recordings())]
    found = align(tone(judge()), scored, picked)
    assert "picked by hand" in str(found)
    audit_record = record_of(found.audit_record_path)
    assert (audit_record.selection, audit_record.counts) == ("convenience", None)


def test_labels_picked_to_be_read_do_not_change_how_the_others_were_drawn(scored: Run) -> None:
    given = [
        one.model_copy(update={"role": "train", "selection": "convenience"} if at < 25 else {"selection": "random"})
        for at, one in enumerate(labels(recordings()))
    ]
    found = align(tone(judge()), scored, given)
    assert "picked by hand" not in str(found)
    assert record_of(found.audit_record_path).counts is not None
    assert found.roles["train"] >= 25


def test_a_run_without_text_cannot_be_aligned_and_its_audit_uses_no_label(
    scored: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    align(tone(judge()), scored, labels(recordings()))
    Path("judgekit.toml").write_text("store_text = false\n")
    new = PromptScorer("tone_aligned.md", judge())
    textless = run(recordings(), [new], store=".judgekit/runs.sqlite", config="judgekit.toml")
    assert not textless.record.keeps_text
    (found,) = audit(textless, labels(recordings())).scorers
    assert found.sample_count == 0
    assert "stores no text to tell" in next(iter(found.unused_labels))
    with pytest.raises(ConfigError, match="stores no conversations"):
        align(new, textless, labels(recordings()), output="second.md")


def test_what_cannot_be_aligned_is_refused_before_anything_is_asked(scored: Run) -> None:
    asked, given = judge(), labels(recordings())
    other = [one.model_copy(update={"scorer": "other"}) for one in given]
    for scorer, labeled, output, said in (
        (tone(asked), given, "tone.txt", r"expected the name of a prompt file, which ends in \.md"),
        (tone(asked), given, "nowhere/new.md", "there is no folder nowhere"),
        (tone(asked), other, None, "expected labels of tone, found 'other'"),
        (tone(asked), given, "tone.md", "needs another name than the old one"),
        (replace(tone(asked), name="other"), other, None, "no scorer of run 1 is called 'other'"),
    ):
        with pytest.raises(ConfigError, match=said):
            align(scorer, scored, labeled, output=output)
    aligned = PromptScorer(replace(load_prompt("tone"), name="later", alignment="0" * 12), asked)
    with pytest.raises(StoreError, match="the alignment cannot be read"):
        align(aligned, scored, given)
    with pytest.raises(ConfigError, match="a run in memory does not know by which labels"):
        align(aligned, run(recordings()[:1], [tone(asked)]), given)
    assert len(asked.requests) == 1


def test_a_prompt_is_not_overwritten_and_not_paid_for_twice(scored: Run) -> None:
    align(tone(judge()), scored, labels(recordings()))
    asked, path = judge(), Path("tone_aligned.md")
    with pytest.raises(ConfigError, match="the replies that led to it are not cached"):
        align(tone(asked), scored, labels(recordings()))
    with pytest.raises(ConfigError, match="was written by another alignment"):
        align(tone(asked), scored, labels(recordings())[:50])
    path.write_text(path.read_text().replace(GOOD_RULE, "Mine."))
    with pytest.raises(ConfigError, match="has changed since it was written"):
        align(tone(asked), scored, labels(recordings()))
    assert not asked.requests
    assert "Mine." in path.read_text()


def test_an_uncached_judge_that_answers_otherwise_is_another_look(scored: Run) -> None:
    dice = random.Random(0)  # noqa: S311 - a judge, and no secret

    def says(request: Request) -> Mapping[str, object]:
        return answer(request, lacking=dice.random() < 0.5)

    noisy = tone(ScriptedJudge(lambda request: dict(says(request))))
    looks = [align(noisy, scored, labels(recordings()), output=f"new{number}.md").look for number in range(2)]
    assert looks == [1, 2]
