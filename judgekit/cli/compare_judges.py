"""``judgekit compare-judges``: ask two or more judges the same question about the same samples."""

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Annotated, TypeAlias

import typer
from pydantic import JsonValue

from judgekit.analysis.compare_judges import JudgeComparison, compare_judges
from judgekit.analysis.labels import HumanLabel, LabelFile, deduplicate, label_value, read_label_file, recorded_labels
from judgekit.cli import options
from judgekit.cli.app import app
from judgekit.cli.outcome import report_outcome
from judgekit.cli.outputs import check_outputs, print_json, print_line, print_notices, write_outputs
from judgekit.cli.run import run_session, show_planned
from judgekit.config import Config
from judgekit.errors import ConfigError, join_limited, path_text
from judgekit.formats.session_files import require_separate_output
from judgekit.gathering import asks_together
from judgekit.jobs.building import BuiltScorers, build_scorers
from judgekit.jobs.options import RunOptions
from judgekit.jobs.starting import new_session
from judgekit.reports.compare_judges import show_judges
from judgekit.reports.export import json_text
from judgekit.reports.glossary import command_consoles
from judgekit.reports.summary import Shown
from judgekit.runs.results import Run
from judgekit.runs.rows import ScorerRecord
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.scorers.repeat import SecondRepeat
from judgekit.scoring import Scorer, scorer_prompts
from judgekit.specs import JUDGE_VARIABLE, ScorerSpec
from judgekit.terminal import console, escaped_text

_Questions: TypeAlias = Mapping[str, Mapping[str, str]]
"""For each question, the scorers that are compared, by what they are called in the comparison."""


@app.command("compare-judges")
def compare(
    file: options.RecordingsArgument,
    scorer: options.ScorersOption = None,
    judge: Annotated[
        list[str] | None,
        options.option(
            "MODEL",
            "A judge: a model as provider/model, or a name from the config; give at least two, or one and --imported, or several scorers.",
        ),
    ] = None,
    imported: Annotated[
        list[str] | None,
        options.option(
            "LABEL",
            'A judge that answered before: its verdicts are the labels of this name that were recorded with the conversations; may be repeated. LABEL,scale={"good":1,"bad":0} gives the values of words that the scorer\'s scale does not have.',
        ),
    ] = None,
    labels: options.LabelFiles = None,
    label: Annotated[
        str | None,
        options.option("RECORDED", "Use the labels of this name, in a file or recorded, if it is not the scorer's."),
    ] = None,
    format: options.Format = None,
    column: options.ColumnOption = None,
    encoding: options.Encoding = None,
    references: options.ReferencesOption = None,
    config: options.ConfigFile = None,
    limit: options.Limit = None,
    sample: options.SampleOption = None,
    seed: options.Seed = 0,
    output: options.JsonOption = None,
    explain: options.Explain = False,
    as_json: options.AsJson = False,
    show: Annotated[int, options.number("Show N samples on which two judges disagree, for each pair of judges.")] = 3,
    strict: options.Strict = False,
    store: options.StorePath = DEFAULT_RUNS_PATH,
    together: Annotated[
        bool,
        typer.Option(
            "--together",
            help="With one judge: compare the verdicts of all scorers asked together with those of each asked alone, and alone twice.",
        ),
    ] = False,
    dry_run: options.DryRun = False,
    offline: options.Offline = False,
) -> None:
    """Compare judges, or prompts, on the same samples.

    Shows how far they agree, what each costs, and which is closer to people. Several judges answer the question of one scorer;
    or one judge those of several scorers, whose prompts are compared.

    Each judge is a scorer of one run. The exit code does not depend on the differences.
    """
    run_options = RunOptions(
        file=path_text(file),
        format=format,
        columns=options.parse_columns(column),
        encoding=encoding,
        references=None if references is None else path_text(references),
        config=None if config is None else path_text(config),
        scorers=[ScorerSpec.parse(text) for text in scorer or ()],
        limit=limit,
        sample=options.parse_sample(sample) if sample else None,
        seed=seed,
        strict=strict,
        offline=offline,
        together=False,  # which asks each question by itself, so that no prompt or judge colors another
    )
    run_options.check_sampling(None)
    settings = run_options.load_config()
    if together and (imported or labels or label):
        raise ConfigError("--together compares a judge with itself: leave out --imported, --labels and --label")
    if together:
        built, questions = _ways(run_options, settings, judge or ())
    elif len(scorer or ()) > 1:
        if imported:
            raise ConfigError("--imported adds an imported judge to one question: give one --scorer, found several")
        built, questions = _prompts(run_options, judge or (), settings.min_coverage)
    else:
        built, questions = _judges(run_options, settings, judge or (), imported or ())
    name, sides = next(iter(questions.items()))
    files = {
        path: read_label_file(run_options.location(path), names={label: name} if label else {}) for path in labels or ()
    }
    given = _given(files, name, sides.values(), ScorerRecord.of(built.scorers[0]))
    outputs = check_outputs(output, {".json"}, offline=offline)
    for path in outputs:
        require_separate_output(path, file, references, config, *(labels or ()))
    if dry_run:
        show_planned(built, compares_ways=False, as_json=as_json)
        return
    built.check_judges()
    session = new_session(built, store)
    run, signaled = run_session(session)
    with command_consoles(explain=explain, as_json=as_json) as screen:
        code = report_outcome(run, session.options, session.problems, screen, Shown(), ())
        for source, label_file in files.items():
            print_notices(source, label_file.notices)
        is_recorded = not labels or (label and not any(label in label_file.names for label_file in files.values()))
        if is_recorded and not together:
            given = _without_duplicates(name, [*given, *_recorded(run, label, name, sides.values())])
        comparisons = {question: compare_judges(run, judges, given) for question, judges in questions.items()}
        if as_json:
            print_json(_json(comparisons, show))
        for question, comparison in () if as_json else comparisons.items():
            if together:
                screen.out.print()
                screen.out.print(escaped_text(f"{question}:"))
            show_judges(comparison, show, screen.out)
    if len(run):
        write_outputs(outputs, {".json": lambda: json_text(_json(comparisons))})
    else:
        for path in outputs:
            print_line(f"{path}: not written, since nothing was scored", console(stderr=True))
    raise typer.Exit(signaled or code)


