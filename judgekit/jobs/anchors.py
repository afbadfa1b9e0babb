"""Anchors of a judge: frozen from a run, and asked about again to notice when the judge changes behind its name."""

import random
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from pydantic import JsonValue, ValidationError
from pydantic_core import from_json

from judgekit.analysis.drift import AnchorsCheck, check_outcome, detect_change
from judgekit.analysis.labels import recorded_labels
from judgekit.analysis.matching import match_labels
from judgekit.analysis.sampling import draw_by_verdict
from judgekit.analysis.stored_labels import stored_labels
from judgekit.distribution import own_version
from judgekit.errors import ConfigError, JudgeError, check_choice, count_text, join_limited, validation_message
from judgekit.follow_ups import FollowUpScorer
from judgekit.jobs.building import BuiltScorers
from judgekit.jobs.options import RunOptions
from judgekit.jobs.plan import make_plan
from judgekit.jobs.resume import build_stored
from judgekit.judges.judge import find_judges
from judgekit.runs.anchors import (
    BASELINE_ROUNDS,
    Anchor,
    AnchorDraw,
    AnchorRound,
    AnchorSet,
    AnchorsHead,
    anchor_sample,
    anchors_folder,
    anchors_path,
    anchors_status,
    date_text,
    read_anchors,
    write_anchors,
)
from judgekit.runs.hashes import lacks_media, recording_key
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, ScorerRecord, identity_differences
from judgekit.runs.runner import Task, score_tasks
from judgekit.runs.store import DEFAULT_RUNS_PATH, now
from judgekit.score import bypass_cache
from judgekit.scoring import Scorer, check_scorers, run_sync
from judgekit.traces.sample import Sample

MIN_ANCHORS, MAX_ANCHORS = 20, 1_000
"""The number of anchors below which hardly any change would show, and that above which the test would take minutes."""
_DIFFERENCES_SHOWN = 5


class FrozenAnchors(NamedTuple):
    """Anchors with a complete baseline: their scorer, file, number, and the number of these that people labeled."""

    scorer: str
    path: Path
    anchors: int
    labeled: int

    def __str__(self) -> str:
        return (
            f"{self.scorer}: {self.anchors:,} anchors ({self.labeled:,} labeled by people), frozen with {BASELINE_ROUNDS} verdicts "
            f"on each in {self.path}, which holds the text of the recordings and stays on this machine"
        )


@dataclass
class AnchorSession:
    """Rounds of questions about anchors, up to the number ``rounds``, of which some may have ended.

    ``clock`` gives the time of each verdict.
    """

    anchors: AnchorSet
    built: BuiltScorers
    rounds: int
    clock: Callable[[], datetime] = lambda: datetime.now(UTC)  # an audit in the same second is before or after

    @property
    def is_complete(self) -> bool:
        """Whether all rounds have ended."""
        return len(self.anchors.rounds) >= self.rounds

    def samples(self) -> Mapping[str, Sample]:
        """Return the samples of the anchors that are to be asked in the round under way, by their recordings."""
        anchors, answered = self.anchors, self.anchors.draws[-1]
        return {
            key: anchor_sample(anchors.anchors[key], anchors.path) for key in anchors.anchors if key not in answered
        }

    async def plan(self) -> str:
        """Return what the next round would take, and how many rounds there are."""
        with bypass_cache():
            plan = await make_plan(self.built, self.samples().values())
        return (
            f"{self.anchors.head.scorer}: {count_text(self.rounds - len(self.anchors.rounds), 'round')}, each of {plan}"
        )

    async def ask(self, should_stop: Callable[[], bool] = lambda: False) -> None:
        """Ask about each anchor once a round, without the cache, until all rounds have ended or work ``should_stop``.

        Raises:
            JudgeError: The judge cannot be asked, or half of the anchors get no verdict. The other verdicts are kept.
        """
        while not (self.is_complete or should_stop()):
            samples = self.samples()
            failures = await self._ask_about(samples, should_stop)
            if should_stop():
                return
            if 2 * len(failures) >= len(self.anchors.anchors):
                raise JudgeError(
                    f"{len(failures):,} of {len(self.anchors.anchors):,} anchors got no verdict: {failures[0]}"
                )
            number, drift = len(self.anchors.rounds), detect_change(self.anchors)
            detector = drift.detector[-1] if drift.detector else 0.0
            self.anchors.add(AnchorRound(round=number, at=self.clock(), detector=detector, alarm=drift.alarm == number))

    async def _ask_about(self, samples: Mapping[str, Sample], should_stop: Callable[[], bool]) -> Sequence[str]:
        """Ask about samples, keep the verdicts, and return why others failed."""
        failures: list[str] = []
        recordings, judges = list(samples), {judge.model for judge in find_judges(self.built.scorers)}

        def tasks() -> Iterator[Task]:
            for index, sample in enumerate(samples.values()):
                if should_stop():
                    return
                yield Task(index, sample, self.built.scorers)

        def keep(row: Row) -> None:
            calls = [call for call in row.score.calls if call.error is None]
            others = {call.judge for call in calls} - judges  # to which it fell back: they are not what is checked
            if row.score.status == "failed" or others:
                failures.append(row.score.reason if not others else f"{join_limited(others)} answered in its place")
                return
            draw = AnchorDraw(
                round=len(self.anchors.rounds),
                recording=recordings[row.index],
                at=self.clock(),
                value=row.score.value,
                models=sorted({call.model for call in calls if call.model}),
                system_fingerprints=sorted({call.system_fingerprint for call in calls if call.system_fingerprint}),
            )
            self.anchors.add(draw)

        with bypass_cache():
            await score_tasks(tasks(), self.built.scorers, keep, concurrency=self.built.concurrency)
        return failures


