"""An alignment on its way: candidates are written, judged, chosen and tested, and the outcome is recorded."""

import asyncio
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import unified_diff
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, cast

import numpy as np

from judgekit.alignment.cases import Case
from judgekit.alignment.keeping import TestedCandidate, prompt_hash, write_prompt
from judgekit.alignment.looks import Look, count_look, read_looks, sketch
from judgekit.alignment.refusals import RecordedPhrases
from judgekit.alignment.result import Alignment, AlignmentCandidate
from judgekit.alignment.verdict import AlignmentVerdict, JudgedSamples, choose, holdout_verdict, refusal_reason
from judgekit.alignment.writing import CANDIDATES, REQUESTS, Candidate, CandidateWriter, accepted
from judgekit.distribution import own_version
from judgekit.errors import ConfigError, count_text
from judgekit.jobs.plan import RunPlan, make_plan
from judgekit.jobs.starting import build_run
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.prompt_file import load_prompt, prompt_file_text
from judgekit.runs.alignments import AlignmentOutcome, AlignmentRecord, LabelRole, read_alignments, write_alignment
from judgekit.runs.hashes import group_key, recording_key
from judgekit.runs.results import Run
from judgekit.runs.rows import Row, ScorerRecord
from judgekit.runs.runner import make_tasks, score_tasks
from judgekit.runs.store import now
from judgekit.runs.summary_text import ScorerSummary
from judgekit.score import Score, in_run, ledger
from judgekit.scorers.prompted import PromptScorer

_FILLER = "x" * 1_200
"""Stands for what a candidate adds to a question, in plans."""
_CEILING_SAMPLES = 20
"""The number of samples with labels of several people from which their agreement limits that of a judge."""


class AlignmentPlan(NamedTuple):
    """The requests and the cost that an alignment would take, at most.

    Attributes:
        writing: The number of requests to the writing model.
        judging: The number of requests to the judge that are not in its cache.
        cost_usd: The estimated cost of the judging in US dollars; ``None`` if a price is unknown.
    """

    writing: int
    judging: int
    cost_usd: float | None

    def __str__(self) -> str:
        cost = "unknown cost" if self.cost_usd is None else f"about ${self.cost_usd:.4f}"
        return f"at most {self.writing} requests to write candidates, and {self.judging:,} to the judge, for {cost}"


