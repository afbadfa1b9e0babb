"""The documentation as a site: what its pages contain, and that their code runs as a reader would run it."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

import judgekit
import judgekit.stats
from judgekit import (
    ArgMatch,
    Sample,
    Scorer,
    ToolCallF1,
    ToolCallMatch,
    ToolMatch,
    anchors,
    behavior,
    constraints,
    errors,
    matchers,
)
from judgekit.config_file import ConfigFile
from judgekit.errors import JudgekitError
from judgekit.judges.limits.budget import Budget
from judgekit.judges.prompt_file import shipped_prompts
from judgekit.judges.providers.price import Price
from judgekit.judges.settings import JudgeSettings
from judgekit.scorers import SCORERS
from judgekit.traces.images import ImageSettings
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
REFERENCE = sorted((DOCS / "reference").glob("*.md"))
OTHER_TOOLS = {"integrations"}  # needs Inspect and MLflow: tests/integrations runs its code
SCRIPTS = [
    path.relative_to(ROOT).with_suffix("").as_posix()
    for path in sorted(DOCS.rglob("*.md"))
    if path.stem not in OTHER_TOOLS
]
COMMANDS = {  # pages whose commands run too; those of others need labels, judges or servers of the reader
    *("README", "docs/index", "docs/getting-started", "docs/tutorial-first-audit", "docs/tutorial-ci-gates"),
    *("docs/tutorial-own-judge", "docs/scorers", "docs/tool-calls", "docs/texts", "docs/behavior", "docs/datasets"),
    *("docs/formats", "docs/from-ragas", "docs/from-deepeval", "docs/from-promptfoo", "docs/from-agentevals"),
    *("docs/from-openai-evals", "docs/from-braintrust", "docs/from-langfuse", "docs/from-langsmith"),
}


# What is there.


class Entry(NamedTuple):
    """A page of the site: its section in the navigation, title and file."""

    section: str
    title: str
    path: str


def nav() -> list[Entry]:
    """The pages in the order of the navigation, whose sections may have groups."""

    def pages(section: str, entries: list[dict[str, Any]]) -> Iterator[Entry]:
        for entry in entries:
            ((title, inner),) = entry.items()
            if isinstance(inner, str):
                yield Entry(section, title, inner)
            else:
                yield from pages(section, inner)

    tabs = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    return [page for tab in tabs for section, entries in tab.items() for page in pages(section, entries)]


def directives() -> list[str]:
    """The names that the reference documents, from all of its pages."""
    return [name for page in REFERENCE for name in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)]


def test_every_page_is_in_the_navigation_once():
    there = sorted(path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md"))
    assert sorted(entry.path for entry in nav()) == there


def test_a_title_in_the_navigation_is_the_heading_of_its_page():
    headings = {entry.path: re.search(r"^# (.+)$", (DOCS / entry.path).read_text(), re.MULTILINE) for entry in nav()}
    assert {path: heading and heading[1] for path, heading in headings.items()} == {
        entry.path: entry.title for entry in nav()
    }


def test_every_public_name_is_on_one_page_of_the_reference():
    found = directives()
    assert len(found) == len(set(found))
    public = [name.removeprefix("judgekit.") for name in found if name.count(".") == 1]
    assert sorted(public) == sorted(judgekit.__all__)
    for module in (anchors, behavior, constraints, matchers):
        listed = [name for name in found if name.startswith(f"{module.__name__}.")]
        assert sorted(listed) == sorted(f"{module.__name__}.{name}" for name in module.__all__)


def test_every_scorer_of_the_command_line_and_every_error_is_in_the_reference_once():
    found = Counter(name.rpartition(".")[2] for name in directives())
    scorers = [place.rpartition(":")[2] for place in SCORERS.values()]
    raised = [name for name, one in vars(errors).items() if inspect.isclass(one) and issubclass(one, JudgekitError)]
    assert {name: found[name] for name in (*scorers, *raised)} == dict.fromkeys((*scorers, *raised), 1)


def test_every_module_of_statistics_in_the_table_is_in_the_reference():
    table = (
        (DOCS / "reference/statistics.md").read_text(encoding="utf-8").partition("| module |")[2].partition("\n\n")[0]
    )
    listed = [name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    documented = re.findall(
        r"^::: judgekit\.stats\.(\w+)$", (DOCS / "reference/statistics.md").read_text(), re.MULTILINE
    )
    assert sorted(documented) == sorted(listed)
    modules = {path.stem for path in Path(judgekit.stats.__file__).parent.glob("[!_]*.py")}
    assert set(listed) <= modules


def test_the_generated_pages_are_what_the_script_writes():
    done = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, DOCS / "generate.py", "--check"], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr


def test_the_page_of_the_config_file_has_every_key_that_a_config_may_have():
    sections = (DOCS / "reference/config.md").read_text(encoding="utf-8").split("\n## ")[1:]
    keys = {text.partition("\n")[0]: re.findall(r"^- `(\w+)` \(", text, re.MULTILINE) for text in sections}
    assert keys["Top level"] == [*ConfigFile.model_fields]
    assert keys["[judges.NAME]"] == [name for name in JudgeSettings.model_fields if name != "client"]  # a Python object
    tables = {"price": Price, "budget": Budget, "images": ImageSettings}
    assert {title: keys[title] for title in tables} == {title: [*one.model_fields] for title, one in tables.items()}
    assert keys["[[scorers]]"] == ["name", "as", "judge", "long", "repeats", "min_confidence", "escalate"]


def test_the_index_for_language_models_lists_the_pages_of_the_navigation():
    text = (DOCS / "llms.txt").read_text(encoding="utf-8")
    title, summary, *_ = text.split("\n\n")
    assert title == "# judgekit"
    assert summary.startswith("> ")
    section, found = None, []
    for line in text.splitlines():
        if line.startswith("## "):
            section = line.removeprefix("## ")
        elif line.startswith("- "):
            link = re.fullmatch(r"- \[(.+)\]\((.+)\): (.+\.)", line)
            assert link, f"expected - [title](address): description. and found {line}"
            found.append((section, link[1], link[2]))
    home, *others = nav()
    assert home.path == "index.md"
    assert found == [(one.section, one.title, f"{one.path.removesuffix('.md')}/") for one in others]


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_lists_begin_after_an_empty_line(page):
    """Python-Markdown, which builds the site, takes them for text otherwise."""
    lines = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL).splitlines()
    item = re.compile(r"\s*([-*]|\d+\.) ")
    for before, line in pairwise(lines):
        if item.match(line):
            assert not before.strip() or before.startswith(" ") or item.match(before), line


# What runs.


class Block(NamedTuple):
    """A fenced block: its language, the file that it is (or none), and its text."""

    language: str
    file: str | None
    text: str


def blocks(page: str) -> Iterator[Block]:
    text = (ROOT / f"{page}.md").read_text(encoding="utf-8")
    for found in re.finditer(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', text, re.MULTILINE | re.DOTALL):
        yield Block(*found.groups())


class Model(BaseHTTPRequestHandler):
    """The judge of the pages: a server with OpenAI's API that finds every goal achieved and every request off topic."""

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        goal = {"goal": "g", "end_state": "s", "reason": "because", "evidence": [2], "verdict": "achieved"}
        off_topic = {"request": "a room", "message": 2, "reason": "r", "topic": None, "outcome": "answered"}
        replies = {"agent_goal_without_reference": {"goals": [goal]}, "topic_adherence": {"requests": [off_topic]}}
        reply = json.dumps(replies[request["response_format"]["json_schema"]["name"]])
        choice = {"message": {"role": "assistant", "content": reply}, "finish_reason": "stop"}
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        body = json.dumps({"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def runner(tmp_path_factory) -> Iterator[Path]:
    """A script that runs scripts one after another, none with the names of those before it, and a model to ask."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    path = tmp_path_factory.mktemp("runner") / "runner.py"
    path.write_text(
        "import runpy, sys\n"
        "from judgekit.judges.providers.provider import PROVIDERS\n"
        f"PROVIDERS['openai'] = PROVIDERS['openai']._replace(base_url='http://127.0.0.1:{server.server_port}/v1')\n"
        "for script in sys.argv[1:]:\n    runpy.run_path(script, run_name='__main__')\n"
    )
    yield path
    server.shutdown()
    server.server_close()


def ran(programs: Path, folder: Path, *command: str | Path) -> str:
    """Runs a command as a reader would, in this folder; gives what it printed."""
    environment = {
        "PATH": f"{programs}:{Path(sys.executable).parent}:{sysconfig.get_path('scripts')}:{os.environ['PATH']}",
        "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
        "PYTHONUTF8": "1",
        "HOME": str(folder),
        "COLUMNS": "140",
        "OPENAI_API_KEY": "sk-test",
    }
    done = subprocess.run(  # noqa: S603 - our own documentation
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, f"{command[-1]}\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.mark.processes
@pytest.mark.parametrize("page", ["README", *SCRIPTS])
def test_the_code_of_a_page_runs_as_a_reader_would_run_it(page, tmp_path, examples, programs, runner):
    """Blocks with a title are files, others scripts and commands, and the text below one is in what it printed, in order.

    A line ``...`` takes the place of others. The folder has the example conversations, or ``examples`` where the page
    names it.
    """
    if "`examples/`" in (ROOT / f"{page}.md").read_text(encoding="utf-8"):
        shutil.copytree(examples, tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(examples / "conversations.jsonl", tmp_path)
    scripts: list[str] = []  # not run yet
    printed = None

    def run_scripts() -> str | None:
        given, scripts[:] = scripts[:], []
        return ran(programs, tmp_path, "python", runner, *given) if given else None

    for number, block in enumerate(blocks(page)):
        if "-m venv" in block.text:
            continue  # .ci/run runs this block
        if block.file is not None:
            path = tmp_path / block.file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
            if block.language == "yaml":
                assert yaml.safe_load(block.text)
        elif block.language == "toml" and page in COMMANDS and (written := list(tmp_path.rglob("*.toml"))):
            assert any(block.text in path.read_text() for path in written), block.text
        elif block.language == "python":
            scripts.append(f"script{number}.py")
            (tmp_path / scripts[-1]).write_text(block.text, encoding="utf-8")
            printed = None
        elif block.language == "bash":
            run_scripts()
            left_out = ("pip install ", "judgekit view")  # which serves until it is interrupted
            commands = [line for line in block.text.splitlines() if not line.startswith(left_out)]
            printed = ran(programs, tmp_path, "bash", "-euc", "\n".join(commands)) if page in COMMANDS else None
        elif block.language == "text":
            printed = run_scripts() or printed
            lines = iter([line.rstrip() for line in (printed or "").splitlines()])
            for line in block.text.splitlines() if printed is not None else ():
                assert line == "..." or any(line.rstrip() == other for other in lines), f"{line}\nis not in\n{printed}"
            printed = None
    run_scripts()


# What other libraries give was found by running them; the numbers beside it are found here.


def cells(page: str, head: str) -> dict[str, list[str]]:
    """The rows of a table by their first cells."""
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    table = text[text.index(head) :].partition("\n\n")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {row[0]: row[1:] for row in rows}


def result(scorer: Scorer, made: list[ToolCall] | list[AIMessage], expected: list[ToolCall] | None) -> str:
    """The score of these calls, as the docs write it."""
    messages = made if made and isinstance(made[0], AIMessage) else [AIMessage(tool_calls=made)]
    score = scorer.score(Sample.of([HumanMessage("x"), *messages], reference_tool_calls=expected))
    return score.status if score.value is None else f"{score.value:.3g}"


def same(written: str, found: str) -> bool:
    return written == found or (written[0].isdigit() and float(written) == float(found))


def call(**args: object) -> ToolCall:
    return ToolCall("f", args)


def test_the_numbers_beside_those_of_deepeval_are_so():
    names = ToolMatch(order="any", extra="allow", credit="recall", args=ArgMatch(mode="ignore"))
    graded = ToolMatch(order="any", extra="allow", credit="recall", args_credit="fraction")
    tried = {
        "an argument is wrong": (names, [call(a="Rome")], [call(a="Paris")]),
        "a call more than expected": (names, [call(a=1), ToolCall("g")], [call(a=1)]),
        "two equal calls made, both expected": (names, [call(a=1)] * 2, [call(a=1)] * 2),
        "nothing expected, one call made": (names, [call(a=1)], []),
        "`true` for `1`, arguments compared": (graded, [call(a=True)], [call(a=1)]),
    }
    written = cells("from-deepeval", "| case |")
    assert list(written) == list(tried)
    for case, (mode, made, expected) in tried.items():
        found = [result(one, made, expected) for one in (ToolCallMatch(mode), ToolCallF1())]
        assert all(map(same, written[case][1:3], found)), (case, found)


def test_the_options_of_deepeval_have_modes_that_there_are():
    known = {"ToolMatch": ToolMatch, "ArgMatch": ArgMatch}
    modes = [
        eval(mode, dict(known))  # noqa: S307 - our own documentation
        for row in cells("from-deepeval", "| `ToolCorrectnessMetric` | `ToolCallMatch` of |").values()
        for mode in re.findall(r"`(ToolMatch\(.*?\))`", row[0])
    ]
    assert len(modes) == 3


def test_the_results_beside_those_of_agentevals_are_so():
    two = [AIMessage(tool_calls=[ToolCall("f")]), AIMessage(tool_calls=[ToolCall("g")])]
    both = [ToolCall("f"), ToolCall("g")]
    superset = ToolMatch(order="any", args=ArgMatch(mode="at_least"))
    tried = {
        "`strict`: the same calls, one a message instead of two in one": (ToolCallMatch("exact"), two, both),
        "`strict`: calls of one message in another order": (ToolCallMatch("exact"), both, both[::-1]),
        "`true` for `1`": (ToolCallMatch("same_calls"), [call(a=True)], [call(a=1)]),
        "`superset` of arguments, where the first match blocks a better one": (
            ToolCallMatch(superset),
            [call(a=1, b=2), call(a=1)],
            [call(a=1), call(a=1, b=2)],
        ),
        "arguments that are not JSON": (ToolCallMatch("same_calls"), [ToolCall("f", "{")], [call(a=1)]),
        "no reference at all": (ToolCallMatch("same_calls"), [call(a=1)], None),
    }
    written = cells("from-agentevals", "| case |")
    assert list(written) == list(tried)
    for case, given in tried.items():
        assert same(written[case][1], result(*given)), (case, result(*given))


@pytest.mark.parametrize("page", ["from-deepeval", "from-promptfoo", "from-agentevals"])
def test_what_is_named_beside_metrics_of_others_is_there(page):
    text = (DOCS / f"{page}.md").read_text(encoding="utf-8")
    tables = re.findall(
        r"^\| [^|\n]*deepeval[^|\n]*\|.*?\n\n|^\| (?:agentevals|promptfoo) \|.*?\n\n", text, re.MULTILINE | re.DOTALL
    )
    ours = [row.split("|")[2] for table in tables for row in table.splitlines() if row.count("|") > 2]
    named = {name for cell in ours for name in re.findall(r"`([A-Z]\w+)(?=[`(])", cell)}
    assert named, page
    assert named <= {*judgekit.__all__, *behavior.__all__, *constraints.__all__}
    prompts = {name for cell in ours for name in re.findall(r'PromptScorer\("(\w+)"', cell)}
    assert prompts <= {prompt.name for prompt in shipped_prompts()}
