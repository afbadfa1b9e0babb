"""A run in a few lines."""

import pickle
import sys
from fractions import Fraction
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.aggregates.total import Total
from judgekit.runs.rows import Row
from judgekit.runs.summary import Summary
from judgekit.runs.summary_text import ScorerSummary
from judgekit.score import JudgeCall, Score
from judgekit.stats.intervals import mean_interval
from judgekit.traces.message import Usage


@pytest.fixture(autouse=True)
def own_code(monkeypatch) -> None:
    """All functions are the user's own."""
    monkeypatch.setattr("judgekit.registry._named", {"*"})


def line(*scores: Score) -> ScorerSummary:
    made = ScorerSummary("s")
    for index, score in enumerate(scores):
        made.add(row(score, index))
    return made


def row(score: Score, index: int = 0) -> Row:
    return Row(index=index, sample_id=str(index), score=score)


def paid(*calls: JudgeCall) -> ScorerSummary:
    return line(Score.failed("s", "x", calls=calls))


def call(
    tokens_in: int | None = 100,
    tokens_out: int | None = 10,
    cost: float | None = 0.5,
    *,
    cached: bool = False,
    error: str | None = None,
    usage: bool = True,
) -> JudgeCall:
    used = Usage(input_tokens=tokens_in, output_tokens=tokens_out) if usage else None
    return JudgeCall(judge="j", prompt="p@1", usage=used, cost_usd=cost, cached=cached, error=error)


def nothing(error: str | None = "OverloadError") -> JudgeCall:
    return call(usage=False, cost=None, error=error)


SKIPPED, FAILED = Score.skipped("s", "no question"), Score.failed("s", "broken")
ABSTAINED = Score(scorer="s", status="abstained", reason="undecided")


def test_a_number_always_says_over_how_many_it_was_taken():
    for scores, text in (
        ([Score.scored("s", 0.826)] * 41 + [SKIPPED] * 6 + [FAILED] * 3, "0.83 (n=41 of 50; 6 skipped, 3 failed)"),
        ([Score.scored("s", 1)], "1.00 (n=1 of 1)"),
        ([Score.scored("s", 0), FAILED], "0.00 (n=1 of 2; 1 failed)"),
        ([SKIPPED], "none (n=0 of 1; 1 skipped)"),
        ([FAILED, ABSTAINED], "none (n=0 of 2; 1 failed, 1 abstained)"),
        ([], "none (n=0 of 0)"),
    ):
        assert str(line(*scores)) == text


scores = st.lists(
    st.one_of(
        st.floats(0, 1).map(lambda value: Score.scored("s", value)), st.sampled_from([SKIPPED, FAILED, ABSTAINED])
    ),
    max_size=20,
)


@given(scores)
def test_value_and_counts_are_those_of_the_list(found):
    made = line(*found)
    values = [Fraction(score.value) for score in found if score.status == "scored"]
    assert made.value == (pytest.approx(float(sum(values) / len(values)), abs=1e-15) if values else None)
    assert made.total == len(found)
    assert all(made.counts[status] == [one.status for one in found].count(status) for status in ("scored", "skipped"))


@given(st.lists(st.sampled_from([0.0, 1.0]) | st.sampled_from([0.0, 0.5, 1.0]), min_size=1))
def test_the_interval_is_that_of_the_values_with_and_without_numpy(values):
    assert line(*(Score.scored("s", value) for value in values)).interval == mean_interval(values)


def test_what_failed_is_counted_by_the_class_of_its_error():
    failed = [Score.failed("s", "x", error=error) for error in ("ReplyError", "RateLimitError", "ReplyError", None)]
    found = line(Score.scored("s", 1), *failed)
    assert found.errors == {"ReplyError": 2, "RateLimitError": 1}
    assert str(found) == "1.00 (n=1 of 5; 4 failed (2 ReplyError, 1 RateLimitError))"


def test_answers_are_counted_by_the_judge_that_gave_them():
    def by(judge: str, error: str | None = None, *, cached: bool = False) -> JudgeCall:
        return JudgeCall(judge=judge, prompt="p", error=error, cached=cached)

    found = paid(by("a"), by("a", "OverloadError"), by("b"), by("b", cached=True), by("a", "PlannedError"))
    assert found.judges == {"a": 1, "b": 2}


