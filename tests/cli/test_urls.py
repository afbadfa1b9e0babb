"""Recordings, references, labels and results by URL, with a real S3 server on this machine."""

import gzip
from importlib import import_module
from pathlib import Path

import pytest

from judgekit.analysis.labels import read_labels
from judgekit.runs.results import Run
from judgekit.runs.store import DEFAULT_RUNS_PATH
from judgekit.traces.message import AIMessage, HumanMessage, ToolCall
from judgekit.traces.sample import Sample
from tests.conftest import SECRET

F1 = ("--scorer", "tool_call_f1")


def recordings(first: int = 0, last: int = 6) -> bytes:
    """Samples, half of which call the right tool."""
    samples = (
        Sample.of(
            [HumanMessage("Hi"), AIMessage(tool_calls=[ToolCall(f"tool_{number % 2}")])],
            id=f"s{number}",
            reference_tool_calls=[ToolCall("tool_0")],
        )
        for number in range(first, last)
    )
    return "".join(f"{one.model_dump_json()}\n" for one in samples).encode()


def values(number: int | None = None) -> list[tuple[str, float | None]]:
    return [(row.sample_id, row.score.value) for row in Run.stored(number)]


def zstd_frames() -> bytes:
    """Several frames, one after another, as those write that append."""
    compress = import_module("backports.zstd").compress
    return compress(recordings(0, 2)) + compress(recordings(2, 5)) + compress(recordings(5, 6))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.jsonl.gz", gzip.compress(recordings(0, 3)) + gzip.compress(recordings(3, 6))),
        ("a.jsonl.zst", zstd_frames()),
        ("a", b"[" + recordings().strip().replace(b"\n", b",") + b"]"),
    ],
)
def test_a_run_of_an_object_is_that_of_a_file(cli, bucket, name, content):
    url = bucket.put(f"logs/{name}", content)
    Path(name).write_bytes(content)
    ended = cli("run", url, *F1)
    assert ended.code == 0, ended.err
    assert ended.out == cli("run", name, *F1).out
    assert values(1) == values(2) == [(f"s{number}", float(number % 2 == 0)) for number in range(6)]
    (read,) = Run.stored(1).record.inputs
    assert (read.path, read.sha256, read.size, read.modified_at) == (url, None, len(content), None)
    assert len(read.etag) == 32
    assert read.etag in " ".join(cli("runs", 1).out.split())


@pytest.mark.parametrize("where", ["s3://bucket/logs/", "s3://bucket/logs/**/*.jsonl*"])
def test_several_objects_are_read_in_the_order_of_their_names(cli, bucket, where):
    bucket.put("logs/b.jsonl", recordings(2, 4))
    bucket.put("logs/a.jsonl.gz", gzip.compress(recordings(0, 2)))
    bucket.put("logs/c/d.jsonl", recordings(4, 6))
    bucket.put("logs/notes.md", "no recordings")
    bucket.put("logs/.hidden/e.jsonl", "no recordings")
    ended = cli("run", where.replace("**", "[!.]*") if "**" in where else where, *F1)
    assert ended.code == 0, ended.err
    expected = [4, 5] if "**" in where else range(6)
    assert [name for name, _ in values()] == [f"s{number}" for number in expected]


def test_shards_of_objects_are_merged_into_the_run_of_the_file(cli, bucket):
    """A shard begins in the middle of an object, which is read from there."""
    for first in (0, 40):
        content = recordings(first, first + 40)
        bucket.put(f"logs/{first}.jsonl", content)
        Path(f"{first}.jsonl").write_bytes(content)
    for number in (1, 2, 3):
        ended = cli(
            "run", "s3://bucket/logs/", *F1, "--shard", f"{number}/3", "--run-id", "x", "--store", f"{number}.sqlite"
        )
        assert ended.code == 0, ended.err
    assert cli("merge", "1.sqlite", "2.sqlite", "3.sqlite").code == 0
    assert cli("run", "*.jsonl", *F1).code == 0
    assert values(1) == values(2) == [(f"s{number}", float(number % 2 == 0)) for number in range(80)]


def test_a_table_is_read_from_a_bucket(cli, bucket, tmp_path):
    arrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    table = arrow.table({"input": ["a", "b"], "response": ["x", "y"], "reference": ["x", "z"]})
    parquet.write_table(table, tmp_path / "a.parquet")
    url = bucket.put("a.parquet", (tmp_path / "a.parquet").read_bytes())
    assert cli("run", url, "--scorer", "exact_match").code == 0
    assert [value for _, value in values()] == [1, 0]


def test_inspect_and_convert_with_urls(cli, bucket):
    url = bucket.put("a.jsonl", recordings())
    assert "conversations  6" in cli("inspect", url).out
    ended = cli("convert", url, "-o", "s3://bucket/out/b.jsonl.gz")
    assert (ended.code, ended.err) == (0, "wrote s3://bucket/out/b.jsonl.gz: 6 conversations\n")
    cli("convert", url, "-o", "b.jsonl")
    assert gzip.decompress(bucket.get("out/b.jsonl.gz")) == Path("b.jsonl").read_bytes()


