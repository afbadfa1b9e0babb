"""What is saved of OpenAI's evals, from the files to a run with a judge, and to an audit of OpenAI's grader."""

import json
import os
import re
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from judgekit import Run, read

EVAL = {
    "id": "eval_1",
    "object": "eval",
    "name": "tickets",
    "testing_criteria": [
        {
            "type": "string_check",
            "name": "match",
            "input": "{{sample.output_text}}",
            "operation": "eq",
            "reference": "{{item.label}}",
        },
        {
            "type": "label_model",
            "name": "tone",
            "model": "test",
            "input": [{"role": "user", "content": "Is the answer to {{item.ticket}} polite? {{sample.output_text}}"}],
            "labels": ["polite", "rude"],
            "passing_labels": ["polite"],
        },
    ],
}
PAGE = Path(__file__).parents[2] / "docs" / "from-openai-evals.md"
UUID = "a2486074-d803-4445-b431-ad2262e85d47"


def output_item(number, answer, label, tone):
    return {
        "object": "eval.run.output_item",
        "id": f"outputitem_{number}",
        "eval_id": "eval_1",
        "run_id": "evalrun_1",
        "datasource_item_id": number,
        "datasource_item": {"ticket": f"Ticket {number}", "label": label},
        "results": [
            {
                "name": f"match-{UUID}",
                "passed": answer == label,
                "score": float(answer == label),
                "type": "string_check",
            },
            {"name": f"tone-{UUID}", "passed": bool(tone), "score": tone, "type": "label_model"},
        ],
        "sample": {
            "input": [{"role": "user", "content": f"Ticket {number}"}],
            "output": [{"role": "assistant", "content": answer}],
        },
        "status": "pass",
    }


@pytest.mark.parametrize("name", ["output_items.jsonl", "page.json"])
def test_the_config_of_an_eval_scores_its_output_items(cli, judging, monkeypatch, name):
    Path("judgekit.toml").unlink()
    Path("eval.json").write_text(json.dumps(EVAL))
    items = [output_item(0, "shipping", "shipping", 1.0), output_item(1, "billing!", "billing", 0.0)]
    text = (
        "\n".join(map(json.dumps, items))
        if name.endswith("l")
        else json.dumps({"object": "list", "data": items, "has_more": False})
    )
    Path(name).write_text(text)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    verdict = {False: "polite", True: "rude"}
    judging.answer = lambda shown: {"reason": "r", "evidence": [2], "verdict": verdict["billing!" in shown]}

    assert cli("convert", "eval.json", "-o", "evals.toml").code == 0
    config = Path("evals.toml").read_text()
    Path("evals.toml").write_text(
        config.replace('model = "openai/test"', f'model = "openai/test"\nbase_url = "{judging.url}"')
    )
    ended = cli("run", name, "--config", "evals.toml")
    assert (ended.code, "could not be read" in ended.err) == (0, False)

    run = Run.stored()
    found = {(row.sample_id, row.score.scorer): row.score.value for row in run}
    assert found == {
        ("outputitem_0", "match"): 1,
        ("outputitem_0", "tone"): 1,
        ("outputitem_1", "match"): 0,
        ("outputitem_1", "tone"): 0,
    }
    graded = {(sample.id, label.name): label.value for sample in read(name) for label in sample.trace.labels}
    assert graded == found  # the grades that came with the items have the names of the scorers
    [shown] = [one for one in judging.asked if "billing!" in one]
    assert "ticket begins]\n| Ticket 1\n" in shown
    assert "response begins]\n| billing!\n" in shown


class Platform(BaseHTTPRequestHandler):
    """OpenAI's API of evals, with one eval and one run, and an output item a page."""

    def do_GET(self) -> None:
        place, items = (
            urlsplit(self.path),
            [output_item(0, "shipping", "shipping", 1.0), output_item(1, "b", "billing", 0.0)],
        )
        source = {"type": "file_id", "id": "file-1"}
        run = {"id": "evalrun_1", "object": "eval.run", "data_source": {"type": "completions", "source": source}}
        after = parse_qs(place.query).get("after")
        at = 1 if after else 0
        pages = {
            "/v1/evals": ([EVAL], False),
            "/v1/evals/eval_1/runs": ([run], False),
            "/v1/evals/eval_1/runs/evalrun_1/output_items": ([items[at]], not at),
        }
        if place.path == "/v1/files/file-1/content":
            body = b'{"item": {"ticket": "Ticket 0"}}\n'
        else:
            data, more = pages[place.path]
            about = {"first_id": data[0]["id"], "last_id": data[-1]["id"], "has_more": more}
            body = json.dumps({"object": "list", "data": data, **about}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None: ...


def test_the_script_of_the_page_saves_files_that_are_read():
    [script] = re.findall(r'^```py title="save_evals.py"\n(.*?)^```$', PAGE.read_text(), re.MULTILINE | re.DOTALL)
    Path("save_evals.py").write_text(script)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Platform)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    address = {"OPENAI_BASE_URL": f"http://127.0.0.1:{server.server_port}/v1", "OPENAI_API_KEY": "none"}
    try:
        done = subprocess.run(
            [sys.executable, "save_evals.py"], env=os.environ | address, capture_output=True, text=True, check=False
        )
    finally:
        server.shutdown()
        server.server_close()
    assert (done.returncode, done.stderr) == (0, "")
    folder = Path("openai-evals/eval_1")
    assert json.loads((folder / "eval.json").read_text()) == EVAL
    samples = list(read(folder / "evalrun_1.output_items.jsonl", on_error="raise"))
    assert [sample.id for sample in samples] == ["outputitem_0", "outputitem_1"]
    assert [sample.fields for sample in read(folder / "file-1.jsonl", on_error="raise")] == [{"ticket": "Ticket 0"}]
    assert json.loads((folder / "evalrun_1.json").read_text())["object"] == "eval.run"
