"""Records of alignments: what they say of labels, and what is wrong with files of them."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from judgekit import AIMessage, HumanMessage, Sample, ToolCall
from judgekit.errors import StoreError
from judgekit.runs.alignments import (
    AlignmentRecord,
    ancestry,
    assigned_role,
    read_alignments,
    write_alignment,
)
from judgekit.runs.hashes import group_key, recording_key

FIRST = datetime(2026, 11, 24, tzinfo=UTC)


def sample(text: str, **known: object) -> Sample:
    return Sample.model_validate({"id": text, "trace": {"messages": [{"role": "user", "content": text}]}, **known})


def record(number: int, **known: object) -> AlignmentRecord:
    given = {"scorer": "tone", "outcome": "shown", "p": 0.01, "version": "1", **known}
    made_at = FIRST + timedelta(days=number)
    return AlignmentRecord.model_validate({"id": f"{number:012x}", "made_at": made_at, **given})


def test_a_recording_is_known_by_what_was_said_and_called_alone() -> None:
    messages = [HumanMessage("Hi"), AIMessage("", tool_calls=[ToolCall("f", {"x": 1})])]
    one = Sample.of(messages, id="a", reference="r", domain="d")
    assert recording_key(one) == recording_key(Sample.of(messages, id="b", metadata={"seen": "later"}))
    other = [messages[0], AIMessage("", tool_calls=[ToolCall("f", {"x": 2})])]
    assert recording_key(one) != recording_key(Sample.of(other, id="a"))
    assert recording_key(one) != recording_key(one.model_copy(update={"baseline": one.trace}))


def test_the_role_of_a_group_is_that_of_all_its_samples() -> None:
    assert len({assigned_role(sample(f"try {number}", group="task")) for number in range(20)}) == 1


def test_labels_that_were_read_or_chose_and_their_groups_are_fitted_to() -> None:
    read, chose, tested, sibling = sample("a"), sample("b"), sample("c"), sample("d", group="g")
    keys = {"train": [recording_key(read)], "validation": [recording_key(chose)], "test": [recording_key(tested)]}
    found = record(1, **keys, groups=[group_key("g")])
    assert [found.was_fitted_to(one) for one in (read, chose, tested, sibling, sample("e"))] == [True, True, False, True, False]  # fmt: skip


def test_records_are_read_in_the_order_of_their_making(tmp_path: Path) -> None:
    for number in (2, 1, 3):
        write_alignment(record(number), tmp_path)
    (tmp_path / "alignment-1111111111111111-22222222.json").write_text("an audit record of a scorer with this name")
    assert [one.id[-1] for one in read_alignments(tmp_path)] == ["1", "2", "3"]
    assert read_alignments(tmp_path / "nowhere") == []


def test_an_alignment_is_followed_to_the_first_question(tmp_path: Path) -> None:
    write_alignment(record(1), tmp_path)
    write_alignment(record(2, parent=f"{1:012x}", scorer="tone"), tmp_path)
    assert [one.id[-1] for one in ancestry(f"{2:012x}", tmp_path)] == ["2", "1"]
    write_alignment(record(1, parent=f"{2:012x}"), tmp_path)  # a circle that somebody wrote
    assert len(ancestry(f"{2:012x}", tmp_path)) == 2


@pytest.mark.parametrize(
    ("alignment", "told"),
    [("000000000009", "cannot be read"), ("../../secret", "expected the id of an alignment"), ("00000000000a", "not a valid alignment"), ("00000000000b", "its name does not match")],
)  # fmt: skip
def test_a_record_that_is_missing_damaged_or_renamed_is_an_error(tmp_path: Path, alignment: str, told: str) -> None:
    (tmp_path / "alignment-00000000000a.json").write_text("{}")
    (tmp_path / "alignment-00000000000b.json").write_text(record(1).model_dump_json())
    with pytest.raises(StoreError, match=told):
        ancestry(alignment, tmp_path)
