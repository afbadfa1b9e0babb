"""Hashes by which two runs find out what changed."""

import json

from hypothesis import given
from hypothesis import strategies as st

from judgekit.runs.hashes import SampleHashes
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.recording import Label
from judgekit.traces.sample import ExpectedCall, Ranking, Sample
from judgekit.traces.trace import Trace

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


def sample(*messages: str, **known: object) -> Sample:
    trace = Trace(messages=[HumanMessage(messages[0] if messages else "Hi"), *map(AIMessage, messages[1:])])
    return Sample.model_validate({"id": "s", "trace": trace, **known})


def references(one: Sample) -> int | None:
    return SampleHashes.of(one, keeps_text=True).references


def calls(*made: dict[str, object]) -> dict[str, object]:
    return {"reference_tool_calls": [ExpectedCall.model_validate({"name": "f", **one}) for one in made]}


def test_whatever_is_known_to_be_right_changes_the_hash_of_references():
    cases = [
        {"reference": "x"},
        {"references": ["x"]},
        {"reference_tool_calls": []},
        calls({}),
        calls({}, {}),
        calls({"args": {"n": 1}}),
        calls({"args": {"n": True}}),
        calls({"args": {"n": "1"}}),
        calls({"compare_args": []}),
        calls({"requestor": "user"}),
        calls({"turn": 0}),
        {"reference_topics": ["x"]},
        {"label": "x"},
        {"ranking": Ranking(["d"], {"d": 1})},
        {"fields": {"expected_output": "x"}},
        {"metadata": {"task": "x"}},
        {"metadata": {"criteria": ["x"]}},
        {"baseline": Trace(messages=[HumanMessage("x")])},
        {"baseline": Trace(messages=[AIMessage(tool_calls=[ToolCall("x")])])},
        {"baseline": Trace()},
        {"baseline": Trace(children=[Trace(messages=[HumanMessage("x")])])},
    ]
    for known in cases:
        others = [
            {},
            {"reference": "y"},
            {"references": ["y"]},
            calls({"name": "y"}),
            {"label": "y"},
            {"ranking": Ranking(["d"], {"e": 1})},
            {"baseline": Trace(messages=[HumanMessage("y")])},
        ]
        assert references(sample(**known)) not in {references(sample(**other)) for other in others}
        assert references(sample(**known)) == references(sample(**known))


def test_what_the_agent_made_of_it_does_not_change_the_hash_of_references():
    for produced in (
        {"prediction": "x", "prediction_score": 0.5},
        {"trace": Trace(messages=[HumanMessage("Hello"), AIMessage("Bye")], labels=[Label("reward", 1)])},
        {"documents": ["x"]},
        {"fields": {"booked": "10:00", "task_time": 2.5, "results": []}},
        {"metadata": {"latency": 2, "trial": 3}},
        {"group": "g", "domain": "d"},
    ):
        for known in ({}, {"reference": "x"}):
            assert references(sample(**known, **produced)) == references(sample(**known)), produced


def test_the_order_of_what_was_retrieved_does_not_change_the_hash_of_references():
    one, other = (sample(ranking=Ranking(ids, {"d": 1, "e": 2}, scores=[2, 1])) for ids in (["d", "e"], ["e", "f"]))
    assert references(one) == references(other)


def test_ids_and_notes_of_expected_calls_and_the_source_of_a_baseline_do_not_matter():
    one, other = (sample(**calls({"id": made, "extra": {"note": made}, "args": {"n": 1}})) for made in "ab")
    assert references(one) == references(other)
    one, other = (sample(baseline=Trace(id=made, messages=[AIMessage("x", id=made)])) for made in "ab")
    assert references(one) == references(other)


@given(st.dictionaries(st.text(), JSON, max_size=4))
def test_the_same_json_has_one_hash_whatever_its_order_and_its_defaults(args):
    turned = dict(reversed(json.loads(json.dumps(args)).items()))
    spelled = {"compare_args": None, "requestor": "assistant", "turn": None, "args": turned, "metadata": {}}
    assert references(sample(**calls({"args": args}))) == references(sample(**calls(spelled)))


def test_a_hash_is_the_same_on_every_machine():
    """The hash of a text that is written by hand, by another implementation: ``b2sum -l 64``."""
    hashes = SampleHashes.of(sample("Hi", "Hello", reference="14 days", **calls({"args": {"n": 1.0}})), keeps_text=True)
    # printf '%s' '["s", {"reference": "14 days", "reference_tool_calls": [{"args": {"n": 1}, "name": "f", "requestor": "assistant"}]}]' | b2sum -l 64
    assert hashes.references is not None
    assert (hashes.references % 2**64).to_bytes(8).hex() == "4111a866e954fef5"
    assert hashes.first_message is not None
    assert (hashes.first_message % 2**64).to_bytes(8).hex() == "cd410cebb45ccbcd"  # printf Hi | b2sum -l 64


def test_documents_and_fields_have_a_hash_of_their_own():
    def material(**known: object) -> int | None:
        return SampleHashes.of(sample(**known), keeps_text=True).fields

    assert len({material(), material(documents=["x"]), material(fields={"wanted": 1}), material(documents=[])}) == 4
    for measured in ({"task_time": 2.5}, {"results": []}, {"expected_output": "x"}):
        assert material(fields=measured) == material()
    assert material(reference="x", metadata={"a": 1}) == material()


def test_the_first_message_of_the_user_has_a_hash():
    def first(*messages: str) -> int | None:
        return SampleHashes.of(sample(*messages), keeps_text=True).first_message

    assert first("Hi", "Hello") == first("Hi", "Bye")
    assert first("Hi") != first("Hello")
    assert first("Hi") != first("") == SampleHashes.of(Sample(id="s"), keeps_text=True).first_message


def test_without_text_there_is_one_hash_of_all_references_and_none_of_a_single_text():
    known = sample("Hi", "Hello", reference="x", fields={"booked": True})
    assert SampleHashes.of(known, keeps_text=False) == (references(known), None, None)


def test_equal_references_of_two_samples_do_not_show():
    assert references(sample(label="yes")) != references(sample(label="yes", id="t"))


def test_references_that_no_file_can_hold_have_no_hash_or_one_as_all_others():
    assert references(sample(reference="\ud800")) not in (references(sample()), None)
    assert references(sample().model_copy(update={"label": object()})) is None
    assert references(sample(**calls({"args": {"n": 10**5000}}))) is None


def test_the_agent_of_an_expected_call_is_part_of_the_hash():
    expected = [references(sample(**calls({"agent": agent}))) for agent in (None, "a", "b")]
    assert len({*expected}) == 3
