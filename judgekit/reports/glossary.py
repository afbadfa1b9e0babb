"""A glossary of the statistical terms in reports, for readers who never learned them."""

import re
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from judgekit.terminal import WithoutTrailingBlanks, console

HEADING = "glossary"


class Term(NamedTuple):
    """A term and its meaning. ``pattern`` finds the term in a text; Python and JavaScript both read it."""

    name: str
    meaning: str
    pattern: str


TERMS = (
    Term("95 % interval", "a range computed so that about 19 of 20 such ranges contain the true number", r"\bintervals?\b|\.\d+ to [-+]?\d|\[-?\d?\.\d+, "),
    Term("n", "the number of samples behind the figure", r"(?<![\w'\u2019])n(?=[\s=]|$)"),
    Term("median", "the middle number: half of the numbers are lower, half are higher", r"\bmedian\b"),
    Term("p90", "90 % of the numbers are no higher than this one", r"\bp90\b"),
    Term("coverage", "the share of samples that got a score", r"\b(?:min_)?coverage\b"),
    Term("raw", "the judge's own number", r"\braw\b"),
    Term("corrected", "what people would probably say about all samples, estimated from the judge and from their labels", r"\bcorrected\b"),
    Term("labels alone", "the mean of human labels, without the judge", r"\blabels alone\b"),
    Term("PPI++", "the judge's mean minus its error on the samples that people labeled", r"\bPPI\+\+"),
    Term("Rogan-Gladen", "the share that passes, adjusted for how often the judge wrongly passes or fails a sample", r"\bRogan(?:-| and )Gladen\b"),
    Term("stratified", "computed for each verdict of the judge separately, then combined", r"\b(?:stratified|strata)\b"),
    Term("agreement", "how often, or how closely, two sides give the same answer", r"\bagreement\b"),
    Term("kappa", "how often two sides agree beyond chance: from 1 (always) to 0 (no more than by chance) and below", r"(?<!weighted )\bkappa\b"),
    Term("weighted kappa", "how closely two sides agree beyond chance, where near misses count less: from 1 (always) to 0 (no more than by chance) and below", r"\bweighted kappa\b"),
    Term("AC1", "how often two sides agree beyond chance; not low just because nearly all verdicts are equal", r"\bAC1\b"),
    Term("alpha", "how closely several people agree beyond chance (Krippendorff): from 1 (always) to 0 (no more than by chance) and below", r"\balpha\b"),
    Term("sensitivity", "of the samples that people pass, the share that the judge passes too", r"\bsensitivity\b"),
    Term("specificity", "of the samples that people fail, the share that the judge fails too", r"\bspecificity\b"),
    Term("rank correlation", "from 1 (one number rises with the other) to 0 (unrelated) and -1 (it falls)", r"\brank correlation\b"),
    Term("confusion", "the confusion matrix: how often each verdict of one side met each verdict of the other", r"\bconfusion\b"),
    Term("bias", "how far verdicts depend on something that should not matter", r"\bbias\b"),
    Term("confidence", "how sure the judge is of a verdict, from 0 to 1", r"\bconfidence\b"),
    Term("calibration error", "how far the judge's certainty is from how often it is right: 0 is perfect", r"\bcalibration\b"),
    Term("guarantee", "a limit on how often the judge is wrong; to keep it, the judge abstains where it is less sure", r"\bguarantee\b"),
    Term("repeat", "one answer of the judge to a question that it is asked several times", r"\brepeats?\b(?! (a|the|itself|what)\b)"),
    Term("flip", "a sample on which two verdicts differ", r"\b(?:flips|flipped)\b"),
    Term("flip rate", "how likely the judge is to answer differently when asked again", r"\bflip rate\b"),
    Term("near the threshold", "one more vote could change the verdict", r"\bnear the threshold\b"),
    Term("standard error", "how far a number is typically off by chance", r"\bstandard error\b"),
    Term("accuracy", "the share that is right", r"\baccuracy\b"),
    Term("precision", "of what was given, the share that is right", r"\bprecision(?:_\w+)?\b"),
    Term("recall", "of what was wanted, the share that was given", r"\brecall(?:_\w+)?\b"),
    Term("F1", "high only if little that was given is wrong and little that was wanted is missing", r"(?<![\w'\u2019])[Ff]1(?:_\w+)?\b"),
    Term("macro", "the mean over classes or domains, each counting the same", r"(?:\b|_)macro\b"),
    Term("pass@k", "the share of tasks for which at least one of k trials succeeds", r"\bpass@k\b"),
    Term("pass^k", "the share of tasks for which all of k trials succeed", r"\bpass\^k\b"),
    Term("no evidence", "chance alone may explain the difference; this does not make the two equal", r"\bno evidence\b"),
    Term("p", "how often chance alone would produce a difference at least this large", r"(?<![\w'\u2019])p(?=[ ,])"),
    Term("Holm", "a stricter limit where several tests are made at once, since one of many often succeeds by chance", r"\bHolm\b"),
    Term("McNemar", "a test that counts the samples that only one side got right", r"\bMcNemar\b"),
    Term("sign-flip permutation", "a test that swaps the sides of pairs at random, to see what chance alone produces", r"\bsign[- ]flips?\b"),
    Term("detectable", "the smallest true difference that this many pairs would probably have shown", r"\bdetectable\b"),
    Term("closeness", "1 minus the distance to what people say", r"\bcloseness\b"),
    Term("Wilson", "a formula for the uncertainty of a share, or of a mean of values from 0 to 1, that is accurate for few samples too", r"\bWilson\b"),
    Term("t", "Student's formula for how uncertain a mean is", r"(?<![\w'\u2019-])t(?=[,;)\s]|$)"),
    Term("groups", "samples that belong together, such as trials of one task; each group counts as one", r"\d groups\b"),
    Term("cluster-robust", "samples of one group, such as trials of one task, are not treated as independent", r"\bcluster-robust\b"),
    Term("bootstrap", "samples are redrawn at random many times, to see how much the number varies", r"\bbootstrap\b"),
)  # fmt: skip
"""All terms that reports show, with related terms next to each other. No meaning contains another term."""


def terms_in(text: str) -> Sequence[Term]:
    """Return the terms that occur in a text, even across line breaks."""
    line = " ".join(text.split())
    return [term for term in TERMS if re.search(term.pattern, line)]


class Consoles(NamedTuple):
    """The consoles that a command writes to."""

    out: Console
    err: Console


@contextmanager
def command_consoles(*, explain: bool = False, as_json: bool = False) -> Generator[Consoles]:
    """Yield the consoles of a command, of which stdout shows nothing if the command prints JSON.

    With ``explain``, the terms that were shown are explained at the end. Text of recordings and judges is printed inside
    `judgekit.terminal.recorded_text` and not explained.
    """
    screen = Consoles(console(), console(stderr=True))
    screen.out.quiet = as_json
    for screen_console in screen:
        screen_console.record = explain
    yield screen
    terms = terms_in(" ".join(screen_console.export_text() for screen_console in screen)) if explain else ()
    if terms:
        screen.out.print(f"\n{HEADING}", style="dim")
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True)
        for term in terms:
            grid.add_row(term.name, term.meaning)
        screen.out.print(WithoutTrailingBlanks(grid), style="dim")
