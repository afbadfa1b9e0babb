"""The tiny question that shows what a judge can do."""

import asyncio
import json
import logging
from datetime import date

import pytest

from judgekit.judges.doctor import JudgeDiagnosis, diagnose
from judgekit.judges.judge import Judge
from judgekit.judges.limits.budget import Budget
from judgekit.judges.providers.price import Price
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
    assert (found.problem, found.key, found.is_reachable, found.output_mode, found.logprobs) == (
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
    assert (found.key, found.is_reachable, found.seconds) == (key, reached, None)
    assert found.problem.startswith(problem)
    assert len(server.requests) == 1  # it is not asked again and again


def test_a_judge_that_answers_wrongly_is_no_good(server):
    server.script = [server.says({"reason": "It is 5.", "verdict": "false"})]
    assert examined(local(server)).problem == "the judge says that 2 + 2 is not 4"


def test_nobody_there(free_port):
    found = examined(Judge("openai/m", base_url=f"http://127.0.0.1:{free_port}/v1", cache_mode="off"))
    assert (found.is_reachable, found.key) == (False, "none")
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
    assert (found.is_reachable, found.problem.partition(":")[0]) == (False, "OfflineError")


def test_it_is_asked_past_its_cache_and_its_budget(tmp_path):
    judge = ScriptedJudge([TRUE, TRUE], cache=tmp_path / "c.sqlite", cache_mode="read_write", budget={"requests": 0})
    assert [examined(judge).problem for _ in range(2)] == ["", ""]
    assert len(judge.requests) == 2


# --- when its model shuts down


def model_object(**changes: object) -> tuple:
    return 200, {}, {"id": "m", "created": 1, "object": "model", "owned_by": "us", **changes}


def test_the_date_on_which_the_server_shuts_the_model_down_is_known(server, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-1")
    monkeypatch.setenv("MY_TEAM", "blue")
    server.script, server.model = [server.says(TRUE)], model_object(shutdown_date="2027-01-14")
    own = {"headers": {"x-team": {"env": "MY_TEAM"}}, "query": {"api-version": "1"}}
    found = examined(local(server, api_key_env="MY_KEY", **own))
    assert (found.problem, found.shutdown_date) == ("", date(2027, 1, 14))
    (lookup,) = server.lookups
    assert lookup.line == "GET /v1/models/m?api-version=1 HTTP/1.1"
    assert (lookup.headers["authorization"], lookup.headers["x-team"]) == ("Bearer sk-1", "blue")


def test_the_name_of_a_model_is_one_part_of_the_address(server):
    server.script, server.model = [server.says(TRUE)], model_object(shutdown_date="2020-02-29")
    judge = Judge("openai/org/a model?x#../:free", base_url=server.url, cache_mode="off")
    assert examined(judge).shutdown_date == date(2020, 2, 29)
    assert server.lookups[0].line == "GET /v1/models/org%2Fa%20model%3Fx%23..%2F:free HTTP/1.1"


@pytest.mark.parametrize(
    "line",
    [
        model_object(),
        *(
            model_object(shutdown_date=found)
            for found in (None, "2027-02-30", "\x1b[2J</script>", 1800000000, ["2027-01-14"])
        ),
        *((200, {}, body) for body in (["2027-01-14"], None, b"<html>", b"[" * 100_000)),
        (200, {"content-encoding": "gzip"}, b"no gzip"),
        (302, {"location": "/v1/elsewhere"}, b""),
        *((status, {}, {"shutdown_date": "2027-01-14"}) for status in (401, 503)),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{", "hang"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "drip"),
        (b"nonsense\r\n\r\n", "close"),
        (b"", "reset"),
    ],
)
def test_a_server_that_says_no_date_is_no_problem(server, line):
    server.script, server.model = [server.says(TRUE)], line
    found = examined(local(server, timeout=1))
    assert (found.problem, found.is_reachable, found.shutdown_date) == ("", True, None)
    assert len(server.requests) == 1
    assert len(server.lookups) in (1, 2)  # aiohttp repeats a GET whose connection broke


def test_a_model_object_is_read_up_to_the_limit(server):
    server.script = [server.says(TRUE)]
    server.model = model_object(padding="x" * 20_000, shutdown_date="2027-01-14")
    assert examined(local(server, max_reply_bytes=30_000)).shutdown_date == date(2027, 1, 14)
    found = examined(local(server, max_reply_bytes=10_000))
    assert (found.problem, found.shutdown_date) == ("", None)


def test_a_key_that_the_server_repeats_with_the_date_is_in_no_diagnosis_and_no_log(server, monkeypatch, caplog):
    caplog.set_level(logging.DEBUG, logger="judgekit")
    monkeypatch.setenv("MY_KEY", "sk-very-private")
    server.script = [server.says(TRUE)]
    for line in (model_object(shutdown_date="sk-very-private"), (500, {}, {"error": "sk-very-private"})):
        server.model = line
        found = examined(local(server, api_key_env="MY_KEY"))
        assert found.problem == ""
        assert "sk-very-private" not in f"{found}{caplog.text}"


def test_a_model_that_the_server_does_not_know_is_not_looked_up(server):
    server.script = [(404, {}, {"error": {"message": "The model `m` does not exist", "code": "model_not_found"}})]
    server.model = model_object(shutdown_date="2020-01-01")
    found = examined(local(server))
    assert (
        "the provider does not know this model: it may be retired, or its name misspelled. Choose another."
        in found.problem
    )
    assert found.shutdown_date is None
    assert [lookup.line for lookup in server.lookups] == ["GET /v1/models HTTP/1.1"]  # only what it has instead


def test_a_judge_with_a_budget_is_asked_with_the_output_limit_of_a_run(server):
    refusal = (
        400,
        {},
        {"error": {"message": "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."}},
    )
    server.script = [refusal, server.says(TRUE)]
    assert examined(local(server, budget=Budget(tokens=100_000))).problem == ""
    assert [request.body.get("max_tokens") for request in server.requests] == [8192, None]
    assert [request.body.get("max_completion_tokens") for request in server.requests] == [None, 8192]


def test_an_unknown_model_is_named_with_those_that_the_server_lists(server):
    server.script = [(404, {}, {"error": {"message": "The model `m` does not exist", "code": "model_not_found"}})]
    names = ["mm", "zebra", "m"]
    listed = [{"id": name} for name in names] + [{"id": "m-embed", "capabilities": {"chat_completion": False}}]
    server.model = 200, {}, {"object": "list", "data": listed}
    assert examined(local(server)).problem.endswith(" Models of this server: mm, zebra")
    assert server.lookups[-1].line == "GET /v1/models HTTP/1.1"


@pytest.mark.parametrize("body", [{"data": "x"}, {"data": [3]}, {"data": [{"id": 3}]}, [], b"<html>", {"data": []}])
def test_a_list_of_models_that_cannot_be_read_is_no_problem(server, body):
    server.script = [(404, {}, {"error": {"message": "no such route"}})]
    server.model = 200, {}, body
    problem = examined(local(server)).problem
    assert ": check the model name and the base_url. " in problem
    assert "Models of this server" not in problem
