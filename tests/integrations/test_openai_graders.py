"""The graders of OpenAI's evals as scorers."""

import json
import tomllib
from pathlib import Path

import pytest
from openai.types.eval_create_response import EvalCreateResponse

from judgekit import AIMessage, HumanMessage, PromptScorer, Sample, ScriptedJudge, ToolCall, load_prompt
from judgekit.analysis.gates import Gate
from judgekit.config import Config
from judgekit.errors import ConfigError
from judgekit.formats.readers.openai_evals import OpenAIEvalsReader
from judgekit.integrations.openai_graders import read_definition, translate_eval, write_eval

OUTPUT = "{{ sample.output_text }}"


def grader(kind, **fields):
    return {"type": kind, "name": kind, **fields}


def check(operation, reference="{{item.label}}", text=OUTPUT, name=None):
    return grader("string_check", name=name or operation, operation=operation, input=text, reference=reference)


def similar(metric, **fields):
    return grader("text_similarity", input=OUTPUT, reference="{{item.label}}", evaluation_metric=metric, **fields)


def asking(kind, *contents, **fields):
    messages = [one if isinstance(one, dict) else {"role": "user", "content": one} for one in contents]
    return grader(kind, model="test-model", input=messages, **fields)


def label_model(*contents, labels=("polite", "rude"), passing=("polite",), **fields):
    return asking("label_model", *contents, labels=list(labels), passing_labels=list(passing), **fields)


def definition(*graders):
    return {"id": "eval_1", "object": "eval", "name": "tickets", "testing_criteria": list(graders)}


def tables(*graders):
    return tomllib.loads(translate_eval(definition(*graders)).config).get("scorers", [])


def scorers(folder, *graders):
    """Return the scorers of a written config, built as a run builds them."""
    translated = translate_eval(definition(*graders))
    write_eval(translated, folder / "judgekit.toml")
    config = Config(folder / "judgekit.toml", "openai/test" if translated.prompts else None, {})
    return {(built := config.build(spec)).name: built for spec in config.scorers}


def output_item(answer, label):
    record = {
        "object": "eval.run.output_item",
        "id": "outputitem_1",
        "datasource_item": {"ticket": "My parcel is late.", "label": label},
        "sample": {
            "input": [{"role": "user", "content": "My parcel is late."}],
            "output": [{"role": "assistant", "content": answer}],
        },
    }
    return OpenAIEvalsReader().sample(record, 0)


GRADED_BY_HAND = [
    # The documentation of OpenAI's graders: eq returns 1 "if the input matches the reference (case-sensitive)", ne if it
    # does not, like "if the input contains the reference (case-sensitive)", ilike the same, "not case-sensitive".
    # answer, label of the item, eq, ne, like, ilike
    ("shipping", "shipping", 1, 0, 1, 1),  # equal, so it also contains the label
    ("Shipping", "shipping", 0, 1, 0, 1),  # another case: only ilike, which ignores it
    ("shipping\n", "shipping", 0, 1, 1, 1),  # a line break more: no match as a whole, and the label is in it
    ("billing", "shipping", 0, 1, 0, 0),  # another word
    ("It is shipping, not billing.", " shipping", 0, 1, 1, 1),  # the label with its space is within the answer
]
"""Five samples, graded by hand: what each operation gives, and why."""


@pytest.mark.parametrize(("answer", "label", "eq", "ne", "like", "ilike"), GRADED_BY_HAND)
def test_string_checks_give_what_openai_documents(tmp_path, answer, label, eq, ne, like, ilike):
    made = scorers(tmp_path, *map(check, ("eq", "ne", "like", "ilike")))
    sample = output_item(answer, label)
    assert {name: scorer.score(sample).value for name, scorer in made.items()} == {
        "eq": eq,
        "ne": ne,
        "like": like,
        "ilike": ilike,
    }


def test_the_edges_of_string_checks(tmp_path):
    made = scorers(tmp_path, *map(check, ("eq", "ne", "like", "ilike")))
    values = [made[name].score(output_item("", "")).value for name in made]
    assert values == [1, 0, 1, 1]  # two empty texts are equal, and every text contains the empty one
    unanswered = output_item(None, "shipping")
    assert {scorer.score(unanswered).status for scorer in made.values()} == {"skipped"}
    without_label = output_item("shipping", None)
    assert {scorer.score(without_label).reason for scorer in made.values()} == {"the sample has no fields.label"}


