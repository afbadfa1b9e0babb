"""What the pages show, as their twins in JSON say it."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import timedelta

import httpx
import pytest

from judgekit import Run, Sample, Score, audit, load_prompt, run, scorer
from judgekit.analysis.corrected_means import run_corrections
from judgekit.analysis.stored_labels import stored_labels
from judgekit.runs.store import RunStore, now
from judgekit.score import JudgeCall
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.view import pages
from tests.hostile import HOSTILE
from tests.view.conftest import Kind, as_read_from_a_file, samples, serving


def test_runs_are_listed_newest_first_with_their_numbers(demo):
    with demo.opened() as client:
        answer = client.get("/runs.json").json()
        assert [entry["number"] for entry in answer["runs"]] == [3, 2, 1]
        first = answer["runs"][2]
        assert first["state"] == "ended"
        assert first["judges"] == ["demo/handwritten"]
        assert first["scorers"][0]["name"] == "tool_call_f1"
        line = Run.stored(1, demo.path).summary["tool_call_f1"]
        assert first["scorers"][0]["mean"] == pytest.approx(line.value)
        assert first["scorers"][0]["low"] == pytest.approx(line.interval[0])


def test_a_run_is_served_as_its_report_without_its_samples(demo):
    with demo.opened() as client:
        page, head = client.get("/runs/1"), client.get("/runs/1.json").json()
        assert len(page.text) < 200_000
        assert head["b"]["number"] == 1
        listed = client.get("/runs/1/samples.json").json()
        assert [sample["number"] for sample in listed["samples"]] == list(range(14))
        sample = client.get("/runs/1/samples/3.json").json()
        assert (sample["number"], sample["rows"]) == (3, listed["samples"][3]["rows"])
        assert sample["messages"]
        assert client.get("/runs/1/samples/14.json").status_code == 400


def test_two_runs_are_compared(demo):
    with demo.opened() as client:
        head = client.get("/runs/1/compare/2.json").json()
        assert (head["a"]["number"], head["b"]["number"]) == (1, 2)
        listed = client.get("/runs/1/compare/2/samples.json").json()
        assert [pair["number"] for pair in listed["samples"]] == list(range(14))
        pair = client.get("/runs/1/compare/2/samples/3.json").json()
        for side, run in (("a", 1), ("b", 2)):
            alone = client.get(f"/runs/{run}/samples/3.json").json()
            alone.pop("history")
            assert (pair[side], listed["samples"][3][side]["rows"]) == (alone, alone["rows"])
        assert client.get("/runs/1/compare/2/samples/14.json").status_code == 400


def test_rows_come_a_hundred_at_a_time(tmp_path):
    run(samples(250), [Kind()], store=tmp_path / "runs.sqlite")
    with serving(tmp_path / "runs.sqlite") as served, served.opened() as client:
        seen, start = [], 0
        while start is not None:
            part = client.get("/runs/1/samples.json", params={"start": start}).json()
            seen += [sample["number"] for sample in part["samples"]]
            assert (len(part["samples"]) <= 100, part["total"]) == (True, 250)
            start = part["next"]
        assert seen == list(range(250))


def test_a_page_is_made_again_when_scores_are_added(served):
    with served.opened() as client:
        before, version = client.get("/runs/2.json").json(), client.get("/version.json").json()
        assert client.get("/version.json").json() == version
        run(samples(5), [Kind()], store=served.path)
        assert client.get("/version.json").json() != version
        assert client.get("/runs/2.json").json() == before
        assert [entry["number"] for entry in client.get("/runs.json").json()["runs"]] == [3, 2, 1]


def test_a_run_without_an_end_shows_its_progress(tmp_path):
    path = tmp_path / "runs.sqlite"
    run(samples(3), [Kind()], store=path)
    store = RunStore(path)
    store.change(store.record(1).model_copy(update={"ended_at": None, "samples": 10}))
    with serving(path) as served, served.opened() as client:
        [entry] = client.get("/runs.json").json()["runs"]
        assert (entry["state"], entry["done"], entry["samples"]) == ("running", 3, 10)
        with store.transaction() as db:
            db.execute("DELETE FROM stamps")
        long_ago = now() - timedelta(hours=1)
        store.change(store.record(1).model_copy(update={"started_at": long_ago}))
        assert client.get("/runs.json").json()["runs"][0]["state"] == "interrupted"


def test_people_name_runs(served):
    with served.opened() as client:
        sent = {"name": "new prompt", "tags": "nightly main"}
        assert served.post(client, "/runs/1/description", sent).status_code == 200
        assert served.post(client, "/runs/1/description", {"note": "with tools"}).status_code == 200
        entry = client.get("/runs.json").json()["runs"][1]
        assert (entry["name"], entry["note"], entry["tags"]) == ("new prompt", "with tools", ["nightly", "main"])
        assert served.post(client, "/runs/1/description", {"name": "x" * 101}).status_code == 400
        assert served.post(client, "/runs/9/description", sent).status_code == 400


def test_a_damaged_run_is_listed_as_that(served):
    with sqlite3.connect(served.path) as db:
        db.execute("UPDATE runs SET checksum = 0 WHERE number = 1")
    db.close()
    with served.opened() as client:
        assert [entry["state"] for entry in client.get("/runs.json").json()["runs"]] == ["ended", "damaged"]
        answer = client.get("/runs/1.json")
        assert answer.status_code == 400
        assert "damaged" in answer.json()["error"]


def test_another_file_in_its_place_is_noticed(served, tmp_path):
    with served.opened() as client:
        version = client.get("/version.json").json()
        run(samples(2), [Kind()], store=tmp_path / "other.sqlite")
        for ending in ("-wal", "-shm"):
            (tmp_path / f"runs.sqlite{ending}").unlink(missing_ok=True)
        (tmp_path / "other.sqlite").replace(served.path)
        assert client.get("/version.json").json() != version
        assert len(client.get("/runs.json").json()["runs"]) == 1


def test_changes_are_told_as_events(served):
    with served.opened() as client, client.stream("GET", "/events") as events:
        lines = (line for line in events.iter_lines() if line.startswith("data:"))
        first = next(lines)
        threading.Thread(target=lambda: run(samples(1), [Kind()], store=served.path)).start()
        assert next(lines) != first


def test_reads_are_short(served):
    """Runs can be removed while pages are open, though an open read would block that."""
    with served.opened() as client:
        for path in (
            *("/runs.json", "/runs/1.json", "/runs/1/samples.json?q=answer", "/runs/1/samples/3.json"),
            *("/runs/1/head.json", "/runs/1/trend/kind.json", "/compare.json?run=1&run=2"),
            *("/runs/1/label/kind", "/runs/1/compare/2.json"),
        ):
            assert client.get(path).status_code == 200
        RunStore(served.path).remove([1])
        assert client.get("/runs/1.json").status_code == 400


def test_labels_are_stored_as_they_are_given(served):
    with served.opened() as client:
        path = "/runs/1/label/kind"
        queue = client.get(f"{path}.json", params={"annotator": "Ann"}).json()
        assert (queue["labeled"], queue["own"], len(queue["samples"])) == (0, {}, 30)
        number = queue["samples"][0][0]
        sent = {"annotator": "Ann", "number": number, "value": "faithful", "reason": "so it is", "message": "2"}
        value = next(iter(Run.stored(1, served.path).scorers[0].scale), "yes")
        answer = served.post(client, path, {**sent, "value": value})
        assert answer.status_code == 200
        assert answer.json()["own"] == {str(number): {"value": value, "reason": "so it is", "message": "2"}}
        [label] = stored_labels(Run.stored(1, served.path))
        found = (label.annotator, label.number, label.value, label.message, label.selection)
        assert found == ("Ann", number, value, 2, "random")
        assert label.recordings == Run.stored(1, served.path).recordings
        others = client.get(f"{path}.json", params={"annotator": "Bob"}).json()
        assert (others["labeled"], others["own"]) == (1, {})


def test_the_queue_hides_the_verdicts_and_what_others_say(served):
    with served.opened() as client:
        served.post(
            client, "/runs/1/label/kind", {"annotator": "Ann", "number": 3, "value": "yes", "reason": "Ann says so"}
        )
        for path in ("/runs/1/label/kind", "/runs/1/label/kind.json?annotator=Bob"):
            assert "because of" not in client.get(path).text
            assert "Ann says so" not in client.get(path).text


def test_what_is_no_label_is_not_stored(served):
    good = {"number": 1, "value": "yes", "annotator": "Ann"}
    wrong = [
        *({}, [], {"number": 1, "value": "yes"}, good | {"annotator": " "}, good | {"annotator": "openai/gpt-5"}),
        *(good | {"number": 99}, good | {"message": "x"}),
        *(good | {"value": value} for value in ("", "perhaps", None, {})),
    ]
    with served.opened() as client:
        for sent in wrong:
            answer = served.post(client, "/runs/1/label/kind", sent)
            assert answer.status_code == 400, sent
            assert answer.json()["error"]
    assert not stored_labels(Run.stored(1, served.path))


def test_two_people_label_at_once(served):
    failed = []

    def label(name: str) -> None:
        with served.opened() as client:
            for number in range(15):
                answer = served.post(
                    client, "/runs/1/label/kind", {"annotator": name, "number": number, "value": "yes"}
                )
                failed.extend([answer.text] if answer.status_code != 200 else [])

    threads = [threading.Thread(target=label, args=(name,)) for name in ("Ann", "Bob")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    labels = stored_labels(Run.stored(1, served.path))
    assert {(label.annotator, label.number) for label in labels} == {
        (name, number) for name in ("Ann", "Bob") for number in range(15)
    }


def test_labels_appear_in_the_audit_and_no_audit_record_is_written(served):
    with served.opened() as client:
        assert client.get("/runs/1.json").json()["audit"] is None
        for number in range(10):
            served.post(client, "/runs/1/label/kind", {"annotator": "Ann", "number": number, "value": "yes"})
        [found] = client.get("/runs/1.json").json()["audit"]["scorers"]
        assert found["name"] == "kind"
        assert len(found["opinions"]) == 10
        assert not (served.path.parent / "audits").exists()


def test_failures_are_edited(analyzed):
    stored = analyzed({"a": ("forgot", "the agent", "it forgot"), "b": ("none_visible", "", "")})
    with serving(stored.store.path) as served, served.opened() as client:
        [issue] = client.get("/runs/1.json").json()["failures"]["issues"]
        sent = {"issue": issue["id"], "status": "fixed", "name": "Forgets"}
        assert served.post(client, "/runs/1/failures", sent).status_code == 200
        [edited] = client.get("/runs/1.json").json()["failures"]["issues"]
        assert (edited["name"], edited["status"]) == ("Forgets", "fixed")
        assert served.post(client, "/runs/1/failures", {**sent, "issue": "nothing"}).status_code == 400
        assert served.post(client, "/runs/1/failures", {**sent, "status": "gone"}).status_code == 400


LABELS = "/runs/1/label/judged"


@dataclass(frozen=True)
class Judged:
    """A judge that always says the same."""

    value: float
    name: str = "judged"

    @property
    def prompts(self):
        return (load_prompt("faithfulness"),)

    async def ascore(self, sample: Sample, /) -> Score:
        return Score.scored("judged", self.value, reason=f"it is {self.value}")


def test_a_scorer_is_followed_over_the_runs_of_a_file(tmp_path):
    path = tmp_path / "runs.sqlite"
    for value in (0.0, 0.0, 1.0):
        run(samples(4), [Judged(value)], store=path)
    run(samples(4), [Judged(0.5)], store=path)  # of another file
    as_read_from_a_file(path, 1, 2, 3)
    with serving(path) as served, served.opened() as client:
        shown = client.get("/runs/2/trend/judged.json").json()["runs"]
        [points] = zip(*(one["scorers"] for one in shown), strict=True)
        assert [one["number"] for one in shown] == [1, 2, 3]
        assert [point["mean"] for point in points] == [0.0, 0.0, 1.0]
        assert points[1]["low"] == pytest.approx(Run.stored(2, path).summary["judged"].interval[0])
        assert points[0]["signature"] == points[1]["signature"] != points[2]["signature"]
        assert [one["number"] for one in client.get("/runs/4/trend/judged.json").json()["runs"]] == [4]


def test_corrected_means_are_in_the_trend_once_there_are_labels(tmp_path):
    path = tmp_path / "runs.sqlite"
    run(samples(30), [Kind()], store=path)
    as_read_from_a_file(path, 1)
    with serving(path) as served, served.opened() as client:
        [point] = client.get("/runs/1/trend/kind.json").json()["runs"]
        assert "corrected" not in point
        for number in range(30):
            sent = {"annotator": "Ann", "number": number, "value": "yes" if number % 2 else "no"}
            assert served.post(client, "/runs/1/label/kind", sent).status_code == 200
        audit(Run.stored(1, path))
        [point] = client.get("/runs/1/trend/kind.json").json()["runs"]
        assert point["corrected"]["value"] == pytest.approx(
            run_corrections(Run.stored(1, path))["kind"].corrected.value
        )


def test_a_sample_has_its_scores_in_other_runs_of_the_file(tmp_path):
    path = tmp_path / "runs.sqlite"
    run(samples(3), [Judged(0.0)], store=path)
    run(samples(3, first=1), [Judged(1.0)], store=path)  # which number the same samples otherwise
    run(samples(3), [Judged(0.5)], store=path)
    as_read_from_a_file(path, 1, 2)
    with serving(path) as served, served.opened() as client:
        history = client.get("/runs/1/samples/2.json").json()["history"]
        found = [(one["run"], one["sample"], one["rows"][0]["score"]["value"]) for one in history]
        assert found == [(1, 2, 0.0), (2, 1, 1.0)]
        assert [one["run"] for one in client.get("/runs/1/samples/0.json").json()["history"]] == [1]
        assert client.get("/runs/3/samples/0.json").json()["history"] == []


def test_several_runs_are_compared_with_the_first(tmp_path):
    path = tmp_path / "runs.sqlite"
    for value in (0.0, 0.0, 1.0):
        run(samples(30), [Kind(), Judged(value)], store=path)
    with serving(path) as served, served.opened() as client:
        document = client.get("/compare.json?run=1&run=2&run=3").json()
        content, differing = document["comparisons"], document["differing"]
        assert (differing["total"], len(differing["samples"])) == (30, 30)
        assert differing["samples"][7] == {"id": "7", "numbers": [7, 7, 7], "scores": {"judged": [0.0, 0.0, 1.0]}}
        assert content == [client.get(f"/runs/1/compare/{number}.json").json() for number in (2, 3)]
        verdicts = [[one["verdict"] for one in head["comparison"]["scorers"]] for head in content]
        assert verdicts == [["unchanged", "unchanged"], ["unchanged", "better"]]


def test_a_long_run_is_shown_before_its_scores_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(pages, "_COUNTED_AT_ONCE", 10)
    path = tmp_path / "runs.sqlite"
    run(samples(30), [Kind()], store=path)
    with serving(path) as served, served.opened() as client:
        first, all_scores = client.get("/runs/1/head.json").json(), client.get("/runs/1.json").json()
        assert first["first"] == client.get("/runs.json").json()["runs"][0]
        assert first["choices"] == all_scores["choices"]
        [early], [late] = first["first"]["scorers"], all_scores["b"]["scorers"]
        assert early["mean"] == late["value"]
        assert all(early[name] == late[name] for name in ("low", "high", "n"))
        assert client.get("/runs/1/head.json").json() == all_scores


def test_what_a_running_run_has_cost_so_far_is_read_each_time(tmp_path):
    path = tmp_path / "runs.sqlite"
    run(samples(3), [Kind()], store=path)
    store = RunStore(path)
    store.change(store.record(1).model_copy(update={"ended_at": None, "samples": 9}))
    with serving(path) as served, served.opened() as client:
        assert client.get("/runs.json").json()["runs"][0]["cost"] == 0
        calls = JudgeCall(judge="j", prompt="p", cost_usd=0.25).model_dump_json()
        with store.transaction() as db:
            db.execute("UPDATE scores SET calls = ?", (f"[{calls}]",))
        assert client.get("/runs.json").json()["runs"][0]["cost"] == 0.75


def test_the_audit_is_in_comparisons(served):
    with served.opened() as client:
        for number in range(10):
            served.post(client, "/runs/2/label/kind", {"annotator": "Ann", "number": number, "value": "yes"})
        assert len(client.get("/runs/1/compare/2.json").json()["audit"]["scorers"]) == 1


EVIL = (
    *(*HOSTILE, "".join(HOSTILE), "\ud800", "${alert(1)}", "%3Cscript%3E", "\x00", "a\nb", "'", "`", "--!>"),
    *("<base href=x>", "<style>*{}</style>", "&lt;script&gt;", "\\u003cscript>"),
)


def test_what_was_recorded_stays_text(tmp_path):
    @scorer(name="evil")
    def unkind(sample: Sample) -> Score:
        return Score.scored("evil", 0.5, label=sample.id, reason=sample.id)

    path = tmp_path / "runs.sqlite"
    made = [Sample.of([HumanMessage(evil), AIMessage(evil)], id=evil or "none", metadata={evil: evil}) for evil in EVIL]
    for value in (0.0, 1.0):
        run(made, [unkind, Judged(value)], store=path)
    as_read_from_a_file(path, 1, 2)
    pages = ("/runs", "/runs/1", "/runs/1/compare/2", "/runs/1/trend/evil", "/compare?run=1&run=2", LABELS)
    twins = ["/runs.json", "/runs/1.json", "/runs/1/head.json", "/runs/1/samples.json", "/runs/1/samples.json?q=e"]
    twins += ["/runs/1/trend/judged.json", "/runs/1/compare/2.json", f"{LABELS}.json"]
    twins += ["/runs/1/compare/2/samples.json?q=e", "/runs/1/compare/2/samples/0.json"]
    with serving(path) as served, served.opened() as client:
        for address in pages:
            page = client.get(address)
            assert page.headers["content-type"].startswith("text/html")
            attribute = "<img src" if address == LABELS else "onerror="  # the label page has the texts, as JSON
            assert not any(text in page.text for text in ("alert(1)</", attribute, "<base", "<svg onload")), address
        for address in (*twins, "/compare.json?run=1&run=2"):
            twin = client.get(address)
            assert twin.headers["content-type"] == "application/json", address
            json.loads(twin.text)
        for number in range(len(EVIL)):
            assert [one["run"] for one in client.get(f"/runs/1/samples/{number}.json").json()["history"]] == [1, 2]


QUIET = """
import sys
from pathlib import Path
from judgekit.view.pages import Pages
pages = Pages(Path(sys.argv[1]))
pages.runs(), pages.samples((1,), {"q": "answer"}, 0, None), pages.sample(1, 3), pages.trend(1, "kind"), pages.head(1)
print([name for name in ("numpy", "scipy", "sklearn", "pandas", "openai") if name in sys.modules])
"""


@pytest.mark.processes
def test_lists_runs_and_samples_load_no_statistics_of_others(served):
    ran = subprocess.run(  # noqa: S603 - Python itself
        [sys.executable, "-c", QUIET, str(served.path)], capture_output=True, text=True, check=True
    )
    assert ran.stdout.strip() == "[]"


@pytest.mark.processes
def test_a_killed_server_loses_no_label_that_it_confirmed(served):
    command = [sys.executable, "-m", "judgekit", "view", "--no-open", "--store", str(served.path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603 - Python itself
        assert process.stderr is not None
        url = next(word for word in process.stderr.readline().split() if word.startswith("http"))
        with httpx.Client(base_url=url.partition("/open")[0], trust_env=False, timeout=30) as client:
            client.get(url)
            page = client.get("/runs/1/label/kind").text
            write = page.partition('data-token="')[2].partition('"')[0]
            for number in range(5):
                sent = {"annotator": "Ann", "number": number, "value": "yes"}
                answer = client.post("/runs/1/label/kind", json=sent, headers={"x-judgekit-token": write})
                assert answer.status_code == 200
            os.kill(process.pid, signal.SIGKILL)
        process.wait()
    assert {label.number for label in stored_labels(Run.stored(1, served.path))} == set(range(5))
