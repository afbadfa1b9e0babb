"""``judgekit audit``: compare the judges of a run with human labels."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Annotated

import typer
from pydantic import JsonValue

from judgekit.analysis.audit import audit as audited
from judgekit.analysis.corrected_means import gate_fitness, mean_bounds
from judgekit.analysis.findings import Audit
from judgekit.analysis.labels import deduplicate, read_label_file, recorded_labels
from judgekit.analysis.stored_labels import stored_labels
from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.label_files import store_labels
from judgekit.cli.outputs import check_outputs, print_json, print_line, print_notices, write_outputs
from judgekit.reports.audit import show_audit
from judgekit.reports.export import json_text
from judgekit.reports.glossary import command_consoles
from judgekit.reports.html import html_report
from judgekit.runs.audit_records import AuditStatus
from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.terminal import console


@app.command()
def audit(
    run: options.RunArgument,
    labels: options.LabelFiles = None,
    label: options.RecordedLabels = None,
    guarantee: Annotated[
        float | None,
        options.option(
            "SHARE", "Find the confidence at which people disagree with at most this share of verdicts, as 0.1."
        ),
    ] = None,
    delta: Annotated[
        float, options.option("PROBABILITY", "For --guarantee: how likely the guarantee may fail.")
    ] = 0.05,
    explain: options.Explain = False,
    as_json: options.AsJson = False,
    show: Annotated[int, options.number("Show the N worst disagreements of each scorer.")] = 3,
    output: options.ReportOption = None,
    store: options.StorePath = DEFAULT_RUNS_PATH,
    _allow_code: options.AllowCode = False,
) -> None:
    """Audit the judges of a run against human labels.

    Shows how far they agree with people, and their corrected means. Labels of files are stored with the run, and count with
    those of earlier files. Without any, the labels recorded with the conversations count.

    Saves an audit record next to the run. Later runs of the same judge show it, and gates can require it. Exit code 0:
    judges were compared with labels, whatever the result; 1: no label could be used.
    """
    outputs = check_outputs(output, _KINDS)
    stored = Run.stored(options.parse_run_number(run), store)
    names = dict(map(options.parse_recorded_label, label or ()))
    files = {path: read_label_file(path, names=names, run=stored) for path in labels or ()}
    given = deduplicate(label for file in files.values() for label in file.labels)
    for name, file in files.items():
        print_notices(name, file.notices)
    store_labels(stored, given)
    missing = {name: names[name] for name in names if not any(name in file.names for file in files.values())}
    if missing or not (labels or stored_labels(stored)):
        given = deduplicate((*given, *recorded_labels(stored, missing)))
    before = stored.audits
    comparison = audited(stored, given, guarantee=guarantee, delta=delta)
    if as_json:
        print_json(_json(stored, comparison))
    else:
        with command_consoles(explain=explain) as screen:
            show_audit(comparison, show, screen.out, mean_bounds(stored))
            for line in _record_lines(stored, before):
                print_line(line, screen.out)
    write_outputs(outputs, _KINDS, stored, comparison)
    if not any(findings.sample_count for findings in comparison.scorers):
        print_line("exit code 1: no judge was compared with labels", console(stderr=True))
        raise typer.Exit(1)


def _json(run: Run, audit: Audit) -> JsonValue:
    """Return an audit as JSON, with the gates that each corrected mean meets."""
    bounds = mean_bounds(run)
    gates: JsonValue = {
        each.scorer: gate_fitness(each.correction, bounds.get(each.scorer))._asdict() for each in audit.scorers
    }
    return {**audit.model_dump(mode="json"), "gates": gates}


def _record_lines(run: Run, before: Mapping[str, AuditStatus]) -> Iterator[str]:
    """Yield the audit record of each judge, and whether it is that of this audit."""
    folder = run.audits_folder
    for name, status in run.audits.items():
        if folder is not None and (record := status.record) is not None:
            unchanged = f"unchanged audit record (run {record.run}) of"
            head = unchanged if record == before[name].record else "audit record of"
            yield f"{head} {name}: {folder / record.file_name}"


_KINDS: Mapping[str, Callable[[Run, Audit], Iterable[str]]] = {
    ".json": lambda run, comparison: json_text(_json(run, comparison)),
    ".html": html_report,
}