JUDGED_BY_HAND = [
    # A label model passes an item if the label that the model chose is among passing_labels; its score is then 1, else 0.
    # A score model's score is a number in its range; here it is the label closest to it, divided by the range.
    # label chosen, value of label_model; score chosen from 1 to 5, value of score_model
    ("polite", 1.0, "5", 1.0),
    ("neutral", 1.0, "4", 0.75),
    ("rude", 0.0, "3", 0.5),
    ("rude", 0.0, "1", 0.0),
    ("polite", 1.0, "2", 0.25),
]


@pytest.mark.parametrize(("label", "value", "number", "share"), JUDGED_BY_HAND)
def test_model_graders_give_what_openai_documents(tmp_path, label, value, number, share):
    tone = label_model(OUTPUT, labels=("polite", "neutral", "rude"), passing=("polite", "neutral"), name="tone")
    quality = asking("score_model", "Score {{item.ticket}}", range=[1, 5], pass_threshold=3, name="quality")
    translated = translate_eval(definition(tone, quality))
    write_eval(translated, tmp_path / "judgekit.toml")
    sample = output_item("It is on its way.", "shipping")
    for name, verdict, expected in (("tone", label, value), ("quality", number, share)):
        answer = {"reason": "r", "evidence": [2], "verdict": verdict}
        score = PromptScorer(tmp_path / "prompts" / f"{name}.md", ScriptedJudge([answer])).score(sample)
        assert (score.value, score.label) == (expected, verdict)


def test_the_definition_is_one_that_the_api_gives():
    """The package's own types accept what the other tests translate."""
    graders = [
        check("eq"),
        similar("bleu", pass_threshold=0.5),
        label_model(OUTPUT),
        asking("score_model", {"role": "user", "content": {"type": "input_text", "text": OUTPUT}}, pass_threshold=0.5),
        grader("python", source="def grade(sample, item): return 1.0"),
    ]
    schema = {"created_at": 1, "data_source_config": {"type": "custom", "schema": {}}}
    checked = EvalCreateResponse.model_validate(definition(*graders) | schema)
    kinds = [one.type for one in checked.testing_criteria]
    assert kinds == ["string_check", "text_similarity", "label_model", "score_model", "python"]
    assert translate_eval(definition(*graders)).scorers == 4


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("{{item.label}}", "{{ fields.label }}"),
        ("{{ item.a.b[0] }}", "{{ fields.a.b[0] }}"),
        ("{{ item['my label'] }}", '{{ fields["my label"] }}'),
        ("Answer: {{item.a}}{{item.b}}.", "Answer: {{ fields.a }}{{ fields.b }}."),
        ("{{sample.output_json.queue}}", "{{ response.queue }}"),
        ("{{sample.choices[0].message.content}}", "{{ response }}"),
        ("{{sample.output_tools[0].function.name}}", "{{ tool_calls[0].name }}"),
        ('{"id": {{item.id}}}', '{"id": {{ fields.id }}}'),
        ("billing", "billing"),
    ],
)
def test_references_name_the_same_values(text, translated):
    [table] = tables(check("eq", text))
    assert table == {"name": "exact_match", "as": "eq", "strip": False, "reference": translated}


def test_a_check_of_something_else_than_the_output_says_so(tmp_path):
    [table] = tables(check("like", "{{item.a}}", "{{sample.output_json.b}}"))
    assert (table["response"], table["reference"]) == ("{{ response.b }}", "{{ fields.a }}")
    tool = check("eq", "{{sample.output_tools[0].function.name}}", "{{item.tool}}")
    messages = [HumanMessage("Hi"), AIMessage(tool_calls=[ToolCall("search")])]
    sample = Sample.of(messages, id="one", fields={"tool": "search"})
    assert scorers(tmp_path, tool)["eq"].score(sample).value == 1


@pytest.mark.parametrize(
    ("metric", "table"),
    [
        ("fuzzy_match", {"name": "similarity", "measure": "indel"}),
        ("bleu", {"name": "bleu"}),
        ("rouge_1", {"name": "rouge", "type": "rouge1"}),
        ("rouge_5", {"name": "rouge", "type": "rouge5"}),
        ("rouge_l", {"name": "rouge", "type": "rougeL"}),
    ],
)
def test_similarities_have_a_scorer_and_a_gate(tmp_path, metric, table):
    found = translate_eval(definition(similar(metric, pass_threshold=0.75)))
    config = tomllib.loads(found.config)
    assert config["gate"] == ["text_similarity >= 0.75"]
    assert Gate.parse(config["gate"][0], ["text_similarity"]).scorer == "text_similarity"
    assert config["scorers"] == [{**table, "as": "text_similarity", "reference": "{{ fields.label }}"}]
    assert [note.partition(":")[2].split(":")[0].strip() for note in found.notes] == [
        "values may differ",
        "pass_threshold is the gate 'text_similarity >= 0.75', on the whole run; OpenAI applies it to each item",
    ]
    assert scorers(tmp_path, similar(metric))["text_similarity"].score(output_item("a b c d e", "a b c d e")).value == 1