def test_what_it_took_is_unknown_where_one_request_does_not_say_all_of_its_own():
    cases = [
        ([], 0, 0, 0, 0.0),
        ([call(), call(20, 3, 0.25)], 2, 0, 133, 0.75),
        ([call(0, 0, 0.0)], 1, 0, 0, 0.0),
        ([call(), call(usage=False)], 2, 0, None, 1.0),
        ([call(tokens_in=None), call()], 2, 0, None, 1.0),
        ([call(), call(tokens_out=None)], 2, 0, None, 1.0),
        ([call(), call(cost=None), call()], 3, 0, 330, None),
        ([call(cached=True, cost=0.0)] * 2, 0, 2, 0, 0.0),
        ([call(cached=True, usage=False, cost=None)], 0, 1, 0, 0.0),
        ([call(), call(cached=True, cost=0.0)], 1, 1, 110, 0.5),
        ([nothing(), nothing(), call()], 3, 0, 110, 0.5),
        ([call(error="ReplyError"), call()], 2, 0, 220, 1.0),
        ([call(error="ReplyError", cost=None), call()], 2, 0, 220, None),
        ([nothing(error=None)], 1, 0, None, None),
        ([nothing(error="RateLimitError"), call()], 2, 0, 110, 0.5),
        ([nothing(error="RefusalError"), call()], 2, 0, None, None),
        ([nothing(error="TruncatedError"), call()], 2, 0, None, None),
        ([nothing(error="UnreachableError"), nothing(error="UnreachableError"), call()], 1, 0, 110, 0.5),
    ]
    for calls, requests, cached, tokens, cost in cases:
        found = paid(*calls)
        assert (found.requests, found.cached, found.tokens, found.cost_usd) == (requests, cached, tokens, cost)


