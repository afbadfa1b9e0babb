"""Runs as files."""

import csv
from collections.abc import Iterator

import pytest

import judgekit
from judgekit import HumanMessage, PromptScorer, Sample, ScriptedJudge, load_prompt
from judgekit.analysis.gates import check_gates
from judgekit.errors import ConfigError
from judgekit.reports.export import REPORT_WRITERS, check_writable, report, write_text
from judgekit.runs.rows import Row
from judgekit.score import JudgeCall, Score


@pytest.fixture
def run(run_of):
    return run_of([Score.scored("f1", 0.5, reason="half"), Score.failed("f1", "broken")])


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        ("scores.jsonl", b'{"index":0,"sample_id":"s0",'),
        ("scores.csv", b'"index","sample_id",'),
        ("junit.xml", b"<?xml "),
        ("summary.md", b"### judgekit"),
        ("Report.HTML", b"<!doctype html>"),
    ],
)
def test_the_name_of_a_file_says_what_is_written(name, begins, run, tmp_path):
    check_writable(tmp_path / name, REPORT_WRITERS)
    report(run, tmp_path / name)
    assert (tmp_path / name).read_bytes()[: len(begins)].lower() == begins.lower()
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.parametrize("name", ["junit.xml", "summary.md", "report.html"])
def test_what_came_of_gates_stands_in_a_summary_on_a_page_and_among_test_cases(name, run, tmp_path):
    report(run, tmp_path / name, check_gates(run, ["failed <= 0"]))
    assert "found 1 of 2" in (tmp_path / name).read_text(encoding="utf-8")


@pytest.fixture
def judged(tmp_path):
    """A run of which the judge skips all samples but one, each for a reason in its own words."""
    judge = ScriptedJudge(
        lambda request: {
            **dict.fromkeys(load_prompt("user_frustration").steps, ""),
            "reason": f"words about {(said := request.messages[1].content.partition('hello ')[2][:2])}",
            "evidence": [1],
            "verdict": "none_shown" if said == "00" else "not_applicable",
        }
    )
    samples = [Sample.of([HumanMessage(f"hello {number:02}")], id=f"s{number:02}") for number in range(40)]
    return judgekit.run(samples, [PromptScorer("user_frustration", judge)], store=tmp_path / "runs.sqlite")


def test_what_a_judge_skips_is_grouped_by_its_label_and_its_words_stay_with_each_sample(judged, tmp_path):
    paths = {kind: tmp_path / f"report.{kind}" for kind in ("csv", "jsonl", "md", "html", "xml")}
    for path in paths.values():
        report(judged, path)
    assert "user_frustration: 39 skipped: not_applicable" in str(judged)
    text = {kind: path.read_text(encoding="utf-8") for kind, path in paths.items()}
    assert "- `user_frustration`: `39 skipped: not_applicable`\n" in text["md"]
    assert '"unscored":[["39 skipped","not_applicable"]]' in text["html"]
    assert "words about" not in text["md"].replace("words about 00", "")
    assert 'message="skipped: not_applicable: words about 17"' in text["xml"]
    row = next(one for one in csv.DictReader(text["csv"].splitlines()) if one["sample_id"] == "s17")
    assert (row["status"], row["label"], row["reason"]) == ("skipped", "not_applicable", "words about 17")
    score = Row.model_validate_json(text["jsonl"].splitlines()[17]).score
    assert (score.status, score.label, score.reason) == ("skipped", "not_applicable", "words about 17")


@pytest.mark.parametrize("text", ["é 巴黎", "line\nbreak\u2028\x85", "\x1b[2J", '"quoted"\\'])
def test_a_line_of_json_is_the_whole_row(text, run_of, tmp_path):
    call = JudgeCall(judge="j", prompt="p@1", cost_usd=0.5, error=text)
    run = run_of([Score.scored(text, 0.1, reason=text, details={text: [text, None, 1.5]}, calls=[call])])
    report(run, tmp_path / "rows.jsonl")
    (line,) = (tmp_path / "rows.jsonl").read_bytes().splitlines()
    assert [Row.model_validate_json(line)] == list(run)


def test_what_cannot_be_written_is_refused_before_the_run(run, tmp_path):
    (tmp_path / "folder.csv").mkdir()
    (tmp_path / "file").touch()
    for name, said in (
        (
            "scores.txt",
            r"unsupported extension '\.txt'; supported: \.html, \.json, \.jsonl, \.csv, \.xml, \.md",
        ),
        ("scores", "unsupported extension ''"),
        ("-", "unsupported extension ''"),
        ("no/folder/scores.csv", "there is no folder .*folder; create it first"),
        ("folder.csv", "is a folder"),
        ("file/scores.csv", "there is no folder"),
    ):
        with pytest.raises(ConfigError, match=said):
            check_writable(tmp_path / name, REPORT_WRITERS)
        with pytest.raises(ConfigError, match=said):
            report(run, tmp_path / name)


def test_a_file_stays_as_it_is_until_all_of_the_new_one_is_there(run, tmp_path, monkeypatch):
    path = tmp_path / "scores.csv"
    path.write_text("before")
    monkeypatch.setattr(csv, "writer", lambda *_, **__: pytest.fail("no room on the disk"))
    with pytest.raises(pytest.fail.Exception):
        report(run, path)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_text_takes_the_place_of_a_file_when_all_of_it_is_there_and_an_error_names_the_file(tmp_path):
    def pieces(problem: OSError | None = None) -> Iterator[str]:
        yield "some "
        if problem:
            raise problem
        yield "more"

    path = tmp_path / "found.json"
    write_text(pieces(), path)
    with pytest.raises(ConfigError, match=r"found\.json: cannot be written: no space left"):
        write_text(pieces(OSError("no space left on device")), path)
    assert path.read_text() == "some more"
    assert list(tmp_path.iterdir()) == [path]
