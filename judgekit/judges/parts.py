"""Long recordings read in parts: requests for findings, and the scorers' own requests about these.

No part gives a verdict. Code looks up each quote; a finding whose quote is not there is dropped and counted.
"""

import asyncio
import hashlib
import json
import re
from collections import Counter
from collections.abc import Coroutine, Sequence
from dataclasses import replace
from typing import Any, cast

from pydantic import BaseModel

from judgekit.errors import ContextError, PlannedError
from judgekit.gathering import gather_all
from judgekit.judges.answer import read_answer
from judgekit.judges.evidence import Quotation, has_quote
from judgekit.judges.inputs import CONVERSATION
from judgekit.judges.prompt import ask_about, shared_text
from judgekit.judges.request import ChatMessage, Request
from judgekit.judges.schema import strict_schema
from judgekit.judges.template import fill_question
from judgekit.judges.together import Question, word_questions
from judgekit.traces.message import MediaPart, Message
from judgekit.traces.parts import LongRecording
from judgekit.traces.recording import Recording
from judgekit.traces.rendering import Rendering, compact_json, fence_text, message_text
from judgekit.traces.tree import MessageNumber, find_message

_AROUND = 300
"""The characters on each side of a quote that go with it."""
_MERGED = 8
"""The findings that one request merges, if there are too many."""


class Finding(Quotation):
    """A passage of a message, and what it shows for a question."""

    shows: str
    question: str


class Findings(BaseModel):
    """The findings in a part of a recording."""

    findings: list[Finding]


async def read_parts(questions: Sequence[Question]) -> None:
    """Read the recordings of questions that go together if they are too long, and let the questions be about what is found."""
    readers: dict[str, _Reader] = {}
    for name in dict.fromkeys(name for question in questions for name in question.too_long):
        readers[name] = _Reader([question for question in questions if name in question.too_long], name)
    digests = {name: await reader.read() for name, reader in readers.items()}
    for question in questions:
        if names := question.too_long:
            again = question.rebuilt({name: digests[name] for name in names})
            question.filled, question.request, question.too_long = again.filled, again.request, ()
            counts = [readers[name].counts for name in names]
            question.reading = {key: sum(each[key] for each in counts) for key in counts[0]}


class _Reader:
    """A judge that reads a recording in parts for some questions."""

    def __init__(self, questions: Sequence[Question], name: str) -> None:
        self._questions = {f"q{number}": question for number, question in enumerate(questions, 1)}
        self._first, sample = questions[0], questions[0].sample
        self._trace = cast("Recording", sample.trace if name == CONVERSATION else sample.baseline)
        self.counts = Counter(findings=0, findings_dropped=0, findings_merged=0)

    async def read(self) -> Rendering:
        """Return the recording in outline, with the findings."""
        budget = cast("int", self._first.judge.conversation_tokens)
        try:
            recording = await asyncio.to_thread(LongRecording, self._trace, budget, self._first.judge.images)
        except ValueError as error:
            raise ContextError(f"conversation_tokens: {error}") from error
        count = len(recording.parts)
        asking: list[Coroutine[Any, Any, list[Finding]]] = []
        for number, (numbers, _, shown) in enumerate(recording.parts, 1):
            request = self._request("parts", shown, part=number, parts=count, first=numbers[0], last=numbers[-1])
            shows = "." * min(2_000, budget // count)  # a plan takes replies to be short enough to show them all
            planned = Finding(message=numbers[0], quote="", shows=shows, question="q1")
            asking.append(self._find(request, numbers, [planned]))
        findings = [finding for part in await gather_all(asking) for finding in part]
        self.counts["findings"] = len(findings)
        while True:
            try:
                return recording.digest(f"\n\n{self._fenced(findings)}")
            except ValueError as error:
                if len(findings) < 2:
                    raise ContextError(f"conversation_tokens: {error}") from error
            groups = [findings[at : at + _MERGED] for at in range(0, len(findings), _MERGED)]
            merged = [finding for group in await gather_all(map(self._merge, groups)) for finding in group]
            self.counts["findings_merged"] += len(findings) - len(merged)
            findings = merged

    async def _merge(self, group: list[Finding]) -> list[Finding]:
        """Return at most half as many findings, which the judge makes of a group."""
        request = self._request("findings", self._fenced(group), group)
        return await self._find(request, [finding.message for finding in group], group[::2])

    async def _find(self, request: Request, numbers: Sequence[MessageNumber], planned: list[Finding]) -> list[Finding]:
        """Return the findings whose quotes are in these messages, and count the others; in a plan, what is ``planned``."""
        try:
            answer = cast("Findings", request.answer(await self._first.reply(request)))
        except PlannedError:
            return planned
        verified: list[Finding] = []
        for finding in answer.findings:
            message = find_message(self._trace, finding.message) if finding.message in numbers else None
            media = "" if message is None or self._first.judge.images is None else message.content
            is_image = not finding.quote.strip() and any(isinstance(part, MediaPart) for part in media)
            if message is not None and (is_image or has_quote(message_text(message), finding.quote)):
                verified.append(finding)
        self.counts["findings_dropped"] += len(answer.findings) - len(verified)
        return verified

    def _request(self, kind: str, shown: str, group: Sequence[Finding] = (), **facts: object) -> Request:
        most, quotes = -(-len(group) // 2) or 1_000, {(each.message, each.quote) for each in group}

        def accept(text: str) -> Findings:
            findings = (answer := read_answer(text, Findings)).findings
            is_known = not group or {(each.message, each.quote) for each in findings} <= quotes
            if len(findings) > most or not is_known or not all(each.shows.strip() for each in findings):
                raise ValueError(f"may have {most:,} findings with what they show, and merged ones a given quote")
            return answer

        request, template = self._first.request, shared_text(f"question.{kind}.md")
        texts = [(name, f"{fact}") for name, fact in {**facts, "most": most}.items()]
        words = "\n\n".join((*word_questions(self._questions)[0], fill_question(template, texts)))
        prompts = json.dumps([template, *(question.request.prompt for question in self._questions.values())])
        return replace(
            request.with_output_limit(len(self._questions)),
            messages=(request.messages[0], ChatMessage("user", ask_about(shown, words))),
            images=shown.images if isinstance(shown, Rendering) else (),
            schema_name=kind,
            schema=strict_schema(Findings, has_sub_agents=self._first.filled.has_sub_agents),
            prompt=f"{kind}@{hashlib.sha256(prompts.encode()).hexdigest()[:8]}",
            accept=accept,
            questions=len(self._questions),
            answers=len(self._questions),
            prefix_key=hashlib.sha256(shown.encode()).hexdigest()[:32],
        )

    def _fenced(self, findings: Sequence[Finding]) -> str:
        """Return findings with what stands around their quotes, each as a line of JSON, which no text in it can end."""
        lines: list[str] = []
        for finding in findings:
            message = cast("Message", find_message(self._trace, finding.message))
            pattern, text = r"\s+".join(map(re.escape, finding.quote.split())), message_text(message)
            line = {**finding.model_dump(), "role": message.role}
            if pattern and (match := re.search(pattern, text)):
                line["around"] = text[max(0, match.start() - _AROUND) : match.end() + _AROUND]
            lines.append(compact_json(line))
        return fence_text("findings", "\n".join(lines or ["none"]))
