"""The command that asks several judges one question."""

import json
import re
from collections import Counter
from pathlib import Path

import httpx
import pytest

from judgekit.runs.results import Run

GOAL = "agent_goal_accuracy_without_reference"
TWO = ("--judge", "openai/a", "--judge", "openai/b")
FAILED = f"exit code 1: scores of {GOAL} (openai/b) failed\n"
SAYS = {"openai/a": "101010", "openai/b": "10111x", "openai/c": "010101"}
"""What each judge says of the samples s0 to s5: 1 achieved, 0 not, x nothing that could be used."""


@pytest.fixture(autouse=True)
def asked(mocked, monkeypatch) -> list[str]:
    """The judges that are asked, each time one is."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    models: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        models.append(f"openai/{body['model']}")
        number = int(re.search(r"tool_(\d+)", body["messages"][1]["content"])[1])
        said = SAYS[models[-1]][number]
        message = {"role": "assistant", "content": None, "refusal": "I would rather not."}
        if said != "x":
            verdict = "achieved" if said == "1" else "not_achieved"
            reason = f"{body['model']} saw \x1b[31mtool_{number}"
            goal = {"goal": "g", "end_state": "e", "reason": reason, "evidence": [2], "verdict": verdict}
            message = {"role": "assistant", "content": json.dumps({"goals": [goal]})}
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        choices = [{"message": message, "finish_reason": "stop"}]
        model = None if body["model"] == "b" else f"{body['model']}-2026-11-20"
        return httpx.Response(200, json={"model": model, "choices": choices, "usage": usage})

    mocked.post("https://api.openai.com/v1/chat/completions").mock(side_effect=answer)
    return models


def lines(out: str) -> list[list[str]]:
    return [re.split(r"\s{2,}", line.strip()) for line in out.splitlines()]


def test_each_judge_is_a_scorer_of_one_run_and_a_failure_is_no_disagreement(cli, conversations):
    ended = cli("compare-judges", conversations(6), "--scorer", GOAL, *TWO)
    assert (ended.code, ended.err) == (
        1,
        f"saved as run 1 in .judgekit/runs.sqlite\n{FAILED}",
    )  # as of any run: not everything was scored
    shown = lines(ended.out)
    assert [f"{GOAL} (openai/a)", "0.500", "0.188 to 0.812", "6 of 6", "0", "0"] in shown
    assert [f"{GOAL} (openai/b)", "0.800", "0.376 to 0.964", "5 of 6", "0", "1"] in shown
    # of 5 samples 4 are equal; a says 1 of 3, b of 4: by chance .6 x .8 + .4 x .2 = .56
    (pair,) = (line for line in shown if line[0] == "openai/a and openai/b")
    kappa, agreement = (next(cell for cell in pair[3:] if cell.startswith(value)) for value in (".55", ".80 ["))
    assert pair[1:3] == ["5", "1"]
    assert kappa
    assert agreement
    assert "openai/a and openai/b: not compared: 1 (1 failed by openai/b)" in ended.out
    assert ["openai/a answered as a-2026-11-20 (6)"] in shown
    assert ["openai/b reports no model, so a change behind this name would go unnoticed"] in shown
    at = shown.index(["openai/a and openai/b, 1 flipped:"])
    assert shown[at + 1 : at + 3] == [
        ["#3 s3", r"openai/a: not_achieved (0.00): a saw \x1b[31mtool_3"],
        [r"openai/b: achieved (1.00): b saw \x1b[31mtool_3"],
    ]
    assert [one.name for one in Run.stored().scorers] == [f"{GOAL} (openai/a)", f"{GOAL} (openai/b)"]


def test_it_is_asked_once_and_the_same_command_shows_the_same_again(cli, conversations, asked):
    path = conversations(5)
    first = cli("compare-judges", path, "--scorer", GOAL, *TWO)
    assert (first.code, sorted(asked)) == (0, ["openai/a"] * 5 + ["openai/b"] * 5)
    again = cli("compare-judges", path, "--scorer", GOAL, *TWO)
    assert len(asked) == 10
    assert again.out.splitlines()[-1] == first.out.splitlines()[-1]
    assert ["openai/a", "-"] in lines(again.out)  # nothing was sent that could have taken its time
    assert cli("resume").code == 0


def test_labels_say_which_judge_is_closer_to_people(cli, conversations):
    Path("labels.csv").write_text(
        f"sample,scorer,value\ns0,{GOAL},yes\ns1,{GOAL},no\ns2,{GOAL},1\ns3,{GOAL} (openai/b),0\ns4,{GOAL},1\ns5,{GOAL},no\n"
        f"s9,{GOAL},no\ns0,tone,kind\n"
    )
    options = ("--labels", "labels.csv", "-o", "found.json", "--show", 0)
    ended = cli("compare-judges", conversations(6), "--scorer", GOAL, *TWO, "--judge", "openai/c", *options)
    assert ended.err == f"saved as run 1 in .judgekit/runs.sqlite\n{FAILED}wrote found.json\n"
    told = " ".join(ended.out.split())
    assert (
        "openai/a and openai/b, compared with people: of n=5, openai/a is right on 100.0%, openai/b on 80.0%; openai/a alone "
        "is right on 1, openai/b alone on 0; p 1 by exact McNemar: no evidence that one is better" in told
    )
    # six of six one way: 2 / 2**6; by Holm times 3, the number of pairs
    assert "p 0.031 (0.094 adjusted for all pairs) by exact McNemar: no evidence that one is better" in told
    assert "1 label left out: run 1 has no score for 's9'" in ended.out
    assert "openai/b: 1 label left out: failed by the judge" in ended.out
    found = json.loads(Path("found.json").read_text())
    agreed = [(side["labeled"], side["human_agreement"]["agreement"]["value"]) for side in found["judges"]]
    assert agreed == [(6, 1.0), (5, 0.8), (6, 0.0)]
    (flip,) = found["pairs"][0]["flips"]
    assert (flip["sample_id"], flip["a"]["value"], flip["b"]["value"], flip["human_value"]) == ("s3", 0.0, 1.0, 0.0)
    assert found["pairs"][0]["excluded"] == [{"a": "scored", "b": "failed", "samples": 1}]


@pytest.mark.parametrize("options", [(), ("--label", "goal met")])
def test_scores_of_another_system_are_labels_if_people_gave_them(cli, conversations, options):
    score = {"name": options[-1] if options else GOAL, "value": 1, "dataType": "BOOLEAN"}
    scores = [{**score, "source": by, "traceId": f"s{at}"} for at in range(4) for by in ("ANNOTATION", "EVAL")]
    Path("scores.jsonl").write_text("\n".join(map(json.dumps, scores)))
    words = ("--scorer", GOAL, *TWO, "--labels", "scores.jsonl", *options, "-o", "found.json")
    ended = cli("compare-judges", conversations(4), *words)
    assert ended.code == 0
    assert "scores.jsonl: left out 4 scores of judges\n" in ended.err
    found = json.loads(Path("found.json").read_text())
    assert [side["labeled"] for side in found["judges"]] == [4, 4]


def test_recorded_labels_of_judges_are_not_taken_for_people_and_unknown_ones_only_if_named(cli, calling):
    samples = [json.loads(calling(number).model_dump_json()) for number in range(4)]
    for source, is_taken, code, said_of_named in (
        ("human", True, 0, "is right on"),
        ("benchmark", True, 0, "is right on"),
        ("unknown", False, 0, "is right on"),
        ("judge", False, 2, "is the verdict of a judge"),
    ):
        for one in samples:
            one["trace"]["labels"] = [{"name": GOAL, "value": True, "source": source}]
        Path("samples.jsonl").write_text("".join(json.dumps(one) + "\n" for one in samples))
        ended = cli("compare-judges", "samples.jsonl", "--scorer", GOAL, *TWO)
        assert (ended.code, "is right on" in ended.out) == (0, is_taken), source
        ended = cli("compare-judges", "samples.jsonl", "--scorer", GOAL, *TWO, "--label", GOAL)
        assert (ended.code, said_of_named in ended.out + ended.err) == (code, True), source


def test_a_judge_that_answered_before_is_compared_with_one_that_is_asked_now(cli, calling, asked):
    """The imported judge says yes of every sample; openai/a says 1 of s0 and s2, as do people."""
    written = [json.loads(calling(number).model_dump_json()) for number in range(4)]
    for number, one in enumerate(written):
        one["trace"]["labels"] = [
            {"name": "quality", "value": "good", "source": "judge", "annotator": "gpt-4.1", "reason": "It is."},
            {"name": "quality", "value": number % 2 == 0, "source": "human", "annotator": "ann"},
        ]
    Path("samples.jsonl").write_text("".join(json.dumps(one) + "\n" for one in written))
    imported = ("--imported", 'quality,scale={"good":1,"bad":0}', "--label", "quality")
    ended = cli("compare-judges", "samples.jsonl", "--scorer", GOAL, "--judge", "openai/a", *imported)
    assert ended.code == 0
    assert asked == ["openai/a"] * 4
    assert [one.name for one in Run.stored().scorers] == [f"{GOAL} (openai/a)", f"{GOAL} (quality, imported)"]
    assert "of n=4, openai/a is right on 100.0%, quality, imported on 50.0%" in " ".join(ended.out.split())
    ended = cli("compare-judges", "samples.jsonl", "--scorer", GOAL, "--judge", "openai/a", "--imported", "quality")
    assert "4 failed: the recorded label 'good' has no value in [0, 1]: give it one, such as scale=" in " ".join(
        ended.out.split()
    )


def test_judges_of_the_config_are_compared_by_the_one_scorer_of_it_and_nothing_is_sent_in_a_dry_run(
    cli, conversations, asked
):
    Path("judgekit.toml").write_text(
        '[judges.mild]\nmodel = "openai/a"\nparams = {temperature = 1}\n[judges.strict]\nmodel = "openai/a"\n'
        f'[[scorers]]\nname = "{GOAL}"\nas = "goal"\njudge = "strict"\n'
    )
    both = ("compare-judges", conversations(2), "--judge", "mild", "--judge", "strict")
    assert "goal (mild)" in cli(*both, "--dry-run").out
    assert not asked
    ended = cli(*both, "-o", "found.json")
    assert ended.code == 0
    assert [one.name for one in Run.stored().scorers] == ["goal (mild)", "goal (strict)"]
    printed, written = json.loads(cli(*both, "--json", "--show", 0).out), json.loads(Path("found.json").read_text())
    assert printed["judges"][0]["scorer"] == "goal (mild)"
    assert [(pair["flip_count"], pair["flips"]) for pair in printed["pairs"]] == [
        (len(pair["flips"]), []) for pair in written["pairs"]
    ]


def test_what_cannot_be_compared_is_refused_before_anything_is_sent(cli, conversations, asked):
    Path("tone.csv").write_text("sample,scorer,value\ns0,tone,kind\n")
    Path("twice.csv").write_text(f"sample,scorer,value\ns0,{GOAL},yes\ns0,{GOAL} (openai/a),no\n")
    Path("samples.json").write_text('[{"messages": []}]')
    for options, said in (
        (("--scorer", GOAL), "name at least two judges to compare, found none"),
        (("--scorer", GOAL, "--judge", "openai/a"), "name at least two judges to compare, found openai/a"),
        (("--scorer", GOAL, "--judge", "openai/a", "--judge", "openai/a"), "have the same settings"),
        (("--scorer", GOAL, "--judge", "openai/a", "--judge", "mine"), "no judge is called 'mine'"),
        (TWO, "expected one scorer to compare the judges by, found none"),
        (
            ("--scorer", GOAL, "--scorer", "prompt:tone", *TWO),
            "expected several scorers and one judge, or several judges and one scorer, found 2 judges",
        ),
        (("--scorer", "tool_call_f1", *TWO), "tool_call_f1 asks no judge, so there are none to compare"),
        (("--scorer", 'panel:scorers=["prompt:tone","prompt:step_efficiency"]', *TWO), "panel asks several scorers"),
        (("--scorer", "prompt:tone,judge=openai/c", *TWO), "tone names its own judge (openai/c)"),
        (("--scorer", GOAL, *TWO, "-o", "x.json", "-o", "x.html"), "supported: .json"),
        (
            ("--scorer", GOAL, *TWO, "--labels", "tone.csv"),
            f"tone.csv: expected labels of {GOAL}, found 'tone'; as=NAME",
        ),
        (("--scorer", GOAL, *TWO, "--labels", "samples.json"), "labels are read from CSV"),
        (
            ("--scorer", "prompt:tone", *TWO, "--labels", "tone.csv"),
            "does not know the label 'kind' of the sample 's0'",
        ),
        (("--scorer", GOAL, *TWO, "--labels", "twice.csv"), "gives the sample 's0' the label 'no'"),
    ):
        ended = cli("compare-judges", conversations(1), *options)
        assert (ended.code, ended.out, asked) == (2, "", []), options
        assert said in ended.err
        assert not Path(".judgekit/runs.sqlite").exists()


def test_one_judge_asked_together_is_compared_with_itself_alone_and_with_the_noise_of_asking_twice(
    cli, conversations, mocked
):
    """Together, the judge changes its mind on one sample; alone, it does on two when it is asked again."""
    times = Counter()

    def answer(request: httpx.Request) -> httpx.Response:
        text = json.loads(request.content)["messages"][1]["content"]
        number = int(re.search(r"tool_(\d+)", text)[1])
        names = re.findall("^# Question (q[0-9]+)$", text, re.MULTILINE)
        times[text] += 1
        verdict = "1" if number < (2 if names else 3 if times[text] == 1 else 5) else "0"
        goal = {"goal": "g", "end_state": "e", "reason": "r", "evidence": [2]}
        reply = {"goals": [{**goal, "verdict": "achieved" if verdict == "1" else "not_achieved"}]}
        message = {"role": "assistant", "content": json.dumps(dict.fromkeys(names, reply) if names else reply)}
        return httpx.Response(200, json={"model": "m", "choices": [{"message": message, "finish_reason": "stop"}]})

    mocked.post("https://api.openai.com/v1/chat/completions").mock(side_effect=answer)
    words = ("--scorer", GOAL, "--scorer", f"{GOAL}:partial=true,as=share", "--judge", "openai/a", "--together")
    ended = cli("compare-judges", conversations(6), *words, "-o", "ways.json", "--show", 1)
    assert ended.code == 0, ended.err
    shown = [line for line in lines(ended.out) if line[0].startswith(("together and", "alone and"))]
    assert [line[:3] for line in shown if "flipped" not in line[0]] == [
        ["together and alone", "6", "1"],
        ["together and alone again", "6", "3"],
        ["alone and alone again", "6", "2"],
    ] * 2
    written = json.loads(Path("ways.json").read_text())
    assert [*written] == [GOAL, "share"]
    together, alone, again = written[GOAL]["judges"]
    assert (together["requests"], alone["requests"], again["requests"]) == (3, 6, 6)
    ((flip,), *_) = (pair["flips"] for pair in written[GOAL]["pairs"])
    assert flip["sample_id"] == "s2"


def test_what_together_cannot_compare_is_refused(cli, conversations):
    for words, told in (
        (("--scorer", GOAL, "--judge", "openai/a"), "needs two or more scorers that ask the judge"),
        (("--scorer", GOAL, "--scorer", "prompt:tone", *TWO), "compares the ways to ask one judge, found 2 judges"),
        (("--scorer", GOAL, "--scorer", "prompt:tone", "--judge", "openai-decisions/a"), "are always asked together"),
        (("--scorer", GOAL, "--judge", "openai/a", "--imported", "x"), "leave out --imported, --labels and --label"),
        (("--scorer", GOAL, "--scorer", "prompt:tone", "--judge", "openai/a", "-o", "x.html"), ".json"),
    ):
        ended = cli("compare-judges", conversations(1), *words, "--together")
        assert (ended.code, told in ended.err) == (2, True), words
