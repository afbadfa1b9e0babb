"""The probability of the label that a judge chose, by the log probabilities of its tokens."""

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import exp

from judgekit.judges.request import TokenLogprob


def label_probability(tokens: Sequence[TokenLogprob], field: str, chosen: str, labels: Iterable[str]) -> float | None:
    """Return the probability of the chosen label among the possible labels in a field of a JSON reply.

    The result is the product of the probabilities of the tokens that spell the label, divided by the probability mass
    that is not known to go elsewhere: to tokens that begin no label, or that may lead to the chosen label as well as to
    another, such as a blank. Labels may have several tokens, begin alike, or share a token with the surrounding text.
    Alternatives that ``top_logprobs`` does not list count as other labels, so that a short list never makes the result
    too high; 20 alternatives are best. The result is the confidence of a judge that has written its reason, and often
    higher than its accuracy (Tian et al. 2023, https://arxiv.org/abs/2305.14975), so compare it with human labels.

    Args:
        tokens: The tokens of the whole reply, with the natural logarithms of their probabilities.
        field: The name of the field; of several with this name, the last counts.
        chosen: The label in the field.
        labels: All possible labels.

    Returns:
        The probability in [0, 1]; ``None`` if the label is not found among the tokens.
    """
    text = "".join(token.token for token in tokens)
    written = {label: f'"{label}"'.casefold() for label in labels}
    places = [*re.finditer(rf'"{field}"\s*:(\s*"(?:[^"\\]|\\.)*")', text)]
    if not places or places[-1][1].lstrip().casefold() != written[chosen]:
        return None
    begin, end = places[-1].span(1)
    spelled, elsewhere, otherwise = 1.0, 0.0, 0.0
    starts = accumulate((len(token.token) for token in tokens), initial=0)
    for start, token in zip(starts, tokens, strict=False):
        if start >= end or start + len(token.token) <= begin:
            continue
        for other in token.top_logprobs:
            if other.token == token.token:
                continue
            begun = f"{text[:start]}{other.token}".removeprefix(text[:begin]).lstrip().casefold()
            may_be = [label for label, whole in written.items() if whole.startswith(begun) or begun.startswith(whole)]
            if may_be == [chosen]:  # the chosen label, in other tokens
                otherwise += spelled * _probability(other)
            elif not may_be or chosen in may_be:
                elsewhere += spelled * _probability(other)
        spelled *= _probability(token)
    probability = (spelled + otherwise) / (1 - elsewhere) if elsewhere < 1 else 0.0
    return min(probability, 1.0) if probability > 0 else None


def _probability(token: TokenLogprob) -> float:
    return exp(min(token.logprob, 0.0))
