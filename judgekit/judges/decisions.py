"""Questions to decision models, whose answers are labels with probabilities instead of text."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar, NamedTuple, cast

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from judgekit.errors import RefusalError, validation_message
from judgekit.judges.prompt import FilledPrompt, Prompt, ask_about
from judgekit.judges.request import ChatMessage, Request
from judgekit.judges.template import fill_question
from judgekit.traces.message import JsonObject
from judgekit.traces.rendering import compact_json

if TYPE_CHECKING:
    from openai.types.decision import Answer
    from openai.types.decision_create_params import Question as QuestionParam

MOST_TYPED_QUESTIONS = 400
"""The maximum number of questions in a request."""
_YES, _NO = "yes", "no"
_ROUNDING = 1e-3
_FORM = re.compile(r"\n\n[^\n]* in this order:\n(?:\d+\. .+\n)*\d+\. verdict: (?P<verdict>.+)\Z")
"""The end of a question that says in which order to write the parts of an answer, and defines its labels."""
_DEFINED = re.compile(r'(?:^|; )(else )?"([^"]+)"((?: if) .+?)(?=; (?:else )?"|\.?$)')


@dataclass(frozen=True)
class TypedQuestion:
    """A question to a decision model.

    Attributes:
        template: The question, or for a statement what is known apart from the recording, as a template.
        statement: A statement of which the model gives the probability, if it does not choose a label.
        labels: The labels that the model chooses from, each with its definition, which may be empty.
        about: The part of the recording that it is about, in front of the question.
    """

    template: str
    statement: str = ""
    labels: tuple[tuple[str, str], ...] = ()
    about: str = ""

    def param(self, name: str, texts: Iterable[tuple[str, str]]) -> "QuestionParam":
        """Return the question under a name as the API takes it, filled with the texts of inputs and options."""
        words = f"{self.about}{fill_question(self.template, texts)}{self.statement}".strip()
        if self.statement:
            return {"type": "predicate", "name": name, "instructions": words}
        return {
            "type": "choice",
            "name": name,
            "instructions": words,
            "choices": [
                {"value": label, "description": definition} if definition else {"value": label}
                for label, definition in self.labels
            ],
        }


def no_text_message(model: str) -> str:
    """Return that a decision model cannot answer, and which scorers it can."""
    return (
        f"{model} answers with labels and gives no text; it can be asked by prompts with a scale, "
        "agent_goal_accuracy_with_reference, agent_goal_accuracy_without_reference and weighted_criteria, without "
        "require_evidence, by_agent, partial and separate_requests. For all else, use a judge that writes"
    )


class Decided(NamedTuple):
    """The label that a decision model chose, and the probabilities of labels."""

    label: str
    probabilities: Mapping[str, float]

    @property
    def probability(self) -> float:
        """The probability of the label."""
        return self.probabilities[self.label]


class Decisions(BaseModel):
    """The answers of a decision model to the typed questions of a scorer; the base of what `decisions_model` returns."""

    decided: tuple[Decided, ...]
    questions: ClassVar[tuple[TypedQuestion, ...]] = ()


def decisions_model(*questions: TypedQuestion) -> type[Decisions]:
    """Return the model of the answers to typed questions."""
    return type("Decisions", (Decisions,), {"questions": questions, "__module__": __name__})


def choice_question(prompt: Prompt, labels: Mapping[str, str]) -> TypedQuestion:
    """Return a prompt as a choice between labels, each with its definition.

    What a prompt says about the order in which to write the parts of an answer is left out. Of labels without a definition,
    it is the one that the prompt ends with, if that has the form ``"label" if ...; "other label" if ...``.
    """
    whole = TypedQuestion(prompt.question, labels=tuple(labels.items()))
    if (form := _FORM.search(prompt.question)) is None:
        return whole
    shown, verdict = prompt.question[: form.start()], form["verdict"]
    if replace(prompt, question=shown).holes != prompt.holes:
        return whole
    if any(labels.values()):
        return replace(whole, template=shown)
    defined = {match[2]: f"{match[1] or ''}{match[3].strip()}" for match in _DEFINED.finditer(verdict)}
    if defined.keys() != labels.keys() or _DEFINED.sub("", verdict).strip("."):
        return whole
    return TypedQuestion(shown, labels=tuple(defined.items()))


def decision_request(request: Request, answer: type[Decisions], prompt: Prompt, filled: FilledPrompt) -> Request:
    """Return the request with the typed questions of a scorer in place of the prompt's own words."""
    texts = (*filled.inputs.items(), *prompt.option_values)
    params = [question.param(f"q{number}", texts) for number, question in enumerate(answer.questions, 1)]
    questions = cast("list[JsonObject]", params)

    def accept(text: str) -> Decisions:
        decided = read_decisions(text, questions)
        if None in decided:
            raise RefusalError(f"{request.judge}: the judge declined to answer")
        return answer.model_construct(decided=tuple(decided))

    wordings = (
        (*astuple(question)[:3], *filter(None, re.split(r"\d+", question.about))) for question in answer.questions
    )
    words = [*dict.fromkeys(wordings)]  # without the numbers of turns
    return replace(
        request,
        messages=(filled.messages[0], ChatMessage("user", ask_about(filled.conversation, "").rstrip())),
        schema={"questions": cast("list[JsonValue]", questions)},
        prompt=f"{prompt.name}@{sha256(json.dumps([filled.messages[0].content, words]).encode()).hexdigest()[:8]}",
        accept=accept,
    )


