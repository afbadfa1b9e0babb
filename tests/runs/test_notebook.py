"""Runs in notebooks."""

import re
from html.parser import HTMLParser

import pytest

from judgekit.runs.notebook import summary_html
from judgekit.runs.rows import Row
from judgekit.runs.summary import Summary
from judgekit.score import JudgeCall, Score

CELLS = {
    "run": """
from judgekit import AIMessage, Sample, StringPresence, arun, run, scorer
samples = [Sample.of([AIMessage(word), AIMessage("yes")], reference=word, id=word) for word in ("yes", "no")]
results = run(samples, [StringPresence()])
results
""",
    "arun": """
results = await arun(samples, [StringPresence()])
print([row.score.value for row in results])
""",
    "progress": """
import asyncio
@scorer
async def slow(sample):
    await asyncio.sleep(0.3)
    return 1.0 if sample.id == "yes" else "broken"
_ = run(samples, [slow], concurrency=1, progress=True)
""",
    "async progress": """
_ = await arun(samples, [slow], concurrency=1, progress=True)
""",
}


def summary(*scores: Score) -> Summary:
    found = Summary()
    for index, score in enumerate(scores):
        found.add(Row(index=index, sample_id="s", score=score))
    return found


class Text(HTMLParser):
    """The tags, and the texts between them."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.texts: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, _: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_a_summary_is_a_table_with_interval_and_counts():
    scores = [
        *[Score.scored("f1", 1)] * 9,
        Score.scored("f1", 0),
        Score.skipped("f1", "x", label="not_applicable"),
        Score.failed("f1", "y"),
    ]
    found = Text(summary_html(summary(*scores), ["stopped early"]))
    assert found.texts == [
        *("scorer", "mean", "95 % interval", "n", "skipped", "failed"),
        *("f1", "0.900", "0.596 to 0.982", "10 of 12", "1", "1"),  # Wilson of 9 in 10
        "stopped early",
        "f1: 1 skipped: not_applicable",
        "f1: 1 failed: y",
    ]


def test_what_judges_cost_is_shown_where_one_was_asked():
    found = Text(summary_html(summary(Score.scored("f1", 1, calls=[JudgeCall(judge="j", prompt="p")]))))
    assert found.texts[6:10] == ["requests", "cached", "tokens", "cost"]
    assert found.texts[-4:] == ["1", "0", "unknown", "unknown"]


@pytest.mark.parametrize("text", ["not audited", "<script>alert(1)</script>"])
def test_beside_a_judged_mean_stands_whether_its_judge_was_audited(text):
    scores = summary(Score.scored("f1", 1), Score.scored("goal", 1))
    scores["goal"].audited = text
    found = Text(summary_html(scores))
    assert (found.texts[6], found.texts[-1]) == ("audit", text)
    assert found.tags.count("script") == 0


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "</table><img src=x onerror=alert(1)>", "&lt; \"'"])
def test_names_labels_and_notes_are_text(text):
    scores = [Score.scored(text, value, label=text, warnings=[text]) for value in (0.5, 0.25)]
    hostile, harmless = (
        Text(
            summary_html(
                summary(*(one.model_copy(update={"scorer": said, "warnings": (said,)}) for one in scores)), [said]
            )
        )
        for said in (text, "said")
    )
    assert hostile.tags == harmless.tags
    assert "".join(hostile.texts).count(text) >= 4


def test_a_long_summary_says_how_much_is_left_out():
    found = Text(summary_html(summary(*(Score.scored(f"scorer {number}", 1) for number in range(60)))))
    assert found.tags.count("tr") == 51
    assert "and 10 more scorers" in found.texts


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> dict[str, list[dict[str, str]]]:
    """What each cell shows in a real notebook, by the type of its content, and what it shows in the place of that."""
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient and ipykernel")
    pytest.importorskip("ipykernel", reason="needs nbclient and ipykernel")
    nbformat = pytest.importorskip("nbformat")
    folder = tmp_path_factory.mktemp("notebook")
    cells = [nbformat.v4.new_code_cell(source) for source in CELLS.values()]
    found: list[list[dict[str, str]]] = [[] for _ in cells]

    class Client(nbclient.NotebookClient):
        def process_message(self, msg, cell, cell_index):
            if msg["msg_type"] in ("display_data", "update_display_data", "execute_result"):
                found[cell_index].append(msg["content"]["data"])
            elif msg["msg_type"] == "stream":
                found[cell_index].append({msg["content"]["name"]: msg["content"]["text"]})
            return super().process_message(msg, cell, cell_index)

    with pytest.MonkeyPatch.context() as patch:
        for variable in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"):
            patch.setenv(variable, str(folder / variable))
        notebook = nbformat.v4.new_notebook(cells=cells)
        Client(notebook, timeout=50, kernel_name="python3", resources={"metadata": {"path": folder}}).execute()
    return dict(zip(CELLS, found, strict=True))


@pytest.mark.processes
def test_a_run_works_under_the_loop_of_a_notebook(shown):
    ((run,), (printed,)) = shown["run"], shown["arun"]
    assert Text(run["text/html"]).texts[6:10] == ["string_presence", "0.500", "0.095 to 0.905", "2 of 2"]  # Wilson
    assert printed == {"stdout": "[1.0, 0.0]\n"}


@pytest.mark.processes
@pytest.mark.parametrize("cell", ["progress", "async progress"])
def test_a_notebook_shows_how_far_a_run_is_while_it_runs(shown, cell):
    told = [one["text/plain"] for one in shown[cell]]
    assert told[0] == "0 of 2 scores"
    assert any(re.fullmatch(r"1 of 2 scores(, 0:00:0\d left)?", one) for one in told)
    assert told[-1] == "2 of 2 scores, 1 failed"
    assert all("<progress" in one["text/html"] for one in shown[cell])
