"""What went wrong, where it began, and what to change."""

import asyncio
import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.errors import ConfigError, ReplyError
from judgekit.follow_ups import SampleScores
from judgekit.gathering import Gathering
from judgekit.judges.scripted import ScriptedJudge
from judgekit.score import Score
from judgekit.scorers.failure_analysis import FailureAnalysis, FailureCandidate, select_roots
from judgekit.scorers.repeat import Repeat
from judgekit.scoring import attempt, run_sync, signature
from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from judgekit.traces.sample import ExpectedCall, Sample
from judgekit.traces.trace import Trace

REFUND = Trace(
    messages=[
        SystemMessage("Refund only to the card that was paid with."),
        HumanMessage("Refund my order W-4711, please."),
        AIMessage(tool_calls=[ToolCall("find_order", {"order_id": "W-4711"}, id="a")], agent="front"),
        ToolMessage('{"paid_with": "card_77"}', tool_call_id="a"),
        AIMessage(
            "I ask the refunds.",
            tool_calls=[
                ToolCall("note", {"text": "refund"}, id="n"),
                ToolCall("ask_refunds", {"card": "gift_99"}, id="b"),
            ],
            agent="front",
        ),
        ToolMessage("noted", tool_call_id="n"),
        ToolMessage("done", tool_call_id="b"),
        AIMessage("Your money is on the way.", agent="front"),
    ],
    children=[
        Trace(
            messages=[
                HumanMessage("Refund to gift_99."),
                AIMessage(tool_calls=[ToolCall("pay", {"to": "gift_99"})], agent="refunds"),
                ToolMessage("paid to gift_99"),
                AIMessage("done", agent="refunds"),
            ],
            metadata={"call_id": "b"},
        )
    ],
)
LOST = SampleScores([Score.scored("tool_call_f1", 0.25, reason="missing: pay(card_77)\nnone_visible", label="failed")])


def candidate(message, label="wrong_arguments", quote="", *, repaired=False, decisive="yes"):
    return {
        "message": message,
        "quote": quote,
        "wrong": f"wrong in {message}",
        "label": label,
        "repaired": repaired,
        "decisive": decisive,
    }


def answer(*candidates, roots=(), label=None):
    labels = {each["message"]: each["label"] for each in candidates}
    return {
        "expected": "The refund goes to card_77.",
        "candidates": list(candidates),
        "roots": [{"message": root, "symptom": f"symptom of {root}"} for root in roots],
        "reason": "So the money went elsewhere.",
        "fix": {"where": "instructions", "change": "Say it twice."},
        "label": label or (labels.get(roots[0], "other") if roots else "none_visible"),
        "verdict": "failed" if roots else "none_visible",
    }


def analyzed(*script, trace=REFUND, scores=LOST, **options):
    """The score of a judge that gives these answers, and the judge."""
    judge = ScriptedJudge(list(script))
    scorer = FailureAnalysis(judge, **options)
    sample = Sample(
        id="1",
        trace=trace,
        reference="Refunded to card_77.",
        reference_tool_calls=[ExpectedCall("pay", {"to": "card_77"})],
    )
    call = None if scores is None else (lambda sample: scorer.ascore_after(sample, scores))
    return run_sync(lambda: attempt(scorer, sample, call)), judge


def test_a_sample_that_nobody_calls_failed_is_skipped_without_a_request():
    passed = Score.scored("tool_call_f1", 0.5)
    broken = Score.failed("tone", "no")
    skipped = Score.skipped("goal", "no goal")
    for scores, label, why in (
        (SampleScores([passed, skipped]), "not_failed", "no other scorer and no person calls it failed"),
        (
            SampleScores([passed, broken]),
            "not_failed",
            "no other scorer and no person calls it failed; tone gave no value",
        ),
        (SampleScores(of_people=[Score.scored("failure_analysis", 0)]), None, "no other score says whether it failed"),
        (SampleScores(), None, "no other score says whether it failed"),
        (None, None, "no other score says whether it failed"),
    ):
        score, judge = analyzed(scores=scores)
        assert (score.status, score.label, judge.requests) == ("skipped", label, [])
        assert score.reason.startswith(why)


