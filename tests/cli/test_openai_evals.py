"""What is saved of OpenAI's evals, from the files to a run with a judge."""

import json
from pathlib import Path

from judgekit import Run, read

CONFIG = """
[judges.default]
model = "openai/test"
base_url = "{url}"

[[scorers]]
name = "exact_match"
as = "match"
strip = false
reference = "{{{{ fields.label }}}}"

[[scorers]]
name = "prompt"
as = "tone"
prompt = "tone.md"
"""
PROMPT = """---
description: Is the answer polite?
inputs: [conversation, fields.ticket, response]
scale: {polite: 1, rude: 0}
---
Is the answer to
{{ fields.ticket }}
polite?
{{ response }}
"""
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


def test_scorers_in_place_of_graders_score_output_items(cli, judging, monkeypatch):
    Path("judgekit.toml").unlink()
    items = [output_item(0, "shipping", "shipping", 1.0), output_item(1, "billing!", "billing", 0.0)]
    Path("page.json").write_text(json.dumps({"object": "list", "data": items, "has_more": False}))
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    verdict = {False: "polite", True: "rude"}
    judging.answer = lambda shown: {"reason": "r", "evidence": [2], "verdict": verdict["billing!" in shown]}

    Path("tone.md").write_text(PROMPT)
    Path("evals.toml").write_text(CONFIG.format(url=judging.url))
    ended = cli("run", "page.json", "--config", "evals.toml")
    assert (ended.code, "could not be read" in ended.err) == (0, False)

    run = Run.stored()
    scores = {(row.sample_id, row.score.scorer): row.score.value for row in run}
    assert scores == {(f"outputitem_{at}", name): 1 - at for at in (0, 1) for name in ("match", "tone")}
    graded = {(sample.id, label.name): label.value for sample in read("page.json") for label in sample.trace.labels}
    assert graded == scores  # the grades that came with the items have the names of the scorers
    [shown] = [text for text in judging.asked if "billing!" in text]
    assert "ticket begins]\n| Ticket 1\n" in shown
    assert "response begins]\n| billing!\n" in shown
