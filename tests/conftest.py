"""What all tests share."""

import base64
import gc
import importlib
import importlib.util
import json
import os
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from datetime import UTC
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest
import respx
from hypothesis import settings
from hypothesis import strategies as st
from respx.mocks import HTTPCoreMocker
from threadpoolctl import threadpool_limits

import judgekit
from judgekit import (
    PromptScorer,
    Run,
    Score,
    ScriptedJudge,
    SystemMessage,
    ToolCall,
    ToolMessage,
    Usage,
    load_prompt,
    registry,
)
from judgekit.analysis.audit import audit
from judgekit.analysis.findings import (
    Audit,
    Disagreement,
    Guarantee,
    HumanAgreement,
    Opinion,
    Repeatability,
    ScorerAudit,
)
from judgekit.analysis.labels import HumanLabel
from judgekit.runs.audit_records import AuditRecord, ConfusionCounts, Correction, write_audit_record
from judgekit.runs.intervals import Estimate
from judgekit.runs.population import Population
from judgekit.score import JudgeCall
from judgekit.scoring import FunctionScorer, scorer
from judgekit.traces.message import AIMessage, HumanMessage, MediaPart, OtherPart, ReasoningPart, RefusalPart, TextPart
from judgekit.traces.recording import Label, ToolDefinition, TraceSource, TraceWarning
from judgekit.traces.sample import ExpectedCall, Ranking, Sample
from judgekit.traces.trace import Trace
from tests.browsers import browser, new_page, opened  # noqa: F401 - fixtures

if TYPE_CHECKING:
    from botocore.client import BaseClient

ROOT = Path(__file__).parent.parent
MEMORY = Path("/dev/shm")  # noqa: S108 - pytest makes a folder in it that others cannot write to
SECRET = "not-to-be-shown"  # noqa: S105 - of nothing

settings.register_profile("brief", max_examples=10, deadline=None)  # other ones each time, and no test of speed
settings.register_profile("suite", max_examples=50, deadline=None)  # of what was changed, before a pull request
settings.load_profile("brief")


def pytest_configure() -> None:
    """Keep linear algebra to one thread, and temporary folders in memory.

    Several threads wait for each other in busy loops, ten times as long where others work too. SQLite waits for a disk
    at each commit, so temporary folders are in memory where there is enough of it.
    """
    threadpool_limits(1, "blas")  # of numpy, which plugins have loaded
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # of scipy, and of processes that tests start
    if MEMORY.is_dir() and shutil.disk_usage(MEMORY).free > 4e9:
        os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are processors, since some tests wait for servers and clocks."""
    return (os.cpu_count() or 1) + 1


def pytest_itemcollected(item: pytest.Item) -> None:
    """Two processes that collect tests must give them the same names. What starts another Python is marked."""
    if " at 0x" in item.nodeid:
        raise pytest.UsageError(f"{item.nodeid}: an object's address is in this id; give the parameter another one")
    if not {"run_python", "programs"}.isdisjoint(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.processes)


def pytest_collection_finish() -> None:
    """Objects that stay are frozen: garbage collections would look through them again, for seconds of each minute."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Freeze what a module leaves behind as well: reports, caches and what was imported."""
    if nextitem is not None and nextitem.path != item.path:
        gc.collect()
        gc.freeze()


@pytest.fixture(autouse=True)
def named_by_nobody(monkeypatch) -> None:
    """Forget the modules that other tests have named, as a new process does."""
    monkeypatch.setattr(registry, "_named", set())


@pytest.fixture(scope="session")
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


