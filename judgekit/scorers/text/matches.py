"""Character-level comparison: exact match, substring, pattern and similarity."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from judgekit.errors import ConfigError, check_choice, join_limited, short_repr, short_reprs
from judgekit.look_alikes import look_alike, look_alike_part
from judgekit.score import Score
from judgekit.scorers.text.base import NO_RESPONSE, TextPair, TextScorer, compare_without_gil
from judgekit.scorers.text.normalization import normalize_text
from judgekit.scorers.unanswered import unanswered
from judgekit.scoring import SyncScore
from judgekit.threads import run_in_thread
from judgekit.traces.ending import missing_answer
from judgekit.traces.sample import Sample

if TYPE_CHECKING:
    from regex import Match, Pattern

SimilarityMeasure: TypeAlias = Literal["levenshtein", "jaro_winkler", "indel", "token_sort"]
"""The similarity measure of two texts, in [0, 1].

``levenshtein``: one minus the minimum number of characters to insert, delete or replace, over the longer length.
``indel``: one minus the minimum number of characters to insert or delete, as a share of the combined length.
``token_sort``: ``indel`` of the whitespace-separated words in alphabetical order.
``jaro_winkler``: the Jaro similarity (characters shared at nearby positions, and how many of them are transposed);
above 0.7, each of up to four equal first characters adds a tenth of the distance to 1.
"""

_MOST = 5
"""The maximum number of references in a reason."""
_SECONDS, _SECONDS_INLINE = 1.0, 0.005
"""The time limits of a search: in total, and on the event loop before it restarts in a thread."""


@dataclass(frozen=True)
class ExactMatch(TextScorer):
    """1 if the response equals one of the references, else 0. Surrounding whitespace is ignored.

    With ``normalize=True``, so are case, character width, runs of whitespace, spaces in Chinese and similar scripts,
    sentence-final punctuation and quotation marks around the whole text: see
    ``judgekit.scorers.text.normalization.normalized``. With ``strip=False``, every character counts. With
    ``negate=True``, it is 1 if the response equals none of the references. An empty response equals no reference.

    Skipped without a conversation or a reference. No judge. Details: ``reference``, the one that matches, or null. Source:
    SQuAD (Rajpurkar et al. 2016, https://aclanthology.org/D16-1264), which also ignores articles and all punctuation.

    Raises:
        ConfigError: Texts that are not stripped cannot be normalized.
    """

    normalize: bool = False
    strip: bool = True
    negate: bool = False
    name: str = "exact_match"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.normalize and not self.strip:
            raise ConfigError("normalize ignores whitespace, and strip=False does not; choose one")

    @property
    def _compares_blanks(self) -> bool:
        return not self.strip

    def _compare(self, texts: TextPair) -> Score:
        form = normalize_text if self.normalize else str.strip if self.strip else str
        response = form(texts.response)
        match = next((text for text in texts.references if form(text) == response), None)

        if match is not None:
            reason = f"the response is {short_repr(match)}{', both normalized' if self.normalize else ''}"
        else:
            shown, *references = short_reprs([texts.response, *texts.references])
            reason = f"the response is {shown}, which is not one of: {join_limited(references, _MOST, ', ')}"
        value = float((match is not None) != self.negate)
        return Score.scored(self.name, value, reason=reason, details={"reference": match})


@dataclass(frozen=True)
class StringPresence(TextScorer):
    """1 if the response contains one of the references, else 0. Whitespace around a reference is ignored.

    The match may be part of a word: ``art`` is in ``party``. ``ignore_case`` ignores case. With ``strip=False``, the
    whitespace around a reference has to be there too. An empty response contains no reference.

    Skipped without a conversation or a reference. No judge. Details: ``reference``, the first that was found, or null.
    Source: string presence of ragas (https://docs.ragas.io/en/stable/concepts/metrics/available_metrics/traditional/).
    """

    ignore_case: bool = False
    strip: bool = True
    name: str = "string_presence"

    @property
    def _compares_blanks(self) -> bool:
        return not self.strip

    def _compare(self, texts: TextPair) -> Score:
        form = str.casefold if self.ignore_case else str
        response = form(texts.response)
        sought = str.strip if self.strip else str
        match = next((text for text in texts.references if form(sought(text)) in response), None)

        if match is not None:
            reason = f"{short_repr(match)} is in the response"
        else:
            reason = f"not in the response: {join_limited(self._missing(texts), _MOST, ', ')}"
        return Score.scored(self.name, float(match is not None), reason=reason, details={"reference": match})

    @staticmethod
    def _missing(texts: TextPair) -> Iterator[str]:
        """Yield the references, each with the part of the response that looks like it."""
        for reference in texts.references:
            if (alike := look_alike_part(reference.strip(), texts.response)) is None:
                yield short_repr(reference)
            else:
                yield ", which looks like ".join(short_reprs([reference, alike]))


@dataclass(frozen=True)
class Regex(SyncScore):
    r"""1 if the pattern is found in the response, or with ``full_match=True`` if it matches the whole response, else 0.

    The pattern uses the syntax of the package regex, a superset of `re` with features such as ``\p{Han}``; ``(?i)`` at
    the start ignores case. An empty response is matched like any other, and whitespace is not stripped. A search that
    takes longer than a second, as nested repeats can, is aborted, and the score fails.

    Needs no reference. Skipped without a conversation. No judge. Details: ``start`` and ``end`` of the match, in characters
    from 0, or null. Source: https://github.com/mrabarnett/mrab-regex.

    Raises:
        ConfigError: The pattern is invalid.

    Example:
        ``Regex(r"order #W\d{7}\b")``
    """

    pattern: str
    full_match: bool = False
    name: str = "regex"

    def __post_init__(self) -> None:
        compile_pattern(self.pattern)

    async def ascore(self, sample: Sample, /) -> Score:
        """Return the score of one sample."""
        if (missing := missing_answer(sample.trace)) is not None:
            return unanswered(self._not_found, missing)
        if (response := sample.trace.response) is None:
            return Score.skipped(self.name, NO_RESPONSE)
        try:
            match = await self._search(response)
        except TimeoutError as error:
            raise TimeoutError(
                f"the search for {self.pattern!r} timed out after {_SECONDS:g} s in a response of "
                f"{len(response):,} characters; avoid nested repeats in the pattern"
            ) from error
        if match is None:
            return self._not_found
        pattern, part = short_repr(self.pattern), "the whole response" if self.full_match else "the response"
        start, end = match.span()
        reason = f"{pattern} matches {part}" if self.full_match else f"{pattern} is in {part}: {short_repr(match[0])}"
        return Score.scored(self.name, 1, reason=reason, details={"start": start, "end": end})

    @property
    def _not_found(self) -> Score:
        problem = "does not match the whole response" if self.full_match else "is not in the response"
        reason = f"{short_repr(self.pattern)} {problem}"
        return Score.scored(self.name, 0, reason=reason, details={"start": None, "end": None})

    async def _search(self, response: str) -> "Match[str] | None":
        compiled = compile_pattern(self.pattern)
        search = compiled.fullmatch if self.full_match else compiled.search
        try:
            return search(response, timeout=_SECONDS_INLINE)
        except TimeoutError:
            return await run_in_thread(lambda: search(response, timeout=_SECONDS, concurrent=True))


def compile_pattern(pattern: str) -> "Pattern[str]":
    """Return a pattern of the package regex.

    Raises:
        ConfigError: It is invalid.
    """
    import regex  # noqa: PLC0415 - most scorers do without

    try:
        return regex.compile(pattern)
    except (regex.error, RecursionError, TypeError) as error:
        raise ConfigError(f"pattern: {pattern!r} is not a valid regular expression: {error}") from error


@dataclass(frozen=True)
class Similarity(TextScorer):
    """1 if the response equals one of the references, else its similarity to the most similar one.

    Texts are compared as they are: case, whitespace and punctuation matter. ``token_sort`` is of little use for scripts
    without spaces between words. An empty or blank response scores 0. The time grows with the product of the lengths:
    two texts of 100,000 characters take a quarter of a second, texts of a million half a minute.

    Skipped without a conversation or a reference. No judge. Details: ``reference``, the most similar one (the first of
    equals), and ``values``, by reference, without blank and repeated ones. Source: the normalized similarities of
    rapidfuzz (https://rapidfuzz.github.io/RapidFuzz); Levenshtein 1966; Winkler 1990.

    Args:
        measure: One of `judgekit.scorers.text.matches.SimilarityMeasure`.
        name: The name of the scores; by default, the measure and ``similarity``, such as ``levenshtein_similarity``.

    Raises:
        ConfigError: The measure is unknown.
    """

    measure: SimilarityMeasure = "levenshtein"
    name: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("measure of similarity", self.measure, get_args(SimilarityMeasure))
        if not self.name:
            object.__setattr__(self, "name", f"{self.measure}_similarity")

    def _compare(self, texts: TextPair) -> Score:
        response, references = texts
        similarity = _similarities()[self.measure]
        values = [similarity(response, reference) if response.strip() else 0.0 for reference in references]
        best = max(values)

        reference = references[values.index(best)]
        which = f", the most similar of {len(values)} references" if len(values) > 1 else ""
        shown = short_reprs([reference, response] if look_alike(reference, response) else [reference])
        reason = f"{self.measure} similarity {best:.3f} to {', which looks like the response '.join(shown)}{which}"
        return Score.scored(
            self.name,
            best,
            reason=reason if response.strip() else "the response is empty",
            details={"reference": reference, "values": [*values]},
        )


@cache
def _similarities() -> Mapping[SimilarityMeasure, Callable[[str, str], float]]:
    from rapidfuzz.distance import Indel, JaroWinkler, Levenshtein  # noqa: PLC0415 - most scorers do without
    from rapidfuzz.fuzz import token_sort_ratio  # noqa: PLC0415 - as above

    return {
        "levenshtein": partial(compare_without_gil, Levenshtein.normalized_similarity),
        "jaro_winkler": partial(compare_without_gil, JaroWinkler.normalized_similarity),
        "indel": partial(compare_without_gil, Indel.normalized_similarity),
        "token_sort": lambda left, other: compare_without_gil(token_sort_ratio, left, other) / 100,
    }
