"""Weighted criteria: the share of the criteria that hold, by weight."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import pairwise
from math import fsum, inf, isclose
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from pydantic import BaseModel, Field, JsonValue, RootModel, create_model

from judgekit.errors import STOPS, ConfigError, check_choice, join_limited, short_repr
from judgekit.gathering import ask_apart, gather_all
from judgekit.judges.decisions import MOST_TYPED_QUESTIONS, Decisions, TypedQuestion, decisions_model
from judgekit.judges.evidence import CitedMessage, check_message_numbers
from judgekit.judges.judge import Judge, Judgment
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt
from judgekit.score import Score, python_scalar
from judgekit.scorers.judged import ScopedJudgedScorer, convert_judge, no_reason
from judgekit.scorers.scope import ScopedScorer
from judgekit.scoring import source_version
from judgekit.traces.equality import is_number
from judgekit.traces.sample import Sample
from judgekit.traces.tree import MessageNumber

CriterionFunction: TypeAlias = Callable[[Sample], bool | Awaitable[bool | None] | None]
"""A function that returns whether something holds of a sample; ``None`` if it does not apply."""
NotApplicable: TypeAlias = Literal["share", "pass"]

OUTCOMES = {"successful_completion": 0.75, "graceful_failure": 0.5, "partial_failure": 0.0, "hard_failure": 0.0}
"""The outcome classes, best first, each with the lowest value that reaches it."""
_KNOWN = "{% if fields %}What is known of the task, as JSON:\n\n{{ fields }}\n\n{% endif %}"
_STATEMENT = (
    "The answer to this question is yes, plainly and not only in part: {question}\n\nWhat the agent only announced, "
    "promised or claimed does not count where a tool result should show it and none does."
)
_HOLDS = {"yes": True, "no": False, "not_applicable": None}


class CriterionAnswer(BaseModel):
    """What the judge says of one criterion; it reasons before it decides."""

    reason: str
    evidence: list[CitedMessage]
    holds: Literal["yes", "no", "not_applicable"]


CriteriaAnswer: TypeAlias = RootModel[dict[str, CriterionAnswer]]
"""The judge's findings by criterion, which are weighed in code."""


@dataclass(frozen=True)
class CriterionCheck:
    """A function of a sample that decides a criterion; created by `WeightedCriteria`."""

    function: CriterionFunction = field(repr=False, compare=False)
    name: str
    version: str | None

    @classmethod
    def of(cls, function: CriterionFunction, name: str | None = None) -> "CriterionCheck":
        """Return the function as a check, with its ``version`` or, as for `scorer`, the hash of its source."""
        if isinstance(function, cls):
            return function
        if not callable(function):
            raise ConfigError(f"a check must be a function or the name of a criterion, found {short_repr(function)}")
        called = name or str(getattr(function, "__name__", type(function).__name__))
        return cls(function, called, getattr(function, "version", None) or source_version(function))

    async def __call__(self, sample: Sample, /) -> bool | None:
        """Return the result of the function.

        Raises:
            RuntimeError: The function raised an error.
            TypeError: It returned something other than ``True``, ``False`` or ``None``.
        """
        try:
            returned = self.function(sample)
            holds = python_scalar(await returned if inspect.isawaitable(returned) else returned)
        except STOPS:
            raise
        except Exception as error:
            raise RuntimeError(f"the check of {self.name} raised {type(error).__name__}: {error}") from error
        if holds is not None and not isinstance(holds, bool):
            raise TypeError(
                f"the check of {self.name} returned {short_repr(holds)}; a check returns True, False, "
                "or None where it does not apply"
            )
        return holds


class _Finding(NamedTuple):
    """The decision on a criterion: whether it holds (``None`` if it does not apply), and the reason."""

    holds: bool | None
    reason: str = ""
    evidence: Sequence[MessageNumber] = ()


