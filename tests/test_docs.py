"""README.md and the docs: what they list exists, and their configs load. `test_site` runs their code."""

import asyncio
import inspect
import json
import re
import tomllib
import typing
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from rouge_score.rouge_scorer import RougeScorer

import judgekit.jobs.resume
import judgekit.scorers.tool_calls.matchers
from judgekit import BLEU, ROUGE, ArgMatch, Judge, Sample, ToolCallAccuracy, ToolCallF1, errors
from judgekit.config import Config
from judgekit.formats.reading import read
from judgekit.judges.layers import build_client
from judgekit.judges.limits.budget import Budget
from judgekit.judges.limits.spending import SQLiteSpending
from judgekit.judges.prompt_file import shipped_prompts
from judgekit.judges.request import Client
from judgekit.judges.structured_output import SchemaSupport
from judgekit.probes.suite import probe_pairs
from judgekit.scorers import SCORERS
from judgekit.scorers.tool_calls.constraints import Constraint
from judgekit.scorers.tool_calls.modes import PRESETS, ToolMatch
from judgekit.specs import ScorerSpec
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall

ROOT = Path(__file__).parent.parent
PACKAGE = Path(judgekit.__file__).parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCORERS_PAGE = (ROOT / "docs" / "scorers.md").read_text(encoding="utf-8")
TOOL_CALLS = (ROOT / "docs" / "tool-calls.md").read_text(encoding="utf-8")
JUDGED = (ROOT / "docs" / "judged-scorers.md").read_text(encoding="utf-8")
FROM_RAGAS = (ROOT / "docs" / "from-ragas.md").read_text(encoding="utf-8")
ARCHITECTURE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
JUDGE_INPUT = (ROOT / "docs" / "concepts-judge-input.md").read_text(encoding="utf-8")
JUDGES = (ROOT / "docs" / "judges.md").read_text(encoding="utf-8")


def snippets(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}(?: title=\S+)?\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_the_config_snippet_loads_as_written(tmp_path):
    (tmp_path / "judgekit.toml").write_text(snippets(README, "toml")[0], encoding="utf-8")
    judge = Config(tmp_path / "judgekit.toml", None, {}).build(ScorerSpec.parse("topic_adherence")).judge
    assert (judge.model, judge.price.output, judge.budget.usd) == ("openai/gpt-6-luna", 0.5, 5.0)


def test_the_table_of_scorers_has_all_of_them():
    listed = re.findall(r"`(\w+)[^`]*`", "".join(re.findall(r"^\| (`.*?) \|", SCORERS_PAGE, re.MULTILINE)))
    assert sorted({*listed}) == sorted(SCORERS)


def test_the_map_of_packages_has_all_of_them_in_the_order_of_the_import_contract():
    packages = re.search(r"## Packages\n(.*?)\n## ", ARCHITECTURE, re.DOTALL)[1]
    rows = [re.findall(r"`([\w/.]+)`", row.split("|")[1]) for row in packages.splitlines() if row.startswith("| `")]
    there = {f"{one.name}/" if one.is_dir() else one.name for one in PACKAGE.iterdir() if "__" not in one.name}
    assert {name for row in rows for name in row} == there - {
        "py.typed",
        "prompts/",
        "examples/",
        "skills/",
    }  # a wheel has these
    (layers, *_) = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    floors = {module: floor for floor, row in enumerate(layers["layers"]) for module in re.findall(r"\.(\w+)", row)}
    heights = [[floors[re.sub(r"/$|\.py$", "", name)] for name in row] for row in rows]
    assert [height for row in heights for height in row] == sorted(height for row in heights for height in row)


