"""Groups of symptoms that one cause explains, and their match with known issues, by a judge. Code keeps the count."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel

from judgekit.errors import STOPS, JudgeError
from judgekit.failures.issues import Cell, Issue
from judgekit.gathering import gather_all
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt
from judgekit.resources import resource_folder
from judgekit.traces.rendering import fence_text
from judgekit.traces.sample import Sample

MIN_GROUPED = 8
"""The number of failures of a cell from which a judge groups them."""
ORDERS = 3
"""The number of shuffled orders in which it does."""
MOST_AT_ONCE = 150
"""The most symptoms in one request."""
_SYMPTOM_SHOWN = 300

_Codes = NDArray[np.int64]


class SymptomGroup(NamedTuple):
    """Symptoms of one kind.

    Attributes:
        name: What the judge calls them.
        members: Their positions among all symptoms.
        stability: The share of orders in which a pair of them stays together, on average; of one symptom, in which it stays
            alone. 1 is best.
    """

    name: str
    members: Sequence[int]
    stability: float


class _Named(BaseModel):
    name: str
    members: list[int]


class _Grouped(BaseModel):
    groups: list[_Named]


class _Match(BaseModel):
    symptom: int
    issue: int


class _Matched(BaseModel):
    matches: list[_Match]


async def group_symptoms(judge: Judge, cell: Cell, symptoms: Sequence[str], *, seed: int = 0) -> Sequence[SymptomGroup]:
    """Return groups of symptoms; symptoms that the judge leaves out are in none.

    The judge groups them in three shuffled orders, and the result that agrees best with the others counts. Of more than
    150 symptoms, that many define the groups, and the others are matched with them.

    Raises:
        JudgeError: The judge gave no usable answer in any order.
    """
    dice = random.Random(seed)  # noqa: S311 - an order, not a secret
    defining = sorted(dice.sample(range(len(symptoms)), min(len(symptoms), MOST_AT_ONCE)))
    orders = [dice.sample(defining, len(defining)) for _ in range(ORDERS)]
    partitions: dict[int, tuple[Sequence[str], _Codes]] = {}
    errors: list[JudgeError] = []

    async def ask(number: int, order: Sequence[int]) -> None:
        prompt = _prompt("group").with_options(
            cell=fence_text("cell", str(cell)),
            symptoms=fence_text("symptoms", _list([symptoms[at] for at in order])),
        )
        try:
            answer = (await judge.ask(prompt, _NOTHING, _Grouped)).answer
        except JudgeError as error:
            if isinstance(error, STOPS):
                raise
            errors.append(error)
            return
        names, codes = read_groups([(group.name, group.members) for group in answer.groups], len(order))
        partitions[number] = names, codes[np.argsort(order)]

    await gather_all(ask(number, order) for number, order in enumerate(orders))
    if not partitions:
        raise errors[0]
    groups = _most_typical([partitions[number] for number in sorted(partitions)])
    groups = [group._replace(members=[defining[at] for at in group.members]) for group in groups]
    rest = [at for at in range(len(symptoms)) if at not in set(defining)]
    if rest and groups:
        examples = [(group.name, [symptoms[at] for at in group.members[:ORDERS]]) for group in groups]
        for at, number in (await match_symptoms(judge, cell, examples, {at: symptoms[at] for at in rest})).items():
            groups[number] = groups[number]._replace(members=[*groups[number].members, at])
    return groups


def read_groups(groups: Sequence[tuple[str, Sequence[int]]], count: int) -> tuple[Sequence[str], _Codes]:
    """Return the names of groups, and the group of each of ``count`` symptoms, which a judge numbers from 1.

    Whatever the judge writes, each symptom is in one group: the first that has it, or one of its own, with a negative code.
    """
    codes = -1 - np.arange(count, dtype=np.int64)
    names: list[str] = []
    for name, members in groups:
        own = [at - 1 for at in dict.fromkeys(members) if 0 < at <= count and codes[at - 1] < 0]
        if own:
            codes[own] = len(names)
            names.append(" ".join(name.split()))
    return names, codes


def _most_typical(partitions: Sequence[tuple[Sequence[str], _Codes]]) -> list[SymptomGroup]:
    """Return the groups of the partition that agrees best with the others on which pairs belong together."""
    together = np.array([codes[:, None] == codes for _, codes in partitions])
    agreement = [float((together == pairs).mean()) for pairs in together]
    names, codes = partitions[int(np.argmax(agreement))]
    shared = together.mean(0)
    alone = (together.sum(2) == 1).mean(0)
    groups: list[SymptomGroup] = []
    for code, name in enumerate(names):
        members = np.flatnonzero(codes == code)
        pairs = shared[np.ix_(members, members)][np.triu_indices(len(members), 1)]
        stability = float(pairs.mean()) if len(members) > 1 else float(alone[members[0]])
        groups.append(SymptomGroup(name, members.tolist(), stability))
    return groups


async def match_issues(
    judge: Judge, cell: Cell, issues: Sequence[Issue], symptoms: Mapping[int, str]
) -> Mapping[int, Issue]:
    """Return the issue of each symptom that one of the issues explains."""
    examples = [(issue.name, issue.symptoms) for issue in issues]
    return {at: issues[number] for at, number in (await match_symptoms(judge, cell, examples, symptoms)).items()}


async def match_symptoms(
    judge: Judge, cell: Cell, groups: Sequence[tuple[str, Sequence[str]]], symptoms: Mapping[int, str]
) -> Mapping[int, int]:
    """Return the position of the group that explains each symptom; symptoms that none explains are left out.

    Args:
        judge: The judge.
        cell: The cell of all of them.
        groups: The name and examples of each group.
        symptoms: The symptoms, by any numbers.

    Raises:
        JudgeError: The judge gave no usable answer.
    """
    numbers = list(symptoms)
    matched: dict[int, int] = {}
    listed = _list([f"{name} (such as: {'; '.join(examples)})" if examples else name for name, examples in groups])
    for start in range(0, len(numbers), MOST_AT_ONCE):
        batch = numbers[start : start + MOST_AT_ONCE]
        prompt = _prompt("match").with_options(
            cell=fence_text("cell", str(cell)),
            issues=fence_text("issues", listed),
            symptoms=fence_text("symptoms", _list([symptoms[number] for number in batch])),
        )
        answer = (await judge.ask(prompt, _NOTHING, _Matched)).answer
        for match in answer.matches:
            if 0 < match.symptom <= len(batch) and 0 < match.issue <= len(groups):
                matched.setdefault(batch[match.symptom - 1], match.issue - 1)
    return matched


def _list(texts: Sequence[str]) -> str:
    return "\n".join(f"{number}: {' '.join(text.split())[:_SYMPTOM_SHOWN]}" for number, text in enumerate(texts, 1))


@cache
def _prompt(kind: str) -> Prompt:
    folder = resource_folder("prompts")
    system = (folder / "failures.system.md").read_text(encoding="utf-8").strip()
    return replace(load_prompt(folder / f"failures.{kind}.md"), name=f"failures_{kind}", system=system)


_NOTHING = Sample.of([], id="failures")