def join_decisions(requests: Sequence[Request], names: Sequence[str]) -> Request:
    """Return one request with the typed questions of several, whose answers are texts for each, by the given names."""
    first, counts = requests[0], [len(request.typed_questions) for request in requests]
    every = [question for request in requests for question in request.typed_questions]
    questions: list[JsonObject] = [{**question, "name": f"q{number}"} for number, question in enumerate(every, 1)]
    prompts = "\n".join(request.prompt for request in requests)

    def accept(text: str) -> Mapping[str, str]:
        if not any(read_decisions(text, questions)):
            raise RefusalError(f"{first.judge}: the judge declined to answer")
        answers = iter(cast("list[JsonObject]", json.loads(text)))
        return {
            name: compact_json([{**next(answers), "name": f"q{number}"} for number in range(1, count + 1)])
            for name, count in zip(names, counts, strict=False)
        }

    return replace(
        first.with_output_limit(len(requests)),
        schema_name="together",
        schema={"questions": cast("list[JsonValue]", questions)},
        prompt=f"together@{sha256(prompts.encode()).hexdigest()[:8]}",
        accept=accept,
        questions=len(requests),
    )


def read_decisions(text: str, questions: Sequence[JsonObject]) -> Sequence[Decided | None]:
    """Return the answers in a reply to typed questions, in their order; ``None`` for one that the model declined.

    Raises:
        ValueError: They are not the answers to these questions, or contradict themselves.
    """
    try:
        answers = _answers().validate_json(text, strict=True)
    except ValidationError as error:
        raise ValueError(f"the answers are not those of a decision model: {validation_message(error)}") from error
    expected = [question["name"] for question in questions]
    if (names := [answer.name for answer in answers]) != expected:
        raise ValueError(f"answers {names}, expected {expected}")
    decided: list[Decided | None] = []
    for answer, question in zip(answers, questions, strict=True):
        if answer.type == "refusal":
            decided.append(None)
            continue
        if answer.type == "score" or answer.type != question["type"]:
            raise ValueError(f"{answer.name} is a {answer.type}, expected a {question['type']}")
        if answer.type == "predicate":
            given, chosen = [(_YES, answer.probability), (_NO, 1 - answer.probability)], ""
        else:
            given, chosen = [(str(each.value), each.probability) for each in answer.probabilities], str(answer.choice)
        decided.append(_decided(f"{answer.name}", given, chosen, question))
    return decided


def _decided(name: str, given: Sequence[tuple[str, float]], chosen: str, question: JsonObject) -> Decided:
    probabilities = dict(given)
    if not chosen:
        chosen = _YES if probabilities[_YES] > probabilities[_NO] else _NO
    choices = cast("list[dict[str, str]]", question.get("choices", []))
    labels = [choice["value"] for choice in choices] or [_YES, _NO]
    if len(probabilities) < len(given) or not probabilities.keys() <= {*labels} or chosen not in probabilities:
        raise ValueError(f"{name} has probabilities of {[label for label, _ in given]} and is {chosen!r}, of {labels}")
    figures = probabilities.values()
    if not all(0 <= figure <= 1 for figure in figures) or sum(figures) > 1 + _ROUNDING:
        raise ValueError(f"{name} has the probabilities {[*figures]}, which are none")
    if max(figures) > probabilities[chosen] + _ROUNDING:
        raise ValueError(f"{name} is {chosen!r}, though another label is more likely: {probabilities}")
    return Decided(chosen, probabilities)


@cache
def _answers() -> "TypeAdapter[list[Answer]]":
    from openai.types.decision import Answer  # noqa: PLC0415 - takes half a second

    return TypeAdapter(list[Answer])


def known_fields(text: str) -> str:
    """Return the answers in a reply without fields that the API does not have, which may hold text."""
    return compact_json([_known(answer) for answer in _answers().validate_json(text)])


def _known(part: object) -> JsonValue:
    if isinstance(part, list):
        return [_known(each) for each in cast("list[object]", part)]
    if isinstance(part, BaseModel):
        return {name: _known(getattr(part, name)) for name in type(part).model_fields}
    return cast("JsonValue", part)
