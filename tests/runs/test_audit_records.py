"""Audit records."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from judgekit.errors import StoreError
from judgekit.runs.audit_records import (
    AuditRecord,
    AuditStatus,
    AuditSubject,
    Correction,
    audit_status,
    write_audit_record,
)
from judgekit.runs.intervals import Estimate
from judgekit.runs.population import Population
from judgekit.runs.rows import ScorerRecord, identity_differences
from judgekit.stats.wilson import wilson

AT = datetime(2026, 1, 1, tzinfo=UTC)
HERE, OTHER = "0123456789abcdef", "fedcba9876543210"


def audit_record(**fields):
    known = {
        "scorer": "tone",
        "fingerprint": HERE,
        "identity": {"judge": {"model": "m-1"}},
        "run": 1,
        "run_started_at": AT,
        "sample_count": 120,
        "annotators": 2,
        "selection": "random",
        "agreement": {"kappa": Estimate(value=0.714, low=0.58, high=0.82), "AC1": Estimate(value=0.9)},
        "judge_mean": Estimate(value=0.8),
        "correction": Correction(unavailable_reason="x"),
        "labeled": Population(samples=120),
        "population": Population(samples=500),
        "audited_at": AT,
        "version": "1",
    }
    return AuditRecord(**{**known, **fields})


def scorer(name="tone", signature=HERE, model="m-1", **fields):
    """A judged scorer of run 1, which read no files."""
    record = ScorerRecord(name=name, signature=signature, identity={"judge": {"model": model}}, judged=True)
    known = {"run": 1, "run_started_at": AT, "recordings": None, "models": {}, "system_fingerprints": {}}
    return AuditSubject(record, **{**known, "population": lambda: Population(samples=1), **fields})


def status_of(judged, folder):
    return audit_status(judged, folder, AT + timedelta(3))


def test_a_mean_has_its_interval_and_that_of_nothing_is_undefined():
    assert Estimate.mean([1, 0, 1, 1]) == Estimate.of(0.75, wilson(3, 4))
    assert Estimate.mean([1, 0, 1, 1], ["a", "a", "b", "b"]).method == "modified Wilson, 2 groups"
    assert Estimate.mean([]) == Estimate(value=None)


def test_an_audit_record_is_kept_under_the_judges_fingerprint_and_found_again(tmp_path):
    kept = audit_record(scorer="is it/right?")
    path = write_audit_record(kept, tmp_path / "audits")
    assert path.name == f"is_it_right_-{HERE}-{kept.key}.json"
    found = status_of(scorer("is it/right?"), tmp_path / "audits")
    assert found.record == kept
    assert str(found) == "audited 3 days ago: kappa .71 [.58, .82], n=120"
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    before = path.read_bytes()
    write_audit_record(kept, path.parent)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("agreement", "told"),
    [
        ({"kappa": Estimate(value=None)}, "audited: kappa undefined, n=120"),
        ({"alpha": Estimate(value=1)}, "audited: alpha 1.00, n=120"),
        ({"alpha": Estimate(value=0.9971, low=0.95, high=1 - 1e-12)}, "audited: alpha .997 [.95, 1.00], n=120"),
        ({"kappa": Estimate(value=-0.1, low=-0.3, high=0.1)}, "audited: kappa -.10 [-.30, .10], n=120"),
    ],
)
def test_what_it_comes_to_is_told_in_a_few_words(agreement, told):
    assert str(AuditStatus(audit_record(agreement=agreement))) == told


def test_a_changed_judge_voids_the_last_audit_record_and_it_is_said_by_what(tmp_path):
    assert str(status_of(scorer(), tmp_path)) == "not audited"
    write_audit_record(
        audit_record(fingerprint=OTHER, identity={"judge": {"model": "m-0"}}, run=3, audited_at=AT + timedelta(1)),
        tmp_path,
    )
    write_audit_record(audit_record(fingerprint="0" * 16, identity={"judge": {"model": "m-9"}}, run=2), tmp_path)
    write_audit_record(audit_record(scorer="tone-x", fingerprint=OTHER), tmp_path)
    found = status_of(scorer(), tmp_path)
    assert found.record is None
    assert str(found) == "not audited (the audit record of run 3 is void: judge.model was 'm-0' and is 'm-1')"


def test_a_scorer_that_cannot_be_told_from_another_is_not_audited(tmp_path):
    record = ScorerRecord(name="tone", signature=None, identity="f needs a version", judged=True)
    unknown = replace(scorer(), scorer=record)
    told = "not audited (tone cannot be distinguished from others of its name: f needs a version)"
    assert str(status_of(unknown, tmp_path)) == told


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not a valid audit record: "),
        ('{"schema_version": 4}', "written by a newer judgekit: update judgekit, or move it away"),
        ('{"schema_version": 1}', "written by an older judgekit; move it away"),
        ('{"schema_version": []}', "not a valid audit record: "),
        (
            audit_record(scorer="f1").model_dump_json(),
            f"its name does not match its content, 'f1' with the fingerprint {HERE}",
        ),
        (
            audit_record(fingerprint=OTHER).model_dump_json(),
            f"its name does not match its content, 'tone' with the fingerprint {OTHER}",
        ),
    ],
)
def test_a_broken_or_foreign_audit_record_is_none_and_is_named(text, said, tmp_path):
    path = tmp_path / f"tone-{HERE}-01234567.json"
    path.write_text(text)
    for judge in (scorer(), scorer(signature="0" * 16)):
        found = status_of(judge, tmp_path)
        assert found.record is None
        assert found.void_reason.startswith(f"{path}: ")
        assert said in found.void_reason
        assert "move it away and run judgekit audit again" in found.void_reason


def test_a_scorer_whose_audit_records_have_names_of_the_same_letters_is_another_one(tmp_path):
    write_audit_record(audit_record(scorer="tone?", fingerprint=OTHER), tmp_path)
    assert str(status_of(scorer("tone!"), tmp_path)) == "not audited"


def test_an_audit_record_that_cannot_be_written_is_an_error_that_names_it(tmp_path):
    (tmp_path / "audits").write_text("no folder")
    with pytest.raises(StoreError, match=r"tone-.*\.json: the audit record cannot be written"):
        write_audit_record(audit_record(), tmp_path / "audits")


def test_an_audit_record_that_cannot_be_opened_is_named(tmp_path):
    (tmp_path / f"tone-{HERE}-01234567.json").mkdir()
    assert f"tone-{HERE}-01234567.json: the audit record cannot be read" in status_of(scorer(), tmp_path).void_reason


MODEL = {"openai/a": ["a-2025-04"]}


def test_another_reported_model_voids_an_audit_record(tmp_path):
    write_audit_record(audit_record(models=MODEL), tmp_path)
    same = status_of(scorer(models={"openai/a": {"a-2025-04": 7}}), tmp_path)
    assert str(same) == "audited 3 days ago: kappa .71 [.58, .82], n=120"
    other = status_of(scorer(models={"openai/a": {"a-2025-04": 7, "a-2025-07": 1}}), tmp_path)
    assert other.record is None
    assert (
        str(other)
        == "not audited (the audit record of run 1 is void: openai/a answered as 'a-2025-04' in the audit and as 'a-2025-07' here)"
    )
    fallback = status_of(scorer(models={"openai/a": {"a-2025-04": 7}, "local": {"b": 1}}), tmp_path)
    assert "local answered here but not in the audit" in fallback.void_reason


def test_a_new_system_fingerprint_and_a_model_that_is_not_reported_are_said_beside_the_audit(tmp_path):
    write_audit_record(audit_record(models=MODEL, system_fingerprints={"openai/a": ["fp_1"]}), tmp_path)
    judged = scorer(models={"openai/a": {"a-2025-04": 7}}, system_fingerprints={"openai/a": {"fp_2": 7}})
    assert status_of(judged, tmp_path).notes == (
        "openai/a had the system fingerprint 'fp_1' in the audit and has 'fp_2' here",
    )
    silent = status_of(scorer(models={"openai/a": {None: 7}}), tmp_path)
    assert str(silent) == "audited 3 days ago: kappa .71 [.58, .82], n=120; model not reported"
    write_audit_record(audit_record(models={"openai/a": []}), tmp_path)
    assert status_of(judged, tmp_path).notes == ("model not reported in the audit",)


def test_of_several_audit_records_that_of_the_same_recordings_is_taken_then_one_of_samples_like_these(tmp_path):
    agents = [Population(samples=50, agents={f"agent-{number}": 50}) for number in range(3)]
    for number, n in ((0, 120), (1, 60), (2, 90)):
        write_audit_record(
            audit_record(run=number + 1, recordings=f"sha256:{number}", sample_count=n, population=agents[number]),
            tmp_path,
        )
    here = scorer(run=9, recordings="sha256:1", population=lambda: agents[2])
    assert (status_of(here, tmp_path).record.sample_count, status_of(here, tmp_path).scope_text) == (60, "")
    like = scorer(run=9, recordings="sha256:9", population=lambda: agents[2])
    assert (status_of(like, tmp_path).record.sample_count, status_of(like, tmp_path).scope_text) == (
        90,
        " on run 3",
    )
    unlike = scorer(run=9, recordings="sha256:9", population=lambda: Population(samples=50, agents={"new": 50}))
    assert status_of(unlike, tmp_path).record.sample_count == 120
    assert "different agents: 'new' here, 'agent-0' there" in str(status_of(unlike, tmp_path))


def test_long_texts_are_told_apart_where_they_differ_and_named_once(tmp_path):
    question = "Did the agent keep a tone that fits a service? " * 10
    judges = {"a": {"temperature": 0}, "b": {"temperature": 0}}
    before = {"judges": judges, "prompt": {"question": question}, "again": {"question": question}}
    changed = f"{question}Be strict."
    hotter = {"a": {"temperature": 1}, "b": {"temperature": 1}}
    after = {"judges": hotter, "prompt": {"question": changed}, "again": {"question": changed}}
    assert list(identity_differences(before, after)) == [
        "judges.a.temperature was 0 and is 1",
        "judges.b.temperature was 0 and is 1",
        f"prompt.question was '...{question[-20:]}' and is '...{question[-20:]}Be strict.'",
    ]


def test_a_run_of_another_file_that_has_the_same_number_is_another_run(tmp_path):
    write_audit_record(audit_record(), tmp_path)
    assert status_of(scorer(), tmp_path).scope_text == ""
    assert status_of(scorer(run_started_at=AT + timedelta(1)), tmp_path).scope_text.startswith(" on run 1")
