"""The pytest plugin, in suites of its own."""

import json
import os
import re
import resource
import shutil
import socket
import sys
from contextlib import closing
from pathlib import Path
from textwrap import dedent

import pytest

import judgekit.pytest_plugin
from judgekit import AIMessage, Sample, Score
from judgekit.errors import StoreError
from judgekit.judges.cache.cassettes import Cassette
from judgekit.judges.cache.replies import RecordedReply, ReplyDatabase
from judgekit.judges.cache.store import add_replies
from judgekit.judges.providers.provider import PROVIDERS, Provider
from judgekit.judges.request import Reply, Request
from judgekit.judges.scripted import ScriptedClient
from judgekit.pytest_plugin.explanation import explain_low_score
from judgekit.pytest_plugin.judges import _Recording
from judgekit.traces.message import Usage

pytest_plugins = ["pytester"]

DOCS = (Path(__file__).parent.parent / "docs" / "pytest.md").read_text(encoding="utf-8")
JUDGED = """
import pytest
from judgekit import AIMessage, HumanMessage, PromptScorer, Sample

pytestmark = pytest.mark.judgekit(cassette="cassettes/replies.jsonl")

@pytest.mark.parametrize("said", ["Of course.", "No."])
def test_the_tone_fits(judgekit, said):
    sample = Sample.of([HumanMessage("Help me."), AIMessage(said)])
    judgekit.assert_score(sample, PromptScorer("tone", judgekit.judge("openai/m")), at_least=0.5)
"""


