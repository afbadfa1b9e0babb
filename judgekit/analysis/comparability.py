"""Warnings about runs whose difference may have another cause than it seems, and refusals to compare them."""

from collections.abc import Collection, Iterator

from judgekit.analysis.sample_pairs import Companies, Numbers, SamplePairs
from judgekit.errors import ConfigError, count_text, join_limited
from judgekit.runs.answers import AnswerCounts, ReportedNames, format_shares, quote_name, reported_names
from judgekit.runs.results import Run
from judgekit.runs.rows import ScorerRecord, identity_differences

_NAMED = 3


def comparison_warnings(a: Run, b: Run, scorers: Collection[str], pairs: SamplePairs) -> Iterator[str]:
    """Yield what to know before trusting a comparison of these runs by these scorers."""
    yield from _run_warnings(a, b)
    for name, damaged in pairs.damaged_scores.items():
        yield f"{name}: {count_text(damaged, 'damaged row')} left out; judgekit resume repeats these scores"
    yield from _scorers_warnings(a, b, scorers)
    yield from _answer_warnings(pairs.side_a.answers, pairs.side_b.answers)
    yield from _company_warnings(pairs.side_a.companies, pairs.side_b.companies)
    yield from _input_warnings(a, b)
    yield from _pair_count_warnings(pairs)
    yield from _change_warnings(a, pairs)
    yield from _pairing_warnings(pairs)


def check_references(a: Run, b: Run, pairs: SamplePairs) -> None:
    """Check that the references and the task of each pair are the same in both runs."""
    if len(pairs.changed.references):
        raise ConfigError(
            f"runs {a.number} (A) and {b.number} (B): references or tasks differ in "
            f"{_counted(a, pairs, pairs.changed.references)}, so the difference may come from them. Score both recordings with the same references, or add "
            "--allow-changed-references to compare them anyway (in Python, allow_changed_references=True)"
        )


def _run_warnings(a: Run, b: Run) -> Iterator[str]:
    if a.number == b.number and (a.store is b.store or (a.store.path is not None and a.store.path == b.store.path)):
        yield "A and B are the same run"
    for name, run in (("A", a), ("B", b)):
        if run.stop_reason:
            yield f"{name} was stopped early ({run.stop_reason}): only what was scored until then is compared"
        elif run.ended_at is None:
            yield f"{name} has not ended: it is running or was interrupted, and only what is scored so far is compared"
        yield from (f"{name}: {note}" for note in run.notes)


def _scorers_warnings(a: Run, b: Run, names: Collection[str]) -> Iterator[str]:
    before, after = ({record.name: record for record in run.scorers} for run in (a, b))
    for name in names:
        yield from _scorer_warnings(before[name], after[name])
    for side, here in (("A", before), ("B", after)):
        if alone := [name for name in here if name not in names]:
            yield f"scorers only in {side} are not compared: {join_limited(alone, _NAMED, ', ')}"


def _scorer_warnings(before: ScorerRecord, after: ScorerRecord) -> Iterator[str]:
    if before.signature is None or after.signature is None:
        unsigned = before if before.signature is None else after
        yield f"{before.name}: it is unknown whether both runs scored in the same way: {unsigned.identity}"
    elif before.signature != after.signature:
        changes = join_limited(identity_differences(before.identity, after.identity), _NAMED)
        yield f"{before.name}: the scorer changed between the runs, so the difference may come from it: {changes}"


def _answer_warnings(a: AnswerCounts, b: AnswerCounts) -> Iterator[str]:
    """Yield warnings about judges that answered as other models in B, as far as their providers report models."""
    models, fingerprints = (a.models, b.models), (a.fingerprints, b.fingerprints)
    for judge in models[0]:
        if judge not in models[1]:
            continue
        before, after = (side[judge] for side in models)
        runs_before, runs_after = (side[judge] for side in fingerprints)
        if _differ(before, after):
            shares = f"A {format_shares(before)}; B {format_shares(after)}"
            yield (
                f"{quote_name(judge)} answered as different models in the two runs, so the difference may come from the "
                f"judge: {shares}"
            )
        elif before[None] or after[None]:
            sides = (("A", before), ("B", after))
            lacking = (f"{by[None]:,} of {by.total():,} answers in {side}" for side, by in sides if by[None])
            yield (
                f"{quote_name(judge)}: its provider reported no model for {' and '.join(lacking)}, so a change behind "
                "this name would go unnoticed"
            )
        elif _differ(runs_before, runs_after):
            yield (
                f"{quote_name(judge)} answered as the same models with different system fingerprints, so its provider may "
                f"have changed how it runs them: A {format_shares(runs_before)}; B {format_shares(runs_after)}"
            )