MISSED = [
    (similar("cosine"), "there is no scorer for 'cosine'"),
    (similar("gleu"), "there is no scorer for 'gleu'"),
    (similar("meteor"), "there is no scorer for 'meteor'"),
    (grader("python", source="raise SystemExit"), "code from a file is never run; write the function yourself"),
    (grader("azure", x=1), "graders of this type are not known"),
    (check("gt"), "the operation 'gt' is not known"),
    (check("eq", ""), "its reference is empty"),
    (check("eq", None), "its reference is not a text"),
    (check("eq", text="{{sample.input}}"), "{{sample.input}} is not in a sample"),
    (check("eq", text="{{item}}"), "{{item}} is not in a sample"),
    (check("eq", text="{{item.a | upper}}"), "expected .name, [0] or"),
    (check("eq", text="{{sample.output_tools[0].function.arguments}}"), "compare calls with tool_call_match"),
    (label_model(OUTPUT, labels=["yes"]), "it has fewer than two labels"),
    (
        label_model({"role": "user", "content": {"type": "input_image", "image_url": "x"}}),
        "a part of type 'input_image'",
    ),
    (label_model(), "its input has no text"),
    (asking("score_model", OUTPUT, range=[5, 1]), "its range is [5, 1]"),
    (asking("score_model", OUTPUT, range=["a"]), "its range is ['a']"),
    (asking("score_model", OUTPUT, range=[-1e308, 1e308]), "its range is"),
]


@pytest.mark.parametrize(("missed", "reason"), MISSED)
def test_what_has_no_scorer_is_said(missed, reason):
    found = translate_eval(definition(check("ne", name="other"), missed))
    assert found.scorers == 1
    [line] = found.untranslated
    assert line.startswith(f"{missed['name']} ({missed['type']}): ")
    assert reason in line
    assert f"# Not translated: {line}\n" in found.config
    assert [table["as"] for table in tomllib.loads(found.config)["scorers"]] == ["other"]


def test_no_code_of_a_file_is_run(tmp_path):
    marker = tmp_path / "ran"
    source = f"open({str(marker)!r}, 'w')"
    multi = grader("multi", graders={"a": check("eq", name="a")}, calculate_output=source)
    translate_eval(definition(grader("python", source=source), multi, check("eq", "{{ " + source + " }}")))
    assert not marker.exists()


def test_a_label_model_becomes_a_prompt_file(tmp_path):
    found = label_model(
        {"role": "developer", "content": "Is the answer polite? Ticket: {{item.ticket}}. Mark {% and {#."},
        {"role": "user", "content": [{"type": "input_text", "text": OUTPUT}, "And now?"]},
        name="Is it polite?",
    )
    built = scorers(tmp_path, found)["Is it polite?"]
    prompt = load_prompt(tmp_path / "prompts" / "is_it_polite.md")
    assert built.prompts == (prompt,)
    assert prompt.inputs == ("conversation", "fields.ticket", "response")
    assert dict(prompt.scale) == {"polite": 1, "rude": 0}
    assert prompt.instructions == (
        "Is the answer polite? Ticket:\n[fields.ticket]\n. Mark {% and {#.\n\n[response]\n\nAnd now?"
    )
    shown = prompt.fill(output_item("It is late.", "shipping")).messages[1].content
    assert "| My parcel is late.\n" in shown.rpartition("Ticket:")[2]


def test_messages_of_the_agent_in_a_grader_keep_their_roles(tmp_path):
    found = label_model("{{item.ticket}}", {"role": "assistant", "content": OUTPUT}, "Polite?")
    prompt = scorers(tmp_path, found)["label_model"].prompts[0]
    assert prompt.instructions == "user:\n[fields.ticket]\n\nassistant:\n[response]\n\nuser:\nPolite?"