@pytest.fixture(scope="session")
def needed_options() -> Mapping[str, str]:
    """Options that scorers need, as they stand behind their names on the command line."""
    return {
        "err": ":max_grade=3",
        "hit_rate": ":k=3",
        "max_cost": ":1",
        "max_messages": ":1",
        "max_seconds": ":1",
        "max_tokens": ":1",
        "max_tool_calls": ":1",
        "max_tool_error_rate": ":1",
        "pairwise": ':question="Which one?"',
        "precision_at_k": ":k=3",
        "recall_at_k": ":k=3",
        "imported": ":quality",
        "regex": ":q",
        "never_says": ":q",
        "tool_call_match": ":same_calls",
        "tool_constraints": ':constraints=[{"type":"max_steps","n":1}]',
        "weighted_criteria": ':weights={"kind":1}',
    }


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
    common = {"PATH": "", "PYTHONUTF8": "1", "PYTHONWARNINGS": "error,ignore::DeprecationWarning"}

    def run(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603 - our own interpreter
            [sys.executable, *map(str, arguments)],
            cwd=tmp_path,
            env={**common, "PYTHONPATH": os.environ.get("PYTHONPATH", ""), **environment},
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run


@pytest.fixture(scope="session")
def count_calls() -> Callable[[Callable[[], object]], int]:
    """How many functions something calls, built-in ones as well: how its work grows, which no other work disturbs."""

    def count(work: Callable[[], object]) -> int:
        kinds: Counter[str] = Counter()
        before = sys.getprofile()
        sys.setprofile(lambda _frame, kind, _what: kinds.update((kind,)))
        try:
            work()
        finally:
            sys.setprofile(before)
        return kinds["call"] + kinds["c_call"]

    return count


@pytest.fixture(scope="session")
def programs(tmp_path_factory) -> Iterator[Path]:
    """A folder with the programs judgekit and python, which run their commands in forks of one process: fork_server.py."""
    folder = tmp_path_factory.mktemp("programs")
    words = [
        sys.executable,
        "-P",
        "-Werror",
        "-Wignore::DeprecationWarning",
        Path(__file__).with_name("fork_server.py"),
        folder,
    ]
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        words, stdout=subprocess.PIPE, env=os.environ | {"PYTHONUTF8": "1"}
    ) as server:
        assert server.stdout.readline() == b"listening\n"
        yield folder
        server.kill()


class ForkedCommand:
    """A command in a fork of the server of programs, which is used like ``subprocess.Popen`` with text and pipes."""

    def __init__(self, programs: Path, folder: Path, *words: object) -> None:
        """Start the program of that name in a folder, in the environment of the tests."""
        (out, stdout), (err, stderr) = os.pipe(), os.pipe()
        self.stdout, self.stderr = (os.fdopen(number, encoding="utf-8") for number in (out, err))
        self.args, self.returncode = words, None
        self._link = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._link.connect(str(programs / "socket"))
        request = json.dumps([list(map(str, words)), dict(os.environ), str(folder)]).encode()
        with Path(os.devnull).open() as nothing:
            socket.send_fds(self._link, [request], [nothing.fileno(), stdout, stderr])
        os.close(stdout)
        os.close(stderr)
        self.pid = int(self._link.recv(16))

    def poll(self) -> int | None:
        """The exit code, or none while it runs."""
        with suppress(TimeoutError):
            self.wait(1e-6)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; return the exit code, or the negative number of a signal."""
        if self.returncode is None:
            self._link.settimeout(timeout)
            self.returncode = os.waitstatus_to_exitcode(int(self._link.recv(16)))
            self._link.close()
        return self.returncode

    def communicate(self, timeout: float = 60) -> tuple[str, str]:
        """Wait until it has ended, or kill it after that time; return what it wrote and was not yet read."""
        with ThreadPoolExecutor(2) as readers, self.stdout, self.stderr:
            texts = readers.map(lambda stream: stream.read(), (self.stdout, self.stderr))
            try:
                self.wait(timeout)
            finally:
                self.kill()
            out, err = texts
        return out, err

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


@pytest.fixture
def forked(programs, tmp_path) -> Iterator[Callable[..., ForkedCommand]]:
    """Starts commands in forks of one process, which end with the test: a program and its arguments, in the test's folder."""
    running: list[ForkedCommand] = []

    def start(*words: object) -> ForkedCommand:
        running.append(ForkedCommand(programs, tmp_path, *words))
        return running[-1]

    yield start
    for command in running:
        command.kill()
        if not command.stdout.closed:
            command.communicate()


# What is in files.