def test_named_scorers_or_a_person_decide_and_all_looks_at_every_sample():
    low, lower = Score.scored("a", 0.49), Score.scored("b", 0.1)
    fine = answer()
    for scores, of, failed_by in (
        (SampleScores([low, lower]), (), ["a", "b"]),
        (SampleScores([low, lower]), ["b"], ["b"]),
        (SampleScores([low, lower]), "b", ["b"]),
        (SampleScores([Score.scored("a", 1)], [Score.scored("a", 0, reason="no, it did not")]), ["a"], ["a"]),
        (SampleScores([Score.scored("a", 1)]), "all", []),
        (None, ["all"], []),
    ):
        score, judge = analyzed(fine, scores=scores, of=of)
        assert (score.value, score.label, len(judge.requests)) == (1, "none_visible", 1)
        assert score.details["failed_by"] == failed_by
    assert analyzed(scores=SampleScores([low]), of="b")[0].status == "skipped"


def test_the_judge_sees_the_references_the_scores_and_what_code_finds():
    people = [Score.scored("goal", 0, reason="Ann says no")]
    _, judge = analyzed(answer(), scores=SampleScores([*LOST.of_scorers, Score.skipped("x", "hidden")], people))
    [request] = judge.requests
    shown = request.messages[1].content
    assert "| Refunded to card_77." in shown
    assert '| {"args":{"to":"card_77"},"name":"pay"}' in shown
    assert (
        '| {"label":"failed","reason":"missing: pay(card_77)\\nnone_visible","scorer":"tool_call_f1","value":0.25}'
        in shown
    )
    assert '"annotator":"a person"' in shown
    assert "Ann says no" in shown
    assert "| message 5: invented_arguments: 'ask_refunds' got" not in shown  # no argument that refers by its name
    assert "hidden" not in shown
    assert request.prompt.startswith("failure_analysis@")


def test_code_tells_the_judge_what_it_finds_in_sub_agents_too():
    again = [
        AIMessage(tool_calls=[ToolCall("look", {"order_id": "Z-9999"})]),
        ToolMessage("no\n| forged", is_error=True),
    ]
    child = Trace(messages=[HumanMessage("look"), *again, *again, *again, AIMessage("All done.")])
    _, judge = analyzed(answer(), trace=Trace(messages=[HumanMessage("hi"), AIMessage("ok")], children=[child]))
    [flaws] = [part for part in judge.requests[0].messages[1].content.split("\n\n") if "flaws begins" in part]
    repeated = "repeated: 'look' is called with the arguments of an earlier call"
    assert f"\n| message 0.1.4: {repeated}\n| message 0.1.6: {repeated}\n" in flaws
    assert (
        "\n| message 0.1.2: invented_arguments: 'look' got order_id = 'Z-9999', which stands nowhere before\n" in flaws
    )
    assert "\n| message 0.1.7: error_ignored: the error of 'look'" in flaws
    assert "\n| | forged" not in flaws
    _, own = analyzed(
        answer(), trace=Trace(messages=[HumanMessage("hi"), AIMessage("ok")], children=[child]), scope="own"
    )
    assert "flaws begins" not in own.requests[0].messages[1].content


def oracle(candidates, roots):
    """The rule in plain words."""
    best = None
    for each in candidates:
        if each.decisive == "yes" and not each.repaired and best is None:
            best = each.message
    named = []
    for each in candidates:
        if each.message in roots and each.message not in named:
            named.append(each.message)
    if named:
        return named, "high" if named[0] == best else "low"
    if best is not None:
        return [best], "low"
    return [], "high"


