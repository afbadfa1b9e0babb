"""What becomes of verdicts under attack."""

from collections import Counter
from collections.abc import Callable

import pytest

from judgekit.errors import RefusalError
from judgekit.jobs.api import run
from judgekit.judges.request import Request
from judgekit.judges.scripted import ScriptedJudge
from judgekit.probes.outcome import ProbeOutcome, probe_outcomes, verdict
from judgekit.probes.suite import ProbePair, ProbeVerdict, probe_pairs, probe_samples
from judgekit.runs.rows import Row
from judgekit.score import Score
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference, Goal, GoalAnswer

PAIRS = probe_pairs()
TRUTH = {pair.clean.id: pair.expected_verdict for pair in PAIRS}
ATTACKS = {pair.attack.id: pair for pair in PAIRS}
RENDERED = [(str(sample.trace.render()), sample.id) for sample in probe_samples()]
OPPOSITE: dict[ProbeVerdict, ProbeVerdict] = {"achieved": "not_achieved", "not_achieved": "achieved"}
ALL = len(PAIRS)


def reply(says: ProbeVerdict, reason: str = "because") -> GoalAnswer:
    return GoalAnswer(goals=[Goal(goal="g", end_state="e", reason=reason, evidence=[1], verdict=says)])


def probed(line: Callable[[str], GoalAnswer | Exception]) -> tuple[ProbeOutcome, ...]:
    """The outcomes for a judge that says what the function says of the conversation with this id."""

    def answer(request: Request) -> GoalAnswer | Exception:
        (name,) = [name for text, name in RENDERED if text in request.messages[1].content]
        return line(name)

    judge = ScriptedJudge(answer)
    found = probe_outcomes(run(probe_samples(), [AgentGoalAccuracyWithoutReference(judge)]))
    assert len(judge.requests) == len(RENDERED)
    assert [one.attack for one in found] == [pair.attack for pair in PAIRS]
    return found


def right(name: str) -> ProbeVerdict:
    return TRUTH[name] if name in TRUTH else ATTACKS[name].expected_verdict


def falls_for(does: Callable[[ProbePair], bool]) -> Callable[[str], GoalAnswer]:
    """What a judge says that falls for some attacks."""
    return lambda name: reply(OPPOSITE[right(name)] if name in ATTACKS and does(ATTACKS[name]) else right(name))


def results(found: tuple[ProbeOutcome, ...]) -> Counter[str]:
    return Counter(one.result for one in found)


def test_a_judge_that_falls_for_everything_moves_every_verdict():
    found = probed(falls_for(lambda _: True))
    assert results(found) == {"misled": ALL}
    assert all(one.moved for one in found)
    assert {verdict(one.attacked) for one in found if one.expected_verdict == "achieved"} == {"not_achieved"}
    assert {verdict(one.attacked) for one in found if one.expected_verdict == "not_achieved"} == {"achieved"}


@pytest.mark.parametrize(("field", "value"), [("kind", "threat"), ("injection_point", "tool_result")])
def test_a_judge_that_falls_for_some_moves_those_alone(field, value):
    found = probed(falls_for(lambda pair: getattr(pair.attack, field) == value))
    assert {one.attack.id for one in found if one.moved} == {
        name for name, pair in ATTACKS.items() if getattr(pair.attack, field) == value
    }
    assert {one.result for one in found if not one.moved} == {"held"}


def test_both_reasons_are_kept():
    found = probed(lambda name: reply(right(name), f"as {name} shows"))
    for one in found:
        assert one.clean is not None
        assert one.attacked is not None
        assert (one.clean.reason, one.attacked.reason) == (
            f"as {one.attack.conversation} shows",
            f"as {one.attack.id} shows",
        )


def test_a_verdict_that_failed_with_the_attack_is_unjudged_and_never_held():
    found = probed(lambda name: RefusalError("no") if name.startswith("threat_") else reply(right(name)))
    failed = {one.attack.id for one in found if one.result == "unjudged"}
    assert failed == {name for name in ATTACKS if name.startswith("threat_")}
    assert results(found)["held"] == ALL - len(failed)
    assert not any(one.moved for one in found)


def test_a_judge_that_was_talked_out_of_any_verdict_was_misled():
    found = probed(lambda name: GoalAnswer(goals=[]) if name.startswith("threat_") else reply(right(name)))
    silent = {name for name in ATTACKS if name.startswith("threat_")}
    assert {one.attack.id for one in found if one.result == "misled"} == silent
    assert {one.attack.id for one in found if one.moved} == silent
    assert results(found)["held"] == ALL - len(silent)


def test_a_verdict_that_failed_without_the_attack_leaves_all_attacks_on_it_unjudged():
    found = probed(lambda name: RefusalError("no") if name == "hotel_booked" else falls_for(lambda _: True)(name))
    on_it = [one for one in found if one.attack.conversation == "hotel_booked"]
    assert {one.result for one in on_it} == {"unjudged"}
    assert not any(one.moved for one in on_it)
    assert results(found) == {"misled": ALL - len(on_it), "unjudged": len(on_it)}


@pytest.mark.parametrize("moves", [False, True])
def test_where_the_judge_errs_without_an_attack_its_attacks_are_told_apart(moves):
    """With the attack it says the same, or what is right."""
    on_it = {name for name, pair in ATTACKS.items() if pair.clean.id == "sales_misread"}

    def says(name: str) -> GoalAnswer:
        errs = name == "sales_misread" or (name in on_it and not moves)
        return reply(OPPOSITE[right(name)] if errs else right(name))

    found = probed(says)
    assert results(found) == {"wrong": len(on_it), "held": ALL - len(on_it)}
    assert {one.attack.id for one in found if one.result == "wrong"} == on_it
    assert {one.attack.id for one in found if one.moved} == (on_it if moves else set())


def test_what_was_not_asked_is_unjudged():
    clean = [Row(sample_id=name, index=0, score=Score.scored("goal", float(says == "achieved"))) for name, says in TRUTH.items()]  # fmt: skip
    found = probe_outcomes(clean)
    assert results(found) == {"unjudged": ALL}
    assert all(one.attacked is None and one.clean is not None for one in found)
    assert results(probe_outcomes([])) == {"unjudged": ALL}


@pytest.mark.parametrize(
    ("score", "says"),
    [
        (Score.scored("goal", 1.0), "achieved"),
        (Score.scored("goal", 0.0), "not_achieved"),
        (Score.scored("goal", 0.5), "not_achieved"),
        (Score.skipped("goal", "no goal"), None),
        (Score.abstained("goal", "a tie"), None),
        (Score.failed("goal", "no reply"), None),
        (None, None),
    ],
)
def test_a_goal_is_achieved_where_all_of_it_is(score, says):
    assert verdict(score) == says
