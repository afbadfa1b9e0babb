"""What scorers look at in a recording with sub-agents."""

from judgekit.registry import named
from judgekit.scorers import SCORERS
from judgekit.scorers.scope import ScopedScorer
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall, ToolMessage, Usage
from judgekit.traces.sample import Ranking, Sample
from judgekit.traces.trace import Trace


def loaded(path):
    module, _, name = path.partition(":")
    return getattr(__import__(module, fromlist=[name]), name)


CLASSES = {name: loaded(path) for name, path in SCORERS.items()}
WITHOUT_MESSAGES = {
    *(
        "exact_match",
        "string_presence",
        "regex",
        "similarity",
        "json_match",
        "json_diff",
        "bleu",
        "chrf",
        "ter",
        "rouge",
    ),
    *("ngram_precision", "answer_match", "classification", "adaptability", "portability"),
}
"""They read the answer of the agent, or fields of the sample."""
WHOLE = {"panel", "collaboration_efficiency"}
"""A panel leaves it to its members; messages between agents are what collaboration is about."""


def talk(result="12 C", tool="look", error=None):
    return [
        HumanMessage("Look it up."),
        AIMessage(tool_calls=[ToolCall(tool, {"q": result}, id="1")], usage=Usage(input_tokens=5, output_tokens=5)),
        ToolMessage(result, tool_call_id="1", is_error=error),
        AIMessage(f"It is {result}.", usage=Usage(input_tokens=5, output_tokens=5)),
    ]


def sample(*child, **changes):
    trace = Trace(messages=talk("[]"), children=[Trace(messages=child, metadata={"call_id": "1"})], cost_usd=1)
    known = {"reference": "12 C", "reference_topics": ["weather"], "ranking": Ranking([], {"a": 1})}
    known["reference_tool_calls"] = [ToolCall("look", {"q": "[]"})]
    return Sample(id="1", trace=trace, **known, rival=Trace(messages=talk("[]")), **changes)


def test_each_shipped_scorer_has_a_scope_or_reads_no_message():
    scoped = {name for name, kind in CLASSES.items() if issubclass(kind, ScopedScorer)}
    assert scoped == CLASSES.keys() - WITHOUT_MESSAGES - WHOLE
    assert named is not None