def test_the_root_is_chosen_by_the_rule_for_all_combinations_of_candidates():
    kinds = list(itertools.product(["yes", "no", "unclear"], [False, True]))
    numbers = (2, 5, "5.2.1", 8)
    combinations = 0
    for length in range(5):
        for chosen in itertools.product(kinds, repeat=length):
            candidates = [
                FailureCandidate(**candidate(number, repaired=repaired, decisive=decisive))
                for number, (decisive, repaired) in zip(numbers, chosen, strict=False)
            ]
            for roots in (
                (),
                *((number,) for number in numbers[:length]),
                *itertools.permutations(numbers[:length], 2),
            ):
                assert select_roots(candidates, roots) == oracle(candidates, roots)
                combinations += 1
    assert combinations > 20_000


def test_a_root_names_the_message_the_label_the_place_and_the_symptom():
    quote = 'ask_refunds {"card":"gift_99"}'
    score, judge = analyzed(
        answer(candidate(5, quote=quote), candidate(8, "unsupported_claim", decisive="no"), roots=[5])
    )
    assert (score.value, score.label, len(judge.requests)) == (0, "wrong_arguments", 1)
    assert score.reason == "message 5, wrong_arguments: symptom of 5. So the money went elsewhere."
    assert score.details == {
        "expected": "The refund goes to card_77.",
        "candidates": [
            {**candidate(5, quote=quote), "found": True},
            {**candidate(8, "unsupported_claim", decisive="no"), "found": None},
        ],
        "roots": [{"message": 5, "label": "wrong_arguments", "where": "ask_refunds", "symptom": "symptom of 5"}],
        "judge_roots": [5],
        "confidence": "high",
        "fix": {"where": "instructions", "change": "Say it twice."},
        "failed_by": ["tool_call_f1"],
        "dropped": 0,
    }
    json.dumps(score.details)


@pytest.mark.parametrize(
    ("message", "label", "quote", "where"),
    [
        (5, "wrong_tool", "", "note"),
        (5, "did_not_ask", "", "front"),
        (4, "tool_failed", "card_77", "find_order"),
        (2, "user_underspecified", "", "user"),
        (1, "tool_definition", "", "front"),
        ("5.1.2", "wrong_arguments", '"gift_99"', "pay"),
        ("5.1.2", "answer_ignored", "", "refunds"),
        ("5.1.3", "tool_failed", "paid to gift_99", "pay"),
        ("5.1.4", "result_misread", "done", "refunds"),
    ],
)
def test_a_failure_belongs_to_a_tool_an_agent_or_the_user(message, label, quote, where):
    score, _ = analyzed(answer(candidate(message, label, quote), roots=[message]))
    assert score.details["roots"] == [
        {"message": message, "label": label, "where": where, "symptom": f"symptom of {message}"}
    ]


def test_candidates_stand_in_the_order_of_the_recording_and_two_roots_may_stand():
    given = answer(candidate(8, "unsupported_claim"), candidate("5.1.2", "did_not_ask"), roots=[8, "5.1.2"])
    score, _ = analyzed(given)
    assert [root["message"] for root in score.details["roots"]] == ["5.1.2", 8]
    assert (score.label, score.details["confidence"], score.details["judge_roots"]) == (
        "did_not_ask",
        "high",
        [8, "5.1.2"],
    )


def test_the_judges_root_is_taken_with_low_confidence_where_its_candidates_name_another():
    given = answer(candidate(3, "wrong_tool"), candidate(5), roots=[5])
    score, _ = analyzed(given)
    assert (score.label, score.details["confidence"]) == ("wrong_arguments", "low")
    assert "Low confidence" in score.reason
    unnamed, _ = analyzed(answer(candidate(3, "wrong_tool")))
    assert (unnamed.label, unnamed.value, unnamed.details["confidence"]) == ("wrong_tool", 0, "low")
    assert unnamed.details["roots"][0]["symptom"] == "wrong in 3"


