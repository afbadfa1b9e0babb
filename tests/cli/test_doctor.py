"""``judgekit doctor`` says when the models of judges shut down."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest


class Server(ThreadingHTTPServer):
    """An OpenAI-compatible judge whose model shuts down on a date, if that is set."""

    verdict = "true"
    shutdown_date: object = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        text = json.dumps({"reason": "r", "verdict": self.server.verdict})
        self.reply({"model": "m-1", "choices": [{"message": {"content": text}, "finish_reason": "stop"}]})

    def do_GET(self) -> None:
        self.reply({"id": "m", "object": "model", "shutdown_date": self.server.shutdown_date})

    def reply(self, said: object) -> None:
        body = json.dumps(said).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    with Server(("127.0.0.1", 0), Handler) as started:
        Path("judgekit.toml").write_text(f'[judges.default]\nmodel = "openai/org/m"\nbase_url = "{started.url}"\n')
        thread = threading.Thread(target=started.serve_forever, args=(0.01,))
        thread.start()
        yield started
        started.shutdown()
        thread.join()


def test_a_date_is_a_line_below_the_table_and_no_problem(cli, server):
    for days, message in {
        -1: "was to shut down on {day}: choose another model",
        -4000: "was to shut down on {day}: choose another model",
        0: "shuts down on {day}, today: choose another model",
        1: "shuts down on {day}, in 1 day: choose another model",
        90: "shuts down on {day}, in 90 days: choose another model",
        91: "shuts down on {day}, in 91 days",
    }.items():
        day = datetime.now(UTC).date() + timedelta(days)
        server.shutdown_date = f"{day}"
        ended = cli("doctor")
        assert (ended.code, ended.err) == (0, "")
        *_, answered, last = ended.out.splitlines()
        assert answered == "default: the provider reports the model m-1"
        assert last == f"default: org/m {message.format(day=day)}"


def test_no_date_is_no_line(cli, server):
    for shutdown_date in (None, "\x1b[2Jsoon", 5):
        server.shutdown_date = shutdown_date
        ended = cli("doctor")
        assert (ended.code, ended.out.splitlines()[-1]) == (0, "default: the provider reports the model m-1")


def test_a_date_stands_below_a_problem(cli, server):
    server.verdict, server.shutdown_date = "false", "2020-01-01"
    ended = cli("doctor")
    assert (ended.code, ended.out.splitlines()[-2:]) == (
        1,
        [
            "default: the judge says that 2 + 2 is not 4",
            "default: org/m was to shut down on 2020-01-01: choose another model",
        ],
    )