@dataclass(frozen=True)
class Aligning:
    """An alignment that was prepared, before anything is asked.

    ``looks`` are the folders with files that count looks at test labels; there are none for a run in memory that was given none.
    """

    scorer: PromptScorer
    run: Run
    cases: Sequence[Case]
    unused_labels: Mapping[str, int]
    writer: Judge
    output: Path
    sources: Sequence[str]
    earlier: Sequence[AlignmentRecord]
    looks: Sequence[Path]
    announce: Callable[[str], object]
    usage: ScorerSummary = field(default_factory=lambda: ScorerSummary("align"))

    @property
    def base(self) -> Prompt:
        """The old question."""
        return cast("Prompt", self.scorer.prompt)

    @property
    def roles(self) -> dict[LabelRole, int]:
        """The number of labeled samples in each role."""
        counts = Counter(case.role for case in self.cases)
        return {"train": counts["train"], "validation": counts["validation"], "test": counts["test"]}

    def _in(self, *roles: LabelRole) -> Sequence[Case]:
        return [case for case in self.cases if case.role in roles]

    def check_files(self) -> None:
        """Check before anything is paid that looks can be counted, and that the new prompt may be written.

        Raises:
            ConfigError: The prompt file exists and was written from another question or other labels, or was edited since.
            StoreError: A file of looks cannot be read.
        """
        for counted in self.looks:
            read_looks(counted)
        if not self.output.exists():
            return
        alignment, folder = load_prompt(self.output).alignment, self.run.audits_folder
        records = () if folder is None else read_alignments(folder)
        written = [
            record.prompt_hash for record in records if record.id == alignment and record.inputs == self._hash([])
        ]
        if not written:
            raise ConfigError(
                f"{self.output} was written by another alignment: move it away, or name another file with --output"
            )
        if prompt_hash(self.output.read_text(encoding="utf-8")) not in written:
            raise ConfigError(f"{self.output} has changed since it was written: move it away, and align again")

    def check(self) -> None:
        """Check that the judge and the writing model can be asked.

        Raises:
            AuthenticationError: The environment has no key for one of them.
            StoreError: The cache of one of them cannot be used.
        """
        cast("Judge", self.scorer.judge).check()
        self.writer.check()

    async def plan(self) -> AlignmentPlan:
        """Return what the alignment would take, at most, if each candidate is 1,200 characters longer."""
        longer = replace(self.scorer, prompt=replace(self.base, question=f"{self.base.question}\n\n{_FILLER}"))
        old = await _plan(self.cases, [self.scorer])
        chosen, tested = await _plan(self._in("validation"), [longer]), await _plan(self._in("test"), [longer])
        costs = (old.cost_usd, chosen.cost_usd, tested.cost_usd)
        priced = [cost_usd for cost_usd in costs if cost_usd is not None]
        cost = priced[0] + CANDIDATES * priced[1] + priced[2] if len(priced) == len(costs) else None
        return AlignmentPlan(REQUESTS, old.requests + CANDIDATES * chosen.requests + tested.requests, cost)

    def refused_early(self) -> Alignment | None:
        """Return the refusal of an alignment by labels that cannot show an improvement; ``None`` if they may."""
        empty = (
            f"no labeled sample has the role {role}: label more" for role, number in self.roles.items() if not number
        )
        reason = refusal_reason([case.human_value for case in self.cases]) or next(empty, "")
        return self._refused(reason) if reason else None

    async def align(self) -> Alignment:
        """Return the result; see `aalign`."""
        if (refused := self.refused_early()) is not None:
            return refused
        if self.output.exists() and (await _plan(self.cases, [self.scorer])).requests:
            raise ConfigError(
                f"{self.output} exists, and the replies that led to it are not cached: move it away, or name another file with "
                "--output"
            )
        self.announce(str(await self.plan()))
        before = await self._judge(self.cases, [self.scorer])
        scores = {id(case): row.score for case, row in zip(self.cases, before, strict=True)}
        if reason := self._no_room(scores):
            return self._refused(reason)
        candidates = await self._write(scores)
        prompts = accepted(candidates)
        if not prompts:
            refusals = [(candidate.kind, candidate.refusal_reason) for candidate in candidates]
            unusable = tuple(AlignmentCandidate(kind=kind, refusal_reason=reason) for kind, reason in refusals)
            return self._refused("every candidate was refused").model_copy(update={"candidates": unusable})
        judging = [replace(self.scorer, prompt=prompt, name=name) for name, prompt in prompts.items()]
        choosing = self._in("validation")
        planned = await _plan(choosing, judging)
        self.announce(f"judging {count_text(len(judging), 'candidate')} on {len(choosing)} labeled samples: {planned}")
        judged = self._compared(choosing, scores, await self._judge(choosing, judging), judging)
        # Other answers to the same questions, which a judge without a cache may give, are another alignment.
        questions = [prompt.question for prompt in prompts.values()]
        alignment = self._hash([*questions, repr(judged.candidates.tolist())])
        look = await asyncio.to_thread(self._look, alignment)
        chosen = choose(judged)
        verdict, tested = await self._test(self._final(judging[chosen], alignment), scores, look)
        listed = self._listed(candidates, prompts, judged, chosen)
        prompt = cast("Prompt", self._final(judging[chosen], alignment).prompt)
        record = self._record(alignment, verdict, len(prompts), look, prompt)
        return await asyncio.to_thread(self._finish, record, prompt, verdict, tested, listed)

    def _final(self, scorer: PromptScorer, alignment: str) -> PromptScorer:
        """Return a candidate as the scorer that its file will be."""
        prompt = replace(cast("Prompt", scorer.prompt), alignment=alignment)
        return replace(scorer, prompt=prompt, name=self.output.stem)

    # Asking.

    async def _judge(self, cases: Sequence[Case], scorers: Sequence[PromptScorer]) -> Sequence[Row]:
        """Return the rows of scores, in order. All of the alignment shares the budgets of a run, even if it is repeated."""
        rows: list[Row] = []
        tasks = make_tasks([case.sample for case in cases], scorers)
        with in_run(self._budget):
            await score_tasks(tasks, scorers, rows.append, concurrency=cast("Judge", self.scorer.judge).concurrency)
        for row in rows:
            self.usage.add_unscored(row.score.calls)
        positions = {scorer.name: position for position, scorer in enumerate(scorers)}
        return sorted(rows, key=lambda row: (row.index, positions[row.scorer]))

    @cached_property
    def _budget(self) -> str:
        return f"alignment {self._hash([])}"

    async def _write(self, scores: Mapping[int, Score]) -> Sequence[Candidate]:
        train = self._in("train")
        every = RecordedPhrases.of(case.sample for case in self.cases)
        others = RecordedPhrases.of(case.sample for case in self._in("validation", "test"))
        writer = CandidateWriter(
            self.writer,
            self.base,
            self.output.stem,
            train,
            [scores[id(labeled)] for labeled in train],
            every,
            others,
            cast("Judge", self.scorer.judge).redact,
        )
        self.announce(f"{REQUESTS} requests to {self.writer.model}, which is shown {len(train)} labeled samples")
        with in_run(self._budget), ledger() as calls:
            candidates = await writer.candidates()
        self.usage.add_unscored(calls)
        return candidates

    async def _test(
        self, scorer: PromptScorer, old: Mapping[int, Score], look: int | None
    ) -> tuple[AlignmentVerdict, TestedCandidate]:
        every = self._in("test")
        self.announce(f"testing the best of them on {len(every)} held-out samples: {await _plan(every, [scorer])}")
        rows = await self._judge(every, [self.scorer, scorer])
        return holdout_verdict(self._compared(every, old, rows, [scorer]), 0, look=look or 1), TestedCandidate(
            self.scorer, scorer, every, rows, self.sources
        )

    def _compared(
        self, cases: Sequence[Case], old: Mapping[int, Score], rows: Sequence[Row], scorers: Sequence[PromptScorer]
    ) -> JudgedSamples:
        new = {(row.index, row.scorer): row.score for row in rows}
        kept = [(index, case) for index, case in enumerate(cases) if old[id(case)].status != "failed"]
        human_values = [np.nan if case.human_value is None else case.human_value for _, case in kept]
        before = [case.error(old[id(case)]) for _, case in kept]
        after = [[case.error(new[index, scorer.name]) for index, case in kept] for scorer in scorers]
        units = [case.labeled.row.unit for _, case in kept]
        return JudgedSamples(np.array(human_values), units, np.array(before), np.array(after, np.float64))

    # Refusals.

    def _refused(self, reason: str) -> Alignment:
        return Alignment(
            scorer=self.scorer.name,
            outcome="refused",
            reason=reason,
            roles=self.roles,
            by_hand=any(case.selection == "convenience" for case in self.cases),
            unused_labels=dict(self.unused_labels),
            requests=round(self.usage.requests),
            cached=round(self.usage.cached),
            cost_usd=self.usage.cost_usd,
        )

    def _no_room(self, scores: Mapping[int, Score]) -> str:
        """Return why no better question can be written: there are no disagreements to read, or as few as among people."""
        wrong = [case for case in self._in("train") if case.error(scores[id(case)])]
        if not wrong:
            return f"the judge agrees with people on all {self.roles['train']} labeled samples that may be read"
        several = [case for case in self.cases if len(case.labeled.opinions) > 1]
        if len(several) >= _CEILING_SAMPLES:
            human = float(np.mean([case.human_agreement for case in several]))
            judge = float(np.mean([1 - case.error(scores[id(case)]) for case in several]))
            if judge >= human:
                return f"the judge agrees with people ({judge:.2f}) as much as they agree with each other ({human:.2f})"
        return ""

    # Results.

    def _hash(self, questions: Sequence[str]) -> str:
        record = ScorerRecord.of(self.scorer)
        labels = sorted((recording_key(case.sample), case.role, repr(case.human_value)) for case in self.cases)
        whole = json.dumps([record.name, record.signature, questions, labels])
        return hashlib.sha256(whole.encode()).hexdigest()[:12]

    def _look(self, alignment: str) -> int | None:
        """Return the number of looks at the test labels, this one included; ``None`` if nothing counts them."""
        tested = [sketch(case.sample) for case in self.cases if case.role == "test"]
        others = [sketch(case.sample) for case in self.cases if case.role != "test"]
        look = Look(alignment=alignment, tested=tested, others=others)
        return max((count_look(look, folder) for folder in self.looks), default=None)

    def _listed(
        self, candidates: Sequence[Candidate], prompts: Mapping[str, Prompt], judged: JudgedSamples, chosen_index: int
    ) -> Sequence[AlignmentCandidate]:
        agreement = dict(zip((prompt.instructions for prompt in prompts.values()), judged.agreement(), strict=True))
        chosen = [*prompts.values()][chosen_index]
        return [
            AlignmentCandidate(
                kind=candidate.kind,
                refusal_reason=candidate.refusal_reason,
                agreement=None
                if candidate.prompt is None or candidate.refusal_reason
                else float(agreement[candidate.prompt.instructions]),
                chosen=candidate.prompt is chosen,
            )
            for candidate in candidates
        ]

    def _finish(
        self,
        record: AlignmentRecord,
        prompt: Prompt,
        verdict: AlignmentVerdict,
        tested: TestedCandidate,
        candidates: Sequence[AlignmentCandidate],
    ) -> Alignment:
        """Record the alignment, write the prompt file and, from the tested samples, the audit record."""
        folder = self.run.audits_folder
        recorded = () if folder is None else [alignment.id for alignment in read_alignments(folder)]
        if folder is not None and record.id not in recorded:
            write_alignment(record, folder)
        text = prompt_file_text(prompt)
        path = None if verdict.outcome == "worse" else self.output
        if path is not None:
            write_prompt(text, path)
        kept = None
        if path is not None and folder is not None:
            kept = tested.keep_audit_record(self.run.store, folder, record)
        old, new = (prompt.splitlines(keepends=True) for prompt in (prompt_file_text(self.base), text))
        return self._refused("").model_copy(
            update={
                "id": record.id,
                "outcome": verdict.outcome,
                "candidates": tuple(candidates),
                "verdict": verdict,
                "look": record.look if self.looks else None,
                "prompt_path": None if path is None else str(path),
                "diff": "".join(unified_diff(old, new, f"{self.base.name}.md", self.output.name)),
                "run": None if kept is None else kept.run,
                "audit_record_path": None if kept is None or folder is None else str(folder / kept.file_name),
            }
        )

    def _record(
        self, alignment: str, verdict: AlignmentVerdict, candidates: int, look: int | None, prompt: Prompt
    ) -> AlignmentRecord:
        keys = {role: sorted({recording_key(case.sample) for case in self._in(role)}) for role in _ROLES}
        outcome: AlignmentOutcome = verdict.outcome
        return AlignmentRecord(
            id=alignment,
            inputs=self._hash([]),
            scorer=self.earlier[-1].scorer if self.earlier else self.scorer.name,  # by which labels name the question
            parent=self.base.alignment or None,
            parent_fingerprint=ScorerRecord.of(self.scorer).signature,
            train=keys["train"],
            validation=keys["validation"],
            test=keys["test"],
            groups=sorted(
                {
                    group_key(group)
                    for case in self._in("train", "validation")
                    if (group := case.sample.group) is not None
                }
            ),
            candidates=candidates,
            look=look or 1,
            alpha=verdict.alpha,
            outcome=outcome,
            p=verdict.p,
            fixed=verdict.fixed,
            regressed=verdict.regressed,
            prompt_hash="" if outcome == "worse" else prompt_hash(prompt_file_text(prompt)),
            made_at=now(),
            version=own_version(),
        )


_ROLES: Sequence[LabelRole] = ("train", "validation", "test")


async def _plan(cases: Sequence[Case], scorers: Sequence[PromptScorer]) -> RunPlan:
    samples = [case.sample for case in cases]
    built, _ = build_run(samples, scorers, None, None)
    return await make_plan(built, samples)
