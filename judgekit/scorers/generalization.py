"""Scorers of generalization: to other domains, to other environments, and to collaboration with other agents."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from sys import float_info

from pydantic import JsonValue

from judgekit.aggregates.domains import domain_means, mean_of_means
from judgekit.errors import count_text, join_limited, short_repr
from judgekit.score import ScaleValue, Score
from judgekit.scorers.wrapper import WrapperScorer
from judgekit.scoring import Scorer, SyncScore, attempt
from judgekit.traces.behavior import communication_rounds, elapsed
from judgekit.traces.equality import is_number
from judgekit.traces.message import JsonObject
from judgekit.traces.rendering import cut_middle, escape_surrogates, quoted_name
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

_ROW = '{"score": ..., "domain": ...}'
_ZERO_SECONDS = "it took zero seconds, so its efficiency equals its quality"


@dataclass(frozen=True)
class Adaptability(WrapperScorer):
    """1 if the mean score is 1 in every domain.

    With a scorer, each sample gets that scorer's score, and the total of a run is the macro mean: the mean over domains
    (``sample.domain``) of each domain's mean, so that a domain with many samples counts no more than others. Skipped
    without a domain, and if the scorer skips; fails and abstains if the scorer does. Details: the scorer's, and
    ``domain``.

    Without a scorer, a sample is a list of results, ``fields["results"]``: ``[{"score": 0.85, "domain": "law"}, ...]``,
    and its score is their macro mean. Skipped if there are none. Fails if one has no domain or no score in [0, 1].
    Details: ``domains``, each with its ``mean`` and its number of results (``n``).

    No judge, unless the scorer asks one. Source: the mean of the scores of all domains, as published for agent
    evaluation, where each domain has one score.
    """

    scorer: Scorer | None = None
    name: str = "adaptability"

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample."""
        if self.scorer is None:
            return self._score_results(sample.fields.get("results"))
        if not sample.domain:
            return Score.skipped(self.name, "the sample has no domain")
        score = await attempt(self.scorer, sample)
        kept = {"details": {**score.details, "domain": escape_surrogates(sample.domain)}, "aggregate": "macro_mean"}
        return score.model_copy(update={"scorer": self.name, **kept})

    def _score_results(self, results: JsonValue) -> Score:
        if results is None:
            return Score.skipped(self.name, "the sample has no results, and there is no scorer")
        if not isinstance(results, list):
            raise ValueError(f"results: expected a list of {_ROW}, found {short_repr(results)}")
        if not results:
            return Score.skipped(self.name, "the list of results is empty")
        domains = domain_means(_result(row, f"results[{index}]") for index, row in enumerate(results))
        means = [f"{cut_middle(quoted_name(name), 80, ' ')} {domain.mean:.3g}" for name, domain in domains.items()]
        reason = f"mean of {count_text(len(means), 'domain')}: {join_limited(means, 8, ', ')}"
        rows: JsonObject = {name: {"mean": domain.mean, "n": domain.sample_count} for name, domain in domains.items()}
        return Score.scored(self.name, mean_of_means(domains), reason=reason, details={"domains": rows})


def _result(row: JsonValue, where: str) -> tuple[str, float]:
    if not isinstance(row, dict):
        raise ValueError(f"{where}: expected {_ROW}, found {short_repr(row)}")
    domain = row.get("domain")
    if not isinstance(domain, str) or not domain:
        raise ValueError(f"{where}: expected the name of a domain, found {short_repr(domain)}")
    return escape_surrogates(domain), _number(row.get("score"), f"{where}: score", 1)


