"""Decision models: typed questions in one request, and never a score by the answer to another question."""

import asyncio
import hashlib
import json
import random
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import create_model

from judgekit import plan, run
from judgekit.alignment.align import prepare
from judgekit.errors import ConfigError, ModelError
from judgekit.judges.doctor import diagnose
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt, shipped_prompts
from judgekit.judges.providers.price import Price
from judgekit.runs.results import Run
from judgekit.score import Score
from judgekit.scorers.criteria import WeightedCriteria
from judgekit.scorers.failure_analysis import FailureAnalysis
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference, AgentGoalAccuracyWithReference
from judgekit.scorers.groundedness import Groundedness
from judgekit.scorers.handoffs import HandoffQuality
from judgekit.scorers.judged import JudgedScorer
from judgekit.scorers.pairwise import Pairwise
from judgekit.scorers.prompted import PromptScorer
from judgekit.scorers.selective import Selective
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.scorers.topic import TopicAdherence
from judgekit.scoring import scorer
from judgekit.traces.message import AIMessage, HumanMessage, MediaPart, TextPart
from judgekit.traces.sample import Sample

SCALE = (("yes", 1.0), ("partly", 0.5), ("no", 0.0), ("none", "skipped"))
PRICE = Price(0.1, 0.0, 0.01, written=0.125)
USAGE = {
    "input_tokens": 1000,
    "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 500},
    "output_tokens": 5,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 1005,
}
COST = (400 * 0.1 + 500 * 0.125 + 100 * 0.01) / 1e6


def prompt(name: str, **changes: Any) -> Prompt:
    return Prompt(name, name, ("conversation",), "", "You judge.", f"Is <{name}> so?", scale=SCALE, **changes)


def chance(*tags: str) -> float:
    """A probability that only this question about this recording has."""
    return 0.55 + int(hashlib.sha256("/".join(tags).encode()).hexdigest()[:6], 16) / 2**24 * 0.4


def recording(body: Any) -> str:
    return re.findall(r"Hello number (\w+)", json.dumps(body["input"]))[0]


def good_answer(question: Any, of: str) -> dict[str, Any]:
    """Answer a question by its own name, which its words hold."""
    (tag,) = re.findall(r"<(\w+)>", question["instructions"]) or [question["instructions"][:20]]
    likely = chance(tag, of)
    if question["type"] == "predicate":
        return {"type": "predicate", "name": question["name"], "probability": likely}
    labels = [choice["value"] for choice in question["choices"]]
    chosen = labels[int(likely * 1e6) % len(labels)]
    others = (1 - likely) / (len(labels) - 1)
    return {
        "type": "choice",
        "name": question["name"],
        "choice": chosen,
        "confidence": 0.5,
        "probabilities": [{"value": label, "probability": likely if label == chosen else others} for label in labels],
    }


def decision(answers: Any, **changes: Any) -> tuple[int, dict[str, str], Any]:
    return 200, {}, {"answers": answers, "model": "gpt-6-luna-1", "usage": USAGE, **changes}


def good(body: Any) -> tuple[int, dict[str, str], Any]:
    return decision([good_answer(question, recording(body)) for question in body["questions"]])


def samples(number: int = 1) -> list[Sample]:
    return [Sample.of([HumanMessage(f"Hello number {at}"), AIMessage("Hi")], id=str(at)) for at in range(number)]


def decider(server: Any, **settings: Any) -> Judge:
    return Judge("openai-decisions/gpt-6-luna", base_url=server.url, **{"price": PRICE, **settings})


def prompted(judge: Judge, *names: str) -> list[PromptScorer]:
    return [PromptScorer(prompt(name), judge) for name in names]


def rows(scored: Run) -> Mapping[str, Score]:
    return {row.scorer: row.score for row in scored}


