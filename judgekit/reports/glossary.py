"""A glossary of the statistical terms in reports, for readers who never learned them."""

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from judgekit.terminal import WithoutTrailingBlanks, console

HEADING = "What the words mean"


class Term(NamedTuple):
    """A term and its meaning. ``pattern`` finds the term in a text; Python and JavaScript both read it."""

    name: str
    meaning: str
    pattern: str


TERMS = (
    Term("95 % interval", "the range in which the true number probably lies; about 1 such range in 20 misses it", r"\bintervals?\b|\.\d+ to [-+]?\d|\[-?\d?\.\d+, "),
    Term("n", "how many samples the number is taken over", r"(?<![\w'\u2019])n(?=[\s=]|$)"),
    Term("median", "the number in the middle: as many are lower as are higher", r"\bmedian\b"),
    Term("p90", "90 % of the numbers are no higher than this one", r"\bp90\b"),
    Term("coverage", "the share of the samples that got a score", r"\b(?:min_)?coverage\b"),
    Term("raw", "what the judge says, as it is", r"\braw\b"),
    Term("corrected", "what people would probably say of all samples, estimated from the judge and from their labels", r"\bcorrected\b"),
    Term("labels alone", "the mean of what people say, without the judge", r"\blabels alone\b"),
    Term("PPI++", "the judge's mean, less its error on the samples that people labelled", r"\bPPI\+\+"),
    Term("Rogan-Gladen", "the share that passes, set right by how often the judge wrongly passes or fails a sample", r"\bRogan(?:-| and )Gladen\b"),
    Term("stratified", "each verdict of the judge is looked at by itself, and then all are put together", r"\b(?:stratified|strata)\b"),
    Term("agreement", "how often, or how far, two of them say the same", r"\bagreement\b"),
    Term("kappa", "how often two say the same beyond what chance would give: 1 is always, 0 is chance", r"(?<!weighted )\bkappa\b"),
    Term("weighted kappa", "how far two say the same beyond chance, near misses counting for less: 1 is always, 0 is chance", r"\bweighted kappa\b"),
    Term("AC1", "how often two say the same beyond chance, and not low just because nearly all verdicts are the same", r"\bAC1\b"),
    Term("alpha", "how far several say the same beyond chance, by Krippendorff: 1 is always, 0 is chance", r"\balpha\b"),
    Term("sensitivity", "of what people pass, the share that the judge passes too", r"\bsensitivity\b"),
    Term("specificity", "of what people fail, the share that the judge fails too", r"\bspecificity\b"),
    Term("rank correlation", "whether one number rises with another: 1 always, 0 they have nothing to do with each other, -1 it falls", r"\brank correlation\b"),
    Term("confusion", "how often each verdict of one came with each verdict of the other", r"\bconfusion\b"),
    Term("bias", "how far verdicts depend on something that should not matter", r"\bbias\b"),
    Term("alternative annotator test", "whether the judge may take the place of a person: is it as close to the others as that person is?", r"\balternative annotator test\b"),
    Term("epsilon", "by how much the judge, being cheaper, may be worse than a person", r"\bepsilon\b"),
    Term("confidence", "how sure the judge is of a verdict, from 0 to 1", r"\bconfidence\b"),
    Term("calibration error", "how far the judge's sureness is from how often it is right: 0 is perfect", r"\bcalibration\b"),
    Term("guarantee", "a promise of how often the judge is wrong at most, kept by abstaining where it is less sure", r"\bguarantee\b"),
    Term("draw", "one answer of the judge, where it is asked the same several times", r"\bdraws?\b(?! samples)"),
    Term("flip", "a sample of which two verdicts differ", r"\b(?:flips|flipped)\b"),
    Term("flip rate", "how likely the judge says something else when it is asked again", r"\bflip rate\b"),
    Term("near the threshold", "one more vote could turn the verdict", r"\bnear the threshold\b"),
    Term("variance", "how much verdicts scatter, and the share of it that comes from each source: sample (item), prompt, judge or chance", r"\bvariance\b"),
    Term("standard error", "by how much a number is typically off by chance", r"\bstandard error\b"),
    Term("accuracy", "the share that is right", r"\baccuracy\b"),
    Term("precision", "of what was given, the share that is right", r"\bprecision(?:_\w+)?\b"),
    Term("recall", "of what was wanted, the share that was given", r"\brecall(?:_\w+)?\b"),
    Term("F1", "high only where little that was given is wrong, and little that was wanted is missing", r"(?<![\w'\u2019])[Ff]1(?:_\w+)?\b"),
    Term("macro", "the mean over classes or domains, each of which counts the same", r"(?:\b|_)macro\b"),
    Term("pass@k", "the share of tasks of which at least one of k trials succeeds", r"\bpass@k\b"),
    Term("pass^k", "the share of tasks of which all of k trials succeed", r"\bpass\^k\b"),
    Term("no evidence", "chance alone may explain the difference; that does not make both equal", r"\bno evidence\b"),
    Term("p", "how often chance alone would make a difference as large as this one", r"(?<![\w'\u2019])p(?=[ ,])"),
    Term("Holm", "several tests at once: each must show more, since one of many is easily fooled by chance", r"\bHolm\b"),
    Term("McNemar", "a test that counts the samples which one side alone got right", r"\bMcNemar\b"),
    Term("sign-flip permutation", "a test that swaps the sides of pairs at random, to see what chance alone makes of them", r"\bsign[- ]flips?\b"),
    Term("detectable", "the smallest true difference that so many pairs would probably have shown", r"\bdetectable\b"),
    Term("closeness", "1 less the distance to what people say", r"\bcloseness\b"),
    Term("Wilson", "a formula for how uncertain a share is, or a mean of values from 0 to 1, which also holds for few samples", r"\bWilson\b"),
    Term("t", "Student's formula for how uncertain a mean is", r"(?<![\w'\u2019-])t(?=[,;)\s]|$)"),
    Term("groups", "samples that belong together, such as trials of one task; each group counts as one", r"\d groups\b"),
    Term("cluster-robust", "samples of one group, such as trials of one task, are not taken for independent", r"\bcluster-robust\b"),
    Term("bootstrap", "samples are drawn again and again at random, to see by how much the number varies", r"\bbootstrap\b"),
)  # fmt: skip
"""All terms that reports show, with related terms beside each other. No meaning contains another term."""


def terms_in(text: str) -> Sequence[Term]:
    """Return the terms that occur in a text, even across line breaks."""
    line = " ".join(text.split())
    return [term for term in TERMS if re.search(term.pattern, line)]


class Consoles(NamedTuple):
    """The consoles that a command writes to."""

    out: Console
    err: Console


@contextmanager
def explaining_terms() -> Generator[Consoles]:
    """Yield the consoles of a command, and at its end explain the terms that were shown on them.

    Text of recordings and judges is printed inside `judgekit.terminal.recorded_text` and not explained.
    """
    screen = Consoles(console(), console(stderr=True))
    for one in screen:
        one.record = True
    yield screen
    if terms := terms_in(" ".join(one.export_text() for one in screen)):
        screen.out.print(f"\n{HEADING.lower()}", style="dim")
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        for term in terms:
            grid.add_row(term.name, term.meaning)
        screen.out.print(WithoutTrailingBlanks(grid), style="dim")