@dataclass(frozen=True)
class WeightedCriteria(ScopedJudgedScorer):
    """1 if all criteria hold, else the sum of the weights of those that do.

    A criterion is decided by the judge, or by a function of the sample that returns ``True``, ``False``, or ``None`` if
    it does not apply. The weight of a criterion that does not apply is distributed over the others in proportion; with
    ``not_applicable="pass"``, it counts as holding. The label is the outcome class. By default this is
    ``successful_completion`` from 0.75 on if everything ``required`` holds too, ``graceful_failure`` from 0.5 on,
    ``partial_failure`` above 0, and otherwise ``hard_failure``.

    Skipped if no criterion applies, and if the judge is needed but there is no conversation. One judge request a sample
    for all criteria that the judge decides (with ``separate_requests``, one for each of them, concurrently), and none if there are
    no such criteria. The judge sees the conversation and ``sample.fields``. Details: ``outcome``, ``required_missed``,
    and the ``criteria``, each with its ``weight``, whether it ``holds`` (``null``: does not apply), the judge's
    ``reason`` and ``evidence``, and its ``cost``, by which it lowers the value. A decision model gives the probability of
    each, and cannot say that one does not apply. Source: "Binary weighted evaluations"
    (dev.to, December 2025).

    Args:
        weights: The weight of each criterion, by name. The weights sum to 1.
        checks: The way each criterion is decided: a function, sync or async, or the text of a question to the judge. A
            criterion without a check becomes a question by its name: ``clear_explanation`` as "clear explanation?".
        judge: A judge, or a model as ``"provider/model"``. Needed if a criterion has no function.
        required: The additional requirements of the first class: names of criteria, and functions like those of
            ``checks``. A requirement that does not apply is not missed; a missed one leads to the next class.
        thresholds: The classes, best first, each with the lowest value that reaches it. The last one has 0 and takes
            the rest; if the one before it has 0 too, any value above 0 reaches that.
        normalize: Whether to divide the weights by their sum.
        separate_requests: Whether to ask the judge about each criterion separately.
        not_applicable: The treatment of a criterion that does not apply.
        name: The name of the scores.

    Raises:
        ConfigError: The weights do not sum to 1, a name is unknown, the thresholds do not descend to 0, or there is no
            judge for a criterion without a function.

    Example:
        ``WeightedCriteria({"booked": 0.7, "polite": 0.3}, {"booked": lambda sample: sample.fields["booked"]}, judge)``
    """

    weights: Mapping[str, float]
    checks: Mapping[str, str | CriterionFunction] = field(default_factory=dict[str, str | CriterionFunction])
    judge: Judge | str | None = None
    required: Sequence[str | CriterionFunction] = ()
    thresholds: Mapping[str, float] = field(default_factory=OUTCOMES.copy)
    normalize: bool = False
    separate_requests: bool = False
    not_applicable: NotApplicable = "share"
    name: str = "weighted_criteria"

    def __post_init__(self) -> None:
        check_choice("way to weigh what does not apply", self.not_applicable, get_args(NotApplicable))
        object.__setattr__(self, "weights", _weights(dict(self.weights), normalize=self.normalize))
        checks = {name: self._check(name, check) for name, check in dict(self.checks).items()}
        object.__setattr__(self, "checks", checks)
        if not isinstance(self.required, list | tuple):
            raise ConfigError(f"required must be a list of criteria and functions, found {short_repr(self.required)}")
        required = tuple(
            self._check_name(criterion) if isinstance(criterion, str) else CriterionCheck.of(criterion)
            for criterion in self.required
        )
        object.__setattr__(self, "required", required)
        object.__setattr__(self, "thresholds", _thresholds(self.thresholds))
        ScopedScorer.__post_init__(self)
        if self.judge is not None:
            convert_judge(self)
        elif self._judged_names:
            names = join_limited(self._judged_names, separator=", ")
            raise ConfigError(f"{self.name} asks a judge about {names}: pass judge=..., or functions in checks=...")

    def _check_name(self, criterion: str) -> str:
        check_choice("criterion", criterion, self.weights)
        return criterion

    def _check(self, criterion: str, check: str | CriterionFunction) -> str | CriterionCheck:
        self._check_name(criterion)
        if isinstance(check, str) and check.strip():
            return check
        if callable(check):
            return CriterionCheck.of(check, criterion)
        raise ConfigError(f"the check of {criterion} must be a function or a question, found {short_repr(check)}")

    @property
    def _judged_names(self) -> tuple[str, ...]:
        """The criteria that the judge decides."""
        return tuple(name for name in self.weights if not callable(self.checks.get(name)))

    @cached_property
    def _questions(self) -> Mapping[tuple[str, ...], Prompt]:
        """The prompt of each request, by the criteria that it decides."""
        if not (names := self._judged_names):
            return {}
        groups = [(name,) for name in names] if self.separate_requests else [names]
        prompt = load_prompt("weighted_criteria")
        return {names: prompt.with_options(criteria="\n".join(map(self._line, names))) for names in groups}

    def _line(self, criterion: str) -> str:
        question = self.checks.get(criterion, f"{criterion.replace('_', ' ')}?")
        return f"{criterion}: {' '.join(cast('str', question).split())}"

    @property
    def can_decide(self) -> bool:
        """Whether a decision model can be asked, since no text is needed, nor more than one request."""
        return not self.separate_requests and len(self._judged_names) <= MOST_TYPED_QUESTIONS

    @property
    def prompts(self) -> tuple[Prompt, ...]:
        """The prompts for the judge; none if functions decide all criteria."""
        return tuple(self._questions.values())

    async def _score(self, sample: Sample) -> Score:
        for prompt in self.prompts[:1]:
            if missing := prompt.missing_inputs(sample):
                return Score.skipped(self.name, f"the sample has no {' and no '.join(missing)}")
        # Functions run first: if one fails, the judge need not be paid.
        functions = {name: check for name, check in self.checks.items() if isinstance(check, CriterionCheck)}
        decided = {name: _Finding(await check(sample)) for name, check in functions.items()}
        required = [check for check in self.required if isinstance(check, CriterionCheck)]
        unmet = [check.name for check in required if await check(sample) is False]
        judgment = await self._ask(sample)
        for name, finding in judgment.answer.root.items():
            decided[name] = _Finding(_HOLDS[finding.holds], finding.reason, finding.evidence)
        findings = {name: decided[name] for name in self.weights}
        unmet += [name for name in self.required if isinstance(name, str) and findings[name].holds is False]
        return self._weighted_score(findings, unmet, judgment)

    async def _ask(self, sample: Sample) -> Judgment[CriteriaAnswer]:
        """Return the judge's answers merged into one."""
        if self._judged_names and self._judge.decides:
            return await self._decide(sample)
        if self.separate_requests:
            ask_apart()
        judgment = Judgment(CriteriaAnswer({}), (), sample)
        questions = self._questions.items()
        asking = (self._judge.ask(prompt, sample, _answer_model(names), _check) for names, prompt in questions)
        for answered in await gather_all(asking):
            judgment = judgment.joined(answered, CriteriaAnswer(judgment.answer.root | _by_name(answered.answer)))
        return judgment

    async def _decide(self, sample: Sample) -> Judgment[CriteriaAnswer]:
        """Return the answers of a decision model, a probability for each criterion."""
        statements = tuple(_STATEMENT.format(question=self._line(name)) for name in self._judged_names)
        judgment = await self._judge.ask(self.prompts[0], sample, _statements_model(statements))
        answers = {
            name: CriterionAnswer(
                reason=no_reason(self._judge, decided), evidence=[], holds="yes" if decided.label == "yes" else "no"
            )
            for name, decided in zip(self._judged_names, judgment.answer.decided, strict=True)
        }
        return Judgment(CriteriaAnswer({}), (), sample).joined(judgment, CriteriaAnswer(answers))

    def _weighted_score(
        self, findings: Mapping[str, _Finding], unmet: Sequence[str], judgment: Judgment[CriteriaAnswer]
    ) -> Score:
        failed, passed, idle = (
            [name for name, finding in findings.items() if finding.holds is what] for what in (False, True, None)
        )
        held = passed + idle if self.not_applicable == "pass" else passed
        # The divisor contains the same rounding errors, so no value exceeds 1.
        total = fsum(self.weights[name] for name in (*held, *failed))
        costs = {name: self.weights[name] / total for name in failed}
        criteria: dict[str, JsonValue] = {
            name: {
                "weight": self.weights[name],
                "holds": finding.holds,
                "reason": finding.reason,
                "evidence": list(finding.evidence),
                "cost": costs.get(name, 0.0),
            }
            for name, finding in findings.items()
        }
        if not passed and not failed:
            details = {"criteria": criteria}
            reason = "no criterion applies"
            return judgment.score(self.name, "skipped", label="not_applicable", reason=reason, details=details)
        value = fsum(self.weights[name] for name in held) / total
        outcome = self._outcome(value, missed=bool(unmet))
        sections = {
            "failed": [f"{name} (-{cost:.2f})" for name, cost in costs.items()],
            "required and missed": unmet,
            "passed": passed,
            "not applicable": idle,
        }
        reason = "; ".join(f"{what} {', '.join(names)}" for what, names in sections.items() if names)
        return judgment.score(
            self.name,
            value,
            label=outcome,
            reason=f"{outcome} {value:.2f}: {reason}",
            details={"outcome": outcome, "required_missed": list(unmet), "criteria": criteria},
        )

    def _outcome(self, value: float, *, missed: bool) -> str:
        *classes, (rest, _) = self.thresholds.items()
        reached = (name for name, bound in classes[missed:] if value > bound or (bound > 0 and isclose(value, bound)))
        return next(reached, rest)


