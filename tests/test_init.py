"""The face of the package: its public names, loaded when they are asked for."""

import ast
import builtins
import json
import pkgutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import judgekit

HEAVY = ["openai", "httpx", "httpx2", "numpy", "scipy", "sklearn", "sacrebleu", "rich", "jinja2", "yaml", "typer"]


def promised() -> dict[str, str]:
    """What type checkers are told: public name to module, read from the source."""
    tree = ast.parse(Path(judgekit.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If) and isinstance(node.test, ast.Name)]
    assert block.test.id == "TYPE_CHECKING"
    found = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for name in node.names:
            assert name.asname == name.name  # a re-export, to type checkers
            found[name.name] = node.module
    return found


def in_a_fresh_interpreter(script: str, folder: Path) -> object:
    done = subprocess.run(  # noqa: S603 - the scripts below
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=folder
    )
    return json.loads(done.stdout)


def test_importing_judgekit_loads_nothing_heavy(tmp_path):
    script = (
        "import json, sys, pydantic; before = {*sys.modules}; from judgekit import Sample, ToolCallF1; "
        "print(json.dumps(sorted({*sys.modules} - before)))"  # old versions of its own needs load asyncio
    )
    loaded = in_a_fresh_interpreter(script, tmp_path)
    assert "judgekit.scorers.tool_calls.f1" in loaded
    assert [name for name in (*HEAVY, "asyncio", "concurrent", "difflib") if name in loaded] == []


STEPS = """
import json, sys
steps, before = {}, {*sys.modules}

def step(name):
    steps[name] = sorted({*sys.modules} - before)

import judgekit
step("package")
listed = dir(judgekit)
from judgekit import run
step("run")
from judgekit import AIMessage, ExpectedCall, HumanMessage, Sample, ToolCall, ToolCallF1
call = AIMessage("", tool_calls=[ToolCall("look", {})])
right, wrong = [ExpectedCall("look", {})], [ExpectedCall("look", {}), ExpectedCall("book", {})]
samples = [
    Sample.of([HumanMessage(f"Hi {n}"), call], id=str(n), reference_tool_calls=known)
    for n, known in enumerate([right, wrong, right])
]
[line] = run(samples, [ToolCallF1()], store=None).summary
method = line.interval.method
step("scores")
names = {}
exec("from judgekit import *", names)
print(json.dumps({"steps": steps, "listed": listed, "method": method, "star": [*names]}))
"""
LATER = ("scipy", "sklearn", "rich", "judgekit.formats", "judgekit.judges", "judgekit.config")


def test_names_are_listed_before_they_are_loaded_and_what_is_not_needed_is_not_loaded(tmp_path):
    """A summary takes Student's t, and no scipy."""
    seen = in_a_fresh_interpreter(STEPS, tmp_path)
    steps = seen["steps"]
    ours = {step: {name for name in modules if name.split(".")[0] == "judgekit"} for step, modules in steps.items()}
    assert ours["package"] == {"judgekit", "judgekit.scorers"}
    assert {*judgekit._HOMES, "__version__"} <= set(seen["listed"])
    assert "judgekit.jobs.api" in ours["run"]
    assert len(ours["run"]) <= 10
    assert [name for name in ours["run"] if name.startswith("judgekit.formats")] == []
    assert [name for name in HEAVY if name in steps["run"]] == []
    assert seen["method"] == "modified Wilson"
    assert [name for name in steps["scores"] if name.startswith(LATER)] == []
    assert {*seen["star"]} - {"__builtins__"} == judgekit._HOMES.keys()


def test_public_names_are_listed_once_and_hide_no_builtin():
    assert dir(judgekit) == sorted(set(dir(judgekit)))
    assert not judgekit._HOMES.keys() & vars(builtins).keys()


def test_type_checkers_are_told_what_is_there():
    assert promised() == judgekit._HOMES


def test_each_public_name_is_the_one_of_its_module():
    homes = promised()
    for name in judgekit._HOMES:
        assert getattr(judgekit, name) is getattr(import_module(homes[name]), name)


def test_no_public_name_is_the_name_of_a_module():
    """Importing that module would put it in the name's place."""
    modules = {module.name for module in pkgutil.iter_modules(judgekit.__path__)}
    assert {"score", "scorers", "runs", "cli"} <= modules
    assert modules & judgekit._HOMES.keys() == set()


def test_public_names_stay_what_they_are_when_all_modules_are_loaded():
    for module in pkgutil.walk_packages(judgekit.__path__, "judgekit."):
        import_module(module.name)
    assert [name for name in judgekit._HOMES if type(getattr(judgekit, name)).__name__ == "module"] == []


@pytest.mark.parametrize("name", ["ToolCallF2", "_hidden", "evaluate"])
def test_an_unknown_name_is_an_attribute_error(name):
    with pytest.raises(AttributeError, match=f"^module 'judgekit' has no attribute '{name}'$"):
        getattr(judgekit, name)
    assert not hasattr(judgekit, name)