def _contents(path: Path) -> Iterator[str]:
    """All that can be read in a file: also what is compressed in it."""
    body = path.read_bytes()
    yield body.decode(errors="replace")
    if body.startswith(b"SQLite"):
        with closing(sqlite3.connect(path)) as db:
            for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'"):
                for row in db.execute(f"SELECT * FROM {table}"):  # noqa: S608 - names of its own
                    for cell in row:
                        yield str(cell)
                        with suppress(zlib.error):
                            yield zlib.decompress(cell).decode() if isinstance(cell, bytes) else ""
    if path.suffix == ".parquet":
        import pyarrow.parquet  # noqa: PLC0415

        yield str(pyarrow.parquet.read_table(path).to_pylist())
    if path.suffix == ".html":
        for packed in re.findall(rb">([A-Za-z0-9+/=]{20,})<", body):
            with suppress(ValueError, zlib.error):
                yield zlib.decompress(base64.b64decode(packed)).decode()


@pytest.fixture(scope="session")
def contents() -> Callable[[Path], Iterator[str]]:
    return _contents


# Secrets, as servers repeat them.


def _as_escapes(text: str) -> str:
    return "".join(f"\\u{ord(character):04x}" for character in text)


def _as_percent(text: str) -> str:
    return "".join(f"%{ord(character):02X}" for character in text)


_SPELLINGS: Mapping[str, Callable[[str], str]] = {
    "plain": lambda key: key,
    "JSON": lambda key: json.dumps(key)[1:-1],
    "JSON in JSON": lambda key: json.dumps(json.dumps({"k": key})),
    "JSON four deep": lambda key: json.dumps(json.dumps(json.dumps(json.dumps(key)))),
    "JSON of PHP": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "all escaped": _as_escapes,
    "all escaped in JSON": lambda key: json.dumps(_as_escapes(key)),
    "percent": lambda key: quote(key, safe=""),
    "percent, all": _as_percent,
    "percent, lower case": lambda key: _as_percent(key).lower(),
    "half and half": lambda key: _as_escapes(key[::2][:1]) + key[1:],
    **{
        f"Basic, {len(user)}": lambda key, user=user: base64.b64encode(f"{user}:{key}:".encode()).decode()
        for user in ("a", "ab", "abc")
    },
    "Basic in JSON of PHP": lambda key: base64.b64encode(key.encode()).decode().replace("/", "\\/"),
    "Base64 for addresses": lambda key: base64.urlsafe_b64encode(f"me:{key}".encode()).decode(),
}


def _recovered(text: str, key: str) -> bool:
    """Whether somebody who looks for the key finds it: as it is, unescaped, or in any piece of Base64."""
    return any(key in one for one in _decoded(text))


