"""The command line's entry point."""

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pkgutil import iter_modules
from threading import Thread

import pytest
from typer.main import get_command_name

from judgekit import cli
from judgekit.cli.app import COMMAND_MODULES, app

INTERRUPTED = """
import os, signal, sys

class AtImport:
    def find_spec(self, name, *_):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, AtImport())
sys.argv = ["judgekit", "formats"]
from judgekit.__main__ import main
main()
"""


@pytest.mark.parametrize("name", ["judgekit.cli", "pydantic", "judgekit.cli.lists"])
def test_ctrl_c_while_modules_are_imported_ends_it_without_a_traceback(run_python, name):
    done = run_python("-c", INTERRUPTED.format(name=name))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


LOADED = """
import sys
from judgekit.__main__ import main
try:
    main()
finally:
    print(*sys.modules, file=sys.stderr)
"""


@pytest.fixture
def loaded(run_python):
    """The modules that a command has loaded at its end."""
    return lambda *words: {*run_python("-c", LOADED, *words).stderr.split()}


def test_the_version_needs_no_command(loaded):
    modules = loaded("--version")
    ours = {name for name in modules if name.split(".")[0] == "judgekit"}
    assert ours == {"judgekit", "judgekit.__main__", "judgekit.scorers"}
    assert not {"numpy", "scipy", "jinja2", "yaml", "pydantic", "typer", "asyncio"} & modules


def test_a_run_without_a_judge_needs_neither_scipy_nor_templates(loaded, examples, tmp_path):
    recorded = str(examples / "conversations.jsonl")
    modules = loaded("run", recorded, "--scorer", "tool_call_f1", "--store", str(tmp_path / "runs.sqlite"))
    assert "judgekit.stats.intervals" in modules
    assert not {"scipy", "sklearn", "openai", "jinja2", "judgekit.reports.html"} & modules


ANSWER = {"reason": "Kind.", "evidence": [1], "verdict": "polite"}


class Model(BaseHTTPRequestHandler):
    """A server that gives every request the same answer."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        message = {"role": "assistant", "content": json.dumps(ANSWER)}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        reply = {"id": "r", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


def test_a_run_whose_replies_are_all_cached_makes_no_connection_ready(run_python, examples, tmp_path):
    """The libraries that a connection needs, with its TLS context, are loaded by the first request that is sent."""
    (tmp_path / "polite.md").write_text(
        "---\ninputs: [conversation]\nscale: {polite: 1.0, rude: 0.0}\n---\nWas the agent polite?\n"
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), Model) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        judge = f'model = "openai/m"\nbase_url = "http://127.0.0.1:{server.server_port}/v1"\ncache = "cache.sqlite"\n'
        (tmp_path / "judgekit.toml").write_text(f"[judges.default]\n{judge}")
        words = ("run", examples / "conversations.jsonl", "--scorer", "prompt:polite.md")
        first, second = (run_python("-c", LOADED, *words, OPENAI_API_KEY="k") for _ in range(2))
        server.shutdown()
    assert (first.returncode, second.returncode) == (0, 0), first.stderr
    assert "openai" in first.stderr.split()
    assert not {"openai", "httpx", "httpx2"} & {*second.stderr.split()}
    assert "cached" in second.stdout


def test_a_command_loads_no_other(loaded):
    modules = loaded("formats")
    assert "judgekit.cli.lists" in modules
    assert not {f"judgekit.cli.{name}" for name in {*COMMAND_MODULES.values()} - {"lists"}} & modules


def test_all_commands_are_listed_with_their_modules():
    for module in iter_modules(cli.__path__):
        import_module(f"judgekit.cli.{module.name}")
    found = {
        get_command_name(one.callback.__name__) if one.name is None else one.name: one.callback.__module__
        for one in app.registered_commands
    }
    found |= {one.name: one.typer_instance.registered_commands[0].callback.__module__ for one in app.registered_groups}
    assert found == {name: f"judgekit.cli.{module}" for name, module in COMMAND_MODULES.items()}


def test_it_runs_as_a_module(run_python):
    done = run_python("-m", "judgekit", "--version")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.strip()[0].isdigit()
