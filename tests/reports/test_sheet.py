"""The sheet on which people label: what is on it, and what is not."""

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

import pytest

from judgekit import Pairwise, PromptScorer, Run, Sample, ScriptedJudge, WeightedCriteria, load_prompt, run
from judgekit.analysis.labels import LABEL_COLUMNS, read_labels
from judgekit.analysis.sampling import draw_samples
from judgekit.errors import ConfigError
from judgekit.reports.document import join_scripts
from judgekit.reports.sheet import SCRIPTS, LabelSheet
from judgekit.runs.rows import ScorerRecord
from judgekit.score import JudgeCall, JudgeExchange, Score
from judgekit.traces.message import AIMessage, HumanMessage, ToolMessage
from judgekit.traces.recording import Label
from judgekit.traces.trace import Trace

HIDDEN = "not to be seen"


@dataclass(frozen=True)
class Judged:
    """Says of each sample what it is told to, in words that must not get out."""

    values: Sequence[float]
    prompt: str = "faithfulness"
    name: str = "kind"

    @property
    def prompts(self):
        prompt = load_prompt(self.prompt)
        return (prompt.with_options(question="Who is kinder?") if prompt.options else prompt,)

    async def ascore(self, sample: Sample, /) -> Score:
        said = JudgeExchange(messages=(("user", HIDDEN),), reply=HIDDEN)
        call = JudgeCall(judge=HIDDEN, prompt=HIDDEN, exchange=said)
        value = self.values[int(sample.id.removeprefix("s"))]
        details = {HIDDEN: value}
        return Score.scored("kind", value, label=f"{HIDDEN} {value}", reason=HIDDEN, details=details, calls=[call])


def sample(number: int, said: str = "Hi.", **known: object) -> Sample:
    messages = [HumanMessage(f"Question {number}"), AIMessage(said), ToolMessage("result", name="f")]
    known = {"reference": f"reference {number}", "documents": ("the document",), "label": HIDDEN} | known
    made = Sample.of(messages, id=f"s{number}", metadata={HIDDEN: HIDDEN}, domain=HIDDEN, **known)
    labels = (Label(HIDDEN, HIDDEN, source="judge"), Label("kind", HIDDEN))
    return made.model_copy(
        update={"trace": made.trace.model_copy(update={"labels": labels, "metadata": {HIDDEN: HIDDEN}})}
    )


def judged(values: Sequence[float], prompt: str = "faithfulness", samples: Sequence[Sample] = ()) -> Run:
    return run(samples or [sample(number) for number in range(len(values))], [Judged(values, prompt)])


def sheet(scored: Run, n: int = 60, **how: bool) -> LabelSheet:
    return LabelSheet(scored, scored.scorers[0], draw_samples(scored, "kind", n, **how))


def text(lines) -> str:
    return "".join(lines)


def head(page: str) -> dict:
    return json.loads(re.search(r'id="head">(.*?)</script>', page)[1])


def rows(made: LabelSheet) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text(made.table()).removeprefix("\ufeff"), newline=""), strict=True))


def test_both_sheets_are_the_same_whatever_the_judge_said():
    one, other = (sheet(judged(values), 5) for values in ([1, 1, 0, 0, 1, 0, 1], [0, 0, 1, 1, 0, 1, 0]))
    assert text(one.page()) == text(other.page())
    assert text(one.table()) == text(other.table())


def test_nothing_that_was_said_of_a_sample_is_on_a_sheet_of_those_drawn_by_verdict():
    made = sheet(judged([1] * 20 + [0] * 4), 8, by_verdict=True)
    page = text(made.page())
    assert HIDDEN not in page
    assert HIDDEN not in text(made.table())
    assert {(drawn, probability) for _, _, drawn, probability, *_ in head(page)["samples"]} == {("stratified", None)}
    assert {row["probability"] for row in rows(made)} == {""}


def test_the_page_has_the_question_the_choices_and_what_the_judge_was_given():
    page = text(sheet(judged([1, 0])).page())
    about = head(page)
    assert about["question"] == "Is what the agent says supported by the documents that it was given?"
    assert about["choices"][1] == ["partly_supported", "partly_supported"]
    assert "Supported is a claim that a reader of the documents alone must accept" in about["instructions"]
    assert about["columns"] == list(LABEL_COLUMNS)
    (_, shown), *_ = re.findall(r'id="sample-(\d+)">(.*?)</script>', page)
    content = json.loads(shown)
    assert content["known"] == [["reference", f"reference {about['samples'][0][0]}"], ["documents", "the document"]]
    assert [message["role"] for message in content["messages"]] == ["user", "assistant", "tool"]


def test_choices_are_of_the_scale_or_of_pairs_or_yes_and_no_or_any_number():
    def choices(values: Sequence[float], prompt: str, **known: object) -> list[str]:
        samples = [sample(number, **known) for number in range(len(values))]
        return [text for text, _ in sheet(judged(values, prompt, samples)).choices]

    baseline = sample(9).trace
    assert choices([1, 0], "tone")[0] == next(iter(dict(load_prompt("tone").scale)))
    assert choices([1, 0], "agent_goal_with_reference") == ["yes", "no"]
    assert choices([1, 0.3], "agent_goal_with_reference") == []
    assert choices([1, 0], "pairwise", baseline=baseline) == ["the first is better", "a tie", "the second is better"]
    assert choices([1, 0.3], "pairwise", baseline=baseline) == []