def prepare_freeze(
    run: Run,
    n: int = 80,
    *,
    scorer: str | None = None,
    seed: int = 0,
    replace: bool = False,
    scorers: Iterable[Scorer] = (),
    is_planned: bool = False,
) -> AnchorSession:
    """Return the questions of the baseline; see `freeze_anchors`. Unless it ``is_planned``, the anchors are written."""
    if not MIN_ANCHORS <= n <= MAX_ANCHORS:
        raise ConfigError(f"expected {MIN_ANCHORS} to {MAX_ANCHORS:,} anchors, found {n:,}")
    judged = [record.name for record in run.scorers if record.judged]
    if scorer is None and len(judged) != 1:
        names = join_limited(judged, separator=", ")
        raise ConfigError(f"run {run.number}: expected one scorer that asks a judge, found {names or 'none'}; name one")
    name = judged[0] if scorer is None else scorer
    check_choice("scorer of the run", name, [record.name for record in run.scorers])
    index, record = next((index, record) for index, record in enumerate(run.scorers) if record.name == name)
    if run.store.path is None or not run.record.keeps_text:
        raise ConfigError(f"run {run.number} keeps no recordings in a file (store_text = false, or a run in memory)")
    options = RunOptions.from_record(run.record)
    options = options.model_copy(update={"scorers": options.scorers[index : index + 1], "gates": ()})
    built = _built(options, record.name, (record.signature, record.identity), scorers, is_planned=is_planned)
    path = anchors_path(name, anchors_folder(run.store.path))
    before = read_anchors(path) if path.exists() and not replace else None
    if before is not None and (len(before.rounds) >= BASELINE_ROUNDS or before.head.fingerprint != record.signature):
        raise ConfigError(
            f"{path}: anchors were frozen on {date_text(before.head.frozen_at)}; --replace makes new ones"
        )
    if before is None:
        status = anchors_status(name, record.signature, path.parent)
        head = AnchorsHead(
            scorer=name,
            fingerprint=record.signature or "",
            identity=record.identity,
            options=options.model_dump(mode="json", by_alias=True),
            run=run.number,
            frozen_at=now(),
            alarmed_at=None if status is None else status.alarmed_at,
            version=own_version(),
        )
        anchors = _draw(run, record, n, seed, built)
        before = AnchorSet(path, head, anchors) if is_planned else write_anchors(head, anchors.values(), path)
    return AnchorSession(before, built, BASELINE_ROUNDS)


def _draw(run: Run, record: ScorerRecord, n: int, seed: int, built: BuiltScorers) -> Mapping[str, Anchor]:
    """Return anchors drawn by verdict and confidence, each recording once, with people's labels if there are any."""
    rows = list(run.rows(scorer=record.name, statuses=["scored"]))
    different = {row.index if row.copied is None else row.copied: row for row in rows}
    drawn = draw_by_verdict(list(different.values()), n, random.Random(seed))  # noqa: S311 - a draw, not a secret
    numbers = {row.index for row in drawn}
    labels = [
        label
        for label in stored_labels(run) or recorded_labels(run, {})
        if label.scorer == record.name and label.run in (None, run.number) and label.source != "unknown"
    ]
    people = {sample.row.index: sample.mean for sample in match_labels(run, record, rows, labels).samples}
    anchors: dict[str, Anchor] = {}
    for number, sample in run.conversations(numbers.__contains__):
        if not (built.show_images and lacks_media(sample)):  # of images, a run keeps only hashes
            key = recording_key(sample)
            anchors[key] = Anchor(recording=key, sample=from_json(sample.model_dump_json()), human=people.get(number))
    if len(anchors) < MIN_ANCHORS:
        raise ConfigError(
            f"run {run.number} has {count_text(len(anchors), 'recording')} that {record.name} scored and can be asked about again; "
            f"expected at least {MIN_ANCHORS}, since hardly any change would show on fewer"
        )
    return anchors


