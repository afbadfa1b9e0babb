"""The fixture ``judgekit`` of a test."""

from pathlib import Path
from typing import final

import pytest

from judgekit.errors import SAFE_MESSAGES, STOPS, ConfigError, ReplayError
from judgekit.judges.judge import Judge, find_judges
from judgekit.pytest_plugin.explanation import explain_low_score
from judgekit.pytest_plugin.judges import SessionJudges
from judgekit.runs.textless import TextRemover
from judgekit.score import Score
from judgekit.scoring import Scorer, attempt, check_scorer, run_sync
from judgekit.terminal import printable
from judgekit.traces.sample import Sample
from judgekit.traces.validation import check_sample

_SWITCH = "--judgekit-judges"


@final
class JudgekitFixture:
    """The object behind the fixture: score assertions, and the judges of a test."""

    def __init__(self, request: pytest.FixtureRequest, judges: SessionJudges) -> None:
        self._judges = judges
        self._test: str = request.node.nodeid
        self._cassette = _cassette(request)

    def assert_score(self, sample: Sample, scorer: Scorer, *, at_least: float) -> Score:
        """Fail the test unless the sample gets a score with a high enough value. Async tests can call it too.

        Args:
            sample: The sample.
            scorer: The scorer. If it asks a judge, and judges are off, the test is skipped.
            at_least: The lowest value that passes, in [0, 1].

        Returns:
            The score.

        Raises:
            AssertionError: The value is lower, or the sample was skipped, failed or abstained; with the reason and the
                evidence.
            ConfigError: The arguments are not a sample and a scorer.
            ValueError: ``at_least`` is not in [0, 1].
        """
        __tracebackhide__ = True
        if not 0 <= at_least <= 1:
            raise ValueError(f"at_least={at_least!r}: expected a number in [0, 1], where 1 is best")
        check_scorer(scorer, "scorer")
        check_sample(sample, "sample")
        for judge in find_judges(scorer):
            self._must_be_on(judge)
        try:
            score = run_sync(lambda: attempt(scorer, sample))
        except STOPS as error:
            if not self._judges.keep_text and type(error) not in SAFE_MESSAGES:
                error = error.without_message()
            failure = f"{scorer.name} of sample {sample.id!r}: {type(error).__name__}: {error}"
            raise AssertionError(printable(failure)) from None
        if score.value is None or score.value < at_least:
            explanation = explain_low_score(
                score if self._judges.keep_text else TextRemover().score(score), sample, at_least
            )
            if score.error == ReplayError.__name__ and self._cassette is not None:
                explanation += f"\n{self._how_to_record()}"
            raise AssertionError(explanation)
        return score

    def judge(self, name: str = "default") -> Judge:
        """Return a judge by its name in ``judgekit.toml`` or by its model.

        It answers from the cassette that the test's marker names. With ``--judgekit-judges``, it sends missing
        requests, and the replies are recorded. With neither a cassette nor that option, the test is skipped.

        Raises:
            ConfigError: There is no such judge.
            StoreError: The cassette cannot be used.
        """
        __tracebackhide__ = True
        if self._cassette is not None and not self._judges.may_ask and not self._cassette.exists():
            raise AssertionError(f"{self._cassette}: does not exist; {self._how_to_record()}")
        judge = self._judges.judge(name, self._cassette)
        self._must_be_on(judge)
        return judge

    def save(self) -> None:
        """Record new replies in the cassette.

        Raises:
            StoreError: The cassette cannot be written.
        """
        if self._cassette is not None:
            self._judges.save(self._cassette)

    def _must_be_on(self, judge: Judge) -> None:
        __tracebackhide__ = True
        if judge.uses_provider and not self._judges.may_ask:
            pytest.skip(
                f"asks {judge.model}: pass {_SWITCH}, or replay its answers: take it from the fixture "
                '(judgekit.judge) and mark the test, as in @pytest.mark.judgekit(cassette="replies.jsonl")'
            )

    def _how_to_record(self) -> str:
        return printable(f"to record what is missing: pytest {_SWITCH} {self._test!r}")


def _cassette(request: pytest.FixtureRequest) -> Path | None:
    """Return the cassette that the test's marker names."""
    marker = request.node.get_closest_marker("judgekit")
    if marker is None:
        return None
    given = marker.kwargs.get("cassette")
    if marker.args or marker.kwargs.keys() != {"cassette"} or not str(given).endswith(".jsonl"):
        raise ConfigError(
            f'the marker judgekit needs a .jsonl file, as in judgekit(cassette="replies.jsonl"), found {marker}'
        )
    return request.path.parent / str(given)
