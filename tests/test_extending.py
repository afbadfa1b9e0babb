"""Scorers, readers and providers of one's own, as the docs write them, by name and from an installed package."""

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from zipfile import ZipFile

import pytest

pytestmark = pytest.mark.processes

DOCS = Path(__file__).parent.parent / "docs"
SCORERS, READERS, PROVIDERS = ((DOCS / f"write-a-{one}.md").read_text() for one in ("scorer", "reader", "provider"))

ENTRY_POINTS = """
[judgekit.scorers]
polite = my_scorers:polite
short = my_scorers:ShortAnswers
[judgekit.readers]
acme-turns = my_reader:TurnsReader
[judgekit.providers]
acme = my_provider:PROVIDER
"""
TURNS = [
    {"conversation": "c1", "turns": [["user", "Hi"], ["bot", "Thank you for calling!"]]},
    {"conversation": "c2", "turns": [["user", "Hi"], ["bot", "What?"]]},
    {"conversation": "c3", "turns": [["user", "Hi"], ["cat", "Meow"]]},
]
BROKEN = "def broken(sample):\n    return {}['x']\n"


def snippets(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


@pytest.fixture
def cli(forked) -> Callable[..., tuple[int, str, str]]:
    """Runs judgekit as its users do: exit code, what it printed, and what it said beside."""

    def run(*arguments: str) -> tuple[int, str, str]:
        command = forked("judgekit", *arguments)
        out, err = command.communicate()
        return command.returncode, out, err

    return run


@pytest.fixture(autouse=True)
def own(tmp_path, monkeypatch) -> Path:
    """A folder with the files that the docs write."""
    monkeypatch.chdir(tmp_path)
    Path("my_scorers.py").write_text("".join(snippets(SCORERS, "python")))
    Path("goodbye.md").write_text(snippets(SCORERS, "markdown")[0])
    Path("my_reader.py").write_text(snippets(READERS, "python")[0])
    Path("turns.jsonl").write_text("".join(f"{json.dumps(one)}\n" for one in TURNS))
    return tmp_path


@pytest.fixture
def text_server(own) -> Iterator[list[str]]:
    """A server that takes a text and returns one, behind the provider of the docs; gives the texts that it was sent."""
    received: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["content-length"])).decode())
            verdict = "not_said" if "say goodbye" in received[-1] else "strong"
            answer = json.dumps({"reason": "so", "evidence": [2], "verdict": verdict}).encode()
            self.send_response(200)
            self.send_header("content-length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/complete"
    (own / "my_provider.py").write_text(
        snippets(PROVIDERS, "python")[0].replace("http://localhost:9000/complete", address)
    )
    yield received
    server.shutdown()
    server.server_close()


@pytest.fixture
def install(own, monkeypatch) -> Callable[..., Path]:
    """Installs files of one's own with pip, as a package with entry points; gives the folder that they are in then."""

    def do(*files: str) -> Path:
        wheel, site = own / "acme-1.0-py3-none-any.whl", own / "site"
        metadata = {
            "METADATA": "Metadata-Version: 2.1\nName: acme\nVersion: 1.0\n",
            "WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            "entry_points.txt": ENTRY_POINTS,
            "RECORD": "",
        }
        with ZipFile(wheel, "w") as archive:
            for file in files:
                archive.write(file)
                Path(file).unlink()
            for name, text in metadata.items():
                archive.writestr(f"acme-1.0.dist-info/{name}", text)
        pip = (sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", site, wheel)
        subprocess.run(pip, check=True, timeout=60)  # noqa: S603 - our own interpreter
        monkeypatch.setenv("PYTHONPATH", f"{site}:{os.environ.get('PYTHONPATH', '')}")
        return site

    return do


FORMAT = ("--format", "my_reader.py:TurnsReader")


def means(out: str) -> dict[str, str]:
    """By scorer its number, as a run prints it."""
    return dict(re.findall(r"^ (\w+) +(\d\.\d{3}) ", out, re.MULTILINE))


def test_own_scorers_and_readers_are_named_by_their_files(cli):
    code, out, err = cli(
        *("run", "turns.jsonl", *FORMAT, "--scorer", "my_scorers.py:polite"),
        *("--scorer", "my_scorers.py:ShortAnswers:10,as=very_short", "--scorer", "my_scorers.py:ShortAnswers"),
    )
    assert means(out) == {"polite": "0.500", "very_short": "0.500", "short_answers": "1.000"}
    assert "turns[1]: expected user or bot, found 'cat'" in err
    assert code == 1  # a record could not be read


def test_the_files_that_a_config_names_are_found_from_its_folder(cli, own, text_server):
    inner = own / "inner"
    inner.mkdir()
    (own / "my_scorers.py").rename(inner / "my_scorers.py")
    (own / "goodbye.md").rename(inner / "goodbye.md")
    judge = '[judges.default]\nmodel = "my_provider:PROVIDER/model-1"\ncache = "replies.sqlite"\n'
    prompt = '[[scorers]]\nname = "prompt"\nprompt = "goodbye.md"\n'
    within = '[[scorers]]\nname = "panel"\nscorers = ["prompt:goodbye.md,as=one", "prompt:goodbye.md,as=two"]\n'
    text = '[[scorers]]\nname = "adaptability"\nscorer = "my_scorers.py:polite"\n'
    (inner / "judgekit.toml").write_text(judge + snippets(SCORERS, "toml")[0] + prompt + within + text)
    _, out, err = cli("run", "turns.jsonl", *FORMAT, "--config", "inner/judgekit.toml")
    assert means(out).items() >= {"very_short": "1.000", "goodbye": "0.000", "panel": "0.000"}.items(), (out, err)
    assert (inner / "replies.sqlite").exists()
    assert len(text_server) == 2


def test_processes_of_their_own_find_them_too_and_a_run_is_resumed_with_the_same_ones_alone(cli, own):
    words = ("run", "turns.jsonl", *FORMAT, "--scorer", "my_scorers.py:polite")
    _, out, _ = cli(*words, "--workers", "2")
    assert means(out) == {"polite": "0.500"}
    code, _, err = cli("resume", "1", "--retry-failed")
    assert code == 2
    assert "my_reader.py is code that a stored run names" in err
    _, out, err = cli("resume", "1", "--retry-failed", "--allow-code")
    assert means(out) == {"polite": "0.500"}, err
    (own / "my_scorers.py").write_text((own / "my_scorers.py").read_text().replace("looked for", "found no"))
    code, _, err = cli("resume", "1", "--retry-failed", "--allow-code")
    assert code == 2
    assert "polite has changed" in err


def test_a_server_of_plain_text_is_asked_in_words(cli, text_server):
    code, out, err = cli(
        *("run", "turns.jsonl", *FORMAT, "--scorer", "prompt:goodbye.md"), *("--judge", "my_provider:PROVIDER/model-1")
    )
    assert means(out) == {"goodbye": "0.000"}, (code, err)
    assert len(text_server) == 2
    assert all('"verdict"' in one and "Did the agent say goodbye?" in one for one in text_server)


def test_an_own_judged_class_gets_its_judge_and_its_signature_from_the_command_line(cli, text_server):
    words = ("run", "turns.jsonl", *FORMAT, "--scorer", "my_scorers.py:Calm", "--scorer", "my_scorers.py:Calm:as=again")
    code, out, err = cli(*words, "--judge", "my_provider:PROVIDER/model-1")
    assert means(out) == {"calm": "0.000", "again": "0.000"}, (code, err)
    assert len(text_server) == 2  # two samples: the second scorer asks the same and finds it in the cache
    cli(*words, "--judge", "my_provider:PROVIDER/model-2")
    assert len(text_server) == 4
    warned = "judge.model was 'my_provider:PROVIDER/model-1' and is 'my_provider:PROVIDER/model-2'"
    assert warned in " ".join(cli("compare", "1", "2")[1].split())


def test_an_installed_package_adds_scorers_formats_and_providers(cli, text_server, install):
    install("my_scorers.py", "my_reader.py", "my_provider.py")
    assert "polite\n    Whether the agent thanks the user." in cli("scorers")[1].replace("'", "")
    assert "acme-turns: " in cli("formats")[1]
    Path("judgekit.toml").write_text(
        '[judges.default]\nmodel = "acme/model-1"\n[[scorers]]\nname = "short"\nmost = 10\n'
        '[[scorers]]\nname = "prompt"\nprompt = "goodbye.md"\n'
    )
    _, out, err = cli("run", "turns.jsonl")
    assert means(out) == {"short_answers": "0.500", "goodbye": "0.000"}, err
    _, out, _ = cli("run", "turns.jsonl", "--scorer", "polite", "--scorer", "short:most=10")
    assert means(out) == {"polite": "0.500", "short_answers": "0.500"}
    assert len(text_server) == 2


def test_a_package_that_is_broken_is_named_and_leaves_the_rest(cli, install):
    """Its provider has no file, and its reader raises an error."""
    Path("my_reader.py").write_text("x = 1 / 0\n")
    site = install("my_scorers.py", "my_reader.py")
    Path("talk.jsonl").write_text(
        '{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Thanks"}]}\n'
    )
    _, out, err = cli("run", "talk.jsonl", "--scorer", "string_presence", "--scorer", "polite")
    assert means(out).get("polite") == "1.000", err
    assert "skipped the format acme-turns of an installed package: my_reader:TurnsReader: ZeroDivisionError" in err
    (site / "my_scorers.py").write_text("x = 1 / 0\n")
    code, out, _ = cli("scorers")
    assert code == 0
    assert "polite\n    cannot be used: my_scorers:polite: ZeroDivisionError" in out
    assert "tool_call_f1\n" in out


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("my_scorers.py", "name an object in it: my_scorers.py:NAME; it has Sample, "),
        ("my_scorers.py:pollite", "my_scorers.py has no pollite; it has "),
        ("nowhere.py:x", "no such file: nowhere.py"),
        ("no.such:x", "no module named no, neither here nor installed"),
        ("broken.py:x", "ZeroDivisionError: division by zero (broken.py, line 1, in <module>)"),
        ("needs.py:x", "No module named 'absent_library' (needs.py, line 1, in <module>)"),
        ("syntax.py:x", "SyntaxError: "),
        ("my_scorers.py:polite:3", "functions and objects take no options; make it a class"),
        ("my_scorers.py:ShortAnswers:least=3", "no option of my_scorers.py:ShortAnswers is called 'least'"),
        (
            "my_reader.py:TurnsReader",
            "a scorer class must be a dataclass with an ascore method; its fields are the options",
        ),
        ("my_reader.py:AIMessage.model_fields", "expected a scorer, found "),
        ("pollite", "For your own scorer, give file.py:NAME or package.module:NAME"),
    ],
)
def test_what_cannot_be_used_says_why_and_where(cli, name, said):
    Path("broken.py").write_text("x = 1 / 0\n")
    Path("needs.py").write_text("import absent_library\n")
    Path("syntax.py").write_text("def f(:\n")
    code, out, err = cli("run", "turns.jsonl", *FORMAT, "--scorer", name)
    assert (code, out) == (2, "")
    assert said.replace("it has Sample, ", "it has ") in err
    assert "Traceback" not in err


