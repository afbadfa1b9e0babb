"""With ``--explain``, no command shows a term of statistics on a terminal without saying what it means."""

import json
import random
import re
from pathlib import Path

import httpx
import pytest

from judgekit import BLEU, PromptScorer, Repeat, Sample, ScriptedJudge, load_prompt, run
from judgekit.behavior import MaxMessages
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.scorers.classification.labels import Classification
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall

TERMS = {
    r"interval|\d\.\d+ to [+-]?\d\.|\[-?\.\d": "95 % interval",
    r"\bn=\d|\bn  |\bn$": "n",
    r"\bt,|\bt$": "t",
    r"\bp(?= \(| is| by| <?\d|$)": "p",
    r"cluster": "cluster-robust",
    r"\d groups": "groups",
    r"Rogan": "Rogan-Gladen",
    r"\bPPI": "PPI++",
    r"strata|stratified": "stratified",
    r"calibration": "calibration error",
    r"\bflip(?:s|ped)\b": "flip",
    r"\brepeats?\b(?! (?:a|the|itself|what|these)\b)": "repeat",
    r"permutation|sign-flip": "sign-flip permutation",
    r"\bf1(?:_macro)?\b": "F1",
    r"precision(?:_macro)?": "precision",
    r"recall(?:_macro)?": "recall",
    r"_macro|\bmacro": "macro",
    r"(?<!weighted )\bkappa": "kappa",
    r"\bp90\b|percentile": "p90",
    **{
        name: name
        for name in [
            *("Wilson", "bootstrap", "jackknife", "median", "quantile", "standard error", "deviation", "variance", "weighted kappa"),
            *("AC1", r"alpha", "Cohen", "Fleiss", "sensitivity", "specificity", "correlation", "Spearman", "Pearson", "confusion"),
            *("labels alone", "McNemar", "Holm", "Bonferroni", "detectable", "flip rate", "guarantee", "coverage"),
            *("accuracy", "confidence", "bias", "significan", "odds", "posterior", "credible", "likelihood", "hypothesis", "AUC"),
            *("regression", "entropy", "Clopper", "degrees of freedom", "raw", "corrected", "agreement", "near the threshold"),
            *("no evidence", "closeness", "prevalence", "Youden", "design effect", "Kish", "effect size", "tau", "percentage point"),
        ]
    },
    r"pass\^k": "pass^k",
    r"pass@k": "pass@k",
}  # fmt: skip
"""As many as come to mind, whatever judgekit calls them, each with the name under which it must be explained."""
NAMES = {"correlation": "rank correlation"}


def unexplained(text: str) -> set[str]:
    """What stands in a text above its explanations, and is not among these."""
    shown, _, below = text.partition("\nglossary\n")
    names = {re.split(r"\s{2,}", line)[0] for line in below.splitlines() if not line.startswith(" ")}
    found = {
        name
        for term, name in TERMS.items()
        if re.search(rf"(?<!\w)(?:{term})(?!\w)", shown, re.IGNORECASE | re.MULTILINE)
    }
    return {NAMES.get(name, name) for name in found} - names


@pytest.fixture
def screen(cli, monkeypatch):
    """Runs a command as on a terminal, and gives what is seen."""

    def shown(*words: object) -> str:
        monkeypatch.setenv("TTY_COMPATIBLE", "1")
        monkeypatch.setenv("TERM", "dumb")
        explained = () if words[0] == "label" else ("--explain",)
        code, out, err = cli(*words, *explained)
        assert code in (0, 1), err
        above, heading, below = out.partition("\nglossary\n")
        return f"{above}\n{err}{heading}{below}"

    return shown


def tuned(reply, **steps: str) -> ScriptedJudge:
    dice = random.Random(1)  # noqa: S311 - a judge in two minds
    return ScriptedJudge(lambda request: {**steps, "reason": "", "evidence": [], "verdict": reply(request, dice)})


def conversation(number: int, prefix: str = "s", group: str | None = None) -> Sample:
    messages = [
        HumanMessage(f"Hi {prefix}{number}{'!' if number % 3 == 0 else ''}"),
        AIMessage("So be it, and well it is. " * (1 + number % 4)),
    ]
    return Sample.of(
        messages,
        id=f"{prefix}{number}",
        reference="So be it, and well it is.",
        group=group,
        label="yes" if number % 2 else "no",
        prediction="yes" if number % 3 else "no",
        domain=f"d{number % 2}",
    )


def kept(prefix: str = "s", size: int = 96) -> None:
    """Keeps a run of scorers of all kinds, of tasks with three trials each; some of its judges change their mind."""
    tone = tuned(
        lambda request, dice: "lacking" if ("!" in request.messages[1].content) ^ (dice.random() < 0.2) else "fitting"
    )
    steady = tuned(lambda request, _: "lacking" if "!" in request.messages[1].content else "fitting")
    grades = tuned(lambda request, dice: dice.choice(["none_shown", "some", "strong"]), signs="none")
    prompt = load_prompt("tone")
    scorers = [
        Repeat(PromptScorer(prompt, tone), repeats=3),
        PromptScorer(prompt, steady),
        PromptScorer(load_prompt("user_frustration"), grades),
        Classification("f1_macro"),
        BLEU(),
        MaxMessages(3),
    ]
    run(
        [conversation(number, prefix, f"task {number // 3}") for number in range(size)],
        scorers,
        store=DEFAULT_RUNS_PATH,
        concurrency=1,
    )