def test_all_scorers_of_a_sample_ask_in_one_request(server):
    server.script = [good]
    judge = decider(server)
    criteria = WeightedCriteria({"polite": 0.5, "clear": 0.5}, judge=judge)
    scored = run(samples(3), [*prompted(judge, "a", "b"), AgentGoalAccuracyWithoutReference(judge), criteria])
    assert len(server.requests) == 3
    for request in server.requests:
        assert request.line.startswith("POST /v1/decisions ")
        assert [(asked["name"], asked["type"]) for asked in request.body["questions"]] == [
            ("q1", "choice"),
            ("q2", "choice"),
            ("q3", "choice"),
            ("q4", "predicate"),
            ("q5", "predicate"),
        ]
    for row in scored:
        if row.scorer in ("a", "b") and row.score.status == "scored":
            assert row.score.confidence == pytest.approx(chance(row.scorer, row.sample_id))
            assert row.score.details["probabilities"][row.score.label] == row.score.confidence
            assert "openai-decisions/gpt-6-luna gives no reasons" in row.score.reason
    assert sum(line.cost_usd for line in scored.summary) == pytest.approx(3 * COST)
    assert sum(line.tokens for line in scored.summary) == 3 * 1005
    assert sum(line.requests for line in scored.summary) == pytest.approx(3)