def _json(comparisons: Mapping[str, JudgeComparison], *show: int) -> JsonValue:
    """Return the comparison of judges as JSON; if questions are asked in several ways, that of each by its name."""
    by_name: dict[str, JsonValue] = {name: comparison.as_json(*show) for name, comparison in comparisons.items()}
    return by_name if len(by_name) > 1 else next(iter(by_name.values()))


def _judges(
    run_options: RunOptions, settings: Config, judges: Sequence[str], imported: Sequence[str]
) -> tuple[BuiltScorers, _Questions]:
    """Return the only scorer once for each judge."""
    names, before = _must_differ(settings, judges, imported)
    spec, scorer_asked = _question(run_options.model_copy(update={"judge": names[0]}))
    name = scorer_asked.name
    sides = {judge: f"{name} ({judge})" for judge in (*names, *before)}
    scale = dict(ScorerRecord.of(scorer_asked).scale)
    specs = (
        *(
            spec.model_copy(update={"alias": sides[judge], "options": {**spec.options, "judge": judge}})
            for judge in names
        ),
        *(
            recorded_spec.model_copy(
                update={"alias": sides[side], "options": {"scale": scale, **recorded_spec.options}}
            )
            for side, recorded_spec in before.items()
        ),
    )
    built = build_scorers(run_options.model_copy(update={"scorers": specs, "min_coverage": settings.min_coverage}))
    return built, {name: sides}


def _prompts(
    run_options: RunOptions, judges: Sequence[str], min_coverage: float | None
) -> tuple[BuiltScorers, _Questions]:
    """Return several scorers that ask one judge."""
    if len(judges) > 1:
        raise ConfigError(
            f"expected several scorers and one judge, or several judges and one scorer, found {len(judges)} judges"
        )
    judge = judges[0] if judges else os.environ.get(JUDGE_VARIABLE) or None
    built = build_scorers(run_options.model_copy(update={"judge": judge, "min_coverage": min_coverage}))
    records = [ScorerRecord.of(scorer) for scorer in built.scorers]
    for record in records:
        if not record.judged:
            raise ConfigError(f"{record.name} asks no judge, so it has no prompt to compare; see judgekit scorers")
        if record.scale != records[0].scale:
            raise ConfigError(
                f"{records[0].name} and {record.name} have different scales, so they answer different questions"
            )
    return built, {records[0].name: {record.name: record.name for record in records}}


