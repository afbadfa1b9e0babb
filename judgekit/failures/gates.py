"""Gates on the failures of a run: ``failures.new <= 0``, ``failures.back <= 0``, ``failures.LABEL <= 2%``."""

from collections.abc import Sequence

from judgekit.analysis.gates import Gate, GateFields, GateResult, GateResults
from judgekit.errors import count_text, join_limited
from judgekit.failures.report import NONE_VISIBLE, FailureReport

_STATES = ("new", "back")


def check_failure_gates(report: FailureReport, gates: Sequence[str]) -> GateResults:
    """Check gates on the numbers of new issues and of those that came back, and on samples by the label of their failure.

    Rejected issues count in none.

    Args:
        report: The failures of a run.
        gates: The gates.

    Raises:
        ConfigError: A gate cannot be read, or refers to something that does not exist.
    """
    labels = [label for label in report.scale if label != NONE_VISIBLE]
    fields = GateFields(
        (*_STATES, *labels),
        sample_counts=labels,
        scorers="name, which is failures",
        example="'failures.new <= 0' or 'failures.wrong_arguments <= 2%'",
        not_percentages=dict.fromkeys(_STATES, "a number of issues"),
    )
    return GateResults([_result(report, Gate.parse(text, ["failures"], fields)) for text in gates])


def _result(report: FailureReport, gate: Gate) -> GateResult:
    result = _of_state(report, gate) if gate.field in _STATES else _of_label(report, gate)
    if not report.left_out:
        return result
    lost = count_text(report.left_out, "sample")
    missing = f"{lost} not analyzed: judgekit resume {report.run.number} --retry-failed"
    return result._replace(met=False, reason=missing)


def _of_state(report: FailureReport, gate: Gate) -> GateResult:
    issues = [issue for issue in report.issues if issue.state == gate.field]
    names = join_limited((f"{issue.issue.name} ({issue.issue.id})" for issue in issues), 5)
    result = gate.check_number(len(issues), names or "no issue")
    if unsorted := sum(len(issue.failures) for issue in report.in_state("unsorted")):
        why = f"{count_text(unsorted, 'failure')} not matched with known issues yet: name a judge"
        return result._replace(met=False, reason=why)
    return result


def _of_label(report: FailureReport, gate: Gate) -> GateResult:
    count = report.labels().get(gate.field, 0)
    number = count / report.samples if gate.is_share and report.samples else count
    return gate.check_number(number, f"{count:,} of {count_text(report.samples, 'sample')}")