def test_the_labels_of_a_pair_are_shown_in_the_words_of_whoever_sees_two():
    made = judged([1, 0], "pairwise")
    choices = LabelSheet(made, ScorerRecord.of(Pairwise("Who is kinder?", ScriptedJudge([]))), ()).choices
    assert choices == [("the first is better", "better"), ("a tie", "tie"), ("the second is better", "worse")]


def test_the_question_of_a_pair_is_the_one_that_the_scorer_asks():
    scored = judged([1], "pairwise")
    assert "Compare the two recordings. Who is kinder?" in scored.scorers[0].instructions


def test_all_that_is_asked_is_on_the_sheet_without_the_language_of_prompts():
    criteria = WeightedCriteria({"polite": 0.5, "brief": 0.5}, judge=ScriptedJudge([]), separate_requests=True)
    record = ScorerRecord.of(criteria)
    assert "polite: polite?" in record.instructions
    assert "brief: brief?" in record.instructions
    assert "What is known of the task, as JSON:\n\n[fields]\n\nWhich" in record.instructions
    assert not re.search(r"[{}]|%", record.instructions)
    assert list(record.inputs) == ["conversation", "fields"]


def test_a_field_that_the_judge_was_given_is_shown_to_people(tmp_path):
    path = tmp_path / "own.md"
    path.write_text("---\ninputs: [conversation, fields.topic]\nscale: {good: 1, bad: 0}\n---\n{{ fields.topic }}?")
    fields = {"topic": "cities", "secret": HIDDEN}
    (row,) = rows(sheet(judged([1], str(path), [sample(0, fields=fields)])))
    assert row["reference"] == "reference: reference 0\n\nfields.topic: cities"


def test_a_table_is_read_back_as_samples_that_nobody_labeled(tmp_path):
    made = sheet(judged([1, 0, 1], samples=[sample(0), sample(1, "=HYPERLINK()"), sample(2)]), 2)
    path = tmp_path / "sheet.csv"
    path.write_text(text(made.table()), encoding="utf-8", newline="")
    assert path.read_bytes().startswith(b"\xef\xbb\xbf")
    labels = read_labels(path)
    assert [(one.number, one.sample, one.selection, one.probability, one.value, one.run) for one in labels] == [
        (drawn.number, drawn.id, "random", pytest.approx(2 / 3), None, 1) for drawn in made.drawn_samples
    ]
    assert rows(made)[0]["choices"] == "supported; partly_supported; unsupported; not_applicable"


def test_a_cell_is_no_longer_than_a_spreadsheet_takes_and_says_what_is_missing():
    made = sheet(judged([1], samples=[sample(0, "long " * 20_000, reference="r" * 40_000)]))
    (row,) = rows(made)
    assert max(map(len, row.values())) < 32_767
    assert re.search(r"\[\.\.\. [\d,]+ characters omitted \.\.\.\]", row["conversation"])
    assert "characters omitted ...]" in row["reference"]


def test_a_run_that_keeps_no_text_is_refused_with_the_way_out():
    made = judged([1, 0])
    bare = Run(made.store, made.record.model_copy(update={"keeps_text": False}))
    with pytest.raises(ConfigError, match=r"run 1 stores no conversations \(store_text = false\).*columns sample"):
        sheet(bare)


def test_the_script_has_no_way_to_make_text_into_more_or_to_send_it():
    script = join_scripts(SCRIPTS).replace('"http://www.w3.org/2000/svg"', "")
    markup = ("innerHTML", "insertAdjacent", "outerHTML", "document.write")
    assert [
        sink for sink in (*markup, "eval", "Function(", "fetch", "XMLHttp", "import(", "http") if sink in script
    ] == []


def test_what_was_recorded_can_end_no_script():
    page = text(sheet(judged([1], samples=[sample(0, "</script><script>alert(1)</script><!--")])).page())
    assert page.count("</script>") == page.count("<script") == 3


@pytest.mark.parametrize("scope", ["own", "tree"])
def test_a_sheet_shows_what_the_scorer_looks_at(scope):
    """People and the judge decide on the same evidence."""
    inner = Trace(messages=[HumanMessage("inner task"), AIMessage("inner answer")])
    made = Sample(id="s0", trace=Trace(messages=[HumanMessage("Q"), AIMessage("A")], children=[inner]), baseline=inner)
    judge = ScriptedJudge([{"reason": "ok", "evidence": [], "verdict": "fitting"}])
    scored = run([made], [PromptScorer("tone", judge, scope=scope)])
    assert scored.scorers[0].scope == scope
    shown = LabelSheet(scored, scored.scorers[0], draw_samples(scored, "tone", 1))
    [row] = rows(shown)
    assert ("inner task" in row["conversation"]) is (scope == "tree")
    page = re.findall(r'id="sample-\d+">(.*?)</script>', text(shown.page()))[0]
    assert (len(json.loads(page)["unlinked"]) == 1) is (scope == "tree")
