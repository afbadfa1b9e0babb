"""Scorers serve in tasks of Inspect: what they are given there, and what Inspect makes of what they say."""

import asyncio
import gc
import math
import sys

import pytest

from judgekit import BLEU, Score, ScriptedJudge, ToolCallF1, load_prompt, read, run, scorer
from judgekit.analysis.labels import recorded_labels
from judgekit.errors import ConfigError
from judgekit.integrations.inspect import inspect_scorer
from judgekit.scorers.prompted import PromptScorer
from judgekit.scoring import attempt, signature

pytestmark = pytest.mark.filterwarnings(
    "ignore"
)  # Inspect uses what newer packages discourage, and leaves streams open

EXPECTED = [{"name": "add", "args": {"x": 1, "y": 2}}]


@pytest.fixture
def evaluated(tmp_path):
    """Runs a task of three samples, of which the second has no reference calls, and returns its log."""
    pytest.importorskip("inspect_ai", reason="inspect_ai is not installed")
    from inspect_ai import Task, eval  # noqa: A004, PLC0415
    from inspect_ai.dataset import Sample  # noqa: PLC0415
    from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: PLC0415
    from inspect_ai.solver import generate, use_tools  # noqa: PLC0415
    from inspect_ai.tool import tool  # noqa: PLC0415

    @tool
    def add():
        async def execute(x: int, y: int) -> int:
            """Adds.

            Args:
                x: One.
                y: The other.
            """
            return x + y

        return execute

    def replies(*_):
        while True:
            for y, said in ((2, "It is three"), (3, "four"), (3, "five")):
                yield ModelOutput.for_tool_call("mockllm/model", "add", {"x": 1, "y": y})
                yield ModelOutput.from_content("mockllm/model", said)

    def outputs():
        for output in replies():
            output.usage = ModelUsage(input_tokens=5, output_tokens=2, total_tokens=7)
            yield output

    known = {"reference_tool_calls": EXPECTED, "note": "kept"}
    dataset = [
        Sample(input="1+2?", target="It is three", id="a", metadata=known),
        Sample(input="1+2?", target="3", id="b", choices=["3", "4"]),
        Sample(input="1+2?", target="3", id="c", metadata=known),
    ]

    def evaluate(*scorers, epochs=1):
        task = Task(dataset=dataset, solver=[use_tools(add()), generate()], scorer=list(scorers))
        model = get_model("mockllm/model", custom_outputs=outputs())
        (log,) = eval(task, model=model, display="none", log_dir=str(tmp_path), log_format="json", max_samples=1, epochs=epochs)  # fmt: skip
        return log

    yield evaluate
    gc.collect()  # what Inspect leaves open is told here, and not in some other test


def test_a_scorer_sees_the_sample_that_reading_the_log_gives_and_the_references_of_its_metadata(evaluated):
    seen = []

    @scorer
    def keep(sample):
        seen.append(sample)
        return 1.0

    log = evaluated(inspect_scorer(keep))
    assert log.status == "success"
    for sample, logged in zip(seen, read(log.location, on_error="raise"), strict=True):
        assert sample.model_copy(update={"trace": logged.trace, "group": logged.group}) == logged
        assert logged.group == f"{log.eval.task} {sample.group}"  # the name of the task is unknown to a scorer
        assert (sample.trace.id, sample.trace.messages) == (logged.trace.id, logged.trace.messages)
        assert sample.trace.tools == logged.trace.tools
        assert [made.call.name for made in sample.trace.tool_calls()] == ["add"]
    a, b, _ = seen
    assert [(call.name, call.args) for call in a.reference_tool_calls] == [("add", {"x": 1, "y": 2})]
    assert (a.metadata, a.fields, b.fields) == ({"note": "kept"}, {}, {"choices": ["3", "4"]})


