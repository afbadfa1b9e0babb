"""``store_text = false``: whatever judgekit writes and prints of a run holds nothing of a conversation."""

import json
import re
import threading
from collections.abc import Callable, Iterator, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from pathlib import Path

import pytest
from pydantic import JsonValue

from judgekit.config import describe_scorers
from judgekit.integrations.export import export
from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.score import Score
from judgekit.traces.message import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage, Usage
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import ExpectedCall, Ranking, Sample
from judgekit.traces.trace import Trace

SAMPLES = Path("samples.jsonl")
OPTIONS = {"adaptability": ":scorer=exact_match", "panel": ':scorers=["prompt:tone","exact_match"]'}


class Secrets:
    """Words and numbers that stand nowhere else; none of them may be found in what is written."""

    def __init__(self) -> None:
        self._numbers = count(1)

    def word(self) -> str:
        return f"qz{next(self._numbers):05}vx"

    def number(self) -> int:
        return int(f"739{next(self._numbers):05}146")

    @staticmethod
    def among(said: str) -> list[str]:
        return re.findall(r"qz\d{5}vx|739\d{5}146", said)

    def arguments(self) -> dict[str, JsonValue]:
        return {
            "card": self.number(),
            self.word(): {self.word(): [self.word(), self.number(), self.number() + 0.5]},
            f"{self.word()} Street": True,
        }

    def call(self) -> ToolCall:
        return ToolCall(self.word(), self.arguments(), id=self.word())


def conversation(secrets: Secrets, call: ToolCall) -> Trace:
    word = secrets.word
    agent = AIMessage(
        word(), tool_calls=[call, secrets.call()], agent=word(), model=word(), usage=Usage(output_tokens=3)
    )
    result = ToolMessage(json.dumps(secrets.arguments()), tool_call_id=call.id)
    return Trace(
        id="trace",
        messages=[SystemMessage(word()), HumanMessage(f"{word()} {word()} {word()} {word()}"), agent, result, AIMessage(
            f"{word()} {word()} {word()} {word()}")],
        tools=[ToolDefinition(name=word(), description=word())],
        metadata={"agent": word(), word(): secrets.number()},
    )  # fmt: skip


def sample(secrets: Secrets, number: int) -> Sample:
    word, call = secrets.word, secrets.call()
    expected = ExpectedCall(call.name, {**call.args, word(): secrets.number()})
    return Sample(
        id=f"sample {number}",
        trace=conversation(secrets, call),
        baseline=conversation(secrets, secrets.call()),
        group=f"group {number // 2}",
        domain=f"domain {number % 2}",
        label=("good", "bad")[number % 2],
        reference=f"{word()} {word()} {word()} {word()}",
        reference_tool_calls=[expected, ExpectedCall(word(), secrets.arguments())],
        reference_topics=[word(), word()],
        prediction=word() if number % 3 else "good",
        documents=[word()],
        ranking=Ranking([(document := word()), word()], {document: 1, word(): 3}),
        fields={
            "results": [{"score": 0.5, "domain": word()}],
            "expected_output": [word(), secrets.number()],
            "task_quality": 0.9,
            "communication_rounds": 5,
            "task_time": 30,
            word(): secrets.arguments(),
        },
        metadata={word(): secrets.arguments(), "agent": {"name": word()}},
    )


def answer(schema: JsonValue, root: JsonValue, secrets: Secrets) -> JsonValue:
    """An answer of this schema with words of a conversation in all texts."""
    if "$ref" in schema:
        return answer(root["$defs"][schema["$ref"].rpartition("/")[2]], root, secrets)
    if "anyOf" in schema:
        return answer(schema["anyOf"][0], root, secrets)
    if "enum" in schema or "const" in schema:
        return schema.get("const", schema.get("enum", [None])[0])
    match schema["type"]:
        case "object":
            return {name: answer(one, root, secrets) for name, one in schema["properties"].items()}
        case "array":
            return [answer(schema["items"], root, secrets)]
        case "string":
            return secrets.word()
        case "boolean":
            return True
        case _:
            return 1


@pytest.fixture
def secrets() -> Secrets:
    return Secrets()


@pytest.fixture
def judge(judging, secrets):
    """A provider that answers whatever is asked, refuses each ninth request, and repeats words wherever it can."""

    def reply(asked: dict, conversation: str) -> tuple[int, dict]:
        if len(judging.requests) % 9 == 0:
            return 422, {"error": {"message": f"cannot read {conversation}"}}
        schema = asked["response_format"]["json_schema"]["schema"]
        message = {"role": "assistant", "content": json.dumps(answer(schema, schema, secrets))}
        usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12, secrets.word(): secrets.number()}
        return 200, {"model": "m-1", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}

    judging.reply, judging.seconds = reply, 0
    return judging