def _company_warnings(a: Companies, b: Companies) -> Iterator[str]:
    """Yield warnings about questions that were asked together with other ones in B."""
    for name, before in a.items():
        if before and b[name] and before != b[name]:
            sides = (("A", before - b[name]), ("B", b[name] - before))
            only = "; ".join(
                f"only {side} has {join_limited(min(sets), separator=', ')}" for side, sets in sides if sets
            )
            yield (
                f"{name}: its question was not asked together with the same ones in both runs, which may color the "
                f"answers: {only}"
            )


def _differ(a: ReportedNames, b: ReportedNames) -> bool:
    """Return whether different names were reported in B; ``False`` if either side reported none."""
    names = reported_names(a), reported_names(b)
    return all(names) and names[0] != names[1]


def _input_warnings(a: Run, b: Run) -> Iterator[str]:
    before, after = ({file.identity: file.path for file in run.inputs} for run in (a, b))
    if before.keys() != after.keys():
        read = (
            f"{side} read {join_limited((f'{path} ({identity[:8]})' for identity, path in here.items()), _NAMED, ', ') or 'none'}"
            for side, here in (("A", before), ("B", after))
        )
        yield f"the runs read different recordings: {', '.join(read)}"


def _pair_count_warnings(pairs: SamplePairs) -> Iterator[str]:
    in_a, in_b = len(pairs.side_a), len(pairs.side_b)
    if 2 * len(pairs) < max(in_a, in_b):
        yield (
            f"only {len(pairs):,} of {in_a:,} samples of A and {len(pairs):,} of {in_b:,} of B are paired, and only these are "
            "compared"
        )


def _change_warnings(a: Run, pairs: SamplePairs) -> Iterator[str]:
    changed = pairs.changed
    if len(changed.references):
        yield f"references or tasks differ in {_counted(a, pairs, changed.references)}, so the difference may come from them"
    if pairs.unknown_references:
        yield (
            f"it is unknown whether the references of {pairs.unknown_references:,} of {len(pairs):,} pairs changed, because a run "
            "has no hash of them"
        )
    if len(changed.fields):
        yield (
            f"documents or fields differ in {_counted(a, pairs, changed.fields)}, which is expected if the agent "
            "produced them; if they are references, the scores cannot be compared"
        )
    if len(changed.first_messages):
        yield (
            f"the user's first message differs in {_counted(a, pairs, changed.first_messages)}, which is expected if "
            "the user is simulated; otherwise these pairs may not be the same task"
        )


def _counted(a: Run, pairs: SamplePairs, numbers: Numbers) -> str:
    shown = numbers[:_NAMED].tolist()
    ids = {row.index: row.sample_id for row in a.rows(numbers=shown)}
    more = ", ..." if len(numbers) > len(shown) else ""
    examples = ", ".join(dict.fromkeys(repr(ids[number]) for number in shown))
    return f"{len(numbers):,} of {len(pairs):,} pairs ({examples}{more})"


def _pairing_warnings(pairs: SamplePairs) -> Iterator[str]:
    if pairs.group_changes:
        yield f"pairs with different groups in A and B, for which the group in A counts: {pairs.group_changes:,}"
    if pairs.domain_changes:
        yield f"pairs with different domains in A and B, whose ids may be the same by chance: {pairs.domain_changes:,}"
    if pairs.paired_in_order:
        yield (
            f"trials of one task that share an id, paired in order: {pairs.paired_in_order:,}; compare the means of their "
            "groups, not single pairs"
        )
    if pairs.ids_are_numbers:
        yield "all ids are positions in a file, counted from 0: if samples have no other id, both files must be in the same order"