def test_an_aggregate_of_any_package_takes_the_place_of_the_mean(tmp_path, monkeypatch):
    """It is given the scores that were scored, with their details, and no others."""
    (tmp_path / "their_micro.py").write_text(
        "def micro(scores):\n"
        "    assert all(one.status == 'scored' for one in scores)\n"
        "    return sum(one.details['hits'] for one in scores) / sum(one.details['of'] for one in scores)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    corpus = [Score.scored("s", hits / of, details={"hits": hits, "of": of}, aggregate="their_micro:micro") for hits, of in [(1, 1), (1, 9)]]  # fmt: skip
    found = line(corpus[0], SKIPPED, corpus[1], Score.failed("s", "broken"))
    assert (found.value, str(found)) == (0.2, "0.20 (n=2 of 4; 1 skipped, 1 failed)")


def test_an_unknown_aggregate_is_no_mean_and_says_so():
    found = line(Score.scored("s", 1, aggregate="median"))
    assert (found.value, str(found)) == (None, "none (n=1 of 1)")
    (told,) = found.notes()
    assert told.startswith("undefined; the aggregate 'median' failed: ConfigError: no aggregate is called 'median'")


def test_an_aggregate_that_fails_leaves_the_other_lines_of_a_summary(monkeypatch):
    def lost(scores):
        raise LookupError("no such thing")

    monkeypatch.setitem(sys.modules, __name__, SimpleNamespace(lost=lost))
    summary = Summary()
    for score in (Score.scored("a", 0.5), Score.scored("b", 1, aggregate=HERE + "lost"), Score.scored("c", 1)):
        summary.add(row(score))
    assert str(summary).splitlines() == [
        "a  0.50 (n=1 of 1)",
        "b  none (n=1 of 1)",
        "c  1.00 (n=1 of 1)",
        f"b: undefined; the aggregate '{HERE}lost' failed: LookupError: no such thing",
    ]


def test_a_summary_is_a_line_a_scorer_and_says_what_judges_cost():
    summary = Summary()
    summary.add(row(Score.scored("tool_call_f1", 0.5)))
    summary.add(row(Score.scored("goal", 1, calls=[call(1_200, 34, 0.0123), call(cached=True)])))
    summary.add(row(Score.failed("topics", "x", calls=[nothing(error=None)])))
    assert str(summary).splitlines() == [
        "tool_call_f1  0.50 (n=1 of 1)",
        "goal          1.00 (n=1 of 1)  1 judge requests, 1 from cache, 1,234 tokens, $0.0123",
        "topics        none (n=0 of 1; 1 failed)  1 judge requests, 0 from cache, tokens unknown, cost unknown",
        "topics: 1 failed: x",
    ]
    assert str(Summary()) == "no scores"


def unscored(*scores: Score) -> list[str]:
    summary = Summary()
    for index, score in enumerate(scores):
        summary.add(row(score, index))
    return [*map(": ".join, summary["s"].unscored_reasons())]


def test_unscored_samples_are_grouped_by_label_where_there_is_one_and_else_by_reason():
    """A judge gives as many reasons as there are samples."""
    judged = [Score.skipped("s", f"in its own words, {number}", label="not_applicable") for number in range(306)]
    torn = [Score.abstained("s", f"hard to tell, {number}", label="cannot_tell") for number in range(2)]
    lacking = [Score.skipped("s", "the sample has no reference")] * 4
    assert unscored(*judged, Score.scored("s", 1, label="good"), *torn, *lacking, FAILED) == [
        "306 skipped: not_applicable",
        "4 skipped: the sample has no reference",
        "1 failed: broken",
        "2 abstained: cannot_tell",
    ]


def test_the_three_most_common_reasons_are_counted_and_the_others_together():
    reasons = ["no reference"] * 3 + ["no topics"] * 5 + ["rare"] + ["no calls"] * 2 + ["odd"]
    skipped = [Score.skipped("s", reason) for reason in reasons]
    assert unscored(*skipped, *[FAILED] * 1_100) == [
        *("5 skipped: no topics", "3 skipped: no reference", "2 skipped: no calls", "2 skipped: other reasons"),
        "1,100 failed: broken",
    ]
    assert not [one for one in unscored(*skipped[:8]) if "other reasons" in one]


def test_a_reason_that_is_not_kept_is_said_to_be_none():
    assert unscored(Score.skipped("s", ""), Score.skipped("s", "", label="not_applicable")) == [
        "1 skipped: no reason given",
        "1 skipped: not_applicable",
    ]


def test_reasons_that_are_all_different_do_not_fill_the_memory():
    """A common reason that came early is counted to the end; parts of the samples keep none."""
    summary = Summary()
    for index in range(1_000):
        failed = Score.failed("s", "common" if index % 2 else f"message {index}")
        summary.add(row(failed, index).model_copy(update={"domain": f"domain {index % 3}"}))
    assert next(summary["s"].unscored_reasons()) == ("500 failed", "common")
    assert len(summary["s"].reasons["failed"]) == 100
    assert [len(one["s"].reasons) for one in summary.slices["domain"].values()] == [0, 0, 0]


def test_a_reason_on_a_terminal_of_python_steers_nothing_and_takes_one_line():
    summary = Summary()
    summary.add(row(Score.failed("s", f"\x1b[2J\n{'x' * 10_000}")))
    (_, told) = str(summary).split("\n")
    assert told.startswith("s: 1 failed: '\\x1b[2J\\n")
    assert told.isprintable()
    assert len(told) < 450  # the cause of an error may follow a URL


def labeled(*labels: tuple[str, float]) -> ScorerSummary:
    return line(*(Score.scored("s", value, label=label) for label, value in labels))


def test_labels_are_counted_where_they_say_more_than_the_mean():
    found = labeled(*[("better", 1)] * 12, *[("worse", 0)] * 5, *[("tie", 0.5)] * 3, *[("position_bias", 0.5)] * 2)
    assert found.label_shares() == "of 22, better 12 (55%), worse 5 (23%), tie 3 (14%), position_bias 2 (9%)"
    assert labeled(("partly", 0.5)).label_shares() == "of 1, partly 1 (100%)"
    assert labeled(("a", 1), ("b", 0), ("c", 0)).label_shares() == "of 3, a 1 (33%), b 1 (33%), c 1 (33%)"
    assert labeled(("all", 1), ("but one", 1)).label_shares() == 'of 2, all 1 (50%), "but one" 1 (50%)'


def test_of_many_labels_the_most_frequent_are_shown():
    found = labeled(*[(f"l{number}", 0.5) for number in range(300)], ("l7", 0.5))
    assert found.label_shares().startswith("of 301, l7 2 (1%), l0 1 (0%), ")
    assert found.label_shares().endswith("292 more")


def test_else_they_are_not_shown():
    for said in (line(), line(Score.scored("s", 0.5)), labeled(("achieved", 1), ("not_achieved", 0))):
        assert said.label_shares() == ""


def test_a_label_cannot_pass_for_another_line():
    assert labeled(("a 9 (90%)\nother: b", 0.5)).label_shares() == 'of 1, "a 9 (90%)\\nother: b" 1 (100%)'


def test_shares_stand_below_the_lines():
    summary = Summary()
    for name, label, value in (("pairwise", "tie", 0.5), ("goal", "achieved", 1), ("pairwise", "better", 1)):
        summary.add(row(Score.scored(name, value, label=label)))
    assert str(summary).splitlines() == [
        "pairwise  0.75 (n=2 of 2)",
        "goal      1.00 (n=1 of 1)",
        "pairwise: of 2, tie 1 (50%), better 1 (50%)",
    ]


def two_thirds(scores) -> Total:
    """A total of which all is said."""
    return Total(
        len(scores) / 3,
        "share of three",
        "by hand",
        {"precision": 0.5, "recall": None, "tokens": 12_345.6, "right": 7, "cost": 0.00042},
    )


def undecided(scores) -> Total:
    return Total(None, "precision", f"0/0: none of {len(scores)} was answered")


HERE = f"{__name__}:"


@pytest.fixture
def here(monkeypatch):
    """This file as a module that can be imported by name."""
    monkeypatch.setitem(sys.modules, __name__, SimpleNamespace(two_thirds=two_thirds, undecided=undecided))


@pytest.mark.usefixtures("here")
def test_what_is_no_mean_says_what_it_is():
    found = line(*(Score.scored("s", 1, aggregate=HERE + "two_thirds") for _ in range(2)))
    assert found.value == 2 / 3
    assert list(found.notes()) == [
        "share of three; precision 0.500, recall undefined, tokens 12,346, right 7, cost 0.000420; by hand"
    ]


@pytest.mark.usefixtures("here")
def test_an_undefined_number_is_none_with_the_reason():
    found = line(Score.scored("s", 0, aggregate=HERE + "undecided"), FAILED)
    assert (found.value, str(found)) == (None, "none (n=1 of 2; 1 failed)")
    assert list(found.notes()) == ["precision; 0/0: none of 1 was answered"]


@pytest.mark.usefixtures("here")
def test_scores_that_come_to_different_things_come_to_nothing():
    found = line(Score.scored("s", 1), Score.scored("s", 0, aggregate=HERE + "undecided"))
    assert found.value is None
    assert list(found.notes()) == [f"undefined; its scores have different aggregates: {HERE}undecided, mean"]


def test_warnings_are_counted_and_the_most_frequent_said():
    warned = [Score.scored("s", 1, warnings=[f"w{n}", "all"]) for n in range(9)]
    found = line(*warned, Score.scored("s", 1))
    assert (found.warnings["all"], found.warnings["w3"]) == (9, 1)
    assert list(found.notes()) == ["9 with a warning: all", "1 with a warning: w0", "1 with a warning: w1"]


def test_a_figure_from_a_recording_cannot_pass_for_another_line(monkeypatch):
    forged = SimpleNamespace(forged=lambda scores: Total(1, "mean of domains", metrics={"a\nother: 1.00": len(scores)}))
    monkeypatch.setitem(sys.modules, __name__, forged)
    (told,) = line(Score.scored("s", 1, aggregate=HERE + "forged")).notes()
    assert told == "mean of domains; 'a\\nother: 1.00' 1"


def test_a_long_name_of_a_figure_is_cut_in_its_line_and_whole_in_the_figures():
    domains = {"x" * 500: 0.25, f"{'x' * 500}y": 0.5, "法" * 80: 0.75}
    found = line(*(Score.scored("s", v, details={"domain": d}, aggregate="macro_mean") for d, v in domains.items()))
    assert [len(name) for name in found.overall.metrics] == [502, 503, 80]  # as JSON, since they are hardly names
    told = next(found.notes())
    assert told.startswith(f'macro mean; "{"x" * 76}... 0.250, "{"x" * 76}... 0.500, {"法" * 80} 0.750; over 3 domains')


def test_a_label_that_is_called_domain_is_not_counted_beside_the_domain():
    found = Summary()
    for index, domain in enumerate(["air", "air", "rail", None]):
        scored = row(Score.scored("s", 1), index)
        found.add(scored.model_copy(update={"domain": domain, "labels": {"kind": "x", "domain": "rail"}}))
    assert {name: part["s"].total for name, part in found.slices["domain"].items()} == {"air": 2, "rail": 2}


def test_slices_do_not_keep_again_what_a_number_is_made_of():
    def taken(**known: object) -> int:
        """The bytes of a summary of 300 samples, where what is kept twice is written once."""
        found = Summary()
        for index in range(300):
            details = {"number": index, "budget": 5}
            scored = Score.scored("s", 1, details=details, aggregate="within_budget")
            found.add(row(scored, index).model_copy(update=known))
        return len(pickle.dumps(found))

    alone = taken()
    assert alone < 300 * 200
    assert taken(domain="a", labels={"kind": "x", "reward": 1}) < 1.6 * alone


def test_after_a_hundred_names_no_more_are_sliced_by():
    found = Summary()
    for index in range(2_000):
        labels = {f"name {index // 2}": index % 2}
        found.add(row(Score.scored("s", 1), index).model_copy(update={"labels": labels}))
    assert list(found.slices) == [f"name {index}" for index in range(100)]


def test_a_number_that_is_no_mean_has_no_interval_where_it_would_take_minutes(monkeypatch):
    monkeypatch.setattr("judgekit.runs.intervals._REDRAWN", 60)
    monkeypatch.setattr("judgekit.runs.intervals._BOOTSTRAP_DRAWS", 100)
    few, many = (
        line(
            *(
                Score.scored("s", n % 2, details={"domain": "ab"[n % 3 == 0]}, aggregate="macro_mean")
                for n in range(size)
            )
        )
        for size in (40, 61)
    )
    assert few.interval is None
    assert few.bootstrap().low < few.value < few.bootstrap().high
    assert many.value is not None
    assert many.bootstrap() is None


def with_labels(*labels: dict[str, bool | float | str]) -> Summary:
    summary = Summary()
    for index, one in enumerate(labels):
        for scorer in ("a", "b"):
            summary.add(row(Score.scored(scorer, 1), index).model_copy(update={"labels": one}))
    return summary


def test_labels_that_came_with_the_samples_are_shown_once_for_each_sample():
    labels = [{"quality": 0.5, "right": True, "tone": "rude"}, {"quality": 1, "right": False}]
    told = "imported with the samples: quality mean 0.750 (n=2); right mean 0.500 (n=2); tone "
    assert with_labels(*labels).imported == f"{told}rude 100% (n=1)"
    labels += [{"tone": "kind", "domain": "x"}, {"tone": "kind\x1b"}]
    assert with_labels(*labels).imported == f'{told}rude 33%, kind 33%, "kind\\u001b" 33% (n=3)'
    assert with_labels({"size": "nan"}, {"size": 3}).imported == "imported with the samples: size nan 50%, 3 50% (n=2)"
    assert with_labels({}).imported == ""
    assert with_labels(*({"id": number} for number in range(51))).imported == ""


def test_a_scorer_that_is_not_there_is_named_with_those_that_are():
    with pytest.raises(KeyError, match=r"no scorer of the summary is called 'typo'\. Known: none"):
        Summary()["typo"]
