"""The command ``judgekit plan-labels``, and the sheet that it leads to."""

import random
from dataclasses import dataclass
from pathlib import Path

import pytest

from judgekit import AIMessage, Sample, load_prompt, run
from judgekit.analysis.labels import read_labels
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.score import Score


@dataclass(frozen=True)
class Tone:
    """Judged in name: what matters here is that it has a prompt and a confidence."""

    name: str = "tone"

    @property
    def prompts(self):
        return (load_prompt("tone"),)

    async def ascore(self, sample: Sample, /) -> Score:
        dice = random.Random(sample.id)  # noqa: S311 - no secret
        return Score.scored(self.name, float(dice.random() < 0.7), confidence=dice.uniform(0.5, 1))


@pytest.fixture(autouse=True)
def _a_run(_elsewhere):
    samples = [Sample.of([AIMessage(f"said {number}")], id=f"s{number}") for number in range(500)]
    run(samples, [Tone()], store=DEFAULT_RUNS_PATH)


def test_the_plan_leads_to_a_sheet(cli):
    ended = cli("plan-labels", "last", "--half-width", 0.1, "--agreement", 0.6, "--mean", 0.7)
    assert (ended.code, ended.err) == (0, "")
    told = ended.out.splitlines()
    assert told[0] == "labels of tone in run 1, for a corrected mean within 0.1 of people's"
    assert told[2] == "55 labels drawn at random from the 500 scored samples; without the judge, 81"
    command = told[-1].removeprefix("next: judgekit ").split(" (")[0].split()
    assert command == ["label", "1", "--scorer", "tone", "--n", "61", "-o", "sheet.html"]
    ended = cli(*command, "--by-verdict", "--train", 9, "-o", "sheet.csv")
    assert ended.code == 0
    assert ended.out.splitlines()[:2] == [
        "samples to label for tone: 61 of 500, drawn by verdict",
        "and for judgekit align to read: 9 of which the judge is least sure",
    ]
    labels = read_labels("sheet.csv")
    assert len(labels) == 70
    assert sum(one.is_picked_to_read for one in labels) == 9
    assert {one.role for one in labels} == {"train", "validation", "test"}
    assert Path("sheet.html").read_text(encoding="utf-8").count('id="sample-') == 70


def test_too_few_samples_end_with_1_and_nothing_to_plan_for_with_2(cli):
    ended = cli("plan-labels", 1, "--half-width", 0.01, "--agreement", 0.6)
    assert ended.code == 1
    assert "record more conversations: about 8,037 labeled conversations would suffice" in ended.out
    ended = cli("plan-labels", 1, "--agreement", 0.6)
    assert ended.code == 2
    assert "pass --half-width or --gate" in ended.err
    ended = cli("plan-labels", 1, "--half-width", 0.1)
    assert ended.code == 2
    assert "tone: not audited; assume an agreement with people" in ended.err