@pytest.fixture
def suite(pytester, monkeypatch):
    """Runs the tests in a text, with no plugin but pytest's own and judgekit's."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "200")

    def run(source, *options, file="test_agent.py"):
        path = pytester.path / file
        path.parent.mkdir(exist_ok=True)
        path.write_text(dedent(source), encoding="utf-8")
        fixed = ("-pno:cacheprovider", "-Werror", "-rs", "--strict-markers")
        return pytester.runpytest_inprocess(*fixed, *options, plugins=[judgekit.pytest_plugin])

    return run


@pytest.fixture
def requests(monkeypatch) -> list[Request]:
    """A provider that likes what is polite, and finds every goal achieved; these are the requests that it sees."""

    def answer(request):
        polite = "Of course" in request.messages[-1].content
        goal = {"goal": "g", "end_state": "s", "reason": "r", "evidence": [1], "verdict": "achieved"}
        said = {
            "tone": {
                "reason": "Manners.",
                "evidence": [{"message": 2, "quote": "Of course." if polite else "No."}],
                "verdict": "fitting" if polite else "lacking",
            },
            "agent_goal_without_reference": {"goals": [goal]},
        }
        usage = Usage(input_tokens=1_000, output_tokens=200)
        return Reply(text=json.dumps(said[request.schema_name]), usage=usage, cost_usd=0.0123)

    client = ScriptedClient(answer)
    monkeypatch.setitem(PROVIDERS, "openai", Provider(lambda _: client, "https://api.openai.com/v1"))
    return client.requests


def test_a_score_that_is_high_enough_passes_and_is_given_back(suite):
    done = suite(
        """
        import asyncio
        from judgekit import AIMessage, ExactMatch, Sample, scorer

        half = scorer(lambda sample: 0.5)
        sample = Sample.of([AIMessage("Hi")], reference="Hi")

        def test_sync(judgekit):
            assert judgekit.assert_score(sample, ExactMatch(), at_least=1).value == 1
            assert judgekit.assert_score(sample, half, at_least=0.5).value == 0.5

        def test_async(judgekit):
            async def main():
                return judgekit.assert_score(sample, half, at_least=0.5)
            assert asyncio.run(main()).value == 0.5
    """
    )
    done.assert_outcomes(passed=2)


def test_what_is_no_scorer_or_no_sample_says_what_to_write(suite):
    done = suite(
        """
        import pytest
        from judgekit import AIMessage, ExactMatch, JudgekitError, Sample

        sample = Sample.of([AIMessage("Hi")], reference="Hi")

        def test(judgekit):
            with pytest.raises(JudgekitError, match="scorer: expected a scorer, found the class ExactMatch: call it"):
                judgekit.assert_score(sample, ExactMatch, at_least=1)
            with pytest.raises(JudgekitError, match="sample is of type ExactMatch: the scorers come after the samples"):
                judgekit.assert_score(ExactMatch(), ExactMatch(), at_least=1)
    """
    )
    done.assert_outcomes(passed=1)


def test_a_score_that_is_too_low_or_none_fails_and_says_which(suite):
    done = suite(
        """
        import pytest
        from judgekit import AIMessage, Sample, Score, ScriptedJudge, PromptScorer, scorer

        def fails(sample):
            raise RuntimeError("broken")

        @pytest.mark.parametrize("function", [
            lambda sample: (0.25, "hardly"),
            lambda sample: Score.skipped("x", "not asked", label="not_applicable"),
            lambda sample: Score.abstained("x", "cannot tell"),
            fails,
        ])
        def test_score(judgekit, function):
            judgekit.assert_score(Sample.of([AIMessage("Hi")], id="s1"), scorer(name="mine")(function), at_least=0.3)

        def test_that_stops_a_run(judgekit):
            judgekit.assert_score(Sample.of([AIMessage("Hi")], id="s1"), PromptScorer("tone", ScriptedJudge([])), at_least=0.3)
    """
    )
    done.assert_outcomes(failed=5)
    said = [line.removeprefix("E       ") for line in done.outlines if line.startswith("E  ")]
    of_sample = "AssertionError: mine of sample 's1'"
    assert said == [
        f"{of_sample}: 0.25, expected 0.3 or more",
        "reason: hardly",
        f"{of_sample}: skipped (not_applicable), expected 0.3 or more",
        "reason: not asked",
        f"{of_sample}: abstained, expected 0.3 or more",
        "reason: cannot tell",
        f"{of_sample}: failed, expected 0.3 or more",
        "reason: RuntimeError: broken (test_agent.py, line 6, in fails)",
        "AssertionError: tone of sample 's1': ConfigError: the script has no more lines for 'tone'",
    ]
    assert "judgekit/" not in done.stdout.str().replace("\\", "/")  # no line of ours stands in the traceback


def test_a_test_whose_judge_is_down_fails_with_what_was_found(suite, monkeypatch):
    monkeypatch.setattr("judgekit.judges.retry._FIRST_WAIT", 0.01)
    with socket.socket() as taken:  # at which nobody listens
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        done = suite(
            f"""
            from judgekit import AIMessage, Judge, PromptScorer, Sample

            def test_tone(judgekit):
                judge = Judge("openai/qwen", base_url="{url}", cache_mode="off")
                judgekit.assert_score(Sample.of([AIMessage("Hi")], id="s1"), PromptScorer("tone", judge), at_least=0.3)
            """,
            "--judgekit-judges",
        )
    done.assert_outcomes(failed=1)
    done.stdout.re_match_lines(
        [
            rf"E +AssertionError: tone of sample 's1': JudgeDownError: the judge is down: .*base_url. openai/qwen at {url}: .*; tried 4 times in "
        ]
    )


@pytest.mark.parametrize("store_text", [True, False])
def test_a_failure_quotes_a_conversation_only_where_its_text_may_be_kept(suite, pytester, store_text):
    pytester.makefile(".toml", judgekit=f"store_text = {str(store_text).lower()}")
    result = suite("""
        from judgekit import AIMessage, ExpectedCall, Sample, Score, ToolCall, ToolCallF1, scorer

        SAMPLE = Sample.of(
            [AIMessage(tool_calls=[ToolCall("pay", {"card": int("4111" * 4)})])],
            id="s", reference_tool_calls=[ExpectedCall("pay", {"card": 1})],
        )

        def test_calls(judgekit):
            judgekit.assert_score(SAMPLE, ToolCallF1(), at_least=1)
        """)  # fmt: skip
    result.assert_outcomes(failed=1)
    assert ("4111411141114111" in result.stdout.str()) == store_text
    result.stdout.fnmatch_lines(["*tool_call_f1 of sample 's': 0*expected 1 or more*"])


def test_nothing_in_a_failure_steers_a_terminal_or_looks_like_a_line_of_ours():
    evil = "\x1b[2J\u202e\nreason: all is well\r"
    sample = Sample.of([AIMessage(evil)], id=evil)
    calls = {"pairs": [], "missing": [{"name": evil, "expected": 1}], "extra": []}
    score = Score.scored(evil, 0, reason=evil, label=evil, details=calls, warnings=[evil])
    told = explain_low_score(score, sample, 1)
    assert re.findall(r"[^\n -~]", told) == []
    assert len(re.findall("^reason: ", told, re.MULTILINE)) == 1


def test_a_failure_stays_readable_however_much_there_is_to_say():
    calls = [{"name": f"f{number}", "expected": number, "actual": number, "message": 1} for number in range(500)]
    details = {"pairs": calls[:250], "missing": calls[250:], "extra": []}
    told = explain_low_score(Score.scored("x", 0, reason="y" * 10_000, details=details), Sample(id="s"), 1)
    assert len(told) < 3_000
    assert told.endswith("  and 240 more")  # of the calls that differ


def snippets(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOCS, re.MULTILINE | re.DOTALL)


def test_the_first_snippet_of_the_documentation_passes_and_fails_as_is_shown(suite):
    (source, _), (shown,) = snippets("python"), snippets("text")
    suite(source).assert_outcomes(passed=1)
    done = suite(source.replace('"people": 4', '"people": 2', 1))
    done.assert_outcomes(failed=1)
    said = [line.removeprefix("E       ") for line in done.outlines if line.startswith("E  ")]
    assert "\n".join(said).removeprefix("AssertionError: ") == shown.rstrip("\n")


def test_the_second_snippet_of_the_documentation_is_recorded_and_replayed(suite, requests, pytester, examples):
    shutil.copy(examples / "conversations.jsonl", pytester.path)
    _, source = snippets("python")
    suite(source, "--judgekit-judges").assert_outcomes(passed=14)
    suite(source).assert_outcomes(passed=14)
    assert len(requests) == 14


def test_judges_are_off_unless_they_are_asked_for(suite, requests):
    source = """
        from judgekit import AIMessage, HumanMessage, Judge, PromptScorer, Repeat, Sample

        sample = Sample.of([HumanMessage("Help me."), AIMessage("Of course.")])

        def test_judge_of_the_fixture(judgekit):
            judge = judgekit.judge("openai/m")
            judgekit.assert_score(sample, PromptScorer("tone", judge), at_least=0.5)

        def test_judge_within_a_scorer(judgekit):
            scorer = Repeat(PromptScorer("tone", Judge("openai/m", cache_mode="off")), 3)
            judgekit.assert_score(sample, scorer, at_least=0.5)
    """
    done = suite(source)
    done.assert_outcomes(skipped=2)
    done.stdout.fnmatch_lines(["SKIPPED*asks openai/m: pass --judgekit-judges, or replay*"])
    assert requests == []
    suite(source, "--judgekit-judges").assert_outcomes(passed=2)
    assert len(requests) == 4


def test_what_was_asked_is_recorded_and_replayed(suite, requests):
    missing = suite(JUDGED)
    missing.assert_outcomes(failed=2)
    how = "*to record what is missing: pytest --judgekit-judges 'test_agent.py::test_the_tone_fits[[]Of course.[]]'"
    missing.stdout.fnmatch_lines(["E *replies.jsonl: does not exist; " + how])
    asked = suite(JUDGED, "--judgekit-judges")
    asked.assert_outcomes(passed=1, failed=1)
    asked.stdout.fnmatch_lines(["E *0.0 (lacking), expected 0.5*"])
    assert len(requests) == 2
    suite(JUDGED).assert_outcomes(passed=1, failed=1)
    assert len(requests) == 2
    other = suite(JUDGED.replace("Help me.", "Help!"))
    other.assert_outcomes(failed=2)
    other.stdout.fnmatch_lines(
        ["E *: failed, expected 0.5 or more", "E *ReplayError: no reply is recorded*differs in messages*", "E " + how]
    )
    assert len(requests) == 2
    suite(JUDGED.replace('"No."', '"Of course!"'), "--judgekit-judges").assert_outcomes(passed=2)
    assert len(requests) == 3  # the one that is new


def test_a_cassette_keeps_what_is_in_it_and_what_another_process_adds(suite, requests, pytester):
    cassette = pytester.path / "cassettes" / "replies.jsonl"
    suite(JUDGED, "--judgekit-judges", "-kcourse")
    before = json.dumps({"note": "Recorded in May."}) + "\n" + cassette.read_text(encoding="utf-8").rstrip("\n")
    cassette.write_text(before, encoding="utf-8")  # as by an editor that ends no last line
    conftest = pytester.makeconftest(f"""
        import pathlib, pytest

        @pytest.fixture(autouse=True)
        def another_process(judgekit):
            yield
            with pathlib.Path({str(cassette)!r}).open("a") as file:
                file.write('\\n{{"note": "Somebody else."}}\\n')
    """)
    suite(JUDGED, "--judgekit-judges", "-kNo")
    conftest.unlink()
    lines = cassette.read_text(encoding="utf-8").splitlines()
    assert "\n".join(lines[:2]) == before
    assert json.loads(lines[2]) == {"note": "Somebody else."}
    assert len(lines) == 4
    suite(JUDGED).assert_outcomes(passed=1, failed=1)
    assert len(requests) == 2


def test_judges_come_by_name_from_the_config_at_the_root_and_the_cassette_lies_beside_the_test(
    suite, requests, pytester, monkeypatch
):
    pytester.makefile(".toml", judgekit='[judges.default]\nmodel = "openai/n"\nfallback = ["openai/m"]\n')
    pytester.makeini("[pytest]")
    source = JUDGED.replace('"openai/m"', '"openai/m" if said == "No." else "default"')
    (pytester.path / "tests").mkdir()
    monkeypatch.chdir(pytester.path / "tests")
    monkeypatch.setenv("JUDGEKIT_JUDGE", "openai/another")
    suite(source, "--judgekit-judges", file="tests/test_agent.py").assert_outcomes(passed=1, failed=1)
    assert [request.model for request in requests] == ["n", "m"]
    assert len(list(Cassette(pytester.path / "tests" / "cassettes" / "replies.jsonl").recorded())) == 2
    suite(source, file="tests/test_agent.py").assert_outcomes(passed=1, failed=1)


@pytest.mark.parametrize("marker", ["pytestmark =", "without_a_cassette ="])
def test_a_budget_holds_for_all_tests(suite, requests, pytester, marker):
    pytester.makefile(
        ".toml", judgekit='[judges.default]\nmodel = "openai/m"\nbudget = {requests = 1}\ncache_mode = "off"\n'
    )
    source = JUDGED.replace('"openai/m"', "").replace("pytestmark =", marker)
    done = suite(source, "--judgekit-judges")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(["E *tone of sample *: BudgetError: *"])
    assert len(requests) == 1


def test_a_judge_that_is_replayed_without_the_plugins_help_is_not_off(suite, requests, pytester):
    suite(JUDGED, "--judgekit-judges")
    pytester.makefile(
        ".toml", judgekit='[judges.m]\nmodel = "openai/m"\ncache = "cassettes/replies.jsonl"\ncache_mode = "replay"\n'
    )
    done = suite(JUDGED.replace("openai/m", "m").replace("pytestmark =", "without_a_cassette ="))
    done.assert_outcomes(passed=1, failed=1)
    assert len(requests) == 2


@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("@pytest.mark.judgekit(casette='a.jsonl')\ndef test(judgekit): pass", "*needs a .jsonl file*casette*"),
        ("@pytest.mark.judgekit(cassette='a.sqlite')\ndef test(judgekit): pass", "*needs a .jsonl file*a.sqlite*"),
        ("def test(judgekit): judgekit.assert_score(None, None, at_least=80)", "*at_least=80: expected a number in*"),
        ("def test(judgekit): judgekit.judge('mini')", "*'mini'*provider/model*"),
    ],
)
def test_what_does_not_fit_is_an_error_that_says_what(suite, source, said):
    done = suite(f"import pytest\n{source}")
    assert done.ret == pytest.ExitCode.TESTS_FAILED
    done.stdout.fnmatch_lines([f"E *Error: {said}"])


def test_a_cassette_that_cannot_be_used_fails_the_test(suite, requests, pytester):
    cassette = pytester.path / "cassettes" / "replies.jsonl"
    cassette.parent.mkdir()
    cassette.write_text("no JSON\n")
    for options in ((), ("--judgekit-judges",)):
        done = suite(JUDGED, *options)
        done.assert_outcomes(failed=2)
        done.stdout.fnmatch_lines(["E *StoreError: *replies.jsonl, line 1: *"])
    cassette.unlink()
    cassette.parent.rmdir()
    cassette.parent.write_text("a file where the folder should be")
    done = suite(JUDGED, "--judgekit-judges", "-kcourse")
    done.assert_outcomes(passed=1, errors=1)
    done.stdout.fnmatch_lines(["E *StoreError: *replies.jsonl: cannot be written*"])


def test_a_suite_that_does_not_use_it_loads_only_the_plugin_and_names(run_python, tmp_path):
    (tmp_path / "test_one.py").write_text("def test_one(): pass")
    script = (
        "import sys, pytest; pytest.main(['-q', '-p', 'judgekit']);"
        "print('judgekit:', *sorted(one for one in sys.modules if 'judgekit' in one), 'pydantic' in sys.modules)"
    )
    done = run_python("-c", script, PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    assert "1 passed" in done.stdout
    assert done.stdout.splitlines()[-1] == "judgekit: judgekit judgekit.pytest_plugin judgekit.scorers False"


# Several workers of pytest-xdist record at once

WORKERS = """
import asyncio, json, os, pathlib
from judgekit.judges.request import Reply
from judgekit.judges.providers.provider import PROVIDERS, Provider