def _check(answer: BaseModel, sample: Sample) -> None:
    check_message_numbers((number for finding in _by_name(answer).values() for number in finding.evidence), sample)


def _by_name(answer: BaseModel) -> dict[str, CriterionAnswer]:
    return {str(field.alias): getattr(answer, name) for name, field in type(answer).model_fields.items()}


@cache
def _statements_model(statements: tuple[str, ...]) -> type[Decisions]:
    return decisions_model(*(TypedQuestion(_KNOWN, statement) for statement in statements))


@cache
def _answer_model(names: tuple[str, ...]) -> type[BaseModel]:
    fields: dict[str, Any] = {f"at_{at}": (CriterionAnswer, Field(alias=name)) for at, name in enumerate(names)}
    return create_model("CriteriaAnswer", **fields)


def _weights(weights: Mapping[str, float], *, normalize: bool) -> Mapping[str, float]:
    if odd := [name for name in weights if not str(name).isidentifier()]:
        raise ConfigError(
            f"the name of a criterion must be an identifier such as correct_time, found {short_repr(odd[0])}"
        )
    for name, weight in weights.items():
        if not is_number(weight) or not 0 < weight < inf:
            raise ConfigError(f"the weight of {name} must be a number above 0, found {short_repr(weight)}")
    total = fsum(weights.values())
    if not weights or (not normalize and abs(total - 1) > 1e-9):
        raise ConfigError(f"the weights must sum to 1, found {total:.10g}; change them, or pass normalize=True")
    return {name: weight / total for name, weight in weights.items()} if normalize else weights


def _thresholds(thresholds: Mapping[str, float]) -> Mapping[str, float]:
    bounds = [*thresholds.values()] if isinstance(thresholds, Mapping) else []  # pyright: ignore[reportUnnecessaryIsInstance] - a config file may say anything
    are_bounds = len(bounds) > 1 and all(is_number(bound) and 0 <= bound <= 1 for bound in bounds)
    if not are_bounds or bounds[-1] != 0 or any(low >= high for high, low in pairwise(bounds[:-1])):
        raise ConfigError(
            "thresholds must be two or more classes, best first, each with its lowest value in [0, 1]; "
            f"the values must decrease to 0, found {short_repr(thresholds)}"
        )
    return dict(thresholds)
