"""What all tests share."""

import gc
import importlib
import importlib.util
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest
import respx
from hypothesis import settings
from respx.mocks import HTTPCoreMocker

ROOT = Path(__file__).parent.parent

settings.register_profile("suite", max_examples=50, deadline=None)  # other ones each time, and no test of speed
settings.load_profile("suite")


def pytest_collection_finish() -> None:
    """Thousands of tests are not looked through again by every collection of garbage: it would take seconds of each minute."""
    gc.freeze()


@pytest.fixture
def shared_data() -> Path:
    """Recordings made by others, which lie beside a checkout and are never copied into it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the recordings of others are not here ({folder})")
    return folder


@pytest.fixture(scope="session")
def examples() -> Path:
    """The example conversations and replies."""
    return ROOT / "examples"


class DualMocker(HTTPCoreMocker):
    """Lets respx stand in for the transport of both families of the SDK: httpx (openai 2) and httpx2 (openai 3)."""

    name = "dual"
    targets: ClassVar[list[str]] = [
        *HTTPCoreMocker.targets,
        *(target.replace("httpcore.", "httpcore2.", 1) for target in HTTPCoreMocker.targets),
    ]

    @classmethod
    def start(cls) -> None:
        cls.targets = [target for target in cls.targets if importlib.util.find_spec(target.split(".")[0])]
        super().start()

    @classmethod
    def from_sync_httpx_response(cls, httpx_response, target, **_: object):
        core = importlib.import_module(type(target).__module__.split(".")[0])
        return core.Response(
            status=httpx_response.status_code,
            headers=httpx_response.headers.raw,
            content=httpx_response.stream,
            extensions=httpx_response.extensions,
        )


def _no_aiohttp(**_: object) -> None:
    raise RuntimeError("aiohttp is not installed")


@pytest.fixture
def mocked(monkeypatch) -> Iterator[respx.MockRouter]:
    """A router in the place of the network, for any host. It knows nothing of aiohttp, which is done without."""
    monkeypatch.setattr("openai.DefaultAioHttpClient", _no_aiohttp)
    with respx.mock(using="dual", assert_all_called=False) as router:
        yield router


@pytest.fixture
def run_python(tmp_path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs a script, or with -c a program, with the interpreter of the tests, in an empty folder."""

    def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, *map(str, arguments)],
            cwd=tmp_path,
            env={"PATH": "", "PYTHONWARNINGS": "error,ignore::DeprecationWarning", "PYTHONUTF8": "1", **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run
