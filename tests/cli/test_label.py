"""``judgekit label``."""

import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from judgekit import AIMessage, Sample, Score, load_prompt, run
from judgekit.analysis.labels import read_labels
from judgekit.runs.store import DEFAULT_RUNS_PATH, RunStore


@dataclass(frozen=True)
class Tone:
    """Judged in name: what matters here is that it has a prompt."""

    name: str = "tone"

    @property
    def prompts(self):
        return (load_prompt("tone"),)

    async def ascore(self, sample: Sample, /) -> Score:
        number = int(sample.id)
        return Score.skipped(self.name, "no") if number < 3 else Score.scored(self.name, float(number % 2))


@pytest.fixture
def _a_run(_elsewhere):
    """Ten samples, of which seven are scored."""
    run(
        [Sample.of([AIMessage(f"\x1b[2Jsaid {number}")], id=str(number)) for number in range(10)],
        [Tone()],
        store=DEFAULT_RUNS_PATH,
    )


pytestmark = pytest.mark.usefixtures("_a_run")


def test_a_page_and_a_table_of_samples_are_written(cli):
    ended = cli("label", "last", "--n", 5, "-o", "sheet.html", "-o", "sheet.csv")
    assert (ended.code, ended.err) == (0, "wrote sheet.html\nwrote sheet.csv\n")
    assert ended.out.splitlines() == [
        "samples to label for tone: 5 of 7, drawn at random",
        "left out, because they have no score: 3 more",
        "next: judgekit audit 1 --labels FILE",
    ]
    assert Path("sheet.html").read_text(encoding="utf-8").count('id="sample-') == 5
    assert len(read_labels("sheet.csv")) == 5
    ended = cli("label", 1, "-n", 4, "--by-verdict", "--scorer", "tone", "-o", "sheet.csv")
    assert "4 of 7, drawn by verdict" in ended.out
    assert [(one.value, one.selection, one.run) for one in read_labels("sheet.csv")] == [(None, "stratified", 1)] * 4


def test_commands_that_read_conversations_go_on_without_a_damaged_one_and_name_it(cli, caplog):
    with closing(sqlite3.connect(DEFAULT_RUNS_PATH)) as db, db:
        assert db.execute("UPDATE conversations SET sample = x'00' WHERE number = 5").rowcount == 1
    Path("labels.csv").write_text("sample,scorer,value\n5,tone,1\n7,tone,0\n")
    commands = [
        ("runs", 1, "-o", "page.html"),
        ("compare", 1, 1, "-o", "compared.html"),
        ("label", 1, "-o", "sheet.html", "-o", "sheet.csv"),
        ("audit", 1),  # looks for labels in the conversations
        ("audit", 1, "--labels", "labels.csv", "-o", "audit.html"),
    ]
    codes = []
    for command in commands:
        caplog.clear()
        ended = cli(*command)
        codes.append(ended.code)
        assert set(caplog.messages) == {f"{DEFAULT_RUNS_PATH}: run 1: 1 damaged conversation left out: #5"}, command
        assert "label" not in command or "not stored or are damaged: 1" in ended.out
    assert codes == [0, 0, 0, 1, 0]  # an audit without labels compares nothing
    assert Path("sheet.csv").read_text().count("the conversation is not stored, or is damaged") == 1


def test_the_seed_draws_again_what_it_drew(cli):
    drawn = []
    for seed in (0, 0, 1):
        cli("label", 1, "-n", 4, "-o", "sheet.csv", "--seed", seed)
        drawn.append([one.sample for one in read_labels("sheet.csv")])
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_run_of_several_judged_scorers_must_be_told_which(cli):
    run([Sample.of([AIMessage("Hi")], id="5")], [Tone(), Tone(name="other\x1b[2J")], store=DEFAULT_RUNS_PATH)
    ended = cli("label", 2, "-o", "sheet.html")
    assert ended.code == 2
    assert "several scorers that ask a judge; choose one with --scorer: tone, other\\x1b[2J" in ended.err


def test_what_cannot_be_done_is_said_and_nothing_is_written(cli):
    for words, said in (
        (["1", "-o", "sheet.html", "--scorer", "tune"], "no scorer of the run is called 'tune'. Did you mean 'tone'"),
        (["9", "-o", "sheet.html"], "contains no run 9"),
        (["1", "-o", "sheet.pdf"], "unsupported extension '.pdf'; supported: .html, .csv"),
        (["1", "-o", "sheet.csv", "-o", "no/sheet.html"], "there is no folder no"),
    ):
        ended = cli("label", *words)
        assert (ended.code, said in ended.err) == (2, True)
        assert not [*Path().glob("sheet.*")]


def test_a_run_that_keeps_no_text_is_refused(cli):
    store = RunStore(DEFAULT_RUNS_PATH)
    store.change(store.record(1).model_copy(update={"keeps_text": False}))
    ended = cli("label", 1, "-o", "sheet.html")
    assert (ended.code, "run 1 stores no conversations" in ended.err) == (2, True)