@pytest.mark.parametrize("name", ["my_reader:AIMessage", "acme-turns", "my_reader.py:TurnsReadr"])
def test_what_is_no_reader_is_refused(cli, name):
    code, _, err = cli("inspect", "turns.jsonl", "--format", name)
    assert code == 2
    assert {
        "my_reader:AIMessage": "AIMessage",
        "acme-turns": "no format is called 'acme-turns'",
        "my_reader.py:TurnsReadr": "my_reader.py has no TurnsReadr; it has TurnsReader",
    }[name] in err
    assert "Traceback" not in err


def test_an_error_of_an_own_scorer_names_its_line(cli):
    Path("broken.py").write_text(BROKEN)
    _, out, _ = cli("run", "turns.jsonl", *FORMAT, "--scorer", "broken.py:broken")
    assert "KeyError: 'x' (broken.py, line 2, in broken)" in out


def test_a_file_that_is_called_as_a_module_of_python_hides_it_from_nobody(run_python):
    Path("json.py").write_text(Path("my_scorers.py").read_text())
    Path("calendar.py").write_text("from judgekit import scorer\n\n@scorer\ndef day(sample):\n    return 1.0\n")
    Path("sched.py").write_text("raise RuntimeError('the wrong one')\n")
    Path("needs.py").write_text("import sched\n\n" + Path("calendar.py").read_text())
    for file in ("needs", "calendar"):
        done = run_python("-P", "-m", "judgekit", "run", "turns.jsonl", *FORMAT, "--scorer", f"{file}.py:day")
        assert means(done.stdout) == {"day": "1.000"}, done.stderr
