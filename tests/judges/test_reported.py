"""What a provider reports of the model that answered, from its reply over a real connection to what is said of a run."""

import io
from collections.abc import Callable

import pytest

from judgekit import Run, compare, read, run
from judgekit.analysis.gates import check_gates
from judgekit.judges.cache.cache import CacheMode
from judgekit.judges.judge import Judge
from judgekit.judges.scripted import ScriptedJudge
from judgekit.reports.csv_export import csv_lines
from judgekit.reports.html import html_report
from judgekit.reports.markdown import markdown_report
from judgekit.reports.summary import show_summary
from judgekit.scorers.goal import AgentGoalAccuracyWithoutReference
from judgekit.terminal import console
from judgekit.traces.sample import Sample

GOAL = "agent_goal_accuracy_without_reference"
APRIL, JULY = "judge-model-2026-04-14", "judge-model-2026-07-01"
HOSTILE = "\x1b[2J</script><script>alert(1)</script>\u202e=1+1, gpt-5 (99)"


@pytest.fixture
def scored(server, sample, achieved, tmp_path) -> Callable[..., Run]:
    """Scores so many samples by a judge whose server reports, for each answer in turn, a model and a fingerprint."""

    def made(
        *reported: tuple[object, object], samples: int | None = None, cache_mode: CacheMode = "off", **settings: object
    ) -> Run:
        server.requests.clear()
        server.script = [
            server.says(achieved, model=model, system_fingerprint=fingerprint) for model, fingerprint in reported
        ]
        asked = [
            sample.model_copy(update={"id": f"s{number}", "reference": f"{number}"})
            for number in range(samples or len(reported))
        ]
        judge = Judge(
            "openai/judge-model",
            base_url=server.url,
            cache=tmp_path / "cache.sqlite",
            cache_mode=cache_mode,
            concurrency=1,
            **settings,
        )
        return run([distinct(one) for one in asked], [AgentGoalAccuracyWithoutReference(judge)], concurrency=1)

    return made


def distinct(sample: Sample) -> Sample:
    """The sample with its id in its conversation, so that no two are one question."""
    first, *others = sample.trace.messages
    messages = (first.model_copy(update={"content": f"{sample.id}: {first.content}"}), *others)
    return sample.model_copy(update={"trace": sample.trace.model_copy(update={"messages": messages})})


def shown(found: Run) -> dict[str, str]:
    """What is said of a run, wherever its summary is."""
    on = console()
    on.file = io.StringIO()
    show_summary(found.summary, on)
    return {
        "terminal": on.file.getvalue(),
        "markdown": "".join(markdown_report(found, check_gates(found, []))),
        "page": "".join(html_report(found)),
        "text": str(found),
    }


def reported(found: Run) -> list[tuple[str | None, str | None, bool]]:
    return [(call.model, call.system_fingerprint, call.cached) for row in found for call in row.score.calls]


def warnings(a: Run, b: Run) -> list[str]:
    return list(compare(a, b).warnings)


# Within a run


def test_a_model_that_changes_within_a_run_is_said_wherever_the_run_is_summed_up(scored):
    found = scored((APRIL, "fp_a"), (APRIL, "fp_a"), (APRIL, "fp_a"), (JULY, "fp_b"))
    assert found.summary[GOAL].answers.models == {"openai/judge-model": {APRIL: 3, JULY: 1}}
    assert found.summary[GOAL].answers.fingerprints == {"openai/judge-model": {"fp_a": 3, "fp_b": 1}}
    said = f"openai/judge-model answered as 2 models: {APRIL} (3), {JULY} (1)"
    assert [place for place, text in shown(found).items() if said not in text] == []


@pytest.mark.parametrize("one", [(APRIL, "fp_a"), (APRIL, None), (None, None)])
def test_nothing_is_said_of_a_run_with_one_model_or_none_reported(scored, one):
    found = scored(one, one)
    assert reported(found) == [(*one, False)] * 2
    assert list(found.summary[GOAL].notes()) == []


