"""The alignment of a judge with people, from labels to a prompt file with an audit record."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from judgekit.alignment.aligning import Aligning
from judgekit.alignment.cases import read_cases
from judgekit.alignment.result import Alignment
from judgekit.analysis.labels import HumanLabel
from judgekit.analysis.stored_labels import combine_labels
from judgekit.errors import ConfigError, join_limited
from judgekit.judges.decisions import no_text_message
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt
from judgekit.runs.alignments import AlignmentRecord, ancestry
from judgekit.runs.results import Run
from judgekit.runs.rows import ScorerRecord
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.scorers.prompted import PromptScorer
from judgekit.scoring import run_sync
from judgekit.threads import with_arguments_of


def prepare(
    scorer: PromptScorer,
    run: Run,
    labels: Iterable[HumanLabel],
    *,
    writer: Judge | str | None = None,
    output: Path | str | None = None,
    sources: Sequence[str] = (),
    looks: Path | str | None = None,
    announce: Callable[[str], object] = lambda _: None,
) -> Aligning:
    """Return an alignment that is ready to begin; see `aalign`."""
    base, judge = cast("Prompt", scorer.prompt), cast("Judge", scorer.judge)
    if judge.together:  # candidates are asked one by one, and so is the scorer that gets the audit record
        judge = judge.model_copy(update={"together": False})
        scorer = replace(scorer, judge=judge)
    writing_judge = judge if writer is None else writer if isinstance(writer, Judge) else Judge(writer)
    if writing_judge.decides:
        raise ConfigError(f"align needs a writer of questions: {no_text_message(writing_judge.model)}")
    path = Path(output or f"{scorer.name}_aligned.md")
    if path.suffix != ".md":
        raise ConfigError(f"{path}: expected the name of a prompt file, which ends in .md")
    if not path.parent.is_dir():
        raise ConfigError(f"{path}: there is no folder {path.parent}")
    if path.exists() and not load_prompt(path).alignment:
        raise ConfigError(f"{path} exists and was not written by an alignment: name another file")
    if path.stem in (scorer.name, base.name):
        raise ConfigError(f"{path}: the new prompt needs another name than the old one")
    earlier: Sequence[AlignmentRecord] = ()
    if base.alignment:
        folder = run.audits_folder
        if folder is None:
            raise ConfigError(f"{base.name} was aligned before, and a run in memory does not know by which labels")
        earlier = ancestry(base.alignment, folder)
    name = earlier[-1].scorer if earlier else scorer.name
    record = ScorerRecord.of(scorer)
    every = list(labels)
    given = [label for label in every if label.scorer in (name, record.name)]
    if every and not given:
        others = join_limited(map(repr, dict.fromkeys(label.scorer for label in every)), separator=", ")
        raise ConfigError(f"expected labels of {name}, found {others}; as=NAME renames the scorer")
    combined = combine_labels(run, given)
    labeled = [label for label in combined.labels if label.scorer in (name, record.name)]
    renamed = [label.model_copy(update={"scorer": record.name}) for label in labeled]
    cases, unused = read_cases(run, record, renamed, earlier)
    origins = list(dict.fromkeys((*sources, *(label.file for label in labeled if label.file is not None))))
    folders = _look_folders(run, looks)
    unused = {**unused, **combined.left_out}
    aligning = Aligning(scorer, run, cases, unused, writing_judge, path, origins, earlier, folders, announce)
    aligning.check_files()
    return aligning


def _look_folders(run: Run, looks: Path | str | None) -> Sequence[Path]:
    """Return the folders that count looks: one that is given, or those of audit records of the run and of the working folder."""
    if looks is not None:
        return [Path(looks)]
    if run.audits_folder is None:
        return []
    project = [DEFAULT_RUNS_PATH.parent / "audits"] if DEFAULT_RUNS_PATH.parent.is_dir() else []
    return [*dict.fromkeys(folder.resolve() for folder in (run.audits_folder, *project))]


async def aalign(
    scorer: PromptScorer,
    run: Run,
    labels: Iterable[HumanLabel],
    *,
    writer: Judge | str | None = None,
    output: Path | str | None = None,
    sources: Sequence[str] = (),
    looks: Path | str | None = None,
    announce: Callable[[str], object] = lambda _: None,
) -> Alignment:
    """Look for a question by which a judge agrees more often with people, and test whether it does.

    A model reads the labels with the role ``train`` and writes candidates: guidelines, rewritten questions, and
    examples. Those that copy a recording, or change the scale, are refused. The judge answers the others on the samples
    with the role ``validation``; the one that agrees best is tested once on those with the role ``test``. The new prompt is
    written next to the old one and, if the run is in a file, the new judge gets an audit record from the ``test`` labels alone.

    Args:
        scorer: The scorer with the old question, such as ``PromptScorer("tone", judge)``.
        run: A run of this scorer that the labeled samples are from, with their conversations.
        labels: Human labels, which count together with those stored with the run: see `judgekit.add_labels`.
        writer: The model that writes candidates; by default, the scorer's judge.
        output: The file of the new prompt; by default, the scorer's name and ``_aligned.md``.
        sources: The origins of the labels, which the audit record names.
        looks: The folder whose file ``looks.jsonl`` counts looks at test labels. By default, the folder of the run's audit records
            does, and so does ``.judgekit/audits`` if the working folder has ``.judgekit``; for a run in memory, nothing does.
        announce: Called with what will be asked and what it costs, before it is.

    Raises:
        ConfigError: The scorer cannot be aligned, the run has no such scorer or no text, or the file exists.
        TraceError: A label is not on the scale.
        JudgeError: A judge cannot be asked; replies so far are cached, so the same call continues from there.
        StoreError: A file next to the run cannot be read or written.
    """
    aligning = await asyncio.to_thread(
        prepare, scorer, run, labels, writer=writer, output=output, sources=sources, looks=looks, announce=announce
    )
    return await aligning.align()


@with_arguments_of(aalign)
def align(*args: Any, **options: Any) -> Alignment:
    """Look for a question by which a judge agrees more often with people; the sync version of `aalign`."""
    return run_sync(lambda: aalign(*args, **options))
