"""Adaptability, collaboration efficiency and portability."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction
from math import inf, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.aggregates.domains import macro_mean
from judgekit.errors import AuthenticationError, OverloadError
from judgekit.judges.prompt import Prompt
from judgekit.judges.scripted import ScriptedJudge
from judgekit.score import JudgeCall, Score
from judgekit.scorers.generalization import Adaptability, CollaborationEfficiency, Portability
from judgekit.scorers.prompted import PromptScorer
from judgekit.scoring import attempt, run_sync, signature
from judgekit.traces.message import AIMessage, HumanMessage
from judgekit.traces.sample import Sample

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
CALL = JudgeCall(judge="j", prompt="p")
TONE = Prompt("tone", "Kind?", ("conversation",), "", "You judge.", "Kind?", scale=(("yes", 1.0), ("no", 0.0)))


@dataclass(frozen=True)
class Says:
    """Gives one score, or raises, whatever the sample."""

    found: Score | Exception
    name: str = "inner"

    async def ascore(self, _sample: Sample, /) -> Score:
        if isinstance(self.found, Exception):
            raise self.found
        return self.found


def fields(**known: object) -> Sample:
    return Sample(id="row", fields=known)


def of(scorer: object, sample: Sample) -> Score:
    """As in a run."""
    return run_sync(lambda: attempt(scorer, sample))


INNER = Score.scored(
    "inner", 0.5, label="partly", reason="half of it", details={"a": 1}, calls=[CALL], warnings=["hm"], aggregate="corpus"
)  # fmt: skip
WITHOUT_VALUE = [
    Score.skipped("inner", "no reference"),
    Score.failed("inner", "it broke", error="ReplyError", calls=[CALL]),
    Score.abstained("inner", "cannot tell", calls=[CALL]),
]


class TestAdaptability:
    def test_a_sample_has_the_score_of_the_scorer_and_its_domain(self):
        found = Adaptability(Says(INNER)).score(Sample(id="one", domain="law"))
        assert (found.scorer, found.value, found.aggregate) == ("adaptability", 0.5, "macro_mean")
        assert found.details == {"a": 1, "domain": "law"}
        kept = {"label", "reason", "calls", "warnings", "status"}
        assert found.model_dump(include=kept) == INNER.model_dump(include=kept)

    def test_a_run_may_ask_a_judge_through_it(self):
        judge = ScriptedJudge([{"reason": "r", "evidence": [1], "verdict": "yes"}] * 2)
        sample = Sample.of(
            [HumanMessage("Hi"), AIMessage("Hi")], domain="law", fields={"communication_rounds": 1, "task_time": 1}
        )
        for scorer in (Adaptability(PromptScorer(TONE, judge)), CollaborationEfficiency(PromptScorer(TONE, judge))):
            assert of(scorer, sample).status == "scored"

    def test_over_a_run_each_domain_counts_once(self):
        domains = ["law", "law", "law", "medicine"]
        judge = ScriptedJudge([{"reason": "r", "evidence": [1], "verdict": one} for one in ("yes", "no", "no", "yes")])
        samples = [Sample.of([HumanMessage(f"{i}"), AIMessage("Hi")], domain=one) for i, one in enumerate(domains)]
        scores = [Adaptability(PromptScorer(TONE, judge)).score(one) for one in samples]
        assert macro_mean(scores).value == pytest.approx(2 / 3)  # of means 1/3 and 1; the mean of all would be 1/2
        assert [len(score.calls) for score in scores] == [1] * 4

    @pytest.mark.parametrize("inner", WITHOUT_VALUE, ids=lambda inner: inner.status)
    def test_what_has_no_value_has_none_here(self, inner):
        found = Adaptability(Says(inner)).score(Sample(id="one", domain="law"))
        kept = {"status", "value", "reason", "error", "calls"}
        assert found.scorer == "adaptability"
        assert found.model_dump(include=kept) == inner.model_dump(include=kept)

    def test_a_scorer_that_raises_fails_the_sample_unless_it_stops_the_run(self):
        found = Adaptability(Says(OverloadError("busy"))).score(Sample(id="one", domain="law"))
        assert (found.scorer, found.status, found.error) == ("adaptability", "failed", "OverloadError")
        with pytest.raises(AuthenticationError):
            Adaptability(Says(AuthenticationError("no"))).score(Sample(id="one", domain="law"))

    @pytest.mark.parametrize("domain", [None, ""])
    def test_a_sample_without_a_domain_is_skipped_and_nobody_is_asked(self, domain):
        found = Adaptability(Says(AuthenticationError("no"))).score(Sample(id="one", domain=domain))
        assert found == Score.skipped("adaptability", "the sample has no domain")

    def test_results_come_to_the_mean_of_the_means_of_their_domains(self):
        pairs = [(0.85, "qa"), (0.75, "写作"), (0.65, "qa")]
        found = Adaptability().score(fields(results=[{"score": score, "domain": domain} for score, domain in pairs]))
        assert (found.value, found.aggregate) == (pytest.approx(0.75), "mean")
        assert found.reason == "mean of 2 domains: qa 0.75, 写作 0.75"
        domains = {"qa": {"mean": pytest.approx(0.75), "n": 2}, "写作": {"mean": 0.75, "n": 1}}
        assert found.details == {"domains": domains}

    def test_names_of_domains_are_whole_in_the_details_and_cut_in_the_reason(self):
        long = "x" * 10**6
        found = of(Adaptability(), fields(results=[{"score": 0.5, "domain": long}, {"score": 1, "domain": "law"}]))
        assert set(found.details["domains"]) == {long, "law"}
        assert re.fullmatch(
            r'mean of 2 domains: "x+ \[\.\.\. [\d,]+ characters omitted \.\.\.\] x+" 0\.5, law 1', found.reason
        )
        assert len(found.reason) < 200

    def test_a_domain_that_no_file_can_hold_has_a_score_that_can_be_written(self):
        row = {"score": 0.5, "domain": "\ud800"}
        sample = Sample(id="one", domain="\ud800", fields={"results": [row]})
        for scorer in (Adaptability(), Adaptability(Says(Score.scored("inner", 0.5)))):
            found = of(scorer, sample)
            assert (found.value, r"\ud800" in str(found.details)) == (0.5, True)
            assert Score.model_validate_json(found.model_dump_json()) == found

    def test_without_results_it_is_skipped(self):
        for known, why in [
            ({}, "the sample has no results, and there is no scorer"),
            ({"results": []}, "the list of results is empty"),
        ]:
            assert Adaptability().score(fields(**known)) == Score.skipped("adaptability", why)

    def test_a_row_that_is_none_is_an_error_that_names_it(self):
        cases = [
            ({"domain": "b"}, "results[1]: score: expected a number in [0, 1], found None"),
            ({"score": "0.5", "domain": "b"}, "results[1]: score: expected a number in [0, 1], found '0.5'"),
            ({"score": nan, "domain": "b"}, "results[1]: score: expected a number in [0, 1], found nan"),
            ({"score": -0.5, "domain": "b"}, "results[1]: score: expected a number in [0, 1], found -0.5"),
            ({"score": 0.5}, "results[1]: expected the name of a domain, found None"),
            ({"score": 0.5, "domain": 3}, "results[1]: expected the name of a domain, found 3"),
            (0.5, 'results[1]: expected {"score": ..., "domain": ...}, found 0.5'),
        ]
        for row, message in cases:
            found = of(Adaptability(), fields(results=[{"score": 1, "domain": "a"}, row]))
            assert (found.status, found.reason) == ("failed", f"ValueError: {message}")

    def test_results_are_a_list(self):
        with pytest.raises(
            ValueError, match=re.escape('results: expected a list of {"score": ..., "domain": ...}, found 1')
        ):
            Adaptability().score(fields(results=1))

    def test_it_asks_what_its_scorer_asks(self):
        scorer = PromptScorer(TONE, ScriptedJudge([]))
        for kind in (Adaptability, CollaborationEfficiency):
            assert kind(scorer).prompts == scorer.prompts
            assert kind().prompts == kind(Says(INNER)).prompts == ()
            assert signature(kind(scorer)) != signature(kind())


def efficiency(scorer: object = None, /, **known: object) -> Score:
    return of(CollaborationEfficiency(scorer), fields(**known))


def meeting(*agents: str | None, **known: object) -> Sample:
    """Agents who speak one after another, a second apart."""
    said = [AIMessage("...", agent=one, timestamp=NOON + timedelta(seconds=i)) for i, one in enumerate(agents)]
    return Sample.of(said, **known)


class TestCollaborationEfficiency:
    def test_it_is_the_quality_by_the_rounds_times_the_seconds_and_1(self):
        found = efficiency(task_quality=0.9, communication_rounds=3, task_time=10.0)
        assert found.value == pytest.approx(float(Fraction(9, 10) / 31))
        assert found.reason == "quality 0.9 / (3 rounds x 10 s + 1)"
        assert found.details == {"quality": 0.9, "rounds": 3, "seconds": 10, "derived": []}

    @given(st.floats(0, 1), st.integers(0, 10**6), st.floats(0, 1e300))
    def test_it_is_never_more_than_the_quality(self, quality, rounds, seconds):
        found = efficiency(task_quality=quality, communication_rounds=rounds, task_time=seconds)
        assert 0 <= found.value <= quality
        assert (found.value == quality) or rounds * seconds > 0

    def test_zero_seconds_give_the_quality_and_a_warning(self):
        found = efficiency(task_quality=0.9, communication_rounds=3, task_time=0)
        assert (found.value, found.reason) == (0.9, f"quality 0.9 / (3 rounds x 0 s + 1); {found.warnings[0]}")
        assert found.warnings == ("it took zero seconds, so its efficiency equals its quality",)
        assert efficiency(task_quality=0.9, communication_rounds=0, task_time=5).warnings == ()

    def test_what_is_not_given_is_derived(self):
        found = CollaborationEfficiency(Says(INNER)).score(meeting("a", "b", "b", "a"))
        assert (found.value, found.calls, found.aggregate) == (0.5 / (2 * 3 + 1), (CALL,), "mean")
        assert found.reason == "quality 0.5 / (2 rounds x 3 s + 1); half of it"
        assert (found.warnings, found.label) == (("hm",), None)
        assert found.details == {
            "quality": 0.5,
            "rounds": 2,
            "seconds": 3,
            "derived": ["quality", "rounds", "seconds"],
            "quality_score": {"label": "partly", "reason": "half of it", "details": {"a": 1}},
        }

    def test_what_is_given_goes_before_what_could_be_derived(self):
        sample = meeting("a", "b", fields={"task_quality": 1, "communication_rounds": 4, "task_time": None})
        found = CollaborationEfficiency(Says(AuthenticationError("asked"))).score(sample)
        assert (found.value, found.details["derived"]) == (1 / (4 * 1 + 1), ["seconds"])

    @pytest.mark.parametrize("inner", WITHOUT_VALUE, ids=lambda inner: inner.status)
    def test_without_a_quality_there_is_no_value(self, inner):
        found = CollaborationEfficiency(Says(inner)).score(meeting("a", "b"))
        assert found == inner.model_copy(update={"scorer": "collaboration_efficiency"})

    def test_what_is_missing_is_told_and_nobody_is_asked(self):
        found = CollaborationEfficiency(Says(AuthenticationError("asked"))).score(Sample.of([AIMessage("Hi")]))
        assert found.status == "skipped"
        assert found.reason == (
            "no communication_rounds: the recording does not distinguish two agents; no task_time: the recording has "
            "neither start and end times nor times of its first and last message"
        )
        told = efficiency(communication_rounds=1, task_time=1)
        assert (told.status, told.reason) == ("skipped", "no task_quality and no scorer")

    def test_a_field_that_is_no_such_number_is_an_error_that_names_it(self):
        for name in ["task_quality", "communication_rounds", "task_time"]:
            for wrong in [-1, nan, inf, True, "3", [], 10**400]:
                found = efficiency(**{"task_quality": 1, "communication_rounds": 1, "task_time": 1, name: wrong})
                assert (found.status, found.value) == ("failed", None)
                assert found.reason.startswith(f"ValueError: {name}: expected a number")

    def test_a_quality_is_at_most_1(self):
        told = efficiency(task_quality=1.5, communication_rounds=1, task_time=1).reason
        assert told == "ValueError: task_quality: expected a number in [0, 1], found 1.5"


def portability(original: object, transferred: object) -> Score:
    return of(Portability(), fields(original_score=original, transferred_score=transferred))


class TestPortability:
    def test_it_is_1_less_what_is_lost(self):
        for original, transferred, value, loss in [(0.9, 0.72, 0.8, 0.2), (0.5, 0, 0, 1), (0.5, 0.75, 1, -0.5)]:
            found = portability(original, transferred)
            assert found.value == pytest.approx(value)
            assert found.details == {"original": original, "transferred": transferred, "loss": pytest.approx(loss)}

    @given(st.floats(1e-300, 1e300), st.floats(0, 1e300))
    def test_it_is_the_share_that_is_kept_and_never_more_than_1(self, original, transferred):
        kept = min(Fraction(transferred) / Fraction(original), 1)
        assert portability(original, transferred).value == pytest.approx(float(kept), abs=1e-12)

    def test_the_reason_tells_a_loss_from_an_improvement(self):
        assert portability(0.9, 0.72).reason == "transferred 0.72 of original 0.9: a loss of 20.00%"
        assert portability(0.5, 0.75).reason == "transferred 0.75 of original 0.5: an improvement of 50.00%"

    def test_of_nothing_nothing_can_be_lost(self):
        found = portability(0, 0.5)
        assert (found.status, found.details) == ("skipped", {"original": 0, "transferred": 0.5})
        assert found.reason == "the loss is undefined for an original score of 0: transferred 0.5 of original 0"

    def test_what_is_missing_is_told(self):
        assert portability(None, 0.5) == Score.skipped("portability", "no original_score")
        assert Portability().score(fields()).reason == "no original_score and no transferred_score"

    def test_a_field_that_is_no_such_number_is_an_error_that_names_it(self):
        for name in ["original_score", "transferred_score"]:
            for wrong in [-0.5, nan, inf, False, "0.5"]:
                found = of(Portability(), fields(**{"original_score": 1, "transferred_score": 1, name: wrong}))
                assert (found.status, found.reason) == (
                    "failed",
                    f"ValueError: {name}: expected a number, 0 or more, found {wrong!r}",
                )
