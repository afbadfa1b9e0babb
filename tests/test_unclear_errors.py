"""Mistakes of new users, each with an error that says what to write instead."""

import traceback
from pathlib import Path

import pytest
from pydantic import ValidationError

from judgekit import AIMessage, HumanMessage, Sample, plan
from judgekit.cli import options
from judgekit.errors import ConfigError, TraceError
from judgekit.formats.reading import read
from judgekit.score import Score
from judgekit.specs import ScorerSpec


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: HumanMessage(text="Hi"), "no field of HumanMessage is called 'text'. Did you mean 'content'?"),
        (
            lambda: AIMessage("Ho", tool_cals=[]),
            "no field of AIMessage is called 'tool_cals'. Did you mean 'tool_calls'?",
        ),
    ],
)
def test_a_misspelled_field_of_a_message_names_the_nearest(make, told):
    with pytest.raises(ValidationError) as raised:
        make()
    assert told in "".join(traceback.format_exception(raised.value))


def test_a_scorer_in_a_module_of_the_working_folder_is_named_by_it(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("")
    spec = ScorerSpec.parse("mine:calm:strict=true")
    assert (spec.name, spec.argument, spec.options) == ("mine:calm", None, {"strict": True})
    Path("prompt.py").write_text("")
    assert ScorerSpec.parse("prompt:tone").name == "prompt"  # a name of judgekit's own is no module
    assert ScorerSpec.parse("nowhere_to_be_found:calm").name == "nowhere_to_be_found"


def test_a_column_has_one_meaning():
    with pytest.raises(ConfigError, match="--column a=reference: 'a' is given twice"):
        options.parse_columns(["a=response", "a=reference"])


def test_a_column_that_is_misspelled_names_the_nearest():
    with pytest.raises(
        ConfigError, match=r"--column a=respons: no column of judgekit is called 'respons'. Did you mean 'resp"
    ):
        options.parse_columns(["a=respons"])
    for name in ("response", "city", "labels", "reference_tool_calls", "documents"):
        assert options.parse_columns([f"a={name}"]) == {"a": name}


def test_prose_is_no_recording(tmp_path):
    path = tmp_path / "prose.txt"
    path.write_text("Dear all,\nthis is a letter.\n")
    with pytest.raises(TraceError, match="it holds other text, and judgekit formats lists what can be read"):
        list(read(path))


def test_the_cause_of_a_failure_is_printed_after_a_long_beginning(run_of):
    cause = f"HTTP 404 at https://example.com/{'x' * 150}: the model does not exist"
    assert cause in str(run_of([Score.failed("a", cause, error="ProviderError")]))


def test_a_plan_says_what_would_be_asked_and_not_that_it_failed():
    planned = plan([Sample.of([HumanMessage("Hi"), AIMessage("Ho")])], ["prompt:tone"], judge="openai/gpt-6-luna")
    text = str(planned.summary)
    assert "1 to ask a judge about" in text
    assert "PlannedError" not in text
    assert "failed" not in text