@pytest.mark.parametrize("odd", [["m"], {"m": 1}, 3, True, "", None], ids=repr)
def test_what_is_no_name_is_not_reported(scored, odd):
    found = scored((odd, odd))
    assert reported(found) == [(None, None, False)]
    assert found.summary[GOAL].value == 1


def test_names_that_are_huge_or_steer_something_are_cut_and_escaped(scored):
    found = scored((HOSTILE, "fp_a"), ("m" * 10**5, "\x00" * 10**5))
    assert found.summary[GOAL].value == 1
    assert reported(found) == [(HOSTILE, "fp_a", False), ("m" * 300, "\x00" * 300, False)]
    places = shown(found)
    assert {"\x1b", "\u202e", "\x00"}.isdisjoint("".join(places.values()))
    assert "<script>alert" not in places["page"]
    assert len(places["text"]) < 1_000
    [line] = (one for one in places["text"].splitlines() if "answered as" in one)
    assert "'\\x1b[2J" in line  # in quotes, so that it cannot be taken for two names
    assert '"\x1b[2J' not in "".join(csv_lines(list(found)))


# What is kept


def test_a_cached_reply_keeps_what_was_reported_when_it_was_answered(scored, server, tmp_path):
    scored((APRIL, "fp_a"), cache_mode="read_write")
    again = scored((JULY, "fp_b"), (JULY, "fp_b"), cache_mode="read_write")
    assert reported(again) == [(APRIL, "fp_a", True), (JULY, "fp_b", False)]
    assert len(server.requests) == 1
    assert f"answered as 2 models: {APRIL} (1), {JULY} (1)" in str(again)
    refreshed = scored((JULY, "fp_b"), cache_mode="refresh")
    assert reported(refreshed) == [(JULY, "fp_b", False)]
    assert reported(scored((APRIL, "fp_a"), cache_mode="replay")) == [(JULY, "fp_b", True)]


# Between two runs


def test_two_runs_that_other_models_answered_are_warned_of(scored):
    before, after = scored((APRIL, "fp_a"), (APRIL, "fp_a")), scored((APRIL, "fp_a"), (JULY, "fp_b"))
    [found] = warnings(before, after)
    assert found == (
        "openai/judge-model answered as different models in the two runs, so the difference may come from the judge: "
        f"A {APRIL} (2); B {APRIL} (1), {JULY} (1)"
    )
    assert warnings(after, after)[1:] == warnings(before, before)[1:] == []


def test_two_runs_with_other_fingerprints_are_warned_of_less_strongly(scored):
    [found] = warnings(scored((APRIL, "fp_a")), scored((APRIL, "fp_b")))
    assert found == (
        "openai/judge-model answered as the same models with different system fingerprints, so its provider may have "
        "changed how it runs them: A fp_a (1); B fp_b (1)"
    )
    assert warnings(scored((APRIL, "fp_a")), scored((APRIL, None))) == []


@pytest.mark.parametrize(
    ("a", "b", "lacking"),
    [
        ([None], [None], "1 of 1 answers in A and 1 of 1 answers in B"),
        ([APRIL], [None], "1 of 1 answers in B"),
        ([APRIL, None, APRIL], [APRIL] * 3, "1 of 3 answers in A"),
    ],
)
def test_two_runs_in_which_a_change_would_not_show_say_so(scored, a, b, lacking):
    runs = [scored(*((model, None) for model in side)) for side in (a, b)]
    assert warnings(*runs) == [
        f"openai/judge-model: its provider reported no model for {lacking}, so a change behind this name would go unnoticed"
    ]


def test_a_judge_that_asks_no_provider_is_not_spoken_of(sample, achieved, examples):
    demo = Judge("demo/handwritten", cache=examples / "replies.jsonl", cache_mode="replay")
    scripted, handwritten = (
        [run([sample], [AgentGoalAccuracyWithoutReference(ScriptedJudge([achieved]))]) for _ in range(2)],
        [run(read(examples / "conversations.jsonl"), [AgentGoalAccuracyWithoutReference(demo)]) for _ in range(2)],
    )
    for before, after in (scripted, handwritten):
        assert after.summary[GOAL].value is not None
        assert warnings(before, after) == []
        assert list(after.summary[GOAL].notes()) == []
