"""Files of anchors, also those that others wrote, and what they say about audits."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from judgekit.errors import StoreError
from judgekit.runs.anchors import (
    Anchor,
    AnchorDraw,
    AnchorRound,
    AnchorsHead,
    anchor_sample,
    anchors_path,
    anchors_status,
    read_anchors,
    write_anchors,
)
from judgekit.runs.audit_records import AuditRecord, AuditSubject, Correction, audit_status, write_audit_record
from judgekit.runs.hashes import recording_key
from judgekit.runs.intervals import Estimate
from judgekit.runs.population import Population
from judgekit.runs.rows import ScorerRecord
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

MOMENT = datetime(2026, 11, 12, 9, 30, tzinfo=UTC)


def sample(number: int) -> Sample:
    return Sample.of([HumanMessage("Hi"), AIMessage(f"Answer {number}")], id=f"s{number}", metadata={"x": float("nan")})


@pytest.fixture
def path() -> Path:
    return anchors_path("tone", Path(".judgekit/anchors"))


@pytest.fixture
def anchors(path):
    """Two anchors without verdicts."""
    head = AnchorsHead(
        scorer="tone", fingerprint="f" * 16, identity=None, options={}, run=1, frozen_at=MOMENT, version="0"
    )
    samples = map(sample, range(2))
    keyed = [Anchor(recording=recording_key(one), sample=json.loads(one.model_dump_json())) for one in samples]
    return write_anchors(head, keyed, path)


def draw(anchors, number: int, index: int) -> AnchorDraw:
    return AnchorDraw(round=number, recording=[*anchors.anchors][index], at=MOMENT, value=1.0, models=("m",))


def as_json(anchors) -> object:
    """All that is in a file of anchors; NaN does not equal itself."""
    draws = [draw for draws in anchors.draws for draw in draws.values()]
    lines = [anchors.head, *anchors.anchors.values(), *draws, *anchors.rounds]
    return [anchors.size, len(anchors.draws), *(line.model_dump_json() for line in lines)]


def test_what_is_added_is_read_back(anchors, path):
    for number in range(4):
        anchors.add(draw(anchors, number, 0))
        anchors.add(draw(anchors, number, 1))
        anchors.add(AnchorRound(round=number, at=MOMENT + timedelta(days=number), alarm=number == 3))
    anchors.add(draw(anchors, 4, 1))
    assert as_json(read_anchors(path)) == as_json(anchors)
    assert anchors.alarmed_at == MOMENT + timedelta(days=3)
    assert [anchor_sample(anchor, path).id for anchor in anchors.anchors.values()] == ["s0", "s1"]
    assert (path.parent.parent / ".gitignore").read_text().startswith("*\n")  # recordings are not committed


def test_the_age_of_the_last_check_is_told(anchors, path):
    assert anchors_status("tone", "f" * 16, path.parent).text(MOMENT) == "anchors not checked yet"
    for number in range(4):
        anchors.add(AnchorRound(round=number, at=MOMENT))
    status = anchors_status("tone", "f" * 16, path.parent)
    for days, text in ((-2, "less than a day"), (0.99, "less than a day"), (1, "1 day"), (40.2, "40 days")):
        assert status.text(MOMENT + timedelta(days=days)) == f"anchors checked {text} ago"


def test_a_line_that_was_cut_off_is_left_out_and_overwritten(anchors, path):
    anchors.add(draw(anchors, 0, 0))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"kind":"draw","round":0,"recor')
    again = read_anchors(path)
    assert as_json(again) == as_json(anchors)
    again.add(draw(anchors, 0, 1))
    assert path.read_bytes().startswith(whole)
    assert len(read_anchors(path).draws[0]) == 2


def test_two_processes_do_not_overwrite_each_other(anchors, path):
    other = read_anchors(path)
    anchors.add(draw(anchors, 0, 0))
    with pytest.raises(StoreError, match="another process is asking about these anchors"):
        other.add(draw(anchors, 0, 1))
    assert as_json(read_anchors(path)) == as_json(anchors)
    replaced = write_anchors(anchors.head, [*anchors.anchors.values()][:1], path)
    with pytest.raises(StoreError, match="or replaced them"):
        anchors.add(draw(anchors, 0, 1))
    assert as_json(read_anchors(path)) == as_json(replaced)
    path.unlink()
    with pytest.raises(StoreError, match="the verdict cannot be written"):
        anchors.add(draw(anchors, 0, 1))


def test_a_line_that_is_not_valid_is_named(anchors, path):
    whole = path.read_bytes()
    for line, why in (
        (b"nothing", "line 4: .*Invalid JSON"),
        (b"\xff\xfe", "line 4: .*Invalid JSON"),
        (b"[" * 100_000, "line 4: .*Invalid JSON"),
        ({"kind": "draw", "round": 0, "recording": "x", "at": "2026-11-12T09:30:00Z", "value": 1}, "line 4: the recording 'x' is no anchor"),
        ({"kind": "draw", "round": 0, "recording": "x", "at": "2026-11-12T09:30:00Z", "value": 2}, "line 4: .*value"),
        ({"kind": "draw", "round": 0, "recording": "x", "at": "2026-11-12", "value": 1}, "line 4: .*at"),
        ({"kind": "round", "round": 7, "at": "2026-11-12T09:30:00Z"}, "line 4: expected a line of round 0, found one of round 7"),
        ({"kind": "round", "round": 0, "at": "2026-11-12T09:30:00Z", "detector": -1}, "line 4: .*detector"),
        ({"kind": "other"}, "line 4: .*'other'"),
        ({"kind": "anchor", "recording": "x", "sample": {}, "more": 1}, "line 4: .*more"),
    ):  # fmt: skip
        path.write_bytes(whole + (line if isinstance(line, bytes) else json.dumps(line).encode()) + b"\n")
        with pytest.raises(StoreError, match=why):
            read_anchors(path)


def test_a_file_that_is_not_one_of_anchors_is_refused(anchors, path):
    first, second, *_ = path.read_bytes().splitlines()
    for written, why in (
        (b"", "is empty"),
        (second + b"\n", "line 1: expected a line of kind anchors first, found one of kind anchor"),
        (first + b"\n" + first + b"\n", "line 2: expected a verdict, found a line of kind anchors"),
        (first + b"\n" + second + b"\n" + second + b"\n", "line 3: expected a verdict, found a line of kind anchor"),
        (first.replace(b"tone", b"another") + b"\n", "line 1: its name does not match its content, 'another'"),
    ):
        path.write_bytes(written)
        with pytest.raises(StoreError, match=why):
            read_anchors(path)
    with path.open("wb") as file:
        file.truncate(2**29)
    with pytest.raises(StoreError, match="expected at most 268,435,456 bytes, found 536,870,912"):
        read_anchors(path)
    with pytest.raises(StoreError, match="cannot be read"):
        read_anchors(path.with_name("other.jsonl"))
    assert anchors_status("other", "f" * 16, path.parent) is None


def test_more_than_can_be_read_is_not_written(anchors, path, monkeypatch):
    before = path.read_bytes()
    monkeypatch.setattr("judgekit.runs.anchors._MOST_BYTES", 2 * anchors.size - 2)
    with pytest.raises(StoreError, match=r"the anchors take [0-9,]+ bytes: freeze fewer than 2"):
        write_anchors(anchors.head, anchors.anchors.values(), path)
    assert path.read_bytes() == before


def test_an_edited_recording_is_not_asked_about(anchors, path):
    path.write_bytes(path.read_bytes().replace(b"Answer 1", b"Answer 2"))
    edited = read_anchors(path)
    with pytest.raises(StoreError, match="not the recording that was frozen"):
        [anchor_sample(anchor, path) for anchor in edited.anchors.values()]
    path.write_bytes(path.read_bytes().replace(b'"role":"assistant"', b'"role":"robot"'))
    with pytest.raises(StoreError, match=r"anchor .*role"):
        [anchor_sample(anchor, path) for anchor in read_anchors(path).anchors.values()]
    assert anchors.size


def test_names_that_are_alike_as_files_have_files_of_their_own():
    names = ("tone", "tone (a)", "tone [a]", "../tone", "t" * 300, "t" * 301)
    files = [anchors_path(name, Path("anchors")) for name in names]
    assert len({*files}) == len(names)
    assert {file.parent for file in files} == {Path("anchors")}
    assert max(len(file.name) for file in files) < 130


def test_anchors_of_another_version_of_a_scorer_do_not_count(anchors, path):
    assert anchors_status("tone", "f" * 16, path.parent) == (None, None, False)
    assert anchors_status("tone", "e" * 16, path.parent) is None
    assert anchors_status("tone", None, path.parent) is None


def test_an_alarm_suspends_older_audit_records_of_the_judge(anchors, path):
    folder, later = path.parent.with_name("audits"), MOMENT + timedelta(days=1)
    population = Population(samples=1)
    record = AuditRecord(
        scorer="tone",
        fingerprint="f" * 16,
        identity=None,
        run=3,
        run_started_at=MOMENT - timedelta(days=5),
        sample_count=60,
        annotators=1,
        selection="random",
        agreement={},
        judge_mean=Estimate(value=0.8),
        correction=Correction(),
        labeled=population,
        population=population,
        audited_at=MOMENT - timedelta(days=4),
        version="0",
    )
    scorer = ScorerRecord(name="tone", signature="f" * 16, identity=None, judged=True)
    judged = AuditSubject(scorer, 3, record.run_started_at, None, {}, {}, lambda: population)
    write_audit_record(record, folder)
    for number in range(4):
        anchors.add(AnchorRound(round=number, at=MOMENT))
    assert str(audit_status(judged, folder, later)) == "audited 5 days ago: n=60; anchors checked 1 day ago"
    anchors.add(AnchorRound(round=4, at=later, alarm=True))
    anchors.add(AnchorRound(round=5, at=later))
    suspended = audit_status(judged, folder, later + timedelta(days=3))
    assert suspended.record is None
    assert str(suspended) == (
        "not audited (the audit record of run 3 is suspended: its anchors show on 13 November 2026 that the judge has changed; "
        'score the recordings again with cache_mode = "refresh", and audit that run); anchors checked 3 days ago, and the judge has changed'
    )
    other = replace(judged, scorer=scorer.model_copy(update={"signature": "e" * 16}))
    assert "anchors" not in str(audit_status(other, folder, later))
    write_audit_record(record.model_copy(update={"audited_at": later}), folder)
    assert str(audit_status(judged, folder, later)) == (
        "audited less than a day ago: n=60; its anchors show on 13 November 2026 that the judge has changed since the audited run; "
        "anchors checked less than a day ago, and the judge has changed"
    )
    again = record.model_copy(update={"audited_at": later, "run_started_at": later})
    write_audit_record(again, folder)
    judged = replace(judged, run_started_at=later)
    assert (
        str(audit_status(judged, folder, later))
        == "audited less than a day ago: n=60; anchors checked less than a day ago, and the judge has changed"
    )
    path.write_bytes(b"broken\n")
    assert "line 1" in audit_status(judged, folder, later).void_reason