def test_the_recording_is_fenced_text_and_the_headers_are_ours(server, monkeypatch):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-of-mine")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-mine: secret")
    monkeypatch.setenv("GATEWAY_KEY", "key-of-the-gateway")
    server.script = [good]
    judge = decider(server, api_key_env="GATEWAY_KEY", headers={"x-team": "a"}, query={"v": "1"})
    (row,) = run(samples(), prompted(judge, "a"))
    assert row.score.error is None
    (request,) = server.requests
    system, user = request.body["input"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert samples()[0].trace.render() in user["content"]
    assert "JSON" not in system["content"]
    assert request.headers["authorization"] == "Bearer key-of-the-gateway"
    assert request.headers["x-team"] == "a"
    assert {"openai-organization", "x-mine", "x-stainless-os"}.isdisjoint(request.headers)
    assert request.line.startswith("POST /v1/decisions?v=1 ")
    assert request.body["prompt_cache_key"]


@pytest.mark.parametrize("name", [each.name for each in shipped_prompts() if each.scale])
def test_prompts_become_a_choice_with_the_definitions_of_their_labels(server, name, sample):
    server.script = [lambda body: decision([])]
    scored = PromptScorer(name, decider(server, cache_mode="off"))
    filled = sample.model_copy(update={"documents": ("a document",)})
    run([filled], [scored])
    (question,) = server.requests[0].body["questions"]
    labels = [label for label, _ in load_prompt(name).scale]
    assert sorted(choice["value"] for choice in question["choices"]) == sorted(labels)
    if name == "tone":  # which defines its labels in another form
        assert load_prompt(name).question == question["instructions"]
    else:
        assert all(choice["description"].startswith(("if ", "else if ")) for choice in question["choices"])
        assert "in this order" not in question["instructions"]


def test_images_are_sent_as_parts(server):
    server.script = [good]
    dot = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    shown = HumanMessage([TextPart("Hello number 1"), MediaPart(kind="image", url=dot)])
    (row,) = run([Sample.of([shown, AIMessage("Hi")], id="1")], prompted(decider(server, images=True), "a"))
    assert row.score.error is None
    assert "input_image" in [part["type"] for part in server.requests[0].body["input"][1]["content"]]


def test_a_refusal_of_one_answer_fails_that_score_alone(server):
    def refuse(body):
        status, headers, reply = good(body)
        reply["answers"][1] = {"type": "refusal", "name": "q2"}
        return status, headers, reply

    server.script = [refuse]
    scored = run(samples(), prompted(decider(server), "a", "b", "c"))
    assert [score.error for score in rows(scored).values()] == [None, "RefusalError", None]
    assert len(server.requests) == 1
    assert sum(line.cost_usd for line in scored.summary) == pytest.approx(COST)


@pytest.mark.parametrize(
    "fault",
    [
        lambda answers: answers[:-1],
        lambda answers: [*answers, answers[0]],
        lambda answers: answers[::-1],
        lambda answers: [answers[0], {**answers[1], "name": "q3"}, {**answers[2], "name": "q2"}],
        lambda answers: [answers[0], {**answers[1], "name": "b"}, answers[2]],
        lambda answers: [answers[0], {"type": "predicate", "name": "q2", "probability": 0.9}, answers[2]],
        lambda answers: [answers[0], {**answers[1], "choice": "maybe"}, answers[2]],
        lambda answers: [answers[0], {**answers[1], "probabilities": []}, answers[2]],
        lambda answers: [
            answers[0],
            {**answers[1], "choice": "yes", "probabilities": [{"value": "yes", "probability": 1.5}]},
            answers[2],
        ],
        lambda answers: [
            answers[0],
            {**answers[1], "choice": "yes", "probabilities": 2 * [{"value": "yes", "probability": 0.5}]},
            answers[2],
        ],
        lambda answers: [
            {
                **answers[0],
                "choice": "no",
                "probabilities": [{"value": "yes", "probability": 0.9}, {"value": "no", "probability": 0.1}],
            },
            *answers[1:],
        ],
        lambda answers: {"q1": answers[0]},
    ],
)
def test_answers_to_other_questions_are_no_scores_and_are_not_stored(server, fault, no_waits):
    def faulty(body):
        status, headers, reply = good(body)
        return status, headers, {**reply, "answers": fault(reply["answers"])}

    server.script = [faulty]
    scorers = prompted(decider(server, attempts=1), "a", "b", "c")
    scored = run(samples(), scorers)
    assert {score.error for score in rows(scored).values()} == {"ReplyError"}
    assert all(score.value is None for score in rows(scored).values())
    assert len(server.requests) == 1
    assert sum(line.cost_usd for line in scored.summary) == pytest.approx(COST)
    server.script = [good]
    again = run(samples(), scorers)
    assert {score.error for score in rows(again).values()} == {None}


@pytest.mark.parametrize(
    ("line", "error"),
    [
        ((429, {}, {"error": {"message": "slow down"}}), "RateLimitError"),
        ((503, {}, {"error": {"message": "down"}}), "OverloadError"),
        ((400, {}, {"error": {"message": "response_format is not for you"}}), "RejectedError"),
        ((400, {}, {"error": {"message": "maximum context length"}}), "ContextError"),
        ((200, {}, b"no JSON"), "LostError"),
        ((b"", "reset"), "LostError"),
        ((b"", "hang"), "LostError"),
        ((200, {}, {"model": "m"}), "LostError"),
        ((200, {}, [1]), "LostError"),
    ],
)
def test_errors_of_the_server_are_those_of_other_providers(server, line, error, no_waits):
    server.script = [line]
    scored = run(samples(), prompted(decider(server, attempts=1, timeout=1), "a", "b"))
    assert {score.error for score in rows(scored).values()} <= {error, "FormatError"}
    assert all("Connection error." not in score.reason for score in rows(scored).values())
    assert len(server.requests) == 1


def test_keys_are_masked_and_redirects_not_followed(server, monkeypatch):
    monkeypatch.setenv("GATEWAY_KEY", "key-of-the-gateway")
    server.script = [(500, {}, {"error": {"message": "you sent key-of-the-gateway"}})]
    judge = decider(server, api_key_env="GATEWAY_KEY", attempts=1)
    (row,) = run(samples(), prompted(judge, "a"))
    assert "key-of-the-gateway" not in row.score.reason
    assert "***" in row.score.reason
    server.script = [(307, {"location": "http://elsewhere.test/"}, {})]
    with pytest.raises(ModelError, match="which judgekit does not follow"):
        run(samples(), prompted(judge, "b"))
    assert len(server.requests) == 2


def test_without_usage_tokens_and_cost_are_unknown(server):
    server.script = [lambda body: decision(good(body)[2]["answers"], usage=None)]
    scored = run(samples(), prompted(decider(server), "a", "b"))
    assert [(line.tokens, line.cost_usd) for line in scored.summary] == [(None, None)] * 2
    assert {score.error for score in rows(scored).values()} == {None}


@pytest.mark.parametrize(
    "refused",
    [
        TopicAdherence,
        Groundedness,
        HandoffQuality,
        FailureAnalysis,
        lambda judge: Pairwise("Which is better?", judge),
        lambda judge: PromptScorer("tone", judge, require_evidence=True),
        lambda judge: PromptScorer("tone", judge, by_agent=True),
        lambda judge: AgentGoalAccuracyWithReference(judge, partial=True),
        lambda judge: AgentGoalAccuracyWithoutReference(judge, by_agent=True),
        lambda judge: WeightedCriteria({"a": 0.5, "b": 0.5}, judge=judge, separate_requests=True),
        lambda judge: JudgedScorer.__post_init__(type("Own", (JudgedScorer,), {"judge": judge, "name": "own"})()),
        lambda judge: prepare(PromptScorer("tone", judge), run(samples(), [ToolCallF1()]), []),
    ],
)
def test_what_needs_text_is_refused_before_anything_is_asked(refused):
    with pytest.raises(ConfigError, match=r"gives no text; it can be asked by prompts with a scale, agent_goal"):
        refused(Judge("openai-decisions/gpt-6-luna"))


@pytest.mark.parametrize(
    "settings",
    [
        {"tier": "flex"},
        {"fallback": [Judge("openai/gpt-6-luna")]},
    ],
)
def test_settings_that_decision_models_do_not_have(settings):
    with pytest.raises(ConfigError):
        Judge("openai-decisions/gpt-6-luna", **settings)


def test_a_function_that_needs_text_stops_the_run(server):
    judge = decider(server)

    @scorer(judge=judge, prompts=[prompt("a")])
    async def own(sample):
        await judge.ask(prompt("a"), sample, create_model("Text", reason=(str, ...)))

    with pytest.raises(ConfigError, match="gives no text"):
        run(samples(), [own])
    assert server.requests == []


def test_replies_come_from_the_cache_also_without_text(server):
    def chatty(body):
        status, headers, reply = good(body)
        return status, headers, {**reply, "answers": [{**each, "note": "secret"} for each in reply["answers"]]}

    server.script = [chatty]
    for store_text in (True, False):
        judge = decider(server, store_text=store_text, cache=f"{store_text}.sqlite")
        first, second = (run(samples(2), prompted(judge, "a", "b")) for _ in range(2))
        verdicts = [[(row.score.label, row.score.confidence) for row in scored] for scored in (first, second)]
        assert verdicts[0] == verdicts[1]
        assert all(call.cached for row in second for call in row.score.calls)
        with open(f"{store_text}.sqlite", "rb") as file:  # noqa: PTH123 - bytes
            assert (b"secret" in file.read()) == store_text
    assert len(server.requests) == 4


def test_up_to_400_questions_go_into_a_request(server):
    server.script = [good]
    judge = decider(server)
    many = [
        WeightedCriteria({f"c{at}": 1 / 150 for at in range(150)}, normalize=True, judge=judge, name=name)
        for name in "abc"
    ]
    scored = run(samples(), many)
    assert sorted(len(request.body["questions"]) for request in server.requests) == [150, 300]
    assert {score.error for score in rows(scored).values()} == {None}


def test_a_plan_has_one_way_and_a_price(server):
    planned = plan(samples(4), prompted(decider(server), "a", "b", "c"))
    assert (planned.requests, planned.other_way, server.requests) == (4, None, [])
    assert planned.cost_usd == pytest.approx((planned.tokens - 4 * 3 * 10) * 0.1 / 1e6)


def test_doctor_asks_one_question(server):
    server.script = [lambda body: decision([{"type": "predicate", "name": "q1", "probability": 0.99}])]
    found = asyncio.run(diagnose(decider(server)))
    assert (found.problem, found.is_reachable, found.output_mode, found.model) == ("", True, None, "gpt-6-luna-1")
    assert found.cost_usd == pytest.approx(COST)
    assert len(server.requests) == 1
    server.script = [lambda body: decision([{"type": "predicate", "name": "q1", "probability": 0.1}])]
    assert "2 + 2" in asyncio.run(diagnose(decider(server))).problem


def test_no_score_is_of_another_question_whatever_the_server_does(server, no_waits):
    """Answers are missing, swapped, renamed, refused, of other types and out of range; servers fail and report nothing."""

    @given(st.data())
    def check(data):
        dice = random.Random(data.draw(st.integers()))  # noqa: S311 - no secret

        def faulty(body):
            status, headers, reply = good(body)
            answers = reply["answers"]
            fault = dice.randrange(12)
            at, other = dice.randrange(len(answers)), dice.randrange(len(answers))
            if fault == 0:
                answers.pop(at)
            elif fault == 1:
                answers[at], answers[other] = answers[other], answers[at]
            elif fault == 2:
                answers[at]["name"] = answers[other]["name"]
            elif fault == 3:
                answers[at] = {"type": "refusal", "name": answers[at]["name"]}
            elif fault == 4:
                answers[at] = {
                    "type": "predicate",
                    "name": answers[at]["name"],
                    "probability": dice.choice([2, -1, None]),
                }
            elif fault == 5:
                return dice.choice([429, 500, 503, 400]), {}, {"error": {"message": "no"}}
            elif fault == 6:
                reply["usage"] = dice.choice([None, {}, {"input_tokens": -1}])
            elif fault == 7:
                dice.shuffle(answers)
            return status, headers, reply

        server.script = [faulty]
        judge = decider(server, attempts=1, cache_mode=data.draw(st.sampled_from(["off", "refresh"])))
        names = data.draw(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=5, unique=True))
        scorers: list[Any] = prompted(judge, *names)
        if data.draw(st.booleans()):
            questions = {f"c{at}": f"Is <crit{at}> so?" for at in range(3)}
            weights = dict.fromkeys(questions, 1 / 3)
            scorers.append(WeightedCriteria(weights, questions, judge, normalize=True))
        dice.shuffle(scorers)
        first = len(server.requests)
        scored = run(samples(3), scorers)
        assert len(server.requests) - first <= 3
        for row in scored:
            if row.score.error is not None:
                assert row.score.value is None
            elif row.scorer == "weighted_criteria":
                for at, found in enumerate(row.score.details["criteria"].values()):
                    assert f"probability of {chance(f'crit{at}', row.sample_id):.2f};" in found["reason"]
            else:
                likely = chance(row.scorer, row.sample_id)
                assert row.score.label == [label for label, _ in SCALE][int(likely * 1e6) % 4]
                assert row.score.details["probabilities"][row.score.label] == likely

    check()


