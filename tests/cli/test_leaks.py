"""Whatever a server repeats of the keys that it was sent: after whole runs they are in no file and in no output."""

import gc
import html
import json
import logging
import pickle
import random
import string
import sys
import threading
import traceback
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from judgekit.analysis.audit import audit
from judgekit.analysis.compare import compare
from judgekit.analysis.labels import HumanLabel
from judgekit.errors import JudgekitError
from judgekit.judges.judge import Judge
from judgekit.runs.results import Run
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference

GOALS = ("--scorer", "agent_goal_accuracy_without_reference", "--config", "leaks.toml")
ENDS = ("page.html", "rows.jsonl", "rows.csv", "rows.xml", "rows.md")
LINES = ["achieved", "unusable", "refusal", "content_filter", "garbage", "broken", "400", "500", "429", "503", "not"]
SEED = random.randrange(10**9)  # noqa: S311 - keys for a test, other ones each time


class Server(ThreadingHTTPServer):
    """Says nothing where a client hangs up before it has read everything; it would print a traceback among the output."""

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Echo:
    """Speaks HTTP on loopback, and repeats two keys in all parts of what it says, in one of many spellings."""

    def __init__(self, keys, spellings, chance: random.Random) -> None:
        self.sent: list[dict[str, str]] = []
        self.lines: list[str] = []
        """Actions of the server, in order; it repeats the last one."""

        def echo() -> str:
            return " ".join(chance.choice(spellings)(key) for key in keys)

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(handler) -> None:  # noqa: N805 - self is the server that is tested with
                handler.rfile.read(int(handler.headers["content-length"]))
                self.sent.append({**{k.lower(): v for k, v in handler.headers.items()}, "path": handler.path})
                line = self.lines.pop(0) if len(self.lines) > 1 else self.lines[0]
                if line == "broken":
                    handler.wfile.write(f"HTTP/1.1 200 OK\r\n{echo()}\r\n{echo()}\r\n\r\n".encode())
                    handler.close_connection = True
                    return
                status, body = self.said(line, echo)
                handler.send_response(status, echo())
                handler.send_header("location", f"https://{keys[0][:8]}x:{echo()}@there.test/{echo()}?k={echo()}")
                for name in ("x-request-id", "retry-after", "www-authenticate", "set-cookie", "openai-processing-ms"):
                    handler.send_header(name, "0" if name == "retry-after" else echo())
                handler.send_header("content-length", str(len(body)))
                handler.end_headers()
                handler.wfile.write(body)

            def log_message(handler, *_: object) -> None:  # noqa: N805
                pass

        self._server = Server(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    @staticmethod
    def said(line: str, echo) -> tuple[int, bytes]:
        if line.isdigit():
            error = {"message": f"Not you: {echo()}", "type": echo(), "param": echo(), "code": echo(), echo(): echo()}
            return int(line), json.dumps({"error": error, "detail": echo()}).encode()
        if line == "garbage":
            return 200, f"<html>{echo()}</html>".encode()
        verdict = {"achieved": "achieved", "unusable": echo()}.get(line, "not_achieved")
        goal = {"goal": echo(), "end_state": echo(), "reason": echo(), "evidence": [1], "verdict": verdict, "x": echo()}
        text = f"{echo()} {json.dumps({'goals': [goal], echo(): echo()})} {echo()}"
        message = {"role": "assistant", "content": text, "refusal": echo() if line == "refusal" else None}
        tokens = [{"token": text[at : at + 3], "logprob": -1.0, "top_logprobs": []} for at in range(0, len(text), 3)]
        choice = {"message": message, "finish_reason": line if line == "content_filter" else "stop"}
        return 200, json.dumps(
            {
                "id": echo(),
                "model": echo(),
                "system_fingerprint": echo(),
                "service_tier": echo(),
                echo(): echo(),
                "choices": [{**choice, "logprobs": {"content": tokens}}],
                "usage": {"prompt_tokens": echo(), "completion_tokens": 3, "prompt_tokens_details": {echo(): echo()}},
            }
        ).encode()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()


def texts_of_error(error: BaseException | None) -> Iterator[str]:
    """All that an error says, also where it is sent to another process, and of what led to it."""
    if error is not None:
        yield "".join(traceback.format_exception(error))
        yield from (repr(error), str(error), repr(error.args), repr(vars(error)))
        yield pickle.dumps(error, protocol=0).decode("latin-1")
        yield from texts_of_error(error.__cause__)
        yield from texts_of_error(error.__context__)


@pytest.fixture
def keys() -> tuple[str, str]:
    chance = random.Random(SEED)  # noqa: S311
    return tuple("".join(chance.choices(string.ascii_letters + string.digits + "-_./+=%", k=24)) for _ in "ab")


@pytest.fixture
def echo(keys, spellings, monkeypatch) -> Iterator[Echo]:
    monkeypatch.setenv("FIRST_KEY", keys[0])
    monkeypatch.setenv("SECOND_KEY", keys[1])
    server = Echo(keys, spellings, random.Random(SEED))  # noqa: S311
    Path("leaks.toml").write_text(
        f"""
        [judges.default]
        model = "openai/echo"
        base_url = "{server.url}"
        api_key_env = "FIRST_KEY"
        query = {{api-version = "1", key = {{env = "SECOND_KEY"}}}}
        headers = {{x-api-key = {{env = "SECOND_KEY"}}}}
        params = {{logprobs = true}}
        attempts = 1
        concurrency = 1
        """
    )
    yield server
    server.stop()


def test_a_key_that_a_server_repeats_is_in_no_file_and_no_output(
    cli, echo, keys, conversations, recovered, contents, caplog
):
    caplog.set_level(logging.DEBUG, logger="judgekit")
    said: list[str] = []

    def run(*words: object) -> int:
        code, *shown = cli(*words)
        said.extend(shown)
        return code

    outputs = [word for end in ENDS for word in ("-o", end)]
    echo.lines = list(LINES)
    assert run("run", conversations(12), *GOALS, *outputs, "--show", 9) == 1
    assert echo.sent[0]["path"].startswith("/v1/chat/completions?")
    assert (echo.sent[0]["authorization"], echo.sent[0]["x-api-key"]) == (f"Bearer {keys[0]}", keys[1])
    assert run("runs", "last", "-o", "again.html") == 0
    labels = "".join(f"s{number},{GOALS[1]},{number % 2}\n" for number in range(12))
    Path("labels.csv").write_text(f"sample,scorer,value\n{labels}")
    assert run("audit", "last", "--labels", "labels.csv", "-o", "audit.html", "-o", "audit.json") == 0
    assert run("label", "last", "-o", "sheet.html") == 0
    assert run("cache", "export", "-o", "replies.jsonl") == 0
    assert "***" in Path("replies.jsonl").read_text()
    for status in ("301", "401"):
        echo.lines = [status]
        Path("leaks.toml").write_text(Path("leaks.toml").read_text() + "cache_mode = 'off'\n" * (status == "301"))
        assert run("run", conversations(1, f"{status}.jsonl"), *GOALS, "--store", f"{status}.sqlite") in (1, 2)
        assert run("doctor", "--config", "leaks.toml") in (1, 2)
    echo.lines = ["achieved"]
    run("doctor", "--config", "leaks.toml")
    assert run("compare", "1", "1", "-o", "compared.html", "-o", "compared.json") == 0
    assert len(echo.sent) > 12
    kept = Run.stored(1)
    labeled = [HumanLabel(sample=f"s{number}", scorer=GOALS[1], value=number % 2) for number in range(12)]
    shown = [kept, compare(kept, kept), audit(kept, labeled), *(row.score for row in kept)]
    said.extend(text for one in shown for text in (str(one), repr(one)))
    gc.collect()  # closes the files of runs that ended by an error
    written = [path for path in Path().rglob("*") if path.is_file()]
    assert {path.name for path in written} >= {*ENDS, "again.html", "cache.sqlite", "runs.sqlite", "replies.jsonl"}
    assert any(path.parent.name == "audits" for path in written)
    for text in {*said, caplog.text, *(text for path in written for text in contents(path))}:
        assert not any(recovered(html.unescape(text), key) for key in keys), f"seed {SEED}: {text}"


def test_a_key_that_a_server_repeats_is_in_no_error(echo, keys, calling, recovered):
    query, headers = ({name: {"env": "SECOND_KEY"}} for name in ("key", "x-api-key"))
    settings = {"base_url": echo.url, "api_key_env": "FIRST_KEY", "query": query, "headers": headers}
    kinds = set()
    for line in (*LINES[1:-1], "301", "401", "402", "404"):
        echo.lines = [line]
        scorer = AgentGoalAccuracyWithoutReference(Judge("openai/echo", attempts=1, cache_mode="off", **settings))
        with pytest.raises(JudgekitError) as info:
            scorer.score(calling(0))
        kinds.add(type(info.value))
        for text in texts_of_error(info.value):
            assert not any(recovered(text, key) for key in keys), f"{line} (seed {SEED}): {text}"
    assert len(kinds) > 8