def test_an_object_that_is_read_is_not_written(cli, bucket):
    url = bucket.put("logs/a.jsonl", recordings())
    ended = cli("convert", "s3://bucket/logs", "-o", url)
    assert (ended.code, ended.err) == (2, f"judgekit: --output {url}: is an input file; choose another\n")
    assert bucket.get("logs/a.jsonl") == recordings()


def test_references_and_labels_by_url(cli, bucket):
    url = bucket.put(
        "a.jsonl", '{"id": "a", "input": "1", "response": "x"}\n{"id": "b", "input": "2", "response": "y"}\n'
    )
    references = bucket.put("refs.jsonl", '{"id": "a", "reference": "x"}\n{"id": "b", "reference": "z"}\n')
    assert cli("run", url, "--references", references, "--scorer", "exact_match").code == 0
    assert values() == [("a", 1), ("b", 0)]
    assert [one.path for one in Run.stored().record.inputs] == [url, references]
    labels = bucket.put("people.csv", "sample,scorer,value\na,exact_match,yes\n")
    assert [(one.sample, one.value) for one in read_labels(labels)] == [("a", "yes")]
    ended = cli("audit", "last", "--labels", "s3://bucket/none.csv")
    assert (ended.code, ended.err) == (2, "judgekit: s3://bucket/none.csv: there is no such object\n")


def test_reports_are_written_to_a_bucket(cli, bucket):
    Path("a.jsonl").write_bytes(recordings())
    cli("run", "a.jsonl", *F1)
    for suffix in ("html", "md"):
        url = bucket.put(f"out/report.{suffix}", "old")
        ended = cli("runs", "last", "-o", url, "-o", f"report.{suffix}")
        assert (ended.code, f"wrote {url}\n" in ended.err) == (0, True)
        assert bucket.get(f"out/report.{suffix}") == Path(f"report.{suffix}").read_bytes() != b"old"


def test_an_object_that_cannot_be_read(cli, bucket):
    bucket.put("zero.jsonl", b"")
    bucket.put("notes.md", "# Notes")
    for url, found in (
        ("s3://bucket/none.jsonl", "s3://bucket/none.jsonl: there is no such object"),
        ("s3://no-bucket/a.jsonl", "s3://no-bucket/a.jsonl: there is no such bucket"),
        ("s3://no-bucket/*.jsonl", "s3://no-bucket/*.jsonl: there is no such bucket"),
        ("s3://bucket/empty/", "s3://bucket/empty/: contains no readable files; known suffixes: .json"),
        ("s3://bucket/none-*.jsonl", "s3://bucket/none-*.jsonl: there is no such object"),
        ("s3://bucket/zero.jsonl", "s3://bucket/zero.jsonl: is empty"),
        ("s3://bucket/notes.md", "s3://bucket/notes.md: unknown suffix '.md'"),
        ("https://example.org/a.jsonl", "https:// URLs are not read or written"),
        (f"s3://key:{SECRET}@bucket/a.jsonl", "s3://...: this URL holds credentials or a query"),
    ):
        for words in (("run", url, *F1), ("inspect", url)):
            ended = cli(*words)
            assert (ended.code, ended.out, ended.err.count("\n")) == (2, "", 1)
            assert ended.err.startswith(f"judgekit: {found}")
            assert SECRET not in ended.err


def test_an_object_that_cannot_be_written_is_an_error_before_anything_is_scored(cli, bucket):
    for output, found in (
        ("s3://no-bucket/a.html", "s3://no-bucket/a.html: cannot be written: there is no such bucket"),
        ("s3://bucket/a.doc", "s3://bucket/a.doc: unsupported extension '.doc'; supported: .html"),
        ("s3://bucket/a.html/", "s3://bucket/a.html/: cannot be written: is a folder"),
        (f"s3://bucket/a.html?sig={SECRET}", "s3://...: this URL holds credentials or a query"),
    ):
        ended = cli("run", bucket.put("a.jsonl", recordings()), *F1, "-o", output)
        assert (ended.code, ended.out, SECRET in ended.err) == (2, "", False)
        assert ended.err.startswith(f"judgekit: {found}")
        assert not DEFAULT_RUNS_PATH.exists()


def test_a_result_that_cannot_be_uploaded_is_an_error_that_keeps_the_run(cli, bucket, new_client, monkeypatch):
    def fail(*_: object) -> None:
        raise PermissionError("Access Denied")

    monkeypatch.setattr("s3fs.S3FileSystem.put_file", fail)
    ended = cli("run", bucket.put("a.jsonl", recordings()), *F1, "-o", bucket.put("a.html", "old"))
    assert (ended.code, bucket.get("a.html")) == (2, b"old")
    assert ended.err.endswith("judgekit: s3://bucket/a.html: cannot be written: Access Denied\n")
    assert len(values()) == 6


def test_an_object_that_changed_since_a_run_stopped_is_not_mixed_in(cli, bucket, stopped):
    url = stopped
    bucket.put("a.jsonl", recordings(1, 7))
    ended = cli("resume")
    assert ended.code == 2
    assert ended.err == (
        f"judgekit: run 1 cannot be resumed: {url} changed, appeared or disappeared since it started; "
        "start a new run with judgekit run\n"
    )