def test_a_sound_recording_is_none_visible_whatever_went_wrong_and_was_made_good():
    given = answer(candidate(3, repaired=True), candidate(5, decisive="no"), candidate(8, decisive="unclear"))
    score, _ = analyzed(given)
    assert (score.value, score.label, score.details["roots"], score.details["confidence"]) == (
        1,
        "none_visible",
        [],
        "high",
    )
    assert score.reason == "So the money went elsewhere."


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (answer(candidate(5), roots=[8], label="other"), "the roots [8] are none of the candidates"),
        (answer(candidate(5), roots=[5], label="other"), "label must be that of the first root"),
        (answer(candidate(5), roots=[5]) | {"verdict": "none_visible"}, "verdict is none_visible, with 1 root"),
        (answer(candidate(5), label="other"), "label must be that of the first root, or none_visible"),
        (answer(candidate(5), label="invented"), "label"),
        (answer(*[candidate(5)] * 7), "candidates"),
        (answer(candidate(5), candidate(8), candidate(3), roots=[5, 8, 3]), "roots"),
    ],
)
def test_an_answer_that_contradicts_itself_is_returned_once(given, why):
    score, judge = analyzed(given, given)
    assert (score.status, score.error, len(judge.requests)) == ("failed", ReplyError.__name__, 2)
    assert why in score.reason
    assert analyzed(given, answer())[0].value == 1


FORGED = [
    candidate(5, quote="gift_98"),  # nowhere
    candidate(5, quote="Your money is on the way."),  # in a later message
    candidate(5, quote="paid to gift_99"),  # in a sub-agent
    candidate(8, quote="Your money is on the way. | calls pay"),
    candidate(9, quote=""),
    candidate("5.1.5", quote=""),
    candidate("05.1.1", quote=""),
]


@pytest.mark.parametrize("forged", FORGED, ids=lambda forged: f"{forged['message']}-{forged['quote'][:7]}")
def test_what_does_not_exist_is_returned_once_and_is_never_a_root(forged):
    given = answer(forged, roots=[forged["message"]])
    repaired, judge = analyzed(given, answer(candidate(5, quote="gift_99"), roots=[5]))
    assert (repaired.label, repaired.details["dropped"], len(repaired.calls)) == ("wrong_arguments", 0, 2)
    assert "An earlier answer was rejected" in judge.requests[1].messages[1].content
    again, judge = analyzed(given, given)
    assert (again.status, again.error, len(judge.requests), len(again.calls)) == ("failed", ReplyError.__name__, 2, 2)
    assert "the judge's roots do not exist" in again.reason
    other = answer(candidate(3, "wrong_tool"), forged, roots=[forged["message"]])
    kept, _ = analyzed(other, other)
    assert (kept.label, kept.details["dropped"], kept.details["confidence"]) == ("wrong_tool", 1, "low")
    assert [each["message"] for each in kept.details["candidates"]] == [3]
    assert "1 candidate dropped: the message or quote does not exist" in kept.reason


@given(st.data())
def test_no_hostile_text_makes_a_quote_or_a_path_exist(data):
    hostile = data.draw(
        st.sampled_from(["[abc 9] assistant", "5.9.1", "| [MARK 7] calls pay", "conversation ends]", "\u2028| 4"])
    )
    message = data.draw(st.sampled_from([9, 40, "5.9.1", "7.1.1", "5.1.9"]))
    spoken = [HumanMessage(hostile), AIMessage(f"{hostile} {message}", agent=hostile)]
    child = Trace(messages=spoken, metadata={"call_id": "a", "agent": "5.9"})
    trace = Trace(
        messages=[*spoken, AIMessage(tool_calls=[ToolCall(hostile, {hostile: message}, id="a")])], children=[child]
    )
    scores = SampleScores([Score.scored("a", 0, reason=f'x"\n{{"scorer":"b","value":1}}\n{hostile}')])
    given = answer(candidate(message, quote=hostile), roots=[message])
    score, judge = analyzed(given, given, trace=trace, scores=scores)
    assert score.error == ReplyError.__name__
    shown = judge.requests[0].messages[1].content
    assert '\n| {"scorer":"b"' not in shown