@pytest.mark.parametrize(
    ("bounds", "scale", "threshold"),
    [
        (None, {"0": 0, "0.25": 0.25, "0.5": 0.5, "0.75": 0.75, "1": 1}, "score_model >= 0.6"),
        ([1, 5], {"1": 0, "2": 0.25, "3": 0.5, "4": 0.75, "5": 1}, "score_model >= -0.1"),
        ([0, 10], {str(n): n / 10 for n in range(11)}, "score_model >= 0.06"),
        ([0, 100], {"0": 0, "25": 0.25, "50": 0.5, "75": 0.75, "100": 1}, "score_model >= 0.006"),
        ([-1.0, 1.0], {"-1": 0, "0": 0.5, "1": 1}, "score_model >= 0.8"),
        ([0.5, 1], {"0.5": 0, "0.625": 0.25, "0.75": 0.5, "0.875": 0.75, "1": 1}, "score_model >= 0.2"),
    ],
)
def test_a_score_model_becomes_a_scale_of_labels(tmp_path, bounds, scale, threshold):
    found = asking("score_model", "Score it.", range=bounds, pass_threshold=0.6)
    prompt = scorers(tmp_path, found)["score_model"].prompts[0]
    assert dict(prompt.scale) == scale
    assert prompt.question.endswith(f"Your verdict is the number that is closest to your score: {', '.join(scale)}.")
    translated = translate_eval(definition(found))
    assert tomllib.loads(translated.config)["gate"] == [threshold]
    assert "audit it before you rely on it" in translated.notes[0]


def test_models_with_their_parameters_become_judges():
    sampling = {"temperature": 0.5, "max_completions_tokens": 100, "seed": None, "other": 1}
    graders = [
        label_model(OUTPUT, name="a"),
        label_model(OUTPUT, name="b") | {"sampling_params": sampling},
        label_model(OUTPUT, name="c"),
        label_model(OUTPUT, name="d") | {"model": "other/model:1"},
        label_model(OUTPUT, name="e") | {"model": None},
    ]
    config = tomllib.loads(translate_eval(definition(*graders)).config)
    assert config["judges"] == {
        "default": {"model": "openai/test-model"},
        "test-model": {
            "model": "openai/test-model",
            "params": {"temperature": 0.5, "max_completion_tokens": 100},
        },
        "other-model-1": {"model": "openai/other/model:1"},
    }
    assert [table.get("judge") for table in config["scorers"]] == [None, "test-model", None, "other-model-1", None]


@pytest.mark.parametrize(
    "formula", ["0.5 * a + 0.5 * b", "(a + b) / 2", "a / 2 + b * 0.5", "0.5*(a+b)", "(1/2) * a + 0.25 * 2 * b"]
)
def test_a_mean_of_graders_becomes_a_panel(tmp_path, formula):
    multi = grader(
        "multi", name="both", graders={"a": check("eq", name="a"), "b": check("ilike")}, calculate_output=formula
    )
    panel = scorers(tmp_path, multi)["both"]
    assert [panel.score(output_item(said, "shipping")).value for said in ("shipping", "Shipping", "no")] == [1, 0.5, 0]


@pytest.mark.parametrize("formula", ["0.7 * a + 0.3 * b", "(7 * a + 3 * b) / 10", "0.3 * b + a * 0.7"])
def test_a_weighted_mean_of_graders_becomes_a_panel_with_weights(tmp_path, formula):
    graders = {"a": check("eq", name="a"), "b": check("ilike")}
    multi = grader("multi", name="both", graders=graders, calculate_output=formula)
    panel = scorers(tmp_path, multi)["both"]
    assert tuple(panel.weights) == (0.7, 0.3)
    values = [panel.score(output_item(said, "shipping")).value for said in ("shipping", "Shipping", "no")]
    assert values == pytest.approx([1, 0.3, 0])


@pytest.mark.parametrize(
    "formula",
    [
        *(
            "0.7 * a + 0.2 * b",
            "1.5 * a - 0.5 * b",
            "a + 0 * b",
            "a + b",
            "max(a, b)",
            "a * b",
            "a - b",
            "a",
            "(a + b) / 0",
            "(a + c) / 2",
            "(a + b + 1) / 2",
        ),
        *("", "a +", "1 / a", "(" * 900, "__import__('os')", "0.5 * a + 0.5 * b #" + "x" * 1_000),
    ],
)
def test_other_formulas_are_said_and_their_graders_stand_alone(formula):
    multi = grader(
        "multi", name="both", graders={"a": check("eq", name="a"), "b": check("ne")}, calculate_output=formula
    )
    found = translate_eval(definition(multi))
    assert [table["as"] for table in tomllib.loads(found.config)["scorers"]] == ["a", "ne"]
    [line] = found.untranslated
    assert line.startswith("both (multi): the formula ")
    assert line.endswith("its graders are scorers of their own; combine their values yourself")