def test_a_run_that_stopped_is_resumed_from_its_object(cli, bucket, stopped):
    assert len(values()) < 6
    bucket.put("b.jsonl", recordings())
    ended = cli("resume", "-o", "s3://bucket/a.csv")
    assert ended.code == 0, ended.err
    assert [name for name, _ in values()] == [f"s{number}" for number in range(6)]
    assert bucket.get("a.csv").count(b"\n") == 7


@pytest.fixture
def stopped(cli, bucket) -> str:
    """The URL of recordings whose run broke off, by an error of a scorer that concerns all samples."""
    Path("own.py").write_text(
        "from pathlib import Path\n"
        "from judgekit import scorer\n"
        "from judgekit.errors import ConfigError\n\n\n"
        "@scorer\n"
        "def own(sample):\n"
        "    if sample.id == 's3' and not Path('fixed').exists():\n"
        "        raise ConfigError('not now')\n"
        "    return 1.0\n"
    )
    url = bucket.put("a.jsonl", recordings())
    ended = cli("run", url, "--scorer", "own.py:own")
    assert ended.code == 2, ended
    Path("fixed").touch()
    return url


def test_an_object_that_changes_during_a_run_is_noted(cli, bucket):
    Path("own.py").write_text(
        "from judgekit import scorer\n"
        "from tests.cli.test_urls import CHANGES\n\n\n"
        "@scorer\n"
        "def own(sample):\n"
        "    while CHANGES:\n"
        "        CHANGES.pop()()\n"
        "    return 1.0\n"
    )
    url = bucket.put("a.jsonl", recordings())
    import_module("tests.cli.test_urls").CHANGES.append(lambda: bucket.put("a.jsonl", recordings(1, 7)))
    ended = cli("run", url, "--scorer", "own.py:own")
    assert ended.code == 1
    assert f"{url} changed while it was being read" in ended.err


CHANGES: list = []


def test_offline_only_storage_on_this_machine_is_used(cli, bucket, monkeypatch):
    url = bucket.put("a.jsonl", recordings())
    assert cli("run", url, *F1, "--offline", "-o", "s3://bucket/a.csv").code == 0
    monkeypatch.setenv("AWS_ENDPOINT_URL", "https://s3.example.org")
    import_module("s3fs").S3FileSystem.clear_instance_cache()
    Path("a.jsonl").write_bytes(recordings())
    for words in ([url], ["a.jsonl", "--references", url], ["a.jsonl", "-o", "s3://bucket/a.csv"]):
        ended = cli("run", *words, *F1, "--offline")
        assert (ended.code, ended.out) == (2, "")
        assert "offline mode only allows storage on this machine" in ended.err
    Path("judgekit.toml").write_text("".join(f'[judges.{one}]\nmodel = "openai/{one}"\n' for one in "ab"))
    judged = ("--scorer", "prompt:task_completion", "--judge", "a", "--judge", "b")
    ended = cli("compare-judges", "a.jsonl", *judged, "--labels", "s3://bucket/a.csv", "--offline")
    assert "s3://bucket/a.csv: offline mode only allows storage on this machine" in ended.err
    ended = cli("resume", 1, "-o", "s3://bucket/a.csv")
    assert "offline mode only allows storage on this machine" in ended.err


def test_what_is_kept_on_this_machine(cli):
    Path("a.jsonl").write_bytes(recordings())
    Path("judgekit.toml").write_text('[judges.remote]\nmodel = "openai/x"\ncache = "s3://bucket/c.sqlite"\n')
    redis = "expected a file, or an address such as redis://localhost:6379/0"
    for words, why in (
        ("runs --store s3://bucket/runs.sqlite", ": is a URL; runs are kept in a SQLite file, which must be local"),
        ("cache import s3://bucket/c.jsonl", ": is a URL; stored replies must be in a local file"),
        ("cache export -o s3://bucket/c.jsonl", ": is a URL; stored replies must be in a local file"),
        ("run a.jsonl --config s3://bucket/x.toml", ": is a URL; a config must be a local file; copy it here"),
        ("cache stats --cache s3://bucket/c.sqlite", redis),
        ("run a.jsonl --judge remote --scorer tool_call_f1", redis),
    ):
        ended = cli(*words.split())
        assert (ended.code, ended.out, ended.err.count("s3://bucket/")) == (2, "", 1), words
        assert ended.err.startswith("judgekit: ")
        assert why in ended.err


def test_no_url_loads_no_library(cli, monkeypatch):
    """Neither the libraries nor their versions are looked at."""
    monkeypatch.setitem(import_module("sys").modules, "fsspec.registry", None)
    Path("a.jsonl").write_bytes(recordings())
    assert cli("run", "a.jsonl", *F1, "-o", "a.csv").code == 0
    ended = cli("run", "s3://bucket/a.jsonl", *F1)
    assert (ended.code, ended.err) == (2, "judgekit: s3:// URLs need a library: pip install 's3fs>=2026.9'\n")