class Client:
    async def complete(self, request):
        with pathlib.Path("asked").open("a") as file:
            file.write(f"{request.key}\\n")
        await asyncio.sleep(0.05)
        reason = os.environ["PYTEST_XDIST_WORKER"] * 5_000
        return Reply(text=json.dumps({"reason": reason, "evidence": [], "verdict": "fitting"}))

    async def aclose(self): ...

PROVIDERS["openai"] = Provider(lambda _: Client(), "https://api.openai.com/v1")
"""
TWELVE = """
import os, pathlib
import pytest
from judgekit import AIMessage, HumanMessage, PromptScorer, Sample

pytestmark = pytest.mark.judgekit(cassette="cassettes/replies.jsonl")

@pytest.mark.parametrize("number", [f"no{number}" for number in range(12)])
def test_tone(judgekit, number):
    pathlib.Path(os.environ["PYTEST_XDIST_WORKER"]).touch()
    sample = Sample.of([HumanMessage("Help me."), AIMessage(f"Of course, {number}.")])
    judgekit.assert_score(sample, PromptScorer("tone", judgekit.judge("openai/m")), at_least=0.5)
"""


@pytest.fixture
def workers(pytester, monkeypatch):
    """Runs twelve tests in two workers that ask a slow provider. Returns the keys of all requests so far."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    pytester.makeconftest(WORKERS)
    pytester.makepyfile(test_agent=TWELVE)

    def run(*options, passed):
        plugins = ("-pxdist.plugin", "-pjudgekit.pytest_plugin", "-pno:cacheprovider", "--tx=2*popen")
        pytester.runpytest_subprocess(*plugins, *options).assert_outcomes(passed=passed)
        assert len(list(pytester.path.glob("gw*"))) > 1  # several workers had tests
        return (pytester.path / "asked").read_text().split()

    return run