def _ways(run_options: RunOptions, settings: Config, judges: Sequence[str]) -> tuple[BuiltScorers, _Questions]:
    """Return each scorer asked together, alone, and alone again."""
    if len(judges) > 1:
        raise ConfigError(f"--together compares the ways to ask one judge, found {len(judges)} judges")
    asking = run_options.model_copy(update={"judge": judges[0] if judges else os.environ.get(JUDGE_VARIABLE) or None})
    specs = [spec for spec in run_options.scorers or settings.scorers if spec is not None]
    joint, alone = (asking.model_copy(update={"together": on}).load_config() for on in (True, False))
    ways: dict[str, dict[str, str]] = {}
    scorers: list[Scorer] = []
    for spec in specs:
        name = alone.build(spec).name
        names = ways[name] = {way: f"{name} ({way})" for way in ("together", "alone", "alone again")}
        first, second, third = (spec.model_copy(update={"alias": alias}) for alias in names.values())
        scorers += (joint.build(first), alone.build(second), SecondRepeat(alone.build(third), names["alone again"]))
    if sum(map(asks_together, scorers)) < 2:
        raise ConfigError("--together needs two or more scorers that ask the judge; name them with --scorer NAME")
    if any(judge.decides for judge in alone.judges_used.values()):
        raise ConfigError("--together compares two ways to ask, and decision models are always asked together")
    objects = asking.model_copy(update={"scorers": (None,) * len(scorers), "min_coverage": settings.min_coverage})
    return BuiltScorers(objects, scorers, joint), ways


def _must_differ(
    settings: Config, names: Sequence[str], imported: Sequence[str]
) -> tuple[Sequence[str], Mapping[str, ScorerSpec]]:
    """Return the names of judges, and the scorers of imported ones by their names, after checking that no two are the same."""
    specs = [ScorerSpec.parse(f"imported:{text}") for text in imported]
    before = {f"{spec.argument or spec.options.get('label')}, imported": spec for spec in specs}
    if not names or len(names) + len(before) < 2:
        named = ", ".join((*names, *before)) or "none"
        raise ConfigError(
            f"name at least two judges to compare, found {named}: --judge default --judge local, or --judge default --imported LABEL"
        )
    for first, second in combinations(names, 2):
        if settings.judge(first) == settings.judge(second):
            raise ConfigError(
                f"the judges {first} and {second} have the same settings, so their answers would be the same: "
                "name another, or add repeats=5 to the scorer to ask one judge several times"
            )
    return names, before


def _question(run_options: RunOptions) -> tuple[ScorerSpec, Scorer]:
    """Return the only scorer, which must ask the judge that it is given, and its spec."""
    settings = run_options.load_config()
    specs = [spec for spec in run_options.scorers or settings.scorers if spec is not None]
    if len(specs) != 1:
        named = ", ".join(spec.alias or spec.name for spec in specs) or "none"
        raise ConfigError(f"expected one scorer to compare the judges by, found {named}; name it with --scorer NAME")
    scorer = settings.build(specs[0])
    if not scorer_prompts(scorer):
        raise ConfigError(f"{scorer.name} asks no judge, so there are none to compare; see judgekit scorers")
    if "scorers" in specs[0].options:
        raise ConfigError(f"{scorer.name} asks several scorers, each with its own judge: compare judges by one of them")
    if run_options.judge not in settings.judges_used:
        raise ConfigError(
            f"{scorer.name} names its own judge ({', '.join(settings.judges_used)}), which cannot be replaced"
        )
    return specs[0], scorer


def _given(
    files: Mapping[str, LabelFile], name: str, scorers: Collection[str], record: ScorerRecord
) -> Sequence[HumanLabel]:
    """Return the labels in files that answer the question, whichever of the scorers they name."""
    given = [label for file in files.values() for label in file.labels]
    labels = _without_duplicates(name, [label for label in given if label.scorer in {name, *scorers}])
    if files and not labels:
        others = (
            join_limited(map(repr, dict.fromkeys(label.scorer for label in given)), separator=", ") or "none at all"
        )
        raise ConfigError(
            f"{join_limited(files)}: expected labels of {name}, found {others}; as=NAME renames the scorer"
        )
    for label in labels:
        label_value(label, record)  # a label outside the scale is an error before anything is spent
    return labels


def _without_duplicates(name: str, labels: Iterable[HumanLabel]) -> Sequence[HumanLabel]:
    """Return the labels as answers to one question, without duplicates."""
    return deduplicate(label.model_copy(update={"scorer": name}) for label in labels)


def _recorded(run: Run, label: str | None, name: str, scorers: Collection[str]) -> Sequence[HumanLabel]:
    """Return the labels that were recorded with the conversations, under the given name or else the scorer's.

    Labels of unknown source may be verdicts of one of the judges: they are only used if they are named.
    """
    side = next(iter(scorers))
    names = {
        label_name
        for row in run.rows(scorer=side)
        for label_name in row.labels
        if row.label_sources.get(label_name) != "judge"
    }
    recorded = recorded_labels(run, {label or name: side}) if label or name in names else ()
    return recorded if label else [given for given in recorded if given.source != "unknown"]