def test_a_cascade_asks_an_explaining_judge_where_the_first_is_unsure(server):
    reason = {"reason": "because", "evidence": [1], "verdict": "yes"}
    server.script = [lambda body: good(body) if "questions" in body else server.says(reason)]
    sure = PromptScorer(prompt("a"), decider(server))
    careful = PromptScorer(prompt("a"), Judge("openai/m", base_url=server.url, price=Price(1, 10)))
    scored = run(samples(20), [Selective(sure, 0.75, careful)])
    went_on = [sample.id for sample in samples(20) if chance("a", sample.id) < 0.75]
    asked = [row for row in scored if row.score.details.get("doubted")]
    unsure = [row.sample_id for row in scored if len(row.score.calls) == 2]
    assert {row.sample_id for row in asked} == set(unsure) <= set(went_on)
    assert 0 < len(unsure) < 20
    assert all("because" in row.score.reason for row in asked)
    line = scored.summary["a"]
    second = (600 + 400 + 50 * 10) / 1e6
    whole, saved = 20 * second, 20 * second - line.cost_usd
    assert line.cost_usd == pytest.approx(20 * COST + len(unsure) * second)
    assert (
        f"{len(unsure)} of 20 samples went on to a second judge, which saved about ${saved:.4f} of ${whole:.4f}"
        in list(line.notes())
    )
    replayed = run(samples(20), [Selective(sure, 0.75, careful)]).summary["a"]
    assert f"{len(unsure)} of 20 samples went on to a second judge" in list(replayed.notes())