def labels(scorer: str, values, path: str, annotators: str = "ann", selection: str = "") -> str:
    head = "sample,scorer,value,annotator,selection"
    lines = [
        f"s{number},{scorer},{value(number, place) if callable(value) else value},{person},{selection}"
        for place, person in enumerate(annotators.split())
        for number, value in values.items()
    ]
    Path(path).write_text("\n".join([head, *lines]), encoding="utf-8")
    return path


def test_runs_and_audits_show_no_term_without_its_meaning(screen, monkeypatch):
    monkeypatch.setattr("judgekit.runs.intervals._BOOTSTRAP_DRAWS", 50)
    kept()
    plain, redrawn = screen("runs", "last"), screen("runs", "last", "--bootstrap")
    for term in ("95 % interval", "median", "pass^k", "modified Wilson, 32 groups", "f1_macro", "p90"):
        assert term in plain
    assert "bootstrap" in redrawn
    several = labels(
        "tone_x3",
        {number: lambda at, place: int(at % 3 > 0 or at % 7 == place) for number in range(96)},
        "x3.csv",
        "ann bob cho",
    )
    some = labels(
        "tone", {number: number % 4 > 0 for number in range(0, 96, 2)} | {3: 0, 9: 0}, "tone.csv", selection="random"
    )
    grades = labels("user_frustration", {number: (1, 0.5, 0)[number % 3] for number in range(96)}, "grades.csv")
    text = screen(
        "audit", "last", "--labels", several, "--labels", some, "--labels", grades, "--guarantee", 0.4, "--show", 0
    )
    for term in (
        "PPI++", "labels alone", "weighted kappa", "AC1", "alpha", "sensitivity", "rank correlation", "calibration",
        "flip rate", "guarantee", "confidence", "near the threshold", "bootstrap", "Gates up to",
    ):  # fmt: skip
        assert term in " ".join(text.partition("glossary")[0].split()), term
    for shown in (plain, redrawn, text):
        assert not unexplained(shown)
    assert not unexplained(screen("runs", "last"))  # whose means are corrected now
    kept("other", 48)
    assert not unexplained(screen("runs", "last"))  # from there, if that can be
    assert not unexplained(screen("label", 1, "--scorer", "tone", "--n", 4, "-o", "sheet.csv"))


GOAL = "agent_goal_accuracy_without_reference"


@pytest.fixture
def _answering(mocked, monkeypatch):
    """Judges a, b and c, which say different things of each fifth, fourth or third sample."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")

    def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content)
        number = int(re.search(r"tool_(\d+)", body["messages"][1]["content"])[1])
        verdict = "achieved" if number % {"a": 5, "b": 4, "c": 3}[body["model"]] else "not_achieved"
        goal = {"goal": "g", "end_state": "e", "reason": "so", "evidence": [2], "verdict": verdict}
        message = {"role": "assistant", "content": json.dumps({"goals": [goal]})}
        return httpx.Response(200, json={"choices": [{"message": message, "finish_reason": "stop"}]})

    mocked.post("https://api.openai.com/v1/chat/completions").mock(side_effect=answer)


def talks(name: str, size: int = 40) -> str:
    made = [
        Sample.of(
            [HumanMessage("Hi"), AIMessage(tool_calls=[ToolCall(f"tool_{n}", {})], agent="a", model="m")], id=f"s{n}"
        )
        for n in range(size)
    ]
    Path(name).write_text("".join(f"{one.model_dump_json()}\n" for one in made), encoding="utf-8")
    return name


@pytest.mark.usefixtures("_answering")
def test_gates_and_comparisons_show_no_term_without_its_meaning(screen):
    first = screen("run", talks("a.jsonl"), "--scorer", GOAL, "--judge", "openai/a", "--gate", f"{GOAL}.lower >= 0.9")
    assert "Wilson" in first
    human_labels = labels(GOAL, {number: int(number % 5 > 0 and number % 9 > 0) for number in range(40)}, "people.csv")
    audited = screen("audit", 1, "--labels", human_labels)
    gates = ("--gate", f"{GOAL}.corrected.lower >= 0.2", "--gate", "coverage >= 50%")
    again = screen("run", talks("b.jsonl", 39), "--scorer", GOAL, "--judge", "openai/a", *gates)
    assert "Rogan-Gladen" in again
    screen("run", "a.jsonl", "--scorer", GOAL, "--judge", "openai/c")
    compared = screen("compare", 1, 3)
    words = ("--scorer", GOAL, "--judge", "openai/a", "--judge", "openai/c", "--labels", human_labels)
    judges = screen("compare-judges", "a.jsonl", *words)
    for term in ("p (Holm)", "McNemar"):
        assert term in compared
    for term in ("kappa", "flips", "McNemar"):
        assert term in judges
    for text in (first, audited, again, compared, judges):
        assert "\nglossary\n" in text
        assert not unexplained(text)