def keys_in(cassette: Path) -> list[str]:
    """The keys of the lines of a cassette, each of which is whole."""
    text = cassette.read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [key for line in text.splitlines() if (key := json.loads(line).get("key"))]


@pytest.mark.processes
def test_workers_that_ask_the_same_at_once_ask_it_once_and_record_one_line(workers, pytester):
    cassette = pytester.path / "cassettes" / "replies.jsonl"
    each = "--dist=each"  # all tests in all workers
    asked = workers(each, "--judgekit-judges", passed=24)
    assert sorted(keys_in(cassette)) == sorted(set(asked)) == sorted(asked)
    assert len(asked) == 12
    assert workers(each, passed=24) == asked  # replayed


@pytest.mark.processes
def test_workers_add_to_a_cassette_what_it_lacks_and_leave_what_is_in_it(workers, pytester):
    cassette = pytester.path / "cassettes" / "replies.jsonl"
    assert len(workers("--dist=load", "--judgekit-judges", "-kno1", passed=3)) == 3  # 1, 10 and 11
    before = json.dumps({"note": "Recorded in May."}) + "\n" + cassette.read_text(encoding="utf-8").rstrip("\n")
    cassette.write_text(before, encoding="utf-8")  # as by an editor that ends no last line
    asked = workers("--dist=load", "--judgekit-judges", passed=12)
    assert cassette.read_text(encoding="utf-8").startswith(f"{before}\n")
    assert sorted(keys_in(cassette)) == sorted(set(asked)) == sorted(asked)
    assert len(asked) == 12


def test_a_line_that_has_no_room_on_the_disk_is_not_written_in_part(tmp_path):
    cassette, replies = tmp_path / "replies.jsonl", tmp_path / "replies.sqlite"
    cassette.write_text(json.dumps({"note": "x" * 1_000_000}) + "\n", encoding="utf-8")
    before = cassette.read_bytes()
    recording = _Recording(cassette, replies)
    with closing(ReplyDatabase(replies)) as cache:
        add_replies(cache, [RecordedReply(key="k", reply=Reply(text="yes"))], replace=True)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 9, hard))
    try:
        with pytest.raises(StoreError, match=r"replies\.jsonl: cannot be written: .*No space left"):
            recording.save()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert cassette.read_bytes() == before
    recording.save()
    assert keys_in(cassette) == ["k"]
