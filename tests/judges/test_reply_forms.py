"""Replies of real models that hold one plain answer, and those that do not, as a scorer meets them."""

import json
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from judgekit.judges.answer import read_answer
from judgekit.judges.evidence import CitedMessage
from judgekit.judges.judge import Judge
from judgekit.judges.request import Reply
from judgekit.scorers.prompted import PromptScorer
from judgekit.scoring import attempt, run_sync

PROMPT = """---
description: Was it kind?
inputs: [conversation]
scale: {"yes": 1, not_quite: 0.5, "no": 0}
---
Was it kind?
"""
REASON = "It is {so}, truly."
YES = json.dumps({"reason": REASON, "evidence": [2], "verdict": "yes"})
NO = json.dumps({"reason": "Rude.", "evidence": [], "verdict": "no"})
SKETCH = 'I am to write {"reason": ..., "evidence": [...], "verdict": ...}.'
PRETTY = json.dumps(json.loads(YES), indent=2)


def with_reason(written: str) -> str:
    return YES.replace(json.dumps(REASON), f'"{written}"')


def call(arguments: object, name: str = "arguments") -> str:
    return json.dumps({"name": "kind", name: arguments})


READ = {
    "as it was asked for": YES,
    "a line break in a text": with_reason("It is\nso."),
    "an escape of a terminal in a text": with_reason("It is \x1b[1mso\x1b[0m."),
    "a comma before the brace": YES[:-1] + ",}",
    "a comma before the brace, over lines": PRETTY[:-2] + ",\n}",
    "commas of code in a text": with_reason("f(a,) and [1, ]").replace("[2]", "[2 , ]"),
    "</think> alone": f"So it was kind.\n</think>\n\n{YES}",
    "</think> alone, after a sketch": f"{SKETCH}\n</think>\n{YES}",
    "</think> alone, after objects of a recording": f'It calls {{"city": "Paris"}}, then {{}}.</think>{YES}',
    "</think> alone, after the same answer": f"{YES}? Yes.</think>\n{YES}",
    "</think> alone, and a fence": f"{SKETCH}</think>\n```json\n{YES}\n```\n",
    "<think>": f"<think>\n{NO}? No.\n</think>\n{YES}",
    "<thinking>": f"<thinking>{NO}? No.</thinking>\n{YES}",
    "<reasoning>": f"<reasoning>{NO}? No.</reasoning>\n{YES}",
    "[THINK]": f"[THINK]{NO}? No.[/THINK]{YES}",
    "◁think▷": f"◁think▷{NO}? No.◁/think▷{YES}",
    "<|START_THINKING|>": f"<|START_THINKING|>{NO}?<|END_THINKING|><|START_RESPONSE|>{YES}<|END_RESPONSE|>",
    "channels of harmony": (
        f"<|channel|>analysis<|message|>{NO}? No.<|end|><|start|>assistant<|channel|>final<|message|>{YES}<|return|>"
    ),
    "channels of harmony, without the first": f"{SKETCH}<|end|><|start|>assistant<|channel|>final<|message|>{YES}",
    "channels of harmony, without their tokens": f"analysis{SKETCH}assistantfinal{YES}",
    "a channel of Gemma": f"<|channel>thought\n{NO}? No.<channel|>{YES}",
    "several blocks": f"<think>{NO}?</think>\n\n<think>{SKETCH}</think>\n{YES}",
    "blocks of two kinds": f"<think>{NO}?</think><reasoning>{{</reasoning>{YES}",
    "blocks with words between them": f"<think>{NO}?</think> Well. <think>{SKETCH}</think>\n{YES}",
    "a label in another case": YES.replace('"yes"', '"Yes"'),
    "one number for a list of one": YES.replace("[2]", "2"),
    "a number in words": YES.replace("[2]", '["message 2"]'),
    "a number in brackets": YES.replace("[2]", '["[2]"]'),
    "a number in words for a list of one": YES.replace("[2]", '"message 2"'),
    "a tag of a tool call": f"<tool_call>\n{call(json.loads(YES))}\n</tool_call>",
    "a tag of a tool call, with text": f"<tool_call>{call(YES)}</tool_call>",
    "a tag of a tool call, and the bare object": f"<tool_call>{YES}</tool_call>",
    "a tag of a tool call, after reasoning": f"<think>{NO}</think><tool_call>{call(json.loads(YES))}</tool_call>",
    "no last brace": YES[:-1],
    "no last brace, in a fence": f"```json\n{PRETTY[:-2]}\n```",
    "no last brace in a tag": f"<tool_call>{call(json.loads(YES))[:-1]}</tool_call>",
    "several at once": f"{SKETCH}</think>```\n" + with_reason("a\nb").replace("[2]", '["Message 2",]')[:-1] + "\n```",
}


