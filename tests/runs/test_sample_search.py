"""Samples found by SQL, by the filters of an address."""

import json

import pytest

from judgekit import AIMessage, HumanMessage, Judge, Sample, Score, ToolCallF1, TopicAdherence, read, run, scorer
from judgekit.reports.sample_list import sample_list
from judgekit.runs.results import Run
from judgekit.score import JudgeCall
from judgekit.traces.recording import Label

SCORERS = ["tone", "reach"]


@scorer(name="tone")
def tone(sample: Sample) -> Score:
    number = int(sample.id.split("-")[1])
    if number % 5 == 4:
        return Score.skipped("tone", "nothing was said")
    return Score.scored("tone", number % 5 / 4, label="friendly" if number % 5 > 1 else "curt", reason=f"tone {number}")


@scorer(name="reach")
def reach(sample: Sample) -> Score:
    if sample.id == "s-3":
        raise ValueError("no such thing")
    return Score.scored("reach", 1.0 if sample.domain == "bank" else 0.5)


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Run:
    """Twelve samples, of which every third is of a bank, with labels of several kinds."""
    samples = [
        Sample.of(
            [HumanMessage(f"Question {number}?"), AIMessage("An answer with Straße." if number == 7 else "Fine.")],
            id=f"s-{number}",
            domain="bank" if number % 3 == 0 else "shop",
        )
        for number in range(12)
    ]
    samples = [
        sample.model_copy(
            update={"trace": sample.trace.model_copy(update={"labels": (Label("ok", at % 2 == 0, source="human"),)})}
        )
        for at, sample in enumerate(samples)
    ]
    return run(samples, [tone, reach], store=tmp_path_factory.mktemp("search") / "runs.sqlite")


def test_samples_are_filtered_and_sorted(found):
    for filters, numbers in (
        ({}, range(12)),
        ({"domain": "bank"}, (0, 3, 6, 9)),
        ({"status": "skipped"}, (4, 9)),
        ({"status": "failed"}, (3,)),
        ({"status": "failed", "scorer": "tone"}, ()),
        ({"status": "not scored"}, (3, 4, 9)),
        ({"value": "<0.5", "scorer": "tone"}, (0, 1, 5, 6, 10, 11)),
        ({"value": "<=0.5", "scorer": "tone"}, (0, 1, 2, 5, 6, 7, 10, 11)),
        ({"value": "=1", "scorer": "reach"}, (0, 6, 9)),
        ({"value": "!=0.5", "scorer": "reach"}, (0, 6, 9)),
        ({"value": ">0.75"}, (0, 6, 9)),
        ({"value": "no number"}, range(12)),
        ({"from": "0.7", "to": "1.0", "scorer": "tone"}, (3, 8)),
        ({"from": "0.2", "to": "0.3"}, (1, 6, 11)),
        ({"label": '["curt"]'}, (0, 1, 5, 6, 10, 11)),
        ({"label": "curt", "scorer": "reach"}, ()),
        ({"label": '["ok",true]'}, (0, 2, 4, 6, 8, 10)),
        ({"label": '["ok",false]', "domain": "bank"}, (3, 9)),
        ({"label": '["ok",1]'}, ()),
        ({"label": '{"a":[1]}'}, range(12)),
        ({"scorer": "nobody", "status": "scored"}, ()),
        ({"sort": "id"}, range(12)),
        ({"sort": "low:tone", "domain": "bank"}, (0, 6, 3, 9)),
        ({"sort": "high:tone", "domain": "bank"}, (3, 6, 0, 9)),
        ({"sort": "low:nobody"}, range(12)),
        ({"domain": "' OR 1=1 --"}, ()),
        ({"label": '["\' OR 1=1 --","x"]'}, ()),
    ):
        store = found.store
        assert store.sample_page(1, SCORERS, filters) == (list(numbers), len(numbers)), filters
        assert store.sample_page(1, SCORERS, filters, 1, 2) == (list(numbers)[1:3], len(numbers)), filters


def test_what_can_be_chosen_is_what_the_run_has(found):
    choices = found.store.filter_choices(1, SCORERS)
    assert choices["domains"] == ["bank", "shop"]
    assert (choices["verdicts"], choices["labeled"]) == (["curt", "friendly"], ["tone"])
    assert sorted(choices["known"]) == [["ok", False], ["ok", True]]


def test_texts_are_searched_within_what_the_filters_pass(found):
    def numbers(**filters: str) -> list[int]:
        return [sample["number"] for sample in sample_list(found, filters)["samples"]]

    assert numbers(q="STRASSE") == []
    assert numbers(q="straße") == [7]
    assert numbers(q="tone 1") == [1, 10, 11]
    assert numbers(q="tone 1", value="<0.2", scorer="tone") == [10]
    assert numbers(q="s-3") == [3]
    assert numbers(q="assistant") == []


def test_a_list_starts_around_a_sample(tmp_path):
    talk = [HumanMessage("?"), AIMessage("!")]
    ended = run([Sample.of(talk, id=f"s-{number}") for number in range(250)], [reach], store=tmp_path / "runs.sqlite")
    around = sample_list(ended, {}, number=205)
    assert (around["start"], around["next"], around["total"]) == (200, None, 250)
    assert [sample["number"] for sample in around["samples"]] == list(range(200, 250))
    assert sample_list(ended, {}, number=999)["start"] == 0
    assert sample_list(ended, {"q": "nowhere"})["samples"] == []


def test_costs_and_agents_are_those_of_the_summary(examples, tmp_path):
    judge = Judge("demo/handwritten", cache=examples / "replies.jsonl", cache_mode="replay")
    ended = run(
        read(examples / "conversations.jsonl"), [ToolCallF1(), TopicAdherence(judge)], store=tmp_path / "r.sqlite"
    )
    counted = ended.store.cost_and_agents(1)
    assert counted["cost"] == sum(line.cost_usd for line in ended.summary)
    assert counted["agents"] == sorted(filter(None, ended.usage.agents))


def test_unknown_prices_make_the_cost_unknown(tmp_path):
    ended = run([Sample.of([HumanMessage("?"), AIMessage("!")], id="s-0")], [tone], store=tmp_path / "r.sqlite")
    for calls, cost in (
        ([{"cost_usd": 0.25}, {"cost_usd": 0.5}], 0.75),
        ([{"cost_usd": 0.25, "cached": True}], 0),
        ([{"cost_usd": 0.25}, {"cost_usd": None}], None),
        ([{"cost_usd": None, "error": "TimeoutError"}], None),
        ([{"cost_usd": None, "error": "AuthenticationError"}, {"cost_usd": 1}], 1),
    ):
        called = [JudgeCall.model_validate({"judge": "j", "prompt": "p", **call}) for call in calls]
        with ended.store.transaction() as db:
            db.execute("UPDATE scores SET calls = ?", (json.dumps([one.model_dump(mode="json") for one in called]),))
        paid = [one.usd_paid for one in called]
        assert cost == (None if None in paid else sum(paid))
        assert ended.store.cost_and_agents(1)["cost"] == cost
