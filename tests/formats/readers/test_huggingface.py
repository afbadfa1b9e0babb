import json

import pytest

import judgekit
from judgekit import Pairwise, ScriptedJudge
from judgekit.analysis.audit import audit
from judgekit.analysis.labels import recorded_labels
from judgekit.errors import TraceError
from judgekit.formats.readers.huggingface import HuggingFaceReader
from judgekit.runs.results import Run

READER = HuggingFaceReader()
HI, HELLO, NO = (
    {"role": role, "content": text} for role, text in (("user", "hi"), ("assistant", "hello"), ("assistant", "no"))
)
CALL = {"type": "function", "function": {"name": "find", "arguments": {"id": 7}}}
ARENA = {
    "question_id": 81,
    "model_a": "m",
    "model_b": "n",
    "winner": "model_b",
    "judge": "author_2",
    "conversation_a": [HI, NO],
    "conversation_b": [HI, HELLO],
    "turn": 1,
}
FILES = {
    # messages, messages of the baseline, labels
    "hf_alpaca.jsonl": (["Say hi", "hi"], None, []),
    "hf_arena.jsonl": (["hi", "hello"], ["hi", "no"], [("better", "human")]),
    "hf_conversation.jsonl": (["hi", "hello"], None, []),
    "hf_messages.jsonl": (["hi", "hello"], None, []),
    "hf_pref.jsonl": (["hi", "hello"], ["hi", "no"], [("better", "unknown")]),
    "hf_prompt_completion.jsonl": (["hi", "hello"], None, []),
    "hf_prompt_completion_text.jsonl": (["hi", "hello"], None, []),
}


def read(row):
    (record,) = READER.records(row)
    return READER.sample(record, 0)


def texts(trace):
    return None if trace is None else [message.text for message in trace.messages]


def verdicts(sample):
    return [(label.value, label.source) for label in sample.trace.labels if label.name == "pairwise"]


def test_the_files_of_others_are_read_whole(shared_data):
    for name, expected in FILES.items():
        [sample] = judgekit.read(shared_data / "exports" / name, on_error="raise")
        assert (texts(sample.trace), texts(sample.baseline), verdicts(sample)) == expected, name
        assert not sample.trace.warnings, name
        assert sample.trace.source.format == ("openai-chat" if name == "hf_messages.jsonl" else "huggingface")


def test_an_answer_of_a_question_may_be_anybodys_so_the_row_is_refused(shared_data):
    path = shared_data / "exports" / "hf_qa.jsonl"
    errors: list[TraceError] = []
    assert list(judgekit.read(path, on_error=errors.append)) == []
    [error] = errors
    assert "--column question=input --column answer=response; if 'answer' is the expected" in error.problem
    for meaning, expected in (("response", ("4", None)), ("reference", (None, "4"))):
        [sample] = judgekit.read(path, columns={"question": "input", "answer": meaning}, on_error="raise")
        assert (sample.trace.response, sample.reference) == expected


ROWS = [
    {"prompt": [HI], "completion": [{"role": "assistant", "content": None, "tool_calls": [CALL]}], "tools": [CALL]},
    {"prompt": "hi", "chosen": "hello", "rejected": "no", "id": "p1", "margin": 0.5},
    {"chosen": [HI, HELLO], "rejected": [HI, NO], "score_chosen": 8.5},
    ARENA,
    {"conversation": [{**HI, "country": "FR"}, {**HELLO, "toxic": False}], "conversation_id": "c1", "model": "m"},
    {"instruction": "Translate", "input": "hi", "output": "salut", "text": "Below is"},
]


def test_calls_and_tools_of_a_completion_are_read():
    sample = read(ROWS[0])
    assert [call.call.args for call in sample.trace.tool_calls()] == [{"id": 7}]
    assert [tool.name for tool in sample.trace.tools] == ["find"]
    odd = read({**ROWS[0], "tools": "search"})
    assert (odd.fields, [warning.path for warning in odd.trace.warnings]) == ({"tools": "search"}, ["tools"])


def test_the_chosen_conversation_is_the_trace_and_the_rejected_one_its_baseline():
    cases = [
        ({"prompt": "hi", "chosen": "hello", "rejected": "no"}, ["hi", "hello"], ["hi", "no"]),
        ({"prompt": [HI], "chosen": [HELLO], "rejected": [NO]}, ["hi", "hello"], ["hi", "no"]),
        ({"prompt": "hi", "chosen": [HI, HELLO], "rejected": [HI, NO]}, ["hi", "hello"], ["hi", "no"]),
        ({"chosen": [HI, HELLO], "rejected": [HI, NO], "messages": [HI, HELLO]}, ["hi", "hello"], ["hi", "no"]),
        ({"prompt": None, "chosen": [HI, HELLO], "rejected": [HI, NO]}, ["hi", "hello"], ["hi", "no"]),
        (
            {"chosen": "\n\nHuman: hi\n\nAssistant: hello", "rejected": "\n\nHuman: hi\n\nAssistant: no"},
            ["hi", "hello"],
            ["hi", "no"],
        ),
        ({"chosen": "hello", "rejected": ""}, ["hello"], [""]),
    ]
    for row, chosen, rejected in cases:
        assert READER.recognizes(row)
        sample = read(row)
        assert (texts(sample.trace), texts(sample.baseline)) == (chosen, rejected)
        assert verdicts(sample) == [("better", "unknown")]
        assert all("prompt" not in (warning.path or "") for warning in sample.trace.warnings)


