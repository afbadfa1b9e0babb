"""Roles of labels: from the sheet, by group, or by a hash that new labels never change."""

from collections import Counter
from datetime import UTC, datetime

import pytest

from judgekit import HumanMessage, Sample, Score
from judgekit.alignment.cases import assign_roles
from judgekit.analysis.findings import Opinion
from judgekit.analysis.matching import LabeledSample
from judgekit.errors import ConfigError
from judgekit.runs.alignments import AlignmentRecord, LabelRole, assigned_role
from judgekit.runs.hashes import recording_key
from judgekit.runs.rows import Row


def sample(text: str, id: str = "", group: str | None = None) -> Sample:
    return Sample.of([HumanMessage(text)], id=id or text, group=group)


def labeled(number: int, one: Sample, role: LabelRole | None = None) -> LabeledSample:
    row = Row.of(number, one, Score.scored("tone", 1.0, reason=""))
    return LabeledSample(row, [Opinion(annotator=None, label="yes", value=1.0)], role=role)


def roles(*given: tuple[Sample, LabelRole | None], earlier: AlignmentRecord | None = None) -> list[LabelRole]:
    samples = dict(enumerate(one for one, _ in given))
    labels = [labeled(number, one, role) for number, (one, role) in enumerate(given)]
    return [*assign_roles(labels, samples, [earlier] if earlier else []).values()]


def test_shares_of_roles_are_a_fifth_a_quarter_and_the_rest() -> None:
    counts = Counter(assigned_role(sample(f"question {number}")) for number in range(4000))
    assert abs(counts["train"] - 800) < 100
    assert abs(counts["validation"] - 1000) < 100


def test_a_role_does_not_depend_on_the_id_or_on_other_labels() -> None:
    texts = [f"question {number}" for number in range(50)]
    few = roles(*((sample(text), None) for text in texts[:20]))
    many = roles(*((sample(text, id=f"other {text}"), None) for text in texts))
    assert many[:20] == few
    assert {*many} == {"train", "validation", "test"}


def test_samples_of_a_group_share_a_role() -> None:
    assert len({*roles(*((sample(f"try {number}", group="task 7"), None) for number in range(20)))}) == 1


def test_roles_on_the_sheet_stand_also_for_their_group() -> None:
    for role in ("train", "validation", "test"):
        assert roles((sample("a", group="g"), role), (sample("b", group="g"), None)) == [role, role]


def test_two_roles_in_a_group_are_an_error() -> None:
    with pytest.raises(ConfigError, match="'g' have the roles train and test"):
        roles((sample("a", group="g"), "train"), (sample("b", group="g"), "test"))


def test_a_recording_that_occurs_twice_is_read_if_it_is_read_once() -> None:
    assert roles((sample("a"), "test"), (sample("a", id="again"), "train")) == ["train", "train"]


def test_a_recording_that_an_earlier_alignment_chose_by_does_not_test_again() -> None:
    one = sample("a")
    record = AlignmentRecord(
        id="0" * 12,
        scorer="tone",
        validation=[recording_key(one)],
        outcome="shown",
        made_at=datetime.now(UTC),
        version="1",
    )
    assert roles((one, "test"), (sample("b"), "test"), earlier=record) == ["train", "test"]
