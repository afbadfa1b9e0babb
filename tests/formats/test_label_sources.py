"""The source of a score, from its name and its mark."""

import dataclasses
from importlib import import_module

import pytest

from judgekit.formats.label_sources import JUDGED_SCORERS, combined_source, label_source
from judgekit.judges.prompt_file import shipped_prompts
from judgekit.scorers import SCORERS


def test_the_table_of_judged_scorers_holds_the_registry_and_the_shipped_prompts():
    judged = set()
    for name, place in SCORERS.items():
        module, _, kind = place.partition(":")
        fields = {field.name for field in dataclasses.fields(getattr(import_module(module), kind))}
        if fields & {"judge", "scorers"}:
            judged.add(name)
    assert judged
    assert judged | {prompt.name for prompt in shipped_prompts()} == JUDGED_SCORERS


def test_names_tell_judges_and_nothing_else():
    cases = [
        ("tone", "judge"),
        ("tone (openai/gpt-x)", "judge"),
        ("tone2", "judge"),
        ("panel", "judge"),
        ("model_graded_qa", "judge"),
        ("llm_as_a_judge", "judge"),
        ("LLMJudge", "judge"),
        ("my-grader", "judge"),
        ("tonality", "unknown"),
        ("order_fulfillment", "unknown"),
        ("judgement_free", "unknown"),
        ("accuracy", "unknown"),
        ("", "unknown"),
    ]
    for name, unmarked in cases:
        assert label_source(name) == unmarked
        assert label_source(name, judged=True) == "judge"
        assert label_source(name, judged=False) == ("judge" if unmarked == "judge" else "benchmark")


@pytest.mark.parametrize(
    ("sources", "source"),
    [
        ([], "unknown"),
        (["benchmark", "benchmark"], "benchmark"),
        (["benchmark", "unknown"], "unknown"),
        (["unknown", "judge", "benchmark"], "judge"),
        (["judge", "human"], "human"),
    ],
)
def test_a_verdict_that_combines_several_has_the_strongest_source(sources, source):
    assert combined_source(sources) == source
