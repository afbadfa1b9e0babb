"""Comparers of two texts within arguments: a rule, a function, or a scorer of a response and a reference."""

from collections.abc import Callable, Collection, Mapping
from typing import Literal, TypeAlias, cast, get_args

from judgekit.errors import short_repr
from judgekit.gathering import gather_all
from judgekit.scorers.text.base import TextScorer
from judgekit.scoring import FunctionScorer, Scorer, check_scorer
from judgekit.threads import run_in_thread
from judgekit.traces.message import AIMessage
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

TextRule: TypeAlias = Literal["exact", "casefold", "normalized"]
TextFunction: TypeAlias = Callable[[str, str], float]
TextComparer: TypeAlias = TextRule | TextFunction | Scorer
TextComparison: TypeAlias = tuple[int, str, str]
"""A question to a scorer: the scorer's `id`, the expected text and the actual one."""
_FEW = 50
"""The maximum number of pairs of short texts that scorers compare on the event loop."""


def check_text_comparer(option: object) -> TextComparer:
    """Return the option, after checking that it can compare texts.

    Raises:
        ValueError: It is no rule, function or scorer, or a scorer that needs more than two texts.
        ConfigError: It is a class.
    """
    if isinstance(option, type):  # it could be called like a function
        check_scorer(option, "text")
    if isinstance(option, Scorer):
        is_ours = type(option).__module__.partition(".")[0] == __name__.partition(".")[0]
        if is_ours and not isinstance(option, TextScorer | FunctionScorer):
            raise ValueError(
                f"{option.name} cannot compare two texts; BLEU, CHRF, TER, ROUGE, NgramPrecision, ExactMatch, StringPresence, "
                "Similarity, JSONMatch and JSONDiff do, and so may functions with @scorer and scorers of your own"
            )
    elif option not in get_args(TextRule) and not callable(option):
        rules = " or ".join(map(repr, get_args(TextRule)))
        raise ValueError(f"expected {rules}, a function of two texts, or a scorer of texts, found {short_repr(option)}")
    return cast("TextComparer", option)


async def text_similarities(
    scorers: Mapping[TextComparison, Scorer],
) -> tuple[Mapping[TextComparison, float], Collection[str]]:
    """Return the similarities of texts by these scorers, which run concurrently, and the scorers' warnings.

    Texts that a scorer skips have a similarity of 0.

    Raises:
        ValueError: A scorer returned a failed score.
    """
    pairs = [(scorer, expected, actual) for (_, expected, actual), scorer in scorers.items()]
    ours = [(scorer, expected, actual) for scorer, expected, actual in pairs if isinstance(scorer, TextScorer)]
    if len(ours) == len(pairs) > _FEW:
        scores = await run_in_thread(lambda: [scorer.compute(_texts(*texts)) for scorer, *texts in ours])
    else:
        scores = await gather_all(scorer.ascore(_texts(*texts)) for scorer, *texts in pairs)
    for score, (scorer, expected, actual) in zip(scores, pairs, strict=True):
        if score.status == "failed":
            texts = f"{short_repr(expected)} with {short_repr(actual)}"
            raise ValueError(f"{scorer.name} cannot compare {texts}: {score.reason}")
    warnings = dict.fromkeys(f"{score.scorer}: {warning}" for score in scores for warning in score.warnings)
    for score in scores:
        if score.value is None:
            warnings[f"{score.scorer} skips some argument texts ({score.reason}); they count as different"] = None
    return {comparison: score.value or 0.0 for comparison, score in zip(scorers, scores, strict=True)}, warnings


def _texts(expected: str, actual: str) -> Sample:
    return Sample(id="arguments", trace=Trace(messages=[AIMessage(actual)]), reference=expected)