def test_the_layers_are_those_of_the_architecture_in_their_order(tmp_path, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    judge = Judge("openai/judge-1", cache=tmp_path / "cache.sqlite", budget=Budget(requests=1))

    async def built() -> list[str]:
        async with AsyncExitStack() as closing:
            layer: object = await build_client(judge, SQLiteSpending(), SchemaSupport(), closing)
            names = [type(layer).__name__]
            while (layer := getattr(layer, "inner", None)) is not None:
                names.append(type(layer).__name__)
        return names

    way = ARCHITECTURE.partition("## How a judge is queried")[2].partition("\n## ")[0]
    assert asyncio.run(built()) == [*re.findall(r"^\| `(\w+)` \|", way, re.MULTILINE)]


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:[a-z_]+/)*[a-z_]+\.py)`", (ROOT / "docs" / "architecture.md").read_text())))
)
def test_the_files_that_the_architecture_names_are_there(path):
    assert any((folder / path).is_file() for folder in (PACKAGE, PACKAGE.parent, ROOT))


def test_the_readme_opens_with_the_two_commands_and_stays_short():
    assert snippets(README, "bash")[0].splitlines() == [
        "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/judgekit demo",
        ".venv/bin/pip install -q -e '.[test]' && .venv/bin/pytest -q -n auto",
    ]
    assert len(README.splitlines()) <= 140


def test_the_reference_row_in_the_readme_joins(tmp_path):
    (tmp_path / "refs.jsonl").write_text(snippets(README, "json")[0], encoding="utf-8")
    (tmp_path / "rows.jsonl").write_text('{"id": "t1", "messages": [{"role": "user", "content": "Hi"}]}\n')
    (sample,) = read(tmp_path / "rows.jsonl", references=tmp_path / "refs.jsonl", on_error="raise")
    assert sample.reference == "A table for four is booked."
    assert sample.reference_tool_calls[0].args == {"people": 4}


@pytest.mark.parametrize("script", ["deterministic", "judged", "own_scorer"])
def test_the_examples_run(script, forked, examples):
    command = forked("python", examples / f"{script}.py")
    out, err = command.communicate()
    assert (command.returncode, err) == (0, "")
    assert "n=14 of 14" in out


def test_the_example_of_a_table_of_answers_gives_the_numbers_of_counting_by_hand(forked, examples):
    """Matched are capital, return and delivery; wrong are the two of which only one negates; one is not answered."""
    command = forked("python", examples / "answers.py")
    out, err = command.communicate()
    assert (command.returncode, err) == (0, "")
    assert re.search(r"^answer_match +0\.55 \(n=6 of 6\)$", out, re.MULTILINE)  # 2 x 3 / (2 x 3 + 2 x 2 + 1)
    assert "f1; accuracy 0.500, precision 0.600, recall 0.500, f1 0.545" in out
    assert "author: no_answer, the response is empty" in out


def test_the_judges_of_the_documentation_load_as_written(tmp_path):
    (tmp_path / "judgekit.toml").write_text(snippets(JUDGES, "toml")[0], encoding="utf-8")
    config = Config(tmp_path / "judgekit.toml", None, {})
    default = config.judge("default")
    assert default.fallback == (config.judge("local"),)
    assert (default.budget.usd, default.price.output, default.redact) == (5.0, 0.5, ("email", "phone"))
    assert config.judge("claude").provider == "litellm"


def test_the_settings_that_the_documentation_shows_with_their_defaults_have_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "judgekit.toml").write_text(snippets(JUDGES, "toml")[0], encoding="utf-8")
    shown, plain = Config(Path("judgekit.toml"), None, {}).judge("default"), Judge("openai/judge-model")
    for name in ("timeout", "attempts", "concurrency", "cache", "cache_mode"):
        assert f"{name} = " in JUDGES
        assert getattr(shown, name) == getattr(plain, name)


def test_each_failure_of_a_judge_stands_in_the_documentation():
    listed = set(re.findall(r"`(\w+Error)`", JUDGES))
    there = {
        name
        for name, one in vars(errors).items()
        if inspect.isclass(one) and issubclass(one, errors.JudgeError | errors.StoreError | errors.ConfigError)
    }
    assert listed == there - {"JudgeError", "PlannedError"}  # the root, and what is no failure


def test_what_the_documentation_says_of_stopping_a_run_is_so():
    rows = [line.split("|") for line in JUDGES.splitlines() if "Error`" in line]
    stopping = {name for _, names, _, then, _ in rows for name in re.findall(r"\w+Error", names) if "run stops" in then}
    assert stopping == {one.__name__ for one in errors.STOPS_RUN}
    judges = {
        name for _, names, _, then, _ in rows for name in re.findall(r"\w+Error", names) if "scorers stop" in then
    }
    assert judges == {one.__name__ for one in errors.STOPS_JUDGE}


def test_the_client_of_the_documentation_is_one():
    names: dict[str, typing.Any] = {}
    exec(snippets(JUDGES, "python")[0], names)  # noqa: S102 - our own documentation
    assert isinstance(names["MyClient"](), Client)


