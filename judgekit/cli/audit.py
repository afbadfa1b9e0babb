"""``judgekit audit``: compare the judges of a run with human labels."""

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated

import typer

from judgekit import registry
from judgekit.analysis.audit import audit as audited
from judgekit.analysis.corrected_means import mean_bounds
from judgekit.analysis.findings import Audit
from judgekit.analysis.human_agreement import ANNOTATOR_EPSILONS
from judgekit.analysis.labels import deduplicate, read_label_file, recorded_labels
from judgekit.analysis.stored_labels import stored_labels
from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.label_files import store_labels
from judgekit.cli.outputs import check_outputs, print_line, print_notices, print_written
from judgekit.errors import ConfigError
from judgekit.reports.audit import show_audit
from judgekit.reports.export import write_text
from judgekit.reports.glossary import explaining_terms
from judgekit.reports.html import html_report
from judgekit.runs.audit_records import audit_record_path
from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH


@app.command()
def audit(
    run: options.RunArgument,
    labels: Annotated[
        list[str] | None,
        options.files(
            "Human labels, as .csv or .jsonl files or URLs in the form of judgekit label, or scores of Langfuse, "
            "feedback of LangSmith or annotations of Phoenix; may be repeated. They are stored with the run, and count with "
            "those of earlier files. Without any, the labels recorded with the conversations count."
        ),
    ] = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            metavar="RECORDED=SCORER",
            help="Use the labels of this name, in a file or recorded, as answers to this scorer's question; may be repeated. "
            "Labels with the scorer's own name are used anyway.",
        ),
    ] = None,
    guarantee: Annotated[
        float | None,
        typer.Option(
            metavar="SHARE",
            help="Find the confidence at which people disagree with at most this share of the verdicts, such as 0.1.",
        ),
    ] = None,
    delta: Annotated[
        float, typer.Option(metavar="PROBABILITY", help="For --guarantee: how likely the guarantee may fail.")
    ] = 0.05,
    epsilon: Annotated[
        str,
        typer.Option(
            metavar="experts|skilled|crowd|NUMBER",
            help="Who the annotators are, or how much worse than one of them the judge may be to replace a person, such as 0.2 "
            "(alternative annotator test).",
        ),
    ] = "experts",
    show: Annotated[int, options.number("Show the N worst disagreements of each scorer.")] = 3,
    output: options.ReportOption = None,
    store: options.StorePath = DEFAULT_RUNS_PATH,
    allow_code: options.AllowCode = False,
) -> None:
    """Audit the judges of a run against human labels.

    Shows how far they agree with people, and their corrected means.

    Saves an audit record next to the run. Later runs of the same judge show it, and gates can require it. The exit code
    does not depend on the result.
    """
    if allow_code:
        registry.allow_code()
    outputs = check_outputs(output, _KINDS)
    worse = _epsilon(epsilon)
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
    comparison = audited(stored, given, guarantee=guarantee, delta=delta, epsilon=worse)
    with explaining_terms() as screen:
        show_audit(comparison, show, screen.out, mean_bounds(stored))
        for name, status in stored.audits.items():
            if (folder := stored.audits_folder) is not None and (audit_record := status.record) is not None:
                where = audit_record_path(audit_record, folder)
                print_line(f"audit record of {name}, from the audit of run {audit_record.run}: {where}", screen.out)
    for path in outputs:
        write_text(_KINDS[path.suffix.lower()](stored, comparison), path)
        print_written(path)


def _epsilon(text: str) -> float:
    """Return the epsilon of named annotators, or the number that is given."""
    try:
        return ANNOTATOR_EPSILONS[text] if text in ANNOTATOR_EPSILONS else float(text)
    except ValueError:
        names = ", ".join(ANNOTATOR_EPSILONS)
        raise ConfigError(f"--epsilon {text}: expected one of {names}, or a number such as 0.2") from None


_KINDS: Mapping[str, Callable[[Run, Audit], Iterable[str]]] = {
    ".json": lambda _, comparison: (comparison.model_dump_json(indent=2), "\n"),
    ".html": html_report,
}