@pytest.fixture(scope="module")
def judged(tmp_path_factory, stub, sample):
    """The score by a judge that says a text, and then no more, and the number of requests that were answered."""
    path = tmp_path_factory.mktemp("prompts") / "kind.md"
    path.write_text(PROMPT)

    def score(*texts: str, ending: str = "stop"):
        client = stub([Reply(text=text, finish_reason=ending) for text in texts])
        judge = Judge("stub/judge", client=client, cache_mode="off")
        return run_sync(lambda: attempt(PromptScorer(path, judge), sample)), len(client.requests)

    return score


def test_a_reply_that_holds_one_plain_answer_is_read_without_a_second_request(judged):
    for name, text in READ.items():
        score, requests = judged(text)
        assert (score.value, score.label, score.details["evidence"], requests) == (1.0, "yes", [2], 1), name


@pytest.mark.parametrize(
    ("text", "label", "evidence"),
    [
        (NO.replace("[]", "null"), "no", []),
        (YES.replace('"yes"', '"not quite"'), "not_quite", [2]),
        (YES.replace('"yes"', '"Not-Quite"'), "not_quite", [2]),
        (YES.replace("[2]", '["message 2", 3, "4"]'), "yes", [2, 3, 4]),
    ],
)
def test_a_value_in_another_form_is_the_value(judged, text, label, evidence):
    score, requests = judged(text)
    assert (score.label, score.details["evidence"], requests) == (label, evidence, 1)


REFUSED = {
    "two answers": f"{YES} or {NO}",
    "two answers around </think>": f"{YES} They wrote </think>{NO}",
    "two answers around a damaged </think>": f"{YES[:-1]},}}</think>{NO}",
    "two answers around a block": f"{YES} <think>or</think> {NO}",
    "another answer in a block after it": f"{YES} <think>{NO}</think>",
    "an end of reasoning that is quoted in reasoning": f"<think>They wrote </think>{YES} but no.</think>{NO}",
    "an end of reasoning that is quoted without escapes": with_reason(f"They wrote </think>{NO} here"),
    "an answer that is quoted without escapes": with_reason(f"They wrote {NO} here"),
    "an end of reasoning that is quoted after the answer": f'{YES}\nThey wrote "<channel|>{NO}"',
    "a block that does not end": f"<think>They wrote {YES}",
    "reasoning alone": f"<think>{YES}</think>",
    "a label that is cut": YES[:-3],
    "a list that is cut": json.dumps({"verdict": "yes", "reason": "x", "evidence": [2]})[:-2],
    "a field that is missing with the last brace": '{"reason": "x", "evidence": [2]',
    "two last braces that are missing": '{"goals": [{"reason": "x", "evidence": [2], "verdict": "yes"',
    "a comma where the reply is cut": YES[:-1] + ",",
    "two commas": YES.replace(", ", ",, "),
    "an element that is missing": YES.replace("[2]", "[2,,3]"),
    "a range of messages": YES.replace("[2]", '["messages 2-3"]'),
    "two messages in a text": YES.replace("[2]", '"2, 3"'),
    "one message or another": YES.replace("[2]", '["message 2 or 3"]'),
    "a message that is counted from the end": YES.replace("[2]", '["the last message"]'),
    "true for a message": YES.replace("[2]", "true"),
    "a label that only begins alike": YES.replace('"yes"', '"yes, mostly"'),
    "two labels in a list": YES.replace('"yes"', '["yes", "no"]'),
    "a list for a label": YES.replace('"yes"', '["yes"]'),
    "single quotes": YES.replace('"', "'"),
    "a call outside of a tag": call(json.loads(YES)),
    "two calls": f"<tool_call>{call(json.loads(YES))}</tool_call><tool_call>{call(json.loads(NO))}</tool_call>",
    "a call with arguments that are cut": f"<tool_call>{call(YES[:-9])}</tool_call>",
    "a key twice": YES[:-1] + ', "verdict": "no"}',
}


