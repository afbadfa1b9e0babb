"""One run with a sub-agent, as several programs record it."""

import json
import re
import warnings

import pytest

from judgekit.formats.reading import read
from judgekit.jobs.api import run
from judgekit.reports.html import html_report
from judgekit.scorers.tool_calls.f1 import ToolCallF1


def nested(levels, text="Hi"):
    """A sample of judgekit's own with so many sub-agents, each within the one before."""
    messages = [{"role": "user", "content": text}, {"role": "assistant", "tool_calls": [{"name": "f", "args": {}}]}]
    trace = {"messages": messages}
    for _ in range(levels):
        trace = {"messages": messages, "children": [trace]}
    return {"id": f"{levels} {text}", "trace": trace, "reference_tool_calls": [{"name": "f", "args": {}}]}


@pytest.mark.parametrize("text", ["Hi", "\ud800"], ids=["fast", "slow"])
@pytest.mark.parametrize("levels", [64, 85, 90, 98, 99, 120, 200, 300])
def test_deeply_nested_sub_agents_are_shown_or_refused_with_the_limit(tmp_path, levels, text):
    """In a report of the run, what is refused would damage the rest."""
    path = tmp_path / "deep.jsonl"
    path.write_text("".join(f"{json.dumps(nested(depth, text))}\n" for depth in (1, levels)))
    problems = []
    samples = list(read(path, on_error=lambda problem: problems.append(str(problem))))
    for problem in problems:
        assert re.search(r"nested more than (180|200) levels deep", problem)
    assert len(samples) + len(problems) == 2
    assert not problems or levels > 85
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        done = run(path, [ToolCallF1()], store=tmp_path / "runs.sqlite")
    assert all(sample.id.split()[0] in "".join(html_report(done)) for sample in samples)
    assert [sample.id for _, sample in done.conversations()] == [sample.id for sample in samples]


REAL = {
    "otel/openai_agents_genai_live_spans.json": (
        [
            (3, "ask_research_specialist", "coordinator", True),
            ("3.1.3", "lookup_stock_price", "research_specialist", False),
            (5, "ask_math_specialist", "coordinator", True),
            ("5.1.3", "multiply_numbers", "math_specialist", False),
            ("5.1.5", "multiply_numbers", "math_specialist", False),
        ],
        ["3.1.5", "5.1.7"],
    ),
    "atif/subagent_trajectories.json": ([(2, "delegate_summary", None, True)], []),
    "atif/v17_embedded_subagents.json": ([(2, "delegate_research", None, True)], []),
}
"""The calls of real recordings, read by hand: message, tool, agent, and whether a sub-agent did it; results in children."""


@pytest.mark.parametrize("name", REAL)
def test_real_recordings_have_the_calls_that_reading_by_hand_gives(shared_data, name):
    calls, repeated = REAL[name]
    [sample] = read(shared_data / "traces" / name, on_error="raise")
    found = [(one.message, one.call.name, one.agent, one.delegates) for one in sample.trace.tool_calls()]
    assert found == calls
    assert re.findall(r"\): as in ([\d.]+)\n", sample.trace.render()) == repeated
