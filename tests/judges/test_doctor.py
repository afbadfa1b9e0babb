"""The tiny question that shows what a judge can do."""

import asyncio
import json
import sys

import pytest

from judgekit.judges.doctor import JudgeDiagnosis, diagnose
from judgekit.judges.judge import Judge
from judgekit.judges.price import Price
from judgekit.judges.scripted import ScriptedJudge
from judgekit.traces.message import Usage

TRUE = {"reason": "It is.", "verdict": "true"}


def examined(judge: Judge) -> JudgeDiagnosis:
    return asyncio.run(diagnose(judge))


def local(server, **settings: object) -> Judge:
    return Judge("openai/m", base_url=server.url, cache_mode="off", **settings)


def choice(**changes: object) -> list[dict]:
    message = {"role": "assistant", "content": json.dumps(TRUE)}
    return [{"index": 0, "message": message, "finish_reason": "stop", **changes}]


def test_a_judge_that_can_all_is_said_to(server):
    server.script = [server.says(TRUE, choices=choice(logprobs={"content": [{"token": "{", "logprob": -0.1}]}))]
    found = examined(local(server, price=Price(1, 10)))
    assert (found.problem, found.key, found.reached, found.step, found.logprobs) == (
        "",
        "none",
        True,
        "json_schema",
        True,
    )
    assert isinstance(found.usage, Usage)
    assert (found.model, found.system_fingerprint) == ("judge-1-2026-11-20", "fp_1")
    assert found.cost_usd == pytest.approx((1000 * 1 + 50 * 10) / 1e6)
    assert 0 < found.seconds < 10
    (request,) = server.requests
    assert request.body["logprobs"] is True


def test_a_judge_that_refuses_logprobs_is_asked_without(server):
    refusal = 400, {}, {"error": {"message": "'logprobs' is not supported with this model"}}
    server.script = [refusal, server.says(TRUE)]
    found = examined(local(server, params={"temperature": 0}))
    assert (found.problem, found.logprobs) == ("", False)
    assert "logprobs" not in server.requests[1].body
    assert server.requests[1].body["temperature"] == 0


def test_the_step_on_which_it_stands_is_found(server):
    unheld = 400, {}, {"error": {"message": "response_format is not supported by this model"}}
    server.script = [unheld, unheld, server.says(f"```json\n{json.dumps(TRUE)}\n```")]
    assert examined(local(server)).step == "text"


def test_tokens_and_cost_that_nobody_says_are_unknown(server):
    server.script = [server.says(TRUE, usage=None)]
    found = examined(local(server))
    assert (found.problem, found.usage, found.cost_usd) == ("", None, None)


@pytest.mark.parametrize(
    ("line", "key", "reached", "problem"),
    [
        ((401, {}, {"error": {"message": "bad key"}}), "refused", True, "AuthenticationError: "),
        ((404, {}, {"error": {"message": "no such model"}}), "none", True, "ModelError: "),
        ((429, {}, {"error": {"message": "slow down"}}), "none", True, "RateLimitError: "),
        ((503, {}, b"busy"), "none", True, "OverloadError: "),
    ],
)
def test_what_is_wrong_is_said(server, line, key, reached, problem):
    server.script = [line]
    found = examined(local(server))
    assert (found.key, found.reached, found.seconds) == (key, reached, None)
    assert found.problem.startswith(problem)
    assert len(server.requests) == 1  # it is not asked again and again


def test_a_judge_that_answers_wrongly_is_no_good(server):
    server.script = [server.says({"reason": "It is 5.", "verdict": "false"})]
    assert examined(local(server)).problem == "the judge says that 2 + 2 is not 4"


def test_a_judge_that_keeps_to_no_form_is_no_good(server):
    server.script = [server.says("Yes, of course.")]
    found = examined(local(server))
    assert (found.reached, found.problem) == (
        True,
        "ReplyError: the reply holds no JSON object, found 'Yes, of course.'",
    )


def test_nobody_there(free_port):
    found = examined(Judge("openai/m", base_url=f"http://127.0.0.1:{free_port}/v1", cache_mode="off"))
    assert (found.reached, found.key) == (False, "none")
    assert found.problem.startswith("UnreachableError: openai/m at http://127.0.0.1:")


def test_a_key_is_missing_found_or_none(server, monkeypatch):
    server.script = [server.says(TRUE)]
    assert examined(local(server, api_key_env="MY_KEY")) == JudgeDiagnosis(
        f"AuthenticationError: no key for {server.url}: set the environment variable MY_KEY", "missing"
    )
    monkeypatch.setenv("MY_KEY", "sk-1")
    assert examined(local(server, api_key_env="MY_KEY")).key == "found"
    assert examined(local(server)).key == "none"


def test_offline_nobody_is_reached():
    found = examined(Judge("openai/m", offline=True, cache_mode="off"))
    assert (found.reached, found.problem.partition(":")[0]) == (False, "OfflineError")


def test_it_is_asked_past_its_cache_and_its_budget(tmp_path):
    judge = ScriptedJudge([TRUE, TRUE], cache=tmp_path / "c.sqlite", cache_mode="read_write", budget={"requests": 0})
    assert [examined(judge).problem for _ in range(2)] == ["", ""]
    assert len(judge.requests) == 2


def test_a_judge_that_cannot_even_be_made_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "litellm", None)
    found = examined(Judge("litellm/anthropic/claude", cache_mode="off"))
    assert (found.key, found.reached) == ("none", False)
    assert "pip install 'judgekit[litellm]'" in found.problem