def test_a_panel_has_all_its_graders_or_is_none():
    graders = {"a": check("eq", name="a"), "b": grader("python", name="b", source="")}
    multi = grader("multi", name="both", graders=graders, calculate_output="(a + b) / 2")
    found = translate_eval(definition(multi))
    assert [line.partition(":")[0] for line in found.untranslated] == ["b (python)", "both (multi)"]
    assert [table["as"] for table in tomllib.loads(found.config)["scorers"]] == ["a"]
    single = grader("multi", name="one", graders=check("eq", name="a"), calculate_output="a")
    assert [table["as"] for table in tables(single)] == ["a"]


def test_graders_of_one_name_are_numbered():
    assert [table["as"] for table in tables(check("eq"), check("eq"), check("eq", name="eq 2"))] == [
        "eq",
        "eq 2",
        "eq 2 2",
    ]
    found = translate_eval(definition(label_model(OUTPUT, name="A!"), label_model(OUTPUT, name="a?")))
    assert [*found.prompts] == ["prompts/a.md", "prompts/a_2.md"]


@pytest.mark.parametrize("name", ['a"b\\', "a\nb\x7f", "é😀", "\ud800", "a >= 2", "x" * 300, "", None, 7])
def test_any_name_makes_a_config_that_can_be_read(tmp_path, name):
    graders = [
        label_model(f"Ask {name}", labels=[f"1{name}", "no: yes\x85"], name=name),
        similar("bleu", pass_threshold=1),
    ]
    made = scorers(tmp_path, *graders)
    assert len(made) == 2


def test_a_gate_that_cannot_be_written_is_said():
    found = translate_eval(definition(similar("bleu", pass_threshold=0.5, name="a >= b")))
    assert "gate" not in tomllib.loads(found.config)
    assert "pass_threshold has no gate, since gates cannot name this scorer" in found.notes[1]


def written(path, document):
    path.write_text(json.dumps(document) if isinstance(document, dict | list) else document)
    return path


def test_a_definition_is_found_alone_in_a_list_or_in_a_page(tmp_path):
    one = definition(check("eq"))
    params = {"name": "tickets", "testing_criteria": [check("eq")]}
    page = {"object": "list", "data": [one], "first_id": "eval_1", "has_more": False}
    for document in (one, [one], page, params):
        assert read_definition(written(tmp_path / "eval.json", document))["testing_criteria"] == [check("eq")]
    assert read_definition(written(tmp_path / "eval.jsonl", json.dumps(one) + "\n")) == one


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"messages": []}, "contains no definition of an OpenAI eval"),
        (
            [definition(), {**definition(), "id": "eval_2"}],
            r"contains 2 evals \('eval_1', 'eval_2'\); write each to a file",
        ),
        ([], "contains no definition"),
    ],
)
def test_other_files_are_refused(tmp_path, document, reason):
    with pytest.raises(ConfigError, match=reason):
        read_definition(written(tmp_path / "eval.json", document))


def test_existing_files_are_kept(tmp_path):
    found = translate_eval(definition(label_model(OUTPUT, name="tone")))
    there = tmp_path / "prompts" / "tone.md"
    there.parent.mkdir()
    there.write_text("mine")
    with pytest.raises(ConfigError, match=r"tone\.md exists; move it, or name another file with --output"):
        write_eval(found, tmp_path / "judgekit.toml")
    assert (there.read_text(), (tmp_path / "judgekit.toml").exists()) == ("mine", False)
    there.unlink()
    assert write_eval(found, Path(tmp_path / "judgekit.toml")) == [tmp_path / "judgekit.toml", there]


def test_any_definition_is_translated_or_refused():
    junk = [None, True, -1, "", "x", [], {}, [None], [[]], {"a": {}}]
    base = [check("eq"), similar("bleu"), label_model(OUTPUT), asking("score_model", OUTPUT), grader("multi")]
    for one in base:
        for key in (*one, "range", "sampling_params", "graders", "calculate_output", "pass_threshold"):
            for value in junk:
                found = translate_eval(definition({**one, key: value}))
                tomllib.loads(found.config)
                assert found.scorers + len(found.untranslated) >= 1
    assert translate_eval({"testing_criteria": [None, "x", 1]}).scorers == 0
