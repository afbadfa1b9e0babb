"""Anchors in Python: scorers that are objects, the cache, labels and dates."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from judgekit import AIMessage, Judge, Sample, load_prompt, run, scorer
from judgekit.analysis.audit import audit
from judgekit.analysis.drift import check_outcome
from judgekit.analysis.labels import HumanLabel
from judgekit.anchors import check_anchors, freeze_anchors
from judgekit.errors import ConfigError, JudgeError, OverloadError
from judgekit.jobs.anchors import prepare_check, prepare_freeze
from judgekit.judges.request import Reply
from judgekit.runs.results import Run
from judgekit.scorers.prompted import PromptScorer

MOMENT = datetime(2026, 11, 12, 9, 30, tzinfo=UTC)
PROMPT = """---
description: Is the agent polite?
inputs: [conversation]
scale: {polite: 1.0, curt: 0.5, rude: 0.0}
---
Is the agent polite?
"""


class Client:
    """A model that passes some conversations, whose replies may be cached."""

    identity = "a model"
    passes = staticmethod(lambda number: number % 2 == 0)

    def __init__(self) -> None:
        self.asked = 0
        self.model = "m-1"

    async def complete(self, request, /) -> Reply:
        self.asked += 1
        number = int(request.messages[-1].content.partition("Answer ")[2].partition(".")[0])
        verdict = "polite" if self.passes(number) else "rude"
        return Reply(text=f'{{"reason": "r", "evidence": [1], "verdict": "{verdict}"}}', model=self.model)

    async def aclose(self) -> None:
        pass


def sample(number: int) -> Sample:
    return Sample.of([AIMessage(f"Answer {number}.")], id=f"s{number}")


@pytest.fixture
def client(tmp_path, monkeypatch) -> Client:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tone.md").write_text(PROMPT)
    return Client()


@pytest.fixture
def tone(client) -> PromptScorer:
    return PromptScorer("tone.md", Judge("own/model", client=client, cache="cache.sqlite"))


@pytest.fixture
def scored(tone) -> Run:
    return run([*map(sample, range(40))], [tone], store="runs.sqlite")


def test_the_cache_is_neither_read_nor_filled(client, tone, scored):
    assert client.asked == 40
    frozen = freeze_anchors(scored, 30, scorers=[tone])
    assert (frozen.scorer, frozen.anchors, frozen.labeled, client.asked) == ("tone", 30, 0, 40 + 90)
    client.passes = lambda _: True
    check_anchors(store="runs.sqlite", scorers=[tone])
    assert client.asked == 40 + 120
    again = run([*map(sample, range(40))], [tone])
    assert client.asked == 40 + 120
    assert [row.score.value for row in again] == [row.score.value for row in scored]


def test_a_judge_that_replays_cannot_be_asked_again(client, tone, scored):
    replaying = PromptScorer("tone.md", Judge("own/model", client=client, cache="cache.sqlite", cache_mode="replay"))
    with pytest.raises(ConfigError, match="own/model replays recorded replies"):
        freeze_anchors(scored, 30, scorers=[replaying])
    session = prepare_freeze(scored, 30, scorers=[replaying], replace=True, is_planned=True)
    with pytest.raises(ConfigError, match="own/model replays recorded replies"):
        asyncio.run(session.plan())
    assert tone.name == "tone"


def test_a_function_that_asks_a_judge_has_anchors(client):
    judge = Judge("own/model", client=client, cache="cache.sqlite")
    prompt = load_prompt("tone.md")

    @scorer(judge=judge, prompts=[prompt], version="1")
    async def asking(sample: Sample) -> float:
        return (await PromptScorer(prompt, judge).ascore(sample)).value or 0.0

    scored = run([*map(sample, range(20))], [asking], store="runs.sqlite")
    freeze_anchors(scored, 20, scorers=[asking])
    assert client.asked == 80
    (outcome,) = check_anchors(["asking"], store="runs.sqlite", scorers=[asking])
    assert (outcome.since, outcome.answered, client.asked) == (None, 20, 100)


def test_a_verdict_of_the_judge_that_it_falls_back_to_does_not_count(client, monkeypatch):
    other = Client()
    other.passes = lambda _: True
    fallback = Judge("own/other", client=other, cache="cache.sqlite")
    tone = PromptScorer(
        "tone.md", Judge("own/model", client=client, cache="cache.sqlite", fallback=(fallback,), attempts=1)
    )
    scored = run([*map(sample, range(40))], [tone], store="runs.sqlite")
    freeze_anchors(scored, 40, scorers=[tone])
    answered = client.complete

    async def busy(request, /) -> Reply:
        if int(request.messages[-1].content.partition("Answer ")[2].partition(".")[0]) < 15:
            raise OverloadError("busy")
        return await answered(request)

    monkeypatch.setattr(client, "complete", busy)
    (outcome,) = check_anchors(store="runs.sqlite", scorers=[tone])
    assert (outcome.since, outcome.answered, other.asked) == (None, 25, 15)

    async def down(_, /) -> Reply:
        raise OverloadError("busy")

    monkeypatch.setattr(client, "complete", down)
    with pytest.raises(JudgeError, match="40 of 40 anchors got no verdict: own/other answered in its place"):
        check_anchors(store="runs.sqlite", scorers=[tone])


def test_an_object_must_be_passed_again(tone, scored):
    with pytest.raises(ConfigError, match=r"tone was passed as an object in Python; pass the same one there: scorers="):
        freeze_anchors(scored, 30)
    freeze_anchors(scored, 30, scorers=[tone])
    with pytest.raises(ConfigError, match="passed as an object"):
        check_anchors(store="runs.sqlite")
    with pytest.raises(ConfigError, match=r"other\.jsonl: there are no anchors"):
        check_anchors(["other"], store="runs.sqlite")


def test_a_run_in_memory_has_no_place_for_anchors(tone):
    with pytest.raises(ConfigError, match="keeps no recordings in a file"):
        freeze_anchors(run([*map(sample, range(40))], [tone]), scorers=[tone])


def test_copies_are_one_anchor(tone):
    copied = [sample(number % 25).model_copy(update={"id": f"c{number}"}) for number in range(80)]
    frozen = freeze_anchors(run(copied, [tone], store="runs.sqlite"), 80, scorers=[tone])
    assert frozen.anchors == 25


def test_anchors_are_drawn_equally_from_all_verdicts(client, tone):
    client.passes = lambda number: number < 190
    scored = run([*map(sample, range(200))], [tone], store="runs.sqlite")
    session = prepare_freeze(scored, 20, scorers=[tone])
    numbers = [int(str(anchor.sample["id"])[1:]) for anchor in session.anchors.anchors.values()]
    assert sum(number >= 190 for number in numbers) == 10
    again = prepare_freeze(scored, 40, scorers=[tone], seed=5)
    assert again.anchors.anchors == session.anchors.anchors  # those that were begun


def checks(path, tone, days: int, start: int = 0):
    """The outcome of a check a day."""
    for day in range(start, start + days):
        session = prepare_check(path, scorers=[tone])
        session.clock = lambda: MOMENT + timedelta(days=day)  # noqa: B023 - called at once
        asyncio.run(session.ask())
    return check_outcome(session.anchors)


@pytest.mark.parametrize(
    ("people", "note"),
    [
        (lambda number: number % 2 == 0, "agreement with people, on 40 anchors, got worse"),
        (lambda number: number < 8, "agreement with people, on 40 anchors, shows no clear change"),
        (None, ""),
    ],
)
def test_the_outcome_of_a_change_has_its_date_its_direction_and_the_model(client, tone, scored, people, note):
    if people is not None:
        labels = [HumanLabel(sample=f"s{n}", scorer="tone", value="polite" if people(n) else "rude", annotator="ann") for n in range(40)]  # fmt: skip
        audit(scored, labels)
    frozen = freeze_anchors(scored, 40, scorers=[tone])
    unchanged = checks(frozen.path, tone, 2)
    assert (unchanged.since, unchanged.turned, unchanged.notes) == (None, [], [])
    assert unchanged.checked_at == MOMENT + timedelta(days=1)
    client.model = "m-2"
    assert "the provider reports other models: 'm-2' after 'm-1'" in str(checks(frozen.path, tone, 1, 2))
    client.passes = lambda number: number % 2 == 0 or number < 16
    alarm = checks(frozen.path, tone, 3, 3)
    assert alarm.since == MOMENT + timedelta(days=3)
    assert {turn.sample for turn in alarm.turned} == {f"s{number}" for number in range(1, 16, 2)}
    assert str(alarm).startswith("tone: changed since 15 November 2026: 8 anchors turned, 8 of them towards pass")
    assert note in str(alarm)


@pytest.mark.parametrize("n", [0, 19, 1_001])
def test_too_few_or_too_many_anchors_are_refused(tone, scored, n):
    with pytest.raises(ConfigError, match=f"expected 20 to 1,000 anchors, found {n:,}"):
        freeze_anchors(scored, n, scorers=[tone])