def rows_of(text: str, head: str) -> list[list[str]]:
    """The cells of a table's rows, found by how its first line begins."""
    table = text[text.index(head) :].partition("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()[2:]]


def test_the_config_on_tool_calls_loads_as_written(tmp_path):
    (tmp_path / "judgekit.toml").write_text(snippets(TOOL_CALLS, "toml")[0], encoding="utf-8")
    config = Config(tmp_path / "judgekit.toml", None, {})
    match, f1, accuracy, constraints = map(config.build, config.scorers)
    assert (match.name, match.match.order, match.match.tools["search*"].mode) == (
        "refunds_in_order",
        "in_order",
        "ignore",
    )
    assert (f1.args.text, f1.args.ignore) == ("casefold", ("request_id",))
    assert accuracy == ToolCallAccuracy(args=ROUGE("rouge1"))
    assert [one.type for one in constraints.constraints] == ["before", "forbid"]


def test_the_tables_on_tool_calls_name_every_preset_field_matcher_and_rule():
    code = re.compile(r"`([^`]+)`")
    presets = {row[0].strip("`"): [cell.strip("`") for cell in row[1:4]] for row in rows_of(TOOL_CALLS, "| preset")}
    assert presets == {name: [one.order, one.extra, one.missing] for name, one in PRESETS.items()}
    for kind in (ToolMatch, ArgMatch):
        rows = rows_of(TOOL_CALLS, f"| field of `{kind.__name__}`")
        assert [name for row in rows for name in code.findall(row[0])] == list(kind.model_fields)
        for names, told in rows:
            for name in code.findall(names):
                values = typing.get_args(kind.model_fields[name].annotation)
                words = {one for value in values for one in (value, *typing.get_args(value)) if isinstance(one, str)}
                assert words <= set(code.findall(told)), name
    matchers = rows_of(TOOL_CALLS, "| function | in JSON")
    assert len(matchers) == 8
    for function, as_json, _ in matchers:
        assert eval(function.strip("`"), vars(judgekit.scorers.tool_calls.matchers)) == json.loads(as_json.strip("`"))  # noqa: S307 - our own documentation
    rules = {row[0].strip("`").partition("(")[0] for row in rows_of(TOOL_CALLS, "| rule")}
    assert rules == {kind.__name__ for kind in Constraint.__subclasses__()}


def test_what_other_tools_call_it_names_presets_that_there_are():
    peers = rows_of(TOOL_CALLS, "| tool, mode")
    named = {name for row in peers for name in re.findall(r'`"(\w+)"`', row[1])}
    assert {"exact", "same_calls", "contains", "contains_in_order"} == named
    assert all(len(row) == 3 for row in peers)


def test_a_judged_class_of_ones_own_needs_no_model_in_tests():
    text = (ROOT / "docs" / "write-a-scorer.md").read_text()
    (source,) = (one for one in snippets(text, "python") if "class Calm" in one)
    (made,) = re.findall(r"`(Calm\(ScriptedJudge\(.*?\}\]\)\))`", text, re.DOTALL)
    names: dict[str, typing.Any] = {}
    exec(source, names)  # noqa: S102 - our own documentation
    recorded = Sample.of([HumanMessage("Thanks!"), AIMessage("You are welcome.")])
    score = eval(made, {**names, "ScriptedJudge": judgekit.ScriptedJudge}).score(recorded)  # noqa: S307 - our own documentation
    assert (score.value, score.label, score.reason) == (1, "none_shown", "Thanks.")


def test_the_numbers_that_the_documentation_says_differ_from_those_of_ragas_are_so():
    rows = {case.partition(":")[0]: (theirs, ours) for case, theirs, ours, _ in rows_of(FROM_RAGAS, "| case |")}
    call, other = ToolCall("f", {"a": 1}), ToolCall("f", {"a": 1, "b": 2})
    said, as_text = ToolCall("f", {"a": True}), ToolCall("f", {"a": "True"})
    tried = {
        "a call made twice, expected once": (ToolCallF1(), [call, call], [call]),
        "no call expected, none made": (ToolCallF1(), [], []),
        "an unexpected argument": (ToolCallAccuracy(), [other], [call]),
        '`true` for the text `"True"`': (ToolCallAccuracy(), [as_text], [said]),
    }
    for case, (scorer, made, expected) in tried.items():
        sample = Sample.of([HumanMessage("x"), AIMessage("y", tool_calls=made)], reference_tool_calls=expected)
        assert f"{scorer.score(sample).value:.3f}".startswith(rows[case][1]), case
    texts = (
        "The agent booked the table at eight. ",
        "The guest received a text message.",
        "Purple engines sing quietly under glass.",
    )
    two = Sample.of([AIMessage(texts[0] + texts[2])], reference=texts[0] + texts[1])
    assert f"{BLEU().score(two).value:.3f}" == rows["two sentences, the second is wrong"][1]
    plural, given = "cheap hotels", "cheap hotel"
    stems = RougeScorer(["rouge1"], use_stemmer=True).score(given, plural)["rouge1"].fmeasure  # as ragas does
    by_default = ROUGE("rouge1").score(Sample.of([AIMessage(plural)], reference=given)).value
    assert (str(stems), str(by_default)) == rows["`cheap hotels` for `cheap hotel`"]
    chinese = Sample.of([AIMessage("巴黎是法国的首都")], reference="巴黎是法国的首都")
    assert str(ROUGE("rouge1").score(chinese).value) == rows["equal texts in Chinese"][1]


TEXTS = [
    ("The agents booked cheap hotels", "An agent books the cheapest hotel"),
    ("running runs quickly", "ran quick run"),
    ("Café naïve, 3.14 studies!", "cafe naive study 3.14"),
    ("北京 hotels 旅馆", "hotel 北京"),
    ("", "relational rates"),
]


@pytest.mark.parametrize(("response", "reference"), TEXTS)
@pytest.mark.parametrize("kind", ["rouge1", "rougeL"])
def test_the_options_that_the_documentation_names_for_rouge_give_the_numbers_of_ragas(kind, response, reference):
    """Those of rouge-score with ``use_stemmer=True``, which ragas calls."""
    (named,) = re.findall(r"\| `(ROUGE\([^`]*)`", FROM_RAGAS)
    theirs = RougeScorer([kind], use_stemmer=True).score(reference, response)[kind]
    sample = Sample.of([AIMessage(response)], reference=reference)
    for mode, value in (("f1", theirs.fmeasure), ("precision", theirs.precision), ("recall", theirs.recall)):
        scorer = eval(named, {"ROUGE": ROUGE, "type": kind, "mode": mode})  # noqa: S307 - our own documentation
        assert scorer.score(sample).value == pytest.approx(value, abs=1e-12)


def test_the_config_on_judged_scorers_loads_as_written(tmp_path):
    (tmp_path / "judgekit.toml").write_text(snippets(JUDGED, "toml")[0], encoding="utf-8")
    config = Config(tmp_path / "judgekit.toml", "openai/a", {})
    (criteria,) = map(config.build, config.scorers)
    (tmp_path / "judgekit.toml").write_text(snippets(JUDGED, "toml")[1], encoding="utf-8")
    config = Config(tmp_path / "judgekit.toml", None, {"JUDGEKIT_JUDGE": "openai/a"})
    (sure,) = map(config.build, config.scorers)
    assert (sure.name, sure.escalate.scorer.judge.model) == ("tone_auto", "litellm/anthropic/claude-sonnet-4-5")
    assert (criteria.required, list(criteria.weights)) == (("booked",), ["booked", "confirmed", "polite"])


def test_each_shipped_prompt_with_a_scale_stands_in_the_documentation_beside_what_it_needs():
    needs = {
        name: {one.strip("`") for one in re.findall(r"`\w+`", needed)}
        for names, needed in rows_of(JUDGED, "| prompts | need |")
        for name in re.findall(r"`(\w+)`", names)
    }
    scaled = {prompt.name: {*prompt.inputs} - {"conversation"} for prompt in shipped_prompts() if prompt.scale}
    assert needs == scaled
    assert f"`prompt:tone`, `prompt:faithfulness` and {len(scaled) - 2} others" in SCORERS_PAGE


def test_the_numbers_of_the_documentation_on_attacks_are_those_of_the_suite():
    clean, attacks = {pair.clean.id for pair in probe_pairs()}, len(probe_pairs())
    assert len(clean) == 9
    assert f"one of {attacks} texts" in " ".join(JUDGE_INPUT.split())
    assert f"That is {attacks + len(clean)} requests" in JUDGE_INPUT


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda page: page.name
)
def test_links_lead_to_pages_and_headings_that_exist(page):
    for path, anchor in re.findall(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)", prose(page)):
        target = page.parent / path if path else page
        assert target.exists(), path
        documented = anchor.rpartition(".")[0] if anchor.startswith("judgekit.") else None  # a member's owner
        assert not anchor or anchor in anchors(target) or f"::: {documented}\n" in target.read_text(), (
            f"{path}#{anchor}"
        )