@lru_cache(1)
def _decoded(text: str) -> list[str]:
    texts = [text]
    for _ in range(5):
        texts.append(re.sub(r'\\u00([0-9a-fA-F]{2})|\\(["/\\])', _unescape, texts[-1]))
    texts.append(re.sub(r"%([0-9a-fA-F]{2})", lambda found: chr(int(found[1], 16)), text))
    for run in re.findall(r"[A-Za-z0-9+/_-]{8,}", "".join(texts).replace("\\", "")):
        for start in range(4):
            piece = run[start:].replace("-", "+").replace("_", "/")
            texts.append(base64.b64decode(piece[: len(piece) // 4 * 4]).decode("latin-1"))
    return texts


def _unescape(found: re.Match[str]) -> str:
    return found[2] or chr(int(found[1], 16))


@pytest.fixture(scope="session")
def spellings() -> list[Callable[[str], str]]:
    """Ways to repeat a secret."""
    return list(_SPELLINGS.values())


@pytest.fixture(scope="session")
def recovered() -> Callable[[str, str], bool]:
    """Tells whether a secret stands in a text, however it is spelled."""
    return _recovered


# Any record of the package, by `st.from_type`.

text = st.text(max_size=10)
maybe = st.none() | text
numbers = st.floats(allow_nan=False, allow_infinity=False)
counts = st.none() | st.integers(0, 10**6)
times = st.none() | st.datetimes(timezones=st.sampled_from([None, UTC]))
scalars = st.none() | st.booleans() | st.integers() | numbers | text
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2), max_leaves=4
)
objects = st.just({}) | st.dictionaries(text, values, max_size=2)


def few(item: st.SearchStrategy) -> st.SearchStrategy:
    return st.lists(item, max_size=2)


retrieved = st.lists(text, max_size=2, unique=True) | st.dictionaries(text, numbers, max_size=3).map(
    lambda scores: list(scores.items())
)


media = st.builds(
    MediaPart,
    kind=st.sampled_from(["image", "audio", "video", "file"]),
    url=maybe,
    data=maybe,
    mime_type=maybe,
    name=maybe,
    extra=objects,
)
part = (
    st.sampled_from([TextPart, ReasoningPart, RefusalPart]).flatmap(
        lambda kind: st.builds(kind, text=text, extra=objects)
    )
    | media
    | st.builds(OtherPart, data=values)
)
call = st.builds(ToolCall, name=text, args=objects | text, id=maybe, metadata=objects, extra=objects)
usage = st.builds(Usage, input_tokens=counts, output_tokens=counts, cached_tokens=counts, extra=objects)
said = {"id": maybe, "timestamp": times, "metadata": objects, "extra": objects}
content = text | few(part)
system = st.builds(SystemMessage, content=content, role=st.sampled_from(["system", "developer"]), **said)
human = st.builds(HumanMessage, content=content, tool_calls=few(call), name=maybe, **said)
ai = st.builds(
    AIMessage,
    content=content,
    tool_calls=few(call),
    agent=maybe,
    model=maybe,
    finish_reason=maybe,
    usage=st.none() | usage,
    **said,
)
tool = st.builds(
    ToolMessage,
    content=content,
    tool_call_id=maybe,
    name=maybe,
    is_error=st.none() | st.booleans(),
    requestor=st.sampled_from(["assistant", "user"]),
    **said,
)


def traces(children: st.SearchStrategy) -> st.SearchStrategy:
    return st.builds(
        Trace,
        id=maybe,
        messages=few(system | human | ai | tool),
        source=st.none() | st.builds(TraceSource, format=text, path=maybe, index=counts),
        tools=few(st.builds(ToolDefinition, name=text, description=maybe, parameters=values, extra=objects)),
        started_at=times,
        ended_at=times,
        usage=st.none() | usage,
        cost_usd=st.none() | numbers,
        termination=maybe,
        labels=few(st.builds(Label, name=text, value=st.booleans() | st.integers() | numbers | text, annotator=maybe)),
        children=children,
        metadata=objects,
        extra=objects,
        warnings=few(st.builds(TraceWarning, message=text, path=maybe)),
    )


trace = traces(few(traces(st.just([]))))
sample = st.builds(
    Sample,
    id=text.filter(bool),
    trace=trace,
    baseline=st.none() | trace,
    reference=maybe,
    references=st.none() | few(text),
    reference_tool_calls=st.none()
    | few(
        st.builds(
            ExpectedCall,
            name=text,
            args=objects,
            compare_args=st.none() | few(text),
            requestor=st.sampled_from(["assistant", "user"]),
            turn=st.none() | st.integers(0, 10),
        )
    ),
    reference_topics=st.none() | few(text),
    label=maybe,
    prediction=maybe,
    prediction_score=st.none() | numbers,
    documents=st.none() | few(text),
    ranking=st.none() | st.builds(Ranking, retrieved=retrieved, relevance=st.dictionaries(text, numbers, max_size=2)),
    fields=objects,
    group=maybe,
    domain=maybe,
    metadata=objects,
)

for kind, strategy in {
    SystemMessage: system,
    HumanMessage: human,
    AIMessage: ai,
    ToolMessage: tool,
    Trace: trace,
    Sample: sample,
}.items():
    st.register_type_strategy(kind, lambda _, found=strategy: found)


RunOf = Callable[..., Run]
AuditSaying = Callable[..., Audit]


@pytest.fixture
def run_of() -> RunOf:
    """Gives a function that makes a run of these scores, those of each scorer in the order of the samples."""

    def made(*given: Sequence[Score], samples: Sequence[Sample] = (), store: Path | None = None) -> Run:
        samples = samples or [
            Sample.of([AIMessage(f"Hi {number}")], id=f"s{number}") for number in range(len(given[0]))
        ]

        def saying(scores: Sequence[Score]) -> FunctionScorer:
            said = {id(sample): score for sample, score in zip(samples, scores, strict=True)}
            return scorer(name=scores[0].scorer)(lambda sample: said[id(sample)])

        return judgekit.run(samples, [saying(scores) for scores in given], store=store)

    return made


@pytest.fixture
def run_with_audit(run_of, tmp_path) -> Callable[[str], Run]:
    """Gives a function that makes a run of two scorers that ask a judge and one that does not: ``a``, of which there is a
    audit record that names its agreement so, ``b`` and ``c``."""

    def made(agreement: str) -> Run:
        calls = [JudgeCall(judge="j", prompt="p", model="j-1", cost_usd=0.0)]
        scores = [Score.scored(name, 1, calls=calls if name != "c" else ()) for name in "abc"]
        found = run_of(*([one] for one in scores), store=tmp_path / "runs.sqlite")
        scorers = [one.model_copy(update={"judged": one.name != "c", "signature": "0" * 16}) for one in found.scorers]
        found = Run(found.store, found.record.model_copy(update={"scorers": scorers}))
        all_of_it = Population(samples=1, mean=1)
        audit_record = AuditRecord(
            scorer="a",
            fingerprint="0" * 16,
            identity=None,
            models={"j": ["j-1"]},
            run=found.number,
            run_started_at=found.started_at,
            sample_count=120,
            annotators=1,
            selection="all",
            agreement={agreement: Estimate(value=0.71, low=0.58, high=0.82)},
            judge_mean=Estimate(value=1),
            correction=Correction(unavailable_reason="all are labeled"),
            labeled=all_of_it,
            population=all_of_it,
            audited_at=found.started_at,
            version="0",
        )
        assert found.audits_folder is not None
        write_audit_record(audit_record, found.audits_folder)
        return found

    return made


@pytest.fixture
def audited_run(tmp_path) -> tuple[Run, Audit]:
    """A run of 24 conversations with an audit: the judge passes 16 of them, and people 8 of these and no other."""
    judge = ScriptedJudge(
        lambda request: {
            "reason": "",
            "evidence": [],
            "verdict": "lacking" if "!" in request.messages[1].content else "fitting",
        }
    )
    samples = [
        Sample.of(
            [HumanMessage(f"Hi, {number}{'!' if number % 3 == 0 else '.'}")],
            id=f"s{number}",
            domain=f"domain {number % 2}",
            group=f"task {number // 2}",
        )
        for number in range(24)
    ]

    @scorer
    def greeted(sample: Sample) -> float:
        return float(sample.trace.messages[0].text.startswith("Hi"))

    found = judgekit.run(samples, [PromptScorer(load_prompt("tone"), judge), greeted], store=tmp_path / "runs.sqlite")
    labels = [HumanLabel(sample=f"s{number}", scorer="tone", value=float(number % 3 == 1)) for number in range(24)]
    return found, audit(found, labels)


@pytest.fixture(scope="session")
def audit_saying() -> AuditSaying:
    """Gives a function that makes an audit with all that there may be in one, in which every word of others is this text."""

    def made(text: str, scorer: str = "goal", index: int = 0) -> Audit:
        def figure(value: float, low: float, high: float) -> Estimate:
            return Estimate(value=value, low=low, high=high, method=f"Wilson{text}")

        opinions = (
            Opinion(annotator=f"anna{text}", label=f"no{text}", value=0, reason=f"nothing came{text}"),
            Opinion(annotator=None, label=f"no{text}", value=0),
        )
        wrong = Disagreement(
            index=index,
            sample_id=f"s1{text}",
            judge_value=1,
            label=f"yes{text}",
            reason=f"it says so{text}",
            human_value=0,
            opinions=opinions,
        )
        found = ScorerAudit(
            scorer=scorer,
            fingerprint=text,
            kind="binary",
            sample_count=120,
            labels=1240,
            annotators=2,
            selection="random",
            unused_labels={f"people are divided{text}": 1},
            agreement={f"kappa{text}": figure(0.71, 0.58, 0.82), "sensitivity": Estimate(value=None)},
            confusion={f"yes{text}": {f"yes{text}": 63, f"no{text}": 5}, f"no{text}": {f"yes{text}": 12}},
            counts=ConfusionCounts(tp=63, fp=12, fn=5, tn=40),
            judge_mean=figure(0.643, 0.588, 0.694),
            correction=Correction(
                method=f"PPI++{text}",
                corrected=figure(0.581, 0.511, 0.649),
                assumptions=f"labels drawn at random{text}",
                effective_labels=187.4,
            ),
            human_agreement=HumanAgreement(
                samples=120,
                agreement={f"two people{text}": figure(0.9, 0.8, 0.95)},
            ),
            disagreements=[wrong, wrong.model_copy(update={"index": index + 1})],
            opinions={index: opinions},
            bias={"length": figure(-0.1, -0.3, 0.1), f"other{text}": figure(0.1, 0, 0.2)},
            calibration=figure(0.05, 0.02, 0.09),
            noise=Repeatability(
                samples=120,
                repeats=480,
                max_repeats=960,
                flip_rate=figure(0.08, 0.05, 0.12),
                near=figure(0.11, 0.06, 0.18),
                notes=[f"repeat twice{text}"],
            ),
            guarantee=Guarantee(
                alpha=0.1, delta=0.05, threshold=0.8, coverage=figure(0.7, 0.6, 0.8), risk=figure(0.04, 0.01, 0.1)
            ),
            notes=[f"a note{text}"],
        )
        return Audit(run=1, sources=[f"labels.csv{text}"], scorers=[found], unmatched={f"unknown{text}": 4})

    return made


@pytest.fixture(scope="session")
def s3_server() -> Iterator[str]:
    """The address of an S3 server on this machine, by moto."""
    from moto.server import ThreadedMotoServer  # noqa: PLC0415 - slow to import

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


class Bucket:
    """A bucket, as others see it that write to it and look at it."""

    def __init__(self, client: "BaseClient") -> None:
        self._client = client

    def put(self, name: str, content: bytes | str) -> str:
        """Write an object, and return its URL."""
        self._client.put_object(Bucket="bucket", Key=name, Body=content)
        return f"s3://bucket/{name}"

    def get(self, name: str) -> bytes:
        return self._client.get_object(Bucket="bucket", Key=name)["Body"].read()

    def names(self) -> list[str]:
        found = self._client.list_objects_v2(Bucket="bucket")
        return [one["Key"] for one in found.get("Contents", ())]

    def uploads(self) -> list[str]:
        """The names of the objects whose upload was begun and not ended."""
        found = self._client.list_multipart_uploads(Bucket="bucket")
        return [one["Key"] for one in found.get("Uploads", ())]


@pytest.fixture(scope="session")
def _s3_client(s3_server) -> "Iterator[BaseClient]":
    from botocore.session import get_session  # noqa: PLC0415 - as above

    known = {"aws_access_key_id": "key", "aws_secret_access_key": SECRET, "region_name": "us-east-1"}
    with closing(get_session().create_client("s3", endpoint_url=s3_server, **known)) as client:
        yield client


def _aws_settings() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name.startswith("AWS_")}