@dataclass(frozen=True)
class CollaborationEfficiency(WrapperScorer):
    """1 if the agents reached full quality without a message or in no time; lower for more time and messages.

    quality / (rounds x seconds + 1). Each is a field of the sample or else derived: ``task_quality`` in [0, 1], by
    ``scorer``; ``communication_rounds``, messages between agents (`judgekit.traces.behavior.communication_rounds`); ``task_time`` in seconds (`elapsed`).

    Skipped if one of the three is missing and cannot be derived, and if the scorer skips; fails and abstains if the
    scorer does. Fails if a field is not a number, or out of range. Zero seconds are allowed by the formula: the value
    is the quality, with a warning. Details: ``quality``, ``rounds``, ``seconds``; ``derived``, the names of the derived
    ones; ``quality_score``, the label, reason and details of the scorer's score.

    No judge, unless the scorer asks one. Source: collaboration efficiency as published, where zero seconds give 0.
    """

    scorer: Scorer | None = None
    name: str = "collaboration_efficiency"

    @property
    def label_values(self) -> Mapping[str, ScaleValue]:
        """The values of its labels, of which there are none."""
        return {}

    @property
    def has_confidence(self) -> bool:
        """Whether its scores may have a confidence, which is never the case."""
        return False

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample."""
        given = _field(sample, "task_quality", 1)
        quality = self.scorer if given is None else given
        rounds = _field_or_derived(communication_rounds, sample, "communication_rounds")
        seconds = _field_or_derived(elapsed, sample, "task_time")
        if quality is None or isinstance(rounds, str) or isinstance(seconds, str):
            missing = [problem for problem in (rounds, seconds) if isinstance(problem, str)]
            missing += ["no task_quality and no scorer"] if quality is None else []
            return Score.skipped(self.name, "; ".join(missing))
        if isinstance(quality, int | float):
            return self._score(sample, quality, rounds, seconds)
        score = await attempt(quality, sample)
        if score.value is None:
            return score.model_copy(update={"scorer": self.name})
        return self._score(sample, score.value, rounds, seconds, score)

    def _score(self, sample: Sample, quality: float, rounds: float, seconds: float, by: Score | None = None) -> Score:
        reason = f"quality {quality:g} / ({rounds:g} rounds x {seconds:g} s + 1)"
        names = {"quality": "task_quality", "rounds": "communication_rounds", "seconds": "task_time"}
        details: dict[str, JsonValue] = {
            "quality": quality,
            "rounds": rounds,
            "seconds": seconds,
            "derived": [short for short, name in names.items() if sample.fields.get(name) is None],
        }
        if by is not None:
            details["quality_score"] = by.model_dump(mode="json", include={"label", "reason", "details"})
        notes = [reason, *([] if seconds else [_ZERO_SECONDS]), *([by.reason] if by and by.reason else [])]
        return Score.scored(
            self.name,
            quality / (rounds * seconds + 1),
            reason="; ".join(notes),
            details=details,
            calls=by.calls if by else (),
            warnings=[*(by.warnings if by else ()), *([] if seconds else [_ZERO_SECONDS])],
        )


def _field_or_derived(derive: Callable[[Trace], float | str], sample: Sample, name: str) -> float | str:
    """Return a field, or what is derived from the trace, or a text that says why there is neither."""
    if (given := _field(sample, name)) is not None:
        return given
    derived = derive(sample.trace)
    return f"no {name}: {derived}" if isinstance(derived, str) else derived


def _field(sample: Sample, name: str, maximum: float = float_info.max) -> float | None:
    return None if (recorded := sample.fields.get(name)) is None else _number(recorded, name, maximum)


def _number(recorded: JsonValue, where: str, maximum: float = float_info.max) -> float:
    """Return a number from 0 to ``maximum``.

    Raises:
        ValueError: The value is not such a number; booleans, NaN and infinity are not.
    """
    if not is_number(recorded) or not 0 <= recorded <= maximum:
        wanted = "a number in [0, 1]" if maximum == 1 else "a number, 0 or more"
        raise ValueError(f"{where}: expected {wanted}, found {short_repr(recorded)}")
    return float(recorded)


@dataclass(frozen=True)
class Portability(SyncScore):
    """1 if the agent scores at least as high in another environment as in its own.

    1 - max(0, min(loss, 1)), where loss = (original - transferred) / original. The two are fields of the sample,
    ``original_score`` and ``transferred_score``, on any scale that starts at 0.

    Skipped if one is missing, or if the original is 0, from which nothing can be lost. Fails if one is not a number or
    below 0. Details: ``original``, ``transferred``, ``loss`` (below 0: an improvement). No judge. Source: portability
    as published for agent evaluation, where an improvement gives more than 1, and an original of 0 gives 0.
    """

    name: str = "portability"

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample."""
        original, transferred = _field(sample, "original_score"), _field(sample, "transferred_score")
        if original is None or transferred is None:
            names = {"original_score": original, "transferred_score": transferred}
            return Score.skipped(self.name, f"no {' and no '.join(name for name in names if names[name] is None)}")
        details: dict[str, JsonValue] = {"original": original, "transferred": transferred}
        comparison = f"transferred {transferred:.4g} of original {original:.4g}"
        if original == 0:
            reason = f"the loss is undefined for an original score of 0: {comparison}"
            return Score.skipped(self.name, reason, details=details)
        loss = (original - transferred) / original
        change = f"an improvement of {-loss:.2%}" if loss < 0 else f"a loss of {loss:.2%}"
        kept = 1 - max(0.0, min(loss, 1.0))
        return Score.scored(self.name, kept, reason=f"{comparison}: {change}", details={**details, "loss": loss})