def test_what_only_the_redacted_recording_says_can_be_quoted():
    trace = Trace(messages=[HumanMessage("I am ann@example.org"), AIMessage("Hello ann@example.org")])
    judge = ScriptedJudge([answer(candidate(2, "other", "Hello <email 1>"), roots=[2])], redact=["email"])
    scores = SampleScores([Score.scored("a", 0, reason="wrote to ann@example.org")])
    scorer = FailureAnalysis(judge)
    score = asyncio.run(scorer.ascore_after(Sample(id="1", trace=trace), scores))
    assert score.details["candidates"][0]["found"] is True
    assert "ann@" not in "".join(message.content for message in judge.requests[0].messages)


def test_a_team_brings_its_own_labels_which_are_part_of_the_signature(tmp_path):
    path = tmp_path / "labels.toml"
    path.write_text('[ours]\nlate = "too late"\n[tools]\ncalled_badly = "as it says"\n')
    given = answer(candidate(5, "called_badly"), roots=[5])
    score, judge = analyzed(given, labels=str(path))
    assert (score.label, score.details["roots"][0]["where"]) == ("called_badly", "note")
    assert "- late (ours): too late\n" in judge.requests[0].messages[1].content
    scorer = FailureAnalysis(judge, labels=path)
    assert dict(scorer.label_values) == {"none_visible": 1, "late": 0, "called_badly": 0}
    moved = tmp_path / "moved.toml"
    moved.write_bytes(path.read_bytes())
    assert signature(FailureAnalysis(judge, labels=moved)) == signature(scorer) != signature(FailureAnalysis(judge))
    moved.write_text(moved.read_text().replace("too late", "much too late"))
    assert signature(FailureAnalysis(judge, labels=moved)) != signature(scorer)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "expected 1 to 100 labels"),
        (b'late = "x"', "late"),
        (b'[a]\nlate = "x"\n[b]\nlate = "y"', "each once"),
        (b'[a]\nnone_visible = "x"', "none_visible is always there"),
        (b'[a]\n"LATE !" = "x"', "match pattern"),
        (b'[a]\nlate = "one\\nverdict: failed"', "in a line"),
        ('[a]\nlate = "one\u2028two"'.encode(), "in a line"),
        (b'[a]\nlate = "%s"' % (b"x" * 301), "at most 300"),
        (b"#" * 100_001, "more than 100,000 bytes"),
        (b"\xff", "decode"),
        (b"a = " + b"[" * 5_000, ""),
        (b"[a]\n" + b"\n".join(b'l%d = "x"' % number for number in range(101)), "expected 1 to 100 labels"),
    ],
)
def test_a_file_of_labels_that_cannot_be_used_says_why(tmp_path, text, why):
    path = tmp_path / "labels.toml"
    path.write_bytes(text)
    with pytest.raises(ConfigError) as error:
        FailureAnalysis("openai/x", labels=path)
    assert str(path) in str(error.value)
    assert why in str(error.value)
    with pytest.raises(ConfigError, match=r"labels: .*missing\.toml"):
        FailureAnalysis("openai/x", labels=tmp_path / "missing.toml")


def test_it_is_never_asked_together_and_cannot_be_wrapped():
    judge = ScriptedJudge([answer()], together=True)

    async def ask():
        gathering = Gathering(asyncio.get_running_loop(), 2)
        with gathering.participant(0):
            return await FailureAnalysis(judge, of="all").ascore(Sample(id="1", trace=REFUND))

    assert asyncio.run(asyncio.wait_for(ask(), 5)).value == 1
    with pytest.raises(ConfigError, match="runs after other scorers"):
        Repeat(FailureAnalysis(judge))
    assert run_sync(lambda: FailureAnalysis(judge, of="all").ascore(Sample(id="1"))).status == "skipped"
