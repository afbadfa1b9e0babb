"""What a score's judge calls cost."""

from math import fsum

from judgekit.score import Score


def cost_usd(score: Score) -> float | None:
    """What was paid in US dollars; ``None`` where nobody was asked, or a price is unknown."""
    paid = [cost for call in score.calls if (cost := call.usd_paid) is not None]
    return fsum(paid) if paid and len(paid) == len(score.calls) else None
