"""Readers of other packages and of one's own code, which may raise anything."""

import json
import logging

import pytest

from judgekit.errors import ConfigError, TraceError
from judgekit.formats import detect as detection
from judgekit.formats.readers import reader_named
from judgekit.formats.readers.own import OwnReader
from judgekit.formats.reading import read

READER = """
from judgekit import AIMessage, HumanMessage, Sample

class Unprintable(Exception):
    def __str__(self):
        raise ValueError

class Turns:
    name = "turns"
    shape = 'turns: {"turns": [...]}'
    joins_lines = False

    def recognizes(self, value):
        return "turns" in value["about"]

    def records(self, document):
        if document == {"records": "raise"}:
            raise KeyError("records")
        for record in document if isinstance(document, list) else [document]:
            yield record["half"] if "half" in record else record

    def sample(self, record, index):
        if "raises" in record:
            raise eval(record["raises"])
        if "returns" in record:
            return eval(record["returns"])
        return Sample.of([HumanMessage(record["turns"][0]), AIMessage(record["turns"][1])])

class Broken:
    def __init__(self):
        self.nothing.there
"""
GOOD = {"turns": ["Hi", "Hello"], "about": ["turns"]}


@pytest.fixture
def own(tmp_path):
    """The reader, by the name that `--format` takes."""
    (tmp_path / "own_reader.py").write_text(READER)
    return f"{tmp_path}/own_reader.py:Turns"


def outcome(tmp_path, rows, format, suffix=".jsonl"):
    """Return the responses and the errors of a file."""
    path, errors = tmp_path / f"rows{suffix}", []
    path.write_text(json.dumps(rows) if suffix == ".json" else "\n".join(map(json.dumps, rows)))
    responses = [sample.trace.response for sample in read(path, format, on_error=errors.append)]
    return responses, [str(error).removeprefix(f"{path}") for error in errors]


@pytest.mark.parametrize("suffix", [".jsonl", ".json"])
@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ({"turns": ["Hi"]}, "IndexError: list index out of range (own_reader.py, line 27, in sample)"),
        ({"raises": "ZeroDivisionError('x')"}, "ZeroDivisionError: x (own_reader.py, line 24, in sample)"),
        ({"raises": "BaseExceptionGroup('two', [GeneratorExit()])"}, "BaseExceptionGroup: two (1 sub-exception)"),
        ({"raises": "Unprintable()"}, "Unprintable (own_reader.py, line 24, in sample)"),
        ({"raises": "StopIteration(1)"}, "StopIteration: 1 (own_reader.py, line 24, in sample)"),
    ],
)
def test_whatever_a_reader_raises_is_a_record_that_cannot_be_read(tmp_path, own, record, problem, suffix):
    responses, [error] = outcome(tmp_path, [GOOD, record, GOOD], own, suffix)
    assert responses == ["Hello", "Hello"]
    assert error.startswith(f"{' (line 2)' if suffix == '.jsonl' else ', record 1'}: the format turns raised {problem}")


def test_what_is_raised_while_records_are_found_concerns_their_line(tmp_path, own):
    responses, errors = outcome(tmp_path, [GOOD, {"records": "raise"}, [GOOD, 5], GOOD], own)
    assert responses == ["Hello", "Hello"]
    assert errors[0].startswith(" (line 2): the format turns raised KeyError: 'records' (own_reader.py, line ")
    assert errors[1].startswith(" (line 3): the format turns raised TypeError: argument of type 'int' is not ")


@pytest.mark.parametrize(("returned", "text"), [("None", "None"), ("record['x']", "'y'"), ("Sample", "<class ")])
def test_a_reader_that_makes_no_sample_has_not_read_the_record(tmp_path, own, returned, text):
    responses, [error] = outcome(tmp_path, [{"returns": returned, "x": "y"}, GOOD], own)
    assert responses == ["Hello"]
    assert error.startswith(f" (line 1): the format turns returned {text}")
    assert error.endswith("instead of a Sample")


def test_errors_of_a_reader_that_say_why_are_left_as_they_are(tmp_path, own):
    (tmp_path / "other.py").write_text(READER.replace("import AIM", "import errors, AIM"))
    cases = {"errors.TraceError('no turns')": "no turns", "Sample(id='a', trace={'messages': 5})": "trace.messages: "}
    for raised, problem in cases.items():
        _, [error] = outcome(tmp_path, [{"raises": raised}, GOOD], f"{tmp_path}/other.py:Turns")
        assert error.startswith(f" (line 1): {problem}")


def test_an_installed_reader_that_cannot_look_at_a_record_leaves_it_to_others(tmp_path, own, monkeypatch, caplog):
    monkeypatch.setattr(detection, "installed_readers", lambda: [reader_named(own)])
    chat = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Bye"}]}
    with caplog.at_level(logging.WARNING, "judgekit"):
        assert outcome(tmp_path, [chat, chat], None) == (["Bye", "Bye"], [])
        assert outcome(tmp_path, [GOOD, GOOD], None) == (["Hello", "Hello"], [])
    [message] = caplog.messages
    assert message.startswith("the format turns cannot tell whether a record has its form: ")
    assert "KeyError: 'about' (own_reader.py, line 14, in recognizes)" in message


def test_a_reader_that_cannot_be_made_is_named(own):
    with pytest.raises(
        ConfigError, match=r"Broken: AttributeError: 'Broken' object has no attribute 'nothing' \(own_r"
    ):
        reader_named(own.replace("Turns", "Broken"))


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_what_ends_the_program_goes_through(own, error):
    with pytest.raises(error):
        reader_named(own).sample({"raises": f"{error.__name__}()"}, 0)


def test_judgekits_own_readers_raise_what_they_raise():
    assert not isinstance(reader_named("openai-chat"), OwnReader)
    with pytest.raises(TraceError):
        reader_named("openai-chat").sample(5, 0)