def test_a_prompt_that_the_conversations_do_not_begin_with_is_told():
    sample = read({"prompt": "Be kind", "chosen": [HI, HELLO], "rejected": [HI, NO]})
    assert texts(sample.trace) == ["Be kind", "hi", "hello"]
    assert [warning.path for warning in sample.trace.warnings] == ["prompt"]


@pytest.mark.parametrize(
    ("winner", "value", "reason"),
    [
        ("model_a", "better", None),
        ("model_b", "worse", None),
        ("tie", "tie", None),
        ("tie (bothbad)", "tie", "both are bad"),
        ("both_bad", "tie", "both are bad"),
    ],
)
def test_the_winner_is_a_label_of_a_person(winner, value, reason):
    sample = read({**ARENA, "winner": winner})
    [label] = sample.trace.labels
    assert (label.name, label.value, label.source) == ("pairwise", value, "human")
    assert (label.annotator, label.reason) == ("author_2", reason)
    assert (texts(sample.trace), texts(sample.baseline)) == (["hi", "no"], ["hi", "hello"])
    assert (sample.trace.messages[1].model, sample.baseline.messages[1].model) == ("m", "n")
    assert (sample.group, sample.fields) == ("81", {"judge": "author_2", "turn": 1})


@pytest.mark.parametrize("winner", ["m", 1, ["model_a"]])
def test_an_unknown_winner_is_told_and_no_label(winner):
    sample = read({**ARENA, "winner": winner})
    assert not sample.trace.labels
    assert [warning.path for warning in sample.trace.warnings] == ["winner"]
    assert sample.fields["winner"] == winner
    assert not read({name: value for name, value in ARENA.items() if name != "winner"}).trace.labels


@pytest.mark.parametrize(("judge", "name"), [("gpt-4", "gpt-4"), (["gpt-4", "pair-v2"], "gpt-4")])
def test_a_winner_that_a_model_names_is_the_label_of_a_judge(judge, name):
    [label] = read({**ARENA, "judge": judge}).trace.labels
    assert (label.source, label.annotator) == ("judge", name)


def test_a_pairwise_judge_is_audited_with_the_winners_of_an_arena_without_options(tmp_path):
    path = tmp_path / "arena.jsonl"
    rows = []
    for number in range(8):
        sides = ([HI, {**HELLO, "content": f"hello {number}"}], [HI, NO])[:: 1 if number % 2 else -1]
        winner = "model_a" if number % 2 else "model_b"
        rows.append({**ARENA, "question_id": number, "conversation_a": sides[0], "conversation_b": sides[1]})
        rows[-1]["winner"] = winner
    path.write_text("\n".join(map(json.dumps, rows)))

    def reply(request):
        first = str(request).index("hello") < str(request).index("| no")
        fields = {"strengths_first": "", "strengths_second": "", "reason": "", "evidence_first": [2]}
        return {**fields, "evidence_second": [2], "verdict": "first" if first else "second"}

    store = tmp_path / "runs.sqlite"
    judgekit.run(judgekit.read(path), [Pairwise("Which is better?", ScriptedJudge(reply))], store=store)
    run = Run.stored(1, store)
    [agreements] = audit(run, recorded_labels(run, {})).scorers
    assert agreements.labels == 8
    assert agreements.agreement["weighted kappa"].value == 1


def test_model_and_id_of_a_conversation_are_kept():
    sample = read(ROWS[4])
    assert (sample.id, sample.trace.messages[1].model) == ("c1", "m")
    assert sample.trace.messages[0].extra == {"country": "FR"}


def test_an_instruction_and_its_input_are_the_question():
    assert texts(read(ROWS[5]).trace) == ["Translate\n\nhi", "salut"]
    assert texts(read({"instruction": "Say hi", "output": "hi"}).trace) == ["Say hi", "hi"]


def test_tables_are_read(tmp_path):
    (tmp_path / "a.csv").write_text("instruction,input,output\nSay hi,,hi\n")
    [sample] = judgekit.read(tmp_path / "a.csv", on_error="raise")
    assert texts(sample.trace) == ["Say hi", "hi"]
    cell = json.dumps([HI, HELLO]).replace('"', '""')
    (tmp_path / "b.csv").write_text(f'conversation,model\n"{cell}",m\n')
    [sample] = judgekit.read(tmp_path / "b.csv", on_error="raise")
    assert texts(sample.trace) == ["hi", "hello"]


def test_other_rows_are_refused():
    with pytest.raises(TraceError, match=r'expected a row such as huggingface: .* found the columns "?\'input'):
        read({"input": "q"})


def test_nothing_is_forgotten_and_nothing_crashes(intact):
    intact(READER, *ROWS)