@pytest.fixture
def scorers(needed_options) -> Sequence[str]:
    """All that can be asked for by name, and what is put around it."""
    options = {**needed_options, **OPTIONS}
    names = [f"{name}{options.get(name, '')}" for name, *_ in describe_scorers() if name != "prompt"]
    return [
        *(f"{one}{',' if ':' in one else ':'}as=s{number}" for number, one in enumerate(names)),
        "classification:measure=f1_macro,as=macro",
        "prompt:tone,repeats=3,as=drawn",
        "prompt:tone,repeats=auto,as=auto",
        'prompt:tone,repeats=3,min_confidence=1,escalate="prompt:tone",as=sure',
    ]


@pytest.fixture
def files_with_secrets(contents) -> Callable[[], set[str]]:
    """The files in which something of a conversation is, but for the conversations."""

    def find() -> set[str]:
        files = (path for path in Path().rglob("*") if path.is_file() and path != SAMPLES)
        return {path.name for path in files if any(map(Secrets.among, contents(path)))}

    return find


def configure(judge, *, store_text: bool) -> None:
    table = f'[judges.default]\nmodel = "openai/test"\nbase_url = "{judge.url}"\nattempts = 1\n'
    Path("judgekit.toml").write_text(f"store_text = {json.dumps(store_text)}\n{table}")


OUTPUTS = [word for end in ("jsonl", "csv", "xml", "md", "html") for word in ("-o", f"first.{end}")]


def test_with_text_all_these_files_hold_it(cli, secrets, judge, files_with_secrets):
    """The next test looks for words in files, so it must find them where they are kept."""
    SAMPLES.write_text(sample(secrets, 0).model_dump_json())
    configure(judge, store_text=True)
    cli("run", SAMPLES, "--scorer", "tool_call_f1", "--scorer", "prompt:tone", "--scorer", "classification", *OUTPUTS)
    assert files_with_secrets() == {"runs.sqlite", "cache.sqlite", *OUTPUTS[1::2]}


def test_nothing_of_a_conversation_is_in_any_file_or_output(cli, secrets, judge, scorers, files_with_secrets):
    lines = [sample(secrets, number).model_dump_json() for number in range(4)]
    lines.insert(2, json.dumps({"id": 5, "trace": {"messages": [{"role": secrets.word(), "content": secrets.word()}]}}))
    lines.append('{"id": "cut", "trace": {"messages": [{"content": "' + secrets.word())
    SAMPLES.write_text("\n".join(lines))
    configure(judge, store_text=False)
    asked = [word for one in scorers for word in ("--scorer", one)]
    commands = [
        ("run", SAMPLES, *asked, *OUTPUTS, "--show", 3, "--gate", "s0.min >= 0.9"),
        ("run", SAMPLES, "--scorer", "tool_call_f1:as=s1", "--scorer", "prompt:tone,repeats=3,as=drawn", "--show", 3),
        ("resume", 1, "--retry-failed"),
        ("runs",),
        ("compare", 1, 2, "-o", "compared.json", "-o", "compared.html"),
        ("label", 1, "-o", "sheet.html", "--scorer", "drawn"),
        ("run", SAMPLES, "--scorer", "tool_call_f1", "--strict"),
        ("run", SAMPLES, "--scorer", "tool_call_f1", "--dry-run"),
    ]
    ended = [cli(*command) for command in commands]
    labels = "\n".join(f"sample {number},drawn,{number % 2}" for number in range(4))
    Path("labels.csv").write_text(f"sample,scorer,value\n{labels}\n")
    ended.append(cli("audit", 1, "--labels", "labels.csv", "-o", "audit.json", "-o", "audit.html"))
    assert [one.code for one in ended] == [1, 1, 1, 0, ended[4].code, 2, 2, 0, 0], ended
    run = Run.stored(1)
    assert {row.score.status for row in run} > {"scored", "failed"}
    assert len({row.scorer for row in run if row.score.status == "scored"}) > 40
    assert run.summary["macro"].value is not None
    assert len({sample.hashes for sample in run.scored_samples()}) == 4
    assert files_with_secrets() == set()
    assert not any(Secrets.among(one.out + one.err) for one in ended)


