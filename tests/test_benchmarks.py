"""The comparison with other tools, without them: judgekit's own part, the tables and the plot."""

import importlib
import math
from pathlib import Path
from types import ModuleType
from xml.etree import ElementTree as ET

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def peers(monkeypatch, tmp_path):
    """A function that loads a module of the comparison, which works in this folder."""
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.chdir(tmp_path)

    def load(name: str) -> ModuleType:
        return importlib.import_module(f"benchmarks.{name}")

    return load


HOSTILE = "<script>\"&'|\n`x`"


@pytest.mark.processes
def test_judgekit_does_the_work_of_every_table(peers, tmp_path):
    work, tools, server = peers("peers.work"), peers("peers.tools"), peers("server")
    path = tmp_path / "conversations.jsonl"
    work.write(path, range(20), deviating=True)
    worker = tools.Worker(tools.JUDGEKIT, tools.installed(tools.JUDGEKIT, tmp_path), tmp_path / "home")
    try:
        matching = worker.ask("tool_calls", number=4, deviating=False)
        assert matching["result"] == {"tool_call_accuracy": [1] * 4, "tool_call_f1": [1] * 4}
        assert matching["cpu"] > 0
        deviating = worker.ask("tool_calls", number=20, deviating=True)["result"]["tool_call_f1"]
        assert 0 < sum(value < 1 for value in deviating) < 20
        strict = worker.ask("other_modes", number=20, deviating=True)["result"]["strict"]
        assert set(strict) == {0, 1}
        conversations, messages, calls = worker.ask("reading", path=str(path))["result"]
        assert (conversations, messages) == (20, 2 * calls + 2 * conversations)
        assert len(worker.ask("rouge", words=5, number=2, turn=0)["result"]) == 6
        assert len(worker.ask("bleu", words=5, number=2, turn=0)["result"]) == 2
        assert len(worker.ask("ranking", number=2)["result"]) == 6
        assert worker.ask("memory", path=str(path))["result"] == 20
        with server.running("counting") as url:
            asked = {"url": url, "at_once": 2, "cache": "replies.sqlite"}
            assert worker.ask("judged", numbers=[1, 2, 1], **asked)["result"] == [1, 1, 1]
            bench = peers("peers.measure").Bench({}, url, tmp_path)
            requests, characters, schemas = bench.counts()
            assert requests == 2
            assert characters > schemas > 0
            worker.ask("judged", numbers=[2, 1], **asked)
            assert bench.counts() == [0, 0, 0]
        assert worker.ask("nothing")["error"].startswith("AttributeError")
    finally:
        worker.stop()


@pytest.mark.processes
def test_a_tool_that_cannot_be_imported_says_so_in_its_row(peers, tmp_path):
    tools, measure = peers("peers.tools"), peers("peers.measure")
    absent = tools.Tool("absent", (), "import absent", tools.CALLS)
    workers = {
        tool.name: tools.Worker(tool, tools.installed(tool, tmp_path), tmp_path / tool.name)
        for tool in (tools.JUDGEKIT, absent)
    }
    measure.FEW = 1
    (section,) = measure.imports(measure.Bench(workers, "", tmp_path))
    (row,) = section.rows
    assert row.ratio is None
    assert row.cells[1] == "ModuleNotFoundError: No module named 'absent'"


def test_a_table_keeps_hostile_text_in_its_cell(peers):
    page = peers("peers.page")
    section = page.Section("Tool calls", ("scores", "us"))
    section.rows = [page.Row("judgekit", ["`F1`", "2"], 1), page.Row(HOSTILE, [HOSTILE])]
    assert page.table(section).splitlines() == [
        "| tool | scores | us | ratio |",
        "| --- | --- | --- | --- |",
        "| judgekit | `F1` | 2 | 1.00x |",
        "| &lt;script&gt;\"&amp;'\\| `x` | &lt;script&gt;\"&amp;'\\| `x` |  |  |",
    ]


def test_tables_stand_between_their_marks(peers):
    page = peers("peers.page")
    text = "# A\n\n<!-- cache -->\nold\n<!-- /cache -->\n\nB\n"
    once = page.filled(text, {"cache": "| new |\n"})
    assert once == "# A\n\n<!-- cache -->\n\n| new |\n\n<!-- /cache -->\n\nB\n"
    assert page.filled(once, {"cache": "| new |\n"}) == once
    with pytest.raises(ValueError, match="memory"):
        page.filled(text, {"memory": ""})


def test_the_page_has_a_place_for_every_table(peers):
    text = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    titles = ("Import", "Tool calls", "Reading", "Texts and rankings", "Judged samples", "Cache", "Memory")
    page = peers("peers.page")
    assert page.filled(text, {page.Section(title, ()).name: "" for title in titles}) != text


def test_the_plot_is_valid_and_its_bars_are_on_a_logarithmic_scale(peers):
    page = peers("peers.page")
    section = page.Section("Tool calls", ("us",))
    ratios = {"judgekit": 1.0, "ten": 10.0, "hundred": 100.0, "tenth": 0.1, "failed": None, HOSTILE: 2.0}
    section.rows = [page.Row(name, ["1"], ratio) for name, ratio in ratios.items()]
    tree = ET.fromstring(page.plot([section, page.Section("none", ())], "Title <&>"))  # noqa: S314 - our own
    space = {"": "http://www.w3.org/2000/svg"}
    assert tree.findtext("title", namespaces=space) == "Title <&>"
    assert "ten 10x" in tree.findtext("desc", namespaces=space)
    bars = [bar for bar in tree.findall("rect", space) if bar.get("class") in {"slower", "faster"}]
    ten, hundred, tenth, two = (float(bar.get("width")) for bar in bars)
    assert hundred == pytest.approx(2 * ten, abs=0.2)
    assert tenth == pytest.approx(ten, abs=0.2)
    assert two == pytest.approx(ten * math.log10(2), abs=0.2)
    assert [bar.get("class") for bar in bars].count("faster") == 1
    shown = [text.text for text in tree.findall("text", space)]
    assert HOSTILE in shown
    assert not {"judgekit", "failed", "none"} & {*shown}


@pytest.mark.processes
def test_the_costs_of_all_ways_to_ask_are_measured(monkeypatch, tmp_path, capsys):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["cost.py", str(ROOT / "examples" / "conversations.jsonl")])
    importlib.import_module("cost").main()
    lines = capsys.readouterr().out.splitlines()
    rows = {cells[0].strip("| "): cells for line in lines if len(cells := line.split(" | ")) == 6}
    requests = {name: int(cells[1]) for name, cells in rows.items() if cells[1].isdecimal()}
    assert list(requests.values()) == [70, 70, 14, 14, 14, 26]
    alone, together, decided = (
        int(rows[name][2].replace(",", "")) for name in ("each question by itself", "together", "decision model")
    )
    assert decided < together < alone / 2
    together_usd, flex_usd = (float(rows[name][4][1:]) for name in ("together", "together, flex tier"))
    assert flex_usd == pytest.approx(together_usd / 2, abs=1e-4)
