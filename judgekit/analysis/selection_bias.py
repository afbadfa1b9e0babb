"""A test of whether labeled samples visibly differ from the others, so that they are no random sample."""

from collections import Counter
from collections.abc import Mapping, Sequence

from judgekit.analysis.findings import ValueKind
from judgekit.analysis.matching import MatchedLabels
from judgekit.errors import join_limited
from judgekit.runs.population import Population, describe_population, first_of_units, population_differences
from judgekit.runs.rows import Row
from judgekit.runs.usage import ConversationUsage


def selection_bias(matched: MatchedLabels, kind: ValueKind, usages: Mapping[int, ConversationUsage]) -> str:
    """Return how the labeled samples differ from the others; empty if they do not.

    This is checked if nobody says how they were selected, and for random samples of which some got no label.
    """
    is_doubtful = matched.selection == "unknown" or (matched.selection == "random" and matched.missing_reasons)
    if not is_doubtful or not matched.samples or not matched.unlabeled_rows:
        return ""
    sides = ([sample.row for sample in matched.samples], matched.unlabeled_rows)
    (labeled, a), (rest, b) = (_describe(rows, kind, usages) for rows in sides)
    differ = population_differences(labeled, rest, (a, b))
    if not differ:
        return ""
    difference = f"the labeled samples differ from the others: {join_limited(differ)}"
    if matched.missing_reasons and matched.selection == "random":
        return f"{difference}. So samples were not left blank at random: label these too"
    return f"{difference}. So they were not drawn at random; judgekit label {matched.run.number} draws a random sample"


def _describe(
    rows: Sequence[Row], kind: ValueKind, usages: Mapping[int, ConversationUsage]
) -> tuple[Population, Mapping[str, int]]:
    """Return a description of samples, with numeric verdicts among its traits, and the counts of other verdicts."""
    population = describe_population(rows, usages)
    verdicts = [row.score.value for row in first_of_units(rows)]
    if kind != "continuous":
        return population, Counter("skipped" if verdict is None else f"{verdict:g}" for verdict in verdicts)
    values = sorted(verdict for verdict in verdicts if verdict is not None)
    traits = {**population.features, **({"verdicts": values} if values else {})}
    scored = Counter("skipped" if verdict is None else "scored" for verdict in verdicts)
    return population.model_copy(update={"features": traits}), scored