def test_a_log_that_was_scored_live_gets_the_same_scores_when_it_is_read(evaluated):
    log = evaluated(inspect_scorer(ToolCallF1()), epochs=2)
    live = [sample.scores["tool_call_f1"].value for sample in log.samples]
    again = [asyncio.run(attempt(ToolCallF1(), one)).value for one in read(log.location, on_error="raise")]
    assert [math.isnan(value) for value in live] == [value is None for value in again]
    assert [value for value in live if not math.isnan(value)] == [value for value in again if value is not None]
    assert again.count(None) == 2


def test_references_by_the_id_of_a_sample_reach_all_its_epochs(evaluated, tmp_path):
    @scorer
    def nothing(sample):
        return 1.0

    log = evaluated(inspect_scorer(nothing), epochs=2)
    (tmp_path / "known.jsonl").write_text('{"id": "b", "label": "sum"}')
    samples = list(read(log.location, references=tmp_path / "known.jsonl", on_error="raise"))
    assert [(one.id, one.label) for one in samples if one.label] == [("b#1", "sum"), ("b#2", "sum")]


def test_only_scored_samples_enter_a_mean_and_the_others_are_counted(evaluated):
    @scorer
    def broken(sample):
        raise ValueError("no such thing")

    @scorer
    def torn(sample):
        return Score.abstained("torn", "they disagree")

    log = evaluated(*map(inspect_scorer, (ToolCallF1(), broken, torn)))
    f1, nothing, none = log.results.scores
    assert (f1.name, f1.metadata) == ("tool_call_f1", {"signature": signature(ToolCallF1())})
    assert (f1.scored_samples, f1.unscored_samples, f1.metrics["mean"].value) == (2, 1, 0.5)
    for one in (nothing, none):
        assert (one.scored_samples, one.unscored_samples) == (0, 3)
        assert math.isnan(one.metrics["mean"].value)
    a, b, c = (sample.scores for sample in log.samples)
    assert [one["tool_call_f1"].value for one in (a, c)] == [1.0, 0.0]
    assert a["tool_call_f1"].answer == "It is three"
    assert a["tool_call_f1"].metadata["details"]["tp"] == 1
    assert a["tool_call_f1"].metadata["judgekit.judged"] is False
    reasons = {name: (math.isnan(one.value), one.reason, one.explanation) for name, one in b.items()}
    assert reasons == {
        "tool_call_f1": (True, "skipped", "the sample has no reference_tool_calls"),
        "broken": (True, "scoring_failed", "ValueError: no such thing"),
        "torn": (True, "abstained", "they disagree"),
    }


def test_what_is_no_mean_is_computed_from_all_epochs(evaluated):
    """BLEU of a corpus: the brevity penalty and each precision are taken of the sums, not of the samples."""
    (found,) = evaluated(inspect_scorer(BLEU(max_order=1), aggregate="corpus_bleu"), epochs=2).results.scores
    assert (found.scored_samples, found.unscored_samples) == (6, 0)
    assert found.metrics["corpus_bleu"].value == pytest.approx(
        6 / 10
    )  # words in the reference: 3, 0, 0 of 3, 1, 1, twice


def test_a_mean_of_what_has_none_is_an_error(evaluated):
    log = evaluated(inspect_scorer(BLEU()))
    assert log.status == "error"
    assert "use inspect_scorer(..., aggregate='corpus_bleu')" in log.error.message


def test_a_judged_score_says_who_judged_and_what_it_cost(evaluated):
    judge = ScriptedJudge(lambda _: "no answer")
    log = evaluated(inspect_scorer(PromptScorer(load_prompt("tone"), judge)))
    score = log.samples[0].scores["tone"]
    assert (score.reason, score.metadata["error"]) == ("grader_failed", "ReplyError")
    assert (score.metadata["judges"], score.metadata["judgekit.judged"]) == ([judge.model], True)
    assert score.metadata["cost_usd"] is None


