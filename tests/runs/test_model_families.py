"""The families of language models, and what a run says if its judge is of the agent's."""

import pytest

from judgekit import AIMessage, Sample, Score, run, scorer
from judgekit.runs.model_families import is_model_name, model_families
from judgekit.score import JudgeCall


def test_a_model_is_of_the_family_that_its_name_begins_with():
    for name, family in (
        ("openai/gpt-4o-mini", ["GPT"]),
        ("azure/o3-mini", ["GPT"]),
        ("support gpt-5.1-2025", ["GPT"]),
        ("litellm/anthropic/claude-sonnet-4", ["Claude"]),
        ("openrouter/meta-llama/llama-3.3-70b-instruct", ["Llama"]),
        ("gemini/gemini-2.5-pro", ["Gemini"]),
        ("Qwen/Qwen3-32B, mistral-large", ["Mistral", "Qwen"]),
        ("support-bot 2", []),
        ("turbo3", []),
        ("", []),
    ):
        assert model_families([name]) == family


def test_an_annotator_may_have_the_name_of_a_model_or_of_the_judge_and_people_have_others():
    models = [
        *("gpt-4o", "GPT4", "ChatGPT", "openai/my-tuned", "claude-3-5-sonnet", "claude sonnet", "Claude", "gemini pro"),
        *(
            "o3-mini",
            "meta-llama/Llama-3.3-70B",
            "LLM",
            "llm_judge",
            "model_graded_qa",
            "judge",
            "My Judge",
            "my-judge-7b",
        ),
    ]
    people = [
        *("Ana", "Claude Dupont", "Jean-Claude D.", "claudette", "Kimiko", "Gemma Ward", "grader 1", "Judge Judy"),
        *("bot-team@example.org", "annotator_3", "5f2c", "Ai Weiwei", "", "rater/2"),
    ]
    judges = ["litellm/My Judge", "some/my-judge-7b"]
    assert [name for name in (*models, *people) if is_model_name(name, judges)] == models


@pytest.mark.parametrize(
    ("judge", "answered", "agent", "shared"),
    [
        ("openai/gpt-4o-mini", None, "gpt-4.1", "GPT"),
        ("careful", "claude-opus-4", "anthropic/claude-haiku", "Claude"),
        ("openai/gpt-4o-mini", None, "claude-haiku", ""),
        ("openai/gpt-4o-mini", None, None, ""),
    ],
)
def test_a_judge_of_the_agents_family_is_pointed_out(judge, answered, agent, shared):
    @scorer
    def tone(sample: Sample) -> Score:
        return Score.scored("tone", 1, calls=[JudgeCall(judge=judge, model=answered, prompt="p")])

    summary = str(run([Sample.of([AIMessage("Hi", model=agent)])], [tone]).summary)
    assert ("self-preference" in summary) is bool(shared)
    assert (f"tone: judge and agent are both {shared} models: " in summary) is bool(shared)
