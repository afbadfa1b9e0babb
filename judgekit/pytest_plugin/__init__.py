"""The pytest plugin: scores as assertions. Its dependencies are only loaded by tests that use its fixture."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from judgekit.pytest_plugin.fixture import JudgekitFixture
    from judgekit.pytest_plugin.judges import SessionJudges


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that lets tests ask judges."""
    parser.getgroup("judgekit").addoption(
        "--judgekit-judges",
        action="store_true",
        help="let tests send requests to judges, and record replies that their cassettes are missing",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line(
        "markers",
        'judgekit(cassette="replies.jsonl"): the cassette that records and replays the answers of the judges; '
        "the path is relative to the folder of the test file",
    )


@pytest.fixture(scope="session")
def _judgekit_judges(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> "SessionJudges":
    from judgekit.pytest_plugin.judges import SessionJudges  # noqa: PLC0415 - suites without the fixture load nothing

    return SessionJudges(pytestconfig, tmp_path_factory)


@pytest.fixture
def judgekit(request: pytest.FixtureRequest, _judgekit_judges: "SessionJudges") -> Iterator["JudgekitFixture"]:
    """Assert scores of samples: ``judgekit.assert_score(sample, scorer, at_least=0.8)``."""
    from judgekit.pytest_plugin.fixture import JudgekitFixture  # noqa: PLC0415 - as above

    fixture = JudgekitFixture(request, _judgekit_judges)
    yield fixture
    fixture.save()
