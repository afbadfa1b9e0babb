"""A run as test cases, in the XML that CI servers read."""

from collections.abc import Collection, Iterator

from judgekit.analysis.gates import GateResults
from judgekit.reports.xml_escape import escape_xml
from judgekit.runs.results import Run
from judgekit.runs.rows import Row
from judgekit.runs.summary_text import ScorerSummary


def junit_report(run: Run, gates: GateResults) -> Iterator[str]:
    """Yield a suite for each scorer, with a test case for each sample, and a suite for the gates.

    A score passes whatever its value: gates decide what is good enough, and a gate that is not met is a failure. A
    failed score is an error. Skipped and abstained scores are skipped cases that say which of the two they are. A run
    that was stopped early, has not ended, or could not read something is an error as well. Source: the schema of
    Jenkins' xUnit plugin, junit-10.xsd.
    """
    began = run.started_at.strftime("%Y-%m-%dT%H:%M:%S")
    repeated = set(run.duplicate_ids)
    lines = [run.summary.scorers.get(scorer.name, ScorerSummary(scorer.name)) for scorer in run.scorers]
    ends = list(_ends(run, gates))
    failures = sum(not gate.met for gate in gates.gates)
    broken = len(ends) - len(gates.gates)
    failed = sum(line.counts["failed"] for line in lines)
    yield '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="judgekit"'
    yield f' tests="{sum(line.counts.total() for line in lines) + len(ends)}" failures="{failures}" errors="{failed + broken}">\n'
    for line in lines:
        errors, skipped = line.counts["failed"], line.counts["skipped"] + line.counts["abstained"]
        yield _suite(line.scorer, began, line.counts.total(), 0, errors, skipped)
        for row in run.rows(scorer=line.scorer):
            yield _case(row, repeated)
        yield "</testsuite>\n"
    if ends:
        yield from (_suite("gates", began, len(ends), failures, broken, 0), *ends, "</testsuite>\n")
    yield "</testsuites>\n"


def _suite(name: str, began: str, tests: int, failures: int, errors: int, skipped: int) -> str:
    counts = f'tests="{tests}" failures="{failures}" errors="{errors}" skipped="{skipped}"'
    return f'<testsuite name="{escape_xml(name)}" {counts} timestamp="{began}">\n'


def _case(row: Row, repeated: Collection[str]) -> str:
    score = row.score
    name = f"{row.sample_id} [{row.index}]" if row.sample_id in repeated else row.sample_id
    seconds = f' time="{sum(call.seconds for call in score.calls):.3f}"' if score.calls else ""
    reason = escape_xml(score.reason)
    if score.value is not None:
        outcome = f"<system-out>{score.value:.6g}{': ' if reason else ''}{reason}</system-out>"
    elif score.status == "failed":
        outcome = f'<error type="{escape_xml(score.error or "failed")}" message="{reason}"/>'
    else:
        label = "" if score.label is None else f"{escape_xml(score.label)}: "
        outcome = f'<skipped type="{score.status}" message="{score.status}: {label}{reason}"/>'
    return f'<testcase classname="{escape_xml(row.scorer)}" name="{escape_xml(name)}"{seconds}>{outcome}</testcase>\n'


def _ends(run: Run, gates: GateResults) -> Iterator[str]:
    for gate in gates.gates:
        failure = "" if gate.met else f'<failure type="gate" message="{escape_xml(str(gate))}"/>'
        yield f'<testcase classname="gates" name="{escape_xml(gate.text)}">{failure}</testcase>\n'
    unfinished = [run.record.unfinished] if run.record.unfinished else []
    unfinished += [f"{line.scorer}: {line.coverage()}" for line in run.summary if unfinished and line.missing]
    if missing := "; ".join((*unfinished, *run.record.notes)):
        message = escape_xml(missing)
        yield f'<testcase classname="gates" name="all samples"><error type="incomplete" message="{message}"/></testcase>\n'