@pytest.fixture
def bucket(s3_server, _s3_client, monkeypatch) -> Iterator[Bucket]:
    """An empty bucket, with the environment that names its server."""
    import s3fs  # noqa: PLC0415 - as above

    for name in _aws_settings():
        monkeypatch.delenv(name)
    known = {"AWS_ENDPOINT_URL": s3_server, "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": SECRET}
    known |= {"AWS_DEFAULT_REGION": "us-east-1", "AWS_CONFIG_FILE": os.devnull, "NO_PROXY": "127.0.0.1"}
    for name, value in known.items():
        monkeypatch.setenv(name, value)
    _s3_client.create_bucket(Bucket="bucket")
    before = _aws_settings()
    yield Bucket(_s3_client)
    if _aws_settings() != before:
        s3fs.S3FileSystem.clear_instance_cache()
    for system in s3fs.S3FileSystem._cache.values():  # kept, since a client takes long to make
        system.invalidate_cache()
    with urlopen(Request(f"{s3_server}/moto-api/reset", method="POST")):  # noqa: S310 - the server above
        pass


@pytest.fixture
def new_client(bucket) -> Iterator[None]:
    """A client of the bucket that no other test uses, for one that changes its settings or its methods."""
    import s3fs  # noqa: PLC0415 - as above

    s3fs.S3FileSystem.clear_instance_cache()
    yield
    s3fs.S3FileSystem.clear_instance_cache()