def test_a_reply_without_one_plain_answer_is_corrected_or_fails(judged):
    for name, text in REFUSED.items():
        score, requests = judged(text)
        assert (score.status, score.error, requests) == ("failed", "ReplyError", 2), name
        score, requests = judged(text, YES)
        assert (score.label, requests) == ("yes", 2), name


@pytest.mark.parametrize("text", [YES, YES[:-1], f"{SKETCH}</think>{YES}"])
def test_a_reply_that_was_cut_off_is_never_read(judged, text):
    score, _ = judged(text, ending="length")
    assert (score.status, score.error) == ("failed", "TruncatedError")


class Point(BaseModel):
    name: str
    evidence: list[CitedMessage]


class Opinion(BaseModel):
    reason: str
    points: list[Point]
    share: float = 0.5
    verdict: Literal["yes", "no", "not_quite"] = "no"


HOSTILE = st.one_of(
    st.text(st.sampled_from('"{}[],:\\ \n\tab'), max_size=12),
    st.sampled_from(["</think>", "<think>", "assistantfinal", '"}', "```", "<tool_call>", "<channel|>"]),
    st.builds(
        lambda verdict: Opinion(reason="", points=[], verdict=verdict).model_dump_json(), st.sampled_from(["no"])
    ),
)
TEXTS = st.lists(HOSTILE, max_size=4).map("".join)
OPINIONS = st.builds(
    Opinion,
    reason=TEXTS,
    points=st.lists(st.builds(Point, name=TEXTS, evidence=st.lists(st.integers(1, 120), max_size=3)), max_size=2),
    share=st.sampled_from([0.25, 12.5]),
    verdict=st.sampled_from(["yes", "no", "not_quite"]),
)
REORDERED = st.permutations(list(Opinion.model_fields))


def outside_texts(written: str) -> list[int]:
    """The positions of the characters of JSON that are outside of its texts, quotes included."""
    positions, inside, escaped = [], False, False
    for position, character in enumerate(written):
        if not inside or (character == '"' and not escaped):
            positions.append(position)
        if character == '"' and not escaped:
            inside = not inside
        escaped = character == "\\" and not escaped
    return positions


def test_a_field_with_a_default_is_not_lost_behind_a_text_that_ends_early():
    with pytest.raises(ValueError, match=r"^the reply's JSON ends before 'verdict'$"):
        read_answer('{"points": [], "share": 1, "reason": "They wrote "}", "verdict": "yes"}', Opinion)


@given(OPINIONS, REORDERED, st.data())
def test_a_damaged_reply_never_gives_another_answer(opinion, order, data):
    fields = opinion.model_dump()
    written = json.dumps({name: fields[name] for name in order}, indent=data.draw(st.sampled_from([None, 1])))
    damage = data.draw(st.sampled_from(["cut", "without", "twice", "unescaped", "breaks"]))
    if damage == "cut":
        damaged = written[: data.draw(st.integers(0, len(written) - 1))]
    elif damage == "unescaped":
        damaged = written.replace('\\"', '"')
    elif damage == "breaks":
        damaged = written.replace("\\n", "\n").replace("\\t", "\t") if "\\\\" not in written else written
    else:
        structure = [at for at in outside_texts(written) if written[at] in '"{}[],:']
        at = data.draw(st.sampled_from(structure))
        damaged = written[:at] + written[at] * 2 * (damage == "twice") + written[at + 1 :]
    for before in ("", "So.</think>", "<think>{</think>", "```json\n"):
        try:
            answer = read_answer(before + damaged, Opinion)
        except ValueError:
            continue
        if damage == "unescaped":  # which may end a text early, and no more than that
            assert opinion.reason.startswith(answer.reason)
            answer = answer.model_copy(update={"reason": opinion.reason})
        assert answer == opinion