@pytest.fixture
def receiver(monkeypatch) -> Iterator[list[str]]:
    """The requests with scores to a server that stands for all systems, and has all traces."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")  # it asks another server where to send it
    kept: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            kept.append(f"{self.path} {self.headers} {body.decode()}")
            self._send(body)

        def do_GET(self) -> None:
            location = {"type": "MLFLOW_EXPERIMENT", "mlflow_experiment": {"experiment_id": "0"}}
            info = {"trace_location": location, "request_time": "2026-11-24T10:00:00Z", "state": "OK"}
            self._send(json.dumps({"trace": {"trace_info": info}}).encode())

        def _send(self, body: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as serving:
        threading.Thread(target=serving.serve_forever, args=(0.01,), daemon=True).start()
        url = f"http://127.0.0.1:{serving.server_port}"
        for name in ("LANGFUSE_BASE_URL", "PHOENIX_ENDPOINT"):
            monkeypatch.setenv(name, url)
        for name in ("LANGFUSE_PUBLIC_KEY", "LANGFUSE_SECRET_KEY"):
            monkeypatch.setenv(name, "key")
        pytest.importorskip("mlflow", reason="mlflow-tracing is not installed").set_tracking_uri(url)
        yield kept
        serving.shutdown()


@pytest.mark.filterwarnings("ignore:label:DeprecationWarning")  # older ones use what newer protobuf discourages
@pytest.mark.filterwarnings("ignore:Langfuse .* have no value")
@pytest.mark.parametrize("store_text", [True, False])
def test_a_conversation_is_exported_only_where_its_text_is_kept(cli, secrets, judge, receiver, store_text):
    samples = []
    for number in range(4):
        one = sample(secrets, number)
        span = {"trace_id": "a" * 32, "span_id": "1" * 16, "name": secrets.word(), "start_time": 1}
        extra = {"spans": [{**span, "attributes": {"gen_ai.operation.name": "chat", secrets.word(): secrets.word()}}]}
        trace = one.trace.model_copy(update={"id": f"tr-{number:032}", "extra": extra})
        samples.append(one.model_copy(update={"trace": trace}))
    SAMPLES.write_text("\n".join(one.model_dump_json() for one in samples))
    configure(judge, store_text=store_text)
    names = ["tool_call_f1", "classification", "bleu", "prompt:tone", "prompt:tone,repeats=3,as=drawn", "max_tokens:1"]
    cli("run", SAMPLES, *(word for name in names for word in ("--scorer", name)))
    run = Run.stored(1)
    for system in ("langfuse", "phoenix", "mlflow"):
        receiver.clear()
        found = export(run, to=system, samples=samples)
        assert found.exported + found.unscored == len(run) == 4 * len(names)
        assert bool(Secrets.among(" ".join(receiver))) == store_text, system


@pytest.mark.processes
def test_workers_leave_the_same_out_and_come_to_the_same_numbers(cli, conversations, contents):
    path = Path("labeled.jsonl")
    said = ["good", "bad", "so so", "bad", "never seen", "so so", "good", ""] * 40
    true = ["good", "bad", "good", "good", "bad", "so so", "bad", "good"] * 40
    samples = (
        Sample.of([HumanMessage("?"), AIMessage(text)], id=str(at), label=label)
        for at, (text, label) in enumerate(zip(said, true, strict=True))
    )
    path.write_text("".join(f"{one.model_dump_json()}\n" for one in samples))
    names = [("classification", "f1_macro"), ("classification", "accuracy"), ("answer_match", "f1")]
    asked = [
        word for at, (name, measure) in enumerate(names) for word in ("--scorer", f"{name}:measure={measure},as=s{at}")
    ]
    assert cli("run", path, *asked).code == 0
    Path("judgekit.toml").write_text("store_text = false\n")
    assert cli("run", path, *asked, "--workers", 2).code == 0
    kept, left_out = Run.stored(1).summary, Run.stored(2).summary
    for name in ("s0", "s1", "s2"):
        assert left_out[name].overall.metrics == pytest.approx(kept[name].overall.metrics)
        assert left_out[name].value == pytest.approx(kept[name].value)
    assert "never seen" not in str(left_out["s0"].overall)
    assert not any("never seen" in found for found in contents(DEFAULT_RUNS_PATH)) or Run.stored(1).record.keeps_text


def test_an_aggregate_that_fails_is_no_success(cli, conversations, tmp_path, monkeypatch):
    (tmp_path / "theirs.py").write_text("def f(scores):\n    return scores[0].details['mine']\n")
    monkeypatch.syspath_prepend(tmp_path)
    scored = Score.scored("exact_match", 1, details={"mine": 1}, aggregate="theirs:f")

    async def ascore(*_: object) -> Score:
        return scored

    monkeypatch.setattr("judgekit.scorers.text.matches.ExactMatch.ascore", ascore)
    path = conversations(2)
    assert cli("run", path, "--scorer", "exact_match").code == 0
    Path("judgekit.toml").write_text("store_text = false\n")
    ended = cli("run", path, "--scorer", "exact_match")
    assert ended.code == 1
    assert "the aggregate 'theirs:f' failed: KeyError: 'mine'" in " ".join(ended.out.split())