@pytest.mark.parametrize("name", ["tone", "mine"])
def test_a_judge_that_ran_in_inspect_is_no_label_by_which_it_could_be_audited(evaluated, coin_flipper, name):
    """One that flips a coin and remembers it would agree with itself on all samples."""
    judged = coin_flipper(name)
    log = evaluated(inspect_scorer(judged), inspect_scorer(ToolCallF1()), epochs=4)
    samples = list(read(log.location, on_error="raise"))
    sources = {label.name: label.source for sample in samples for label in sample.trace.labels}
    assert sources == {name: "judge", "tool_call_f1": "benchmark"}
    verdicts = {label.value for sample in samples for label in sample.trace.labels if label.name == name}
    assert verdicts == {0, 1}
    scored = run(samples, [judged])
    assert not recorded_labels(scored, {})
    with pytest.raises(ConfigError, match=f"'{name}' is the verdict of a judge"):
        recorded_labels(scored, {name: name})
    assert {label.source for label in recorded_labels(scored, {"tool_call_f1": name})} == {"benchmark"}


def test_a_model_that_grades_in_inspect_is_a_judge_whatever_its_scorer_is_called(evaluated):
    from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: PLC0415
    from inspect_ai.scorer import Score as InspectScore  # noqa: PLC0415
    from inspect_ai.scorer import includes, mean, model_graded_qa  # noqa: PLC0415
    from inspect_ai.scorer import scorer as inspect_native  # noqa: PLC0415

    grade = ModelOutput.from_content("mockllm/grader", "GRADE: C")
    grade.usage = ModelUsage(input_tokens=5, output_tokens=2, total_tokens=7)
    grader = get_model("mockllm/grader", custom_outputs=[grade] * 6)

    @inspect_native(metrics=[mean()])
    def mine():
        async def score(state, target):
            return InspectScore(value=(await grader.generate("Good?")).completion)

        return score

    @inspect_native(metrics=[mean()])
    def words():
        async def score(state, target):
            return InspectScore(value=1)

        return score

    log = evaluated(mine(), words(), includes(), model_graded_qa(model=grader))
    for sample in read(log.location, on_error="raise"):
        sources = {label.name: label.source for label in sample.trace.labels}
        assert sources == {"mine": "judge", "words": "unknown", "includes": "benchmark", "model_graded_qa": "judge"}


def test_a_sample_without_messages_cannot_be_read_and_is_unscored(evaluated):
    from inspect_ai.model import ModelName  # noqa: PLC0415
    from inspect_ai.scorer import Target  # noqa: PLC0415
    from inspect_ai.solver import TaskState  # noqa: PLC0415

    state = TaskState(model=ModelName("mockllm/model"), sample_id=1, epoch=1, input="Hi", messages=[])
    score = asyncio.run(inspect_scorer(ToolCallF1())(state, Target("")))
    assert (math.isnan(score.value), score.reason, score.metadata["error"]) == (True, "scoring_failed", "TraceError")


def test_the_snippet_of_the_documentation_is_a_task(evaluated, snippet, tmp_path):
    from inspect_ai import eval  # noqa: A004, PLC0415
    from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: PLC0415

    names = {}
    exec(snippet("Inspect"), names)  # noqa: S102 - our own documentation
    output = ModelOutput.from_content("mockllm/model", "On its way.")
    output.usage = ModelUsage(input_tokens=5, output_tokens=2, total_tokens=7)
    model = get_model("mockllm/model", custom_outputs=[output])
    (log,) = eval(names["task"], model=model, display="none", log_dir=str(tmp_path))
    numbers = {score.name: {name: one.value for name, one in score.metrics.items()} for score in log.results.scores}
    assert numbers["tool_call_f1"]["mean"] == 0.0  # no call was made
    assert numbers["bleu"]["corpus_bleu"] == pytest.approx(1.0)


def test_without_inspect_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "inspect_ai.scorer", None)
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    with pytest.raises(ConfigError, match=r"pip install 'inspect"):
        inspect_scorer(ToolCallF1())
