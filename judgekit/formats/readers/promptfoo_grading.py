"""The assertions of promptfoo's tests as references, and their verdicts as labels."""

import re
from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from judgekit.errors import short_repr
from judgekit.formats.field_tracker import FieldTracker
from judgekit.formats.label_sources import combined_source, label_source
from judgekit.formats.readers.base import as_records
from judgekit.formats.row_facts import to_text
from judgekit.formats.values import as_list, as_object, is_number, lookup, objects_in, str_or_none
from judgekit.traces.message import JsonObject
from judgekit.traces.recording import Label, LabelSource
from judgekit.traces.sample import ExpectedCall

ERROR = 2
"""The ``failureReason`` of a result without an answer that could be tested."""
_TEMPLATE = re.compile(r"\{[{%#]")
_GRADED_BY_MODELS = {
    *("agent-rubric", "answer-relevance", "context-faithfulness", "context-recall", "context-relevance"),
    *("conversation-relevance", "factuality", "g-eval", "llm-rubric", "max-score", "model-graded-closedqa"),
    *("model-graded-factuality", "search-rubric", "select-best", "trajectory:goal-success"),
    *("classifier", "guardrails", "moderation", "pi"),
}
_COMPARED_WITH_ANSWERS = {
    *("bleu", "context-recall", "equals", "factuality", "gleu", "levenshtein", "meteor"),
    *("model-graded-factuality", "rouge-n", "similar", "similar:cosine", "similar:dot", "similar:euclidean"),
}
"""Types of assertions whose values are answers. Those of others are parts of an answer, criteria or code."""


def _assertions(row: FieldTracker, grading: FieldTracker) -> Iterator[JsonObject]:
    """Yield the assertions of a test, including those in sets."""
    components = objects_in(grading.peek("componentResults"))
    own = objects_in(lookup(row.peek("testCase"), "assert"))
    for assertion in own or [as_object(component.get("assertion")) for component in components]:
        yield from objects_in(assertion.get("assert")) if assertion.get("type") == "assert-set" else [assertion]


def read_references(row: FieldTracker, grading: FieldTracker, variables: JsonObject) -> dict[str, object]:
    """Return what the assertions expect. Values are templates, which promptfoo keeps as they are."""
    rendered = {
        (to_text(lookup(component, "assertion", "type")), to_text(lookup(component, "assertion", "value"))): value
        for component in objects_in(grading.peek("componentResults"))
        if (value := lookup(component, "metadata", "renderedAssertionValue")) is not None
    }
    answers: dict[str, None] = {}
    facts: dict[str, object] = {}
    for assertion in _assertions(row, grading):
        kind, written = to_text(assertion.get("type")), assertion.get("value")
        value = rendered.get((kind, to_text(written)), None if _TEMPLATE.search(to_text(written)) else written)
        if kind in _COMPARED_WITH_ANSWERS:
            if value is None and written is not None:
                row.warn(
                    f"the expected value of {kind!r} is a template that promptfoo has not filled in", "testCase.assert"
                )
            texts = [to_text(answer) for answer in as_records(value) if answer is not None]
            answers |= {text: None for text in texts if not text.startswith("file://")}
        elif kind == "tool-call-f1" and value is not None:
            names = [name.strip() for name in value.split(",")] if isinstance(value, str) else as_list(value)
            expected = [ExpectedCall(name, compare_args=()) for name in names if isinstance(name, str) and name]
            facts["reference_tool_calls"] = expected
        elif kind.startswith("context-") and (context := variables.get("context")) is not None:
            facts["documents"] = list(map(to_text, as_records(context)))
    if answers:
        facts |= {"reference": next(iter(answers))} if len(answers) == 1 else {"references": list(answers)}
    return facts


def read_labels(row: FieldTracker, grading: FieldTracker) -> list[Label]:
    """Return a label for each assertion and named score, and for the whole result."""
    labels: dict[str, Label] = {}
    grader = lookup(row.peek("testCase"), "options", "provider")
    for component in grading.optional_objects("componentResults"):
        if (label := _component_label(component, labels, grader)) is not None:
            labels[label.name] = label
    for name, value in {**as_object(grading.peek("namedScores")), **as_object(row.peek("namedScores"))}.items():
        if name not in labels and is_number(value):
            labels[name] = Label(name, value, source=label_source(name))
    if row.peek("failureReason") == ERROR:
        if "score" in row:
            row.warn("not a label, since the result is an error; kept as is", "score")
        return list(labels.values())
    if not (labels or grading.peek("reason")):
        return []
    by_person = grading.peek("reason") == "Manual result (overrides all other grading results)"
    source = "human" if by_person else combined_source(label.source for label in labels.values())
    reason = (by_person and str_or_none(grading.peek("comment"))) or str_or_none(grading.peek("reason"))
    for name, value in (("success", row.boolean("success")), ("score", row.number("score"))):
        if value is not None:
            labels.setdefault(name, Label(name, value, source=source, reason=reason))
    return list(labels.values())


def _component_label(component: FieldTracker, labels: Mapping[str, Label], grader: JsonValue) -> Label | None:
    assertion, about = as_object(component.peek("assertion")), as_object(component.peek("metadata"))
    if about.get("graderError") is True:
        component.warn(f"the grader failed: {short_repr(component.peek('reason'))}; its score is not a label", "score")
        return None
    kind = to_text(assertion.get("type") or "")
    names = (assertion.get("metric"), kind, about.get("openaiGraderName"), lookup(about, "assertionSet", "metric"))
    fallback = "assert-set" if "assertionSet" in about else "score"
    name = next((name for name in names if isinstance(name, str) and name), fallback)
    if name in labels:
        name = next(f"{name}{number}" for number in range(2, len(labels) + 3) if f"{name}{number}" not in labels)
    source = _source(kind, name, component, about)
    grade = about.get("openaiGrade")
    value = grade if is_number(grade) else component.number("score")
    if value is None:
        value = component.boolean("pass")
    if value is None:
        return None
    annotator = None
    if source == "judge":
        model = str_or_none(lookup(about, "openaiGraderSample", "model"))
        annotator = _provider_name(assertion.get("provider")) or model or _provider_name(grader)
    reason = str_or_none(component.peek("comment")) or component.text("reason")
    return Label(name, value, source=source, annotator=annotator, reason=reason)


def _source(kind: str, name: str, component: FieldTracker, about: JsonObject) -> LabelSource:
    if kind == "human":
        return "human"
    if kind:
        base = kind.removeprefix("not-")
        return label_source(name, judged=base in _GRADED_BY_MODELS or base.startswith("promptfoo:redteam:"))
    if "openaiGraderName" in about:
        return label_source(name, judged=True if "openaiGraderSample" in about else None)
    inner = objects_in(component.peek("componentResults"))
    kinds = [to_text(lookup(part, "assertion", "type")) for part in inner]
    return combined_source(_source(kind, name, component, {}) for kind in kinds if kind)


def _provider_name(provider: JsonValue) -> str | None:
    return str_or_none(provider) or str_or_none(lookup(provider, "label")) or str_or_none(lookup(provider, "id"))