def _built(
    options: RunOptions, name: str, before: tuple[str | None, JsonValue], objects: Iterable[Scorer], *, is_planned: bool
) -> BuiltScorers:
    """Build the scorer of anchors as it was before, by its signature and identity."""
    given = [scorer for scorer in check_scorers(objects) if scorer.name == name]
    if not given and options.scorers == (None,):
        raise ConfigError(f"{name} was passed as an object in Python; pass the same one there: scorers=[...]")
    built = build_stored(
        options, options.model_copy(update={"scorers": [None]} if given else {}), given, is_planned=is_planned
    )
    current = ScorerRecord.of(built.scorers[0])
    if not any(True for _ in find_judges(built.scorers)) or isinstance(built.scorers[0], FollowUpScorer):
        raise ConfigError(f"{name} asks no judge by itself, so nothing can change behind its name")
    if current.signature is None or current.signature != before[0]:
        changed = join_limited(identity_differences(before[1], current.identity), _DIFFERENCES_SHOWN)
        raise ConfigError(
            f"{name} is not the scorer that was frozen or run: {changed or 'its code cannot be compared'}"
        )
    return built


def prepare_check(path: Path, *, scorers: Iterable[Scorer] = (), is_planned: bool = False) -> AnchorSession:
    """Return the questions of the next check of the anchors in a file; see `check_anchors`."""
    anchors = read_anchors(path)
    head = anchors.head
    if len(anchors.rounds) < BASELINE_ROUNDS:
        raise ConfigError(f"{path}: the baseline is not complete: judgekit anchors freeze {head.run} continues it")
    try:
        options = RunOptions.model_validate(head.options)
    except ValidationError as error:
        raise ConfigError(f"{path}: line 1: options: {validation_message(error)}") from error
    built = _built(options, head.scorer, (head.fingerprint, head.identity), scorers, is_planned=is_planned)
    return AnchorSession(anchors, built, len(anchors.rounds) + 1)


def anchor_files(names: Collection[str], store: Path | str) -> Sequence[Path]:
    """Return the files of the anchors of some scorers, or of all.

    Raises:
        ConfigError: There are none.
    """
    folder = anchors_folder(store)
    files = [anchors_path(name, folder) for name in names] or sorted(folder.glob("[!.]*.jsonl"))
    if missing := [str(path) for path in files if not path.exists()] or ([] if files else [str(folder)]):
        raise ConfigError(f"{join_limited(missing)}: there are no anchors; judgekit anchors freeze RUN makes some")
    return files


def freeze_anchors(
    run: Run,
    n: int = 80,
    *,
    scorer: str | None = None,
    seed: int = 0,
    replace: bool = False,
    scorers: Iterable[Scorer] = (),
) -> FrozenAnchors:
    """Freeze anchors of a judge: recordings of a run, drawn by verdict and confidence, with three new verdicts on each.

    They are written with their text into a file next to the run's: ``anchors/SCORER.jsonl``. `check_anchors` asks about
    them again. If this is interrupted, the same call continues with the anchors that were drawn.

    Args:
        run: A run in a file, with its recordings.
        n: The number of anchors, from 20 to 1,000. With fewer, small changes show later or never.
        scorer: The scorer; by default, the run's only one that asks a judge.
        seed: The seed of the draw.
        replace: Whether to replace anchors that were frozen before. If they raised an alarm, that stands.
        scorers: The scorer, if it was passed as an object.

    Raises:
        ConfigError: The run keeps no recordings, has too few, or its scorer has changed or asks no judge.
        JudgeError: The judge cannot be asked; the verdicts so far are kept.
        StoreError: The file cannot be read or written.
    """
    session = prepare_freeze(run, n, scorer=scorer, seed=seed, replace=replace, scorers=scorers)
    run_sync(session.ask)
    return frozen(session.anchors)


def frozen(anchors: AnchorSet) -> FrozenAnchors:
    """Return the description of anchors with a complete baseline."""
    labeled = sum(anchor.human is not None for anchor in anchors.anchors.values())
    return FrozenAnchors(anchors.head.scorer, anchors.path, len(anchors.anchors), labeled)


def check_anchors(
    names: Iterable[str] = (), *, store: Path | str = DEFAULT_RUNS_PATH, scorers: Iterable[Scorer] = ()
) -> Sequence[AnchorsCheck]:
    """Ask judges about their anchors again, and return whether they have changed.

    The cache is neither read nor filled, and the verdicts are added to the file of the anchors. An alarm suspends the
    audit records of the judge until another audit. If this is interrupted, the same call continues.

    Args:
        names: The scorers; by default, all that have anchors.
        store: The file of runs next to which the anchors are.
        scorers: The scorers that were passed as objects.

    Raises:
        ConfigError: There are no anchors, or a scorer is not the one that was frozen.
        JudgeError: A judge cannot be asked, or gives no verdict on half of its anchors.
        StoreError: A file cannot be read or written.
    """
    objects = list(scorers)
    sessions = [prepare_check(path, scorers=objects) for path in anchor_files(list(names), store)]
    for session in sessions:
        run_sync(session.ask)
    return [check_outcome(session.anchors) for session in sessions]
