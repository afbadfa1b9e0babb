"""How likely a judge's tokens made the label that it chose."""

import re
from collections.abc import Iterable, Sequence
from itertools import accumulate
from math import exp

from judgekit.judges.client import TokenLogprob


def likelihood(tokens: Sequence[TokenLogprob], field: str, chosen: str, labels: Iterable[str]) -> float | None:
    """The probability of the chosen label among the labels that might have stood in a field of a JSON reply.

    The product of the probabilities of the tokens that spell the label, divided by what was not seen to go elsewhere: to
    tokens that begin none of the labels, or may become the chosen one as well as another, such as a blank. Labels may
    have several tokens, begin alike, or share a token with what stands around them. What ``top_logprobs`` is too short to
    name counts as other labels, so that the result is never too high for that; 20 of them are best. It is how sure the
    judge is once it has written its reason, and often surer than it is right (Tian et al. 2023,
    https://arxiv.org/abs/2305.14975): labels of people tell what it is worth.

    Args:
        tokens: Those of the whole reply, with the natural logarithms of their probabilities.
        field: The name of the field; of several of that name, the last counts.
        chosen: The label that stands there.
        labels: All that might.

    Returns:
        In [0, 1]; ``None`` where the label is not found among the tokens.
    """
    text = "".join(token.token for token in tokens)
    written = {label: f'"{label}"' for label in labels}
    places = [*re.finditer(rf'"{field}"\s*:(\s*"(?:[^"\\]|\\.)*")', text)]
    if not places or places[-1][1].lstrip() != written[chosen]:
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
            begun = f"{text[:start]}{other.token}".removeprefix(text[:begin]).lstrip()
            may_be = [label for label, whole in written.items() if whole.startswith(begun) or begun.startswith(whole)]
            if may_be == [chosen]:  # in other tokens
                otherwise += spelled * _probability(other)
            elif not may_be or chosen in may_be:
                elsewhere += spelled * _probability(other)
        spelled *= _probability(token)
    found = (spelled + otherwise) / (1 - elsewhere) if elsewhere < 1 else 0.0
    return min(found, 1.0) if found > 0 else None


def _probability(token: TokenLogprob) -> float:
    return exp(min(token.logprob, 0.0))
