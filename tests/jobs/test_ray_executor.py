"""Runs in a Ray cluster of two nodes on this machine: its workers and machines die, and all scores are made."""

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from judgekit import run
from judgekit.errors import ConfigError, WorkerError
from judgekit.jobs.api import add_scorers, resume
from judgekit.registry import allow_code
from judgekit.runs.results import Run

pytestmark = [
    pytest.mark.ray,
    pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed: pip install ray"),
    pytest.mark.filterwarnings(
        "ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning"
    ),  # Ray's own
]

NUMBER = 400
SCORERS = ["tool_call_f1", "tool_call_accuracy"]
GOAL = "agent_goal_accuracy_without_reference"
NOTICES_LOSSES_SOON = {
    "health_check_initial_delay_ms": 0,
    "health_check_period_ms": 200,
    "health_check_timeout_ms": 500,
    "health_check_failure_threshold": 3,
}
COMMAND = """
import signal
from judgekit.cli import main
signal.signal(signal.SIGINT, signal.default_int_handler)  # whoever started the tests may have switched it off
main()
"""
DEADLY = """
import os, signal, time
from pathlib import Path
from judgekit import scorer

@scorer(version="1")
def once(sample):
    \"\"\"Kills its worker, but no second one.\"\"\"
    if sample.id == "s123" and not Path("killed").exists():
        Path("killed").write_text(str(os.getpid()))
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0

@scorer(version="1")
def always(sample):
    \"\"\"Kills each worker, until it is told to stop.\"\"\"
    time.sleep(0.02)
    if sample.id == "s3" and not Path("harmless").exists():
        with Path("killed").open("a") as file:
            file.write(f"{os.getpid()}\\n")
        os.kill(os.getpid(), signal.SIGKILL)
    return 1.0

@scorer(version="1")
def shaky(sample):
    \"\"\"Fails for every third sample, until that is mended.\"\"\"
    if int(sample.id[1:]) % 3 == 0 and not Path("mended").exists():
        raise ValueError("not yet")
    return 1.0

@scorer(version="1")
def slow(sample):
    time.sleep(0.01)
    with Path("scored").open("a") as file:
        file.write("x")
    return 1.0

@scorer(version="1")
def waiting(sample):
    \"\"\"Waits, when a quarter is scored, until a machine is lost.\"\"\"
    with Path("scored").open("a") as file:
        file.write("x")
    while Path("scored").stat().st_size >= SHARE and not Path("lost").exists():
        time.sleep(0.01)
    return 1.0
"""


@pytest.fixture(scope="module")
def cluster():
    """A head without room for workers, and one node with room for two."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("PYTHONPATH", os.pathsep.join(filter(None, sys.path)))
        import ray  # noqa: PLC0415 - an extra
        from ray.cluster_utils import Cluster  # noqa: PLC0415

        head = {
            "num_cpus": 0,
            "object_store_memory": 150 << 20,
            "include_dashboard": False,
            "_system_config": NOTICES_LOSSES_SOON,
        }
        made = Cluster(initialize_head=True, head_node_args=head)
        made.add_node(num_cpus=2, object_store_memory=150 << 20)
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
        ray.shutdown()
        made.shutdown()


@pytest.fixture
def deadly() -> str:
    Path("deadly.py").write_text(DEADLY.replace("SHARE", str(NUMBER // 4)))
    return "deadly.py"


def rows(run: Run) -> list:
    return [row.model_dump() for row in run]


def test_a_run_in_a_cluster_is_the_run_of_one_process(cluster, conversations):
    path = conversations(NUMBER)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join([*lines[:200], "no JSON\n", *lines[200:]]))
    with pytest.warns(UserWarning, match="1 record could not be read"):
        alone = run(path, SCORERS, store="alone.sqlite")
    with pytest.warns(UserWarning, match="1 record could not be read"):
        shared = run(path, SCORERS, store="shared.sqlite", engine="ray")
    assert len(shared) == 2 * NUMBER
    assert rows(shared) == rows(alone)
    assert str(shared).replace("shared.sqlite", "alone.sqlite") == str(alone)
    assert [line.interval for line in shared.summary] == [line.interval for line in alone.summary]
    assert [sample.model_dump() for _, sample in shared.store.conversations(1)] == [
        sample.model_dump() for _, sample in alone.store.conversations(1)
    ]
    assert (shared.stop_reason, shared.record.samples) == ("", NUMBER)


def test_scorers_are_added_in_a_cluster(cluster, conversations):
    path = conversations(50)
    first = run(path, SCORERS[:1], store="runs.sqlite")
    assert rows(add_scorers(first, SCORERS[1:], engine="ray")) == rows(run(path, SCORERS))


def test_failed_scores_are_retried_in_a_cluster(cluster, conversations, deadly):
    run(conversations(60), [f"{deadly}:shaky", *SCORERS], store="runs.sqlite", engine="ray")
    counts = [line.counts for line in Run.stored(1, path="runs.sqlite").summary]
    assert counts == [{"scored": 40, "failed": 20}, {"scored": 60}, {"scored": 60}]
    Path("mended").touch()
    resumed = resume(1, store="runs.sqlite", retry_failed=True, engine="ray")
    assert [line.counts for line in resumed.summary] == [{"scored": 60}] * 3
    assert len(resumed) == 180


def test_a_block_whose_worker_dies_is_scored_by_another(cluster, conversations, deadly):
    scored = run(conversations(NUMBER), [f"{deadly}:once", *SCORERS], store="runs.sqlite", engine="ray")
    assert Path("killed").exists()
    assert (len(scored), scored.stop_reason) == (3 * NUMBER, "")


def test_a_block_that_kills_three_workers_is_given_up_and_the_others_are_scored(cluster, conversations, deadly):
    path = conversations(NUMBER)
    with pytest.raises(WorkerError, match="block 4/16 of the recordings was given up: 3 workers died") as error:
        run(path, [f"{deadly}:always"], store="runs.sqlite", engine="ray")
    assert error.value.__notes__ == ["saved as run 1 in runs.sqlite"]
    assert len(set(Path("killed").read_text().split())) == 3
    kept = Run.stored(1, path="runs.sqlite")
    assert NUMBER - NUMBER // 16 - 2 <= len(kept) < NUMBER
    assert kept.stop_reason.startswith("block ")
    Path("harmless").touch()
    assert len(resume(1, store="runs.sqlite", engine="ray")) == NUMBER


def test_a_machine_that_is_lost_gives_its_blocks_to_another(cluster, conversations, deadly):
    lost = cluster.add_node(num_cpus=2, object_store_memory=150 << 20)

    def lose() -> None:
        while not Path("scored").exists() or Path("scored").stat().st_size < NUMBER // 4:
            time.sleep(0.01)
        cluster.remove_node(lost, allow_graceful=False)
        Path("lost").touch()

    losing = threading.Thread(target=lose)
    losing.start()
    scored = run(conversations(NUMBER), [f"{deadly}:waiting"], store="runs.sqlite", workers=4, engine="ray")
    losing.join()
    assert (len(scored), scored.stop_reason) == (NUMBER, "")
    again = Path("scored").stat().st_size - NUMBER
    assert 0 < again <= 2 * (NUMBER // 32 + 1)  # a block for each worker that was lost


@pytest.fixture
def command(cluster):
    """Starts a command that finds the cluster by its address."""
    running = []

    def start(*words: object, address: str = cluster.address) -> subprocess.Popen[str]:
        running.append(
            subprocess.Popen(  # noqa: S603 - our own interpreter
                [sys.executable, "-c", COMMAND, *map(str, words)],
                env=os.environ | {"RAY_ADDRESS": address},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.communicate()


def wait_for_scores(number: int, process: subprocess.Popen[str]) -> None:
    while not Path("scored").exists() or Path("scored").stat().st_size < number:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_what_a_killed_driver_has_recorded_is_not_scored_again(conversations, deadly, command):
    driver = command("run", conversations(NUMBER), "-s", f"{deadly}:slow", "--engine", "ray")
    wait_for_scores(NUMBER // 2, driver)
    driver.kill()
    driver.communicate()
    recorded = len(Run.stored(1))
    time.sleep(1)  # its workers end with it
    before = Path("scored").stat().st_size
    allow_code(deadly)
    resumed = resume(1, engine="ray")
    assert (len(resumed), resumed.stop_reason) == (NUMBER, "")
    assert recorded > NUMBER / 8
    assert Path("scored").stat().st_size - before == NUMBER - recorded


def test_ctrl_c_ends_a_run_with_what_its_workers_have_begun(cluster, conversations, deadly, command):
    process = command("run", conversations(NUMBER), "-s", f"{deadly}:slow", "--engine", "ray")
    wait_for_scores(NUMBER // 4, process)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"Ray: the cluster at {cluster.address}, with 2 CPUs" in err
    assert "(raylet)" not in out + err
    stopped = Run.stored(1)
    assert (stopped.stop_reason, len(stopped)) == ("interrupted", Path("scored").stat().st_size)
    assert NUMBER / 4 <= len(stopped) < NUMBER


def test_a_cluster_that_is_away_is_an_error_and_no_other_one_is_started(conversations, command):
    process = command("run", conversations(2), "-s", "tool_call_f1", "--engine", "ray", address="127.0.0.1:9")
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (2, "")
    assert err.startswith("judgekit: RAY_ADDRESS: no cluster answers at 127.0.0.1:9 (")
    assert err.endswith("; start it, or unset RAY_ADDRESS to start one on this machine\n")


def test_without_an_address_a_cluster_is_started(conversations, command):
    process = command("run", conversations(2), "-s", "tool_call_f1", "--engine", "ray", address="")
    _, err = process.communicate(timeout=90)
    assert process.returncode == 0
    assert "Ray: a cluster on this machine, which was started for this run" in err


ANSWER = {"goals": [{"goal": "g", "end_state": "e", "reason": "r", "evidence": [1], "verdict": "achieved"}]}


@pytest.fixture
def judging():
    """A server that counts what it is asked, and the start of a config with a judge there."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.rfile.read(int(self.headers["content-length"])).decode())
            choice = {"message": {"role": "assistant", "content": json.dumps(ANSWER)}, "finish_reason": "stop"}
            usage = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
            body = json.dumps({"choices": [choice], "usage": usage}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield asked, f'[judges.default]\nmodel = "openai/judge"\nbase_url = "http://127.0.0.1:{server.server_port}/v1"\n'
    server.shutdown()
    server.server_close()


@pytest.fixture
def redis_address(tmp_path):
    if (command := shutil.which("redis-server")) is None:
        pytest.skip("needs redis-server")
    path = tmp_path / "redis.sock"
    process = subprocess.Popen(  # noqa: S603 - Debian's server
        [command, "--port", "0", "--unixsocket", str(path), "--maxmemory-policy", "noeviction", "--appendonly", "yes"],
        stdout=subprocess.DEVNULL,
        cwd=tmp_path,
    )
    while not path.exists():
        assert process.poll() is None
        time.sleep(0.01)
    yield f"unix://{path}"
    process.kill()
    process.wait()


def test_a_judge_without_redis_is_asked_by_the_driver(cluster, conversations, judging):
    asked, config = judging
    Path("judgekit.toml").write_text(config)
    scored = run(conversations(20), [*SCORERS, GOAL], store="runs.sqlite", engine="ray")
    assert {line.scorer: line.counts["scored"] for line in scored.summary} == dict.fromkeys([*SCORERS, GOAL], 20)
    assert len(asked) == 20
    assert Path(".judgekit/cache.sqlite").exists()


def test_a_judge_with_redis_is_asked_by_all_workers_within_one_budget(cluster, conversations, judging, redis_address):
    asked, config = judging
    Path("judgekit.toml").write_text(f'{config}cache = "{redis_address}"\nbudget = {{requests = 60}}\n')
    scored = run(conversations(100), [*SCORERS, GOAL], store="runs.sqlite", engine="ray")
    assert "would exceed the budget of 60 requests" in scored.stop_reason
    assert len(asked) == 60
    assert not Path(".judgekit/cache.sqlite").exists()
    Path("judgekit.toml").write_text(f'{config}cache = "{redis_address}"\n')
    resumed = resume(1, store="runs.sqlite", engine="ray")
    assert {line.scorer: line.counts["scored"] for line in resumed.summary} == dict.fromkeys([*SCORERS, GOAL], 100)
    assert len(set(asked)) == len(asked) == 100  # replies that were paid for are in Redis


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"scorers": SCORERS}, "engine=ray: the workers need a file to write to"),
        ({"scorers": SCORERS, "store": "runs.sqlite", "shard": "1/2", "run_id": "r"}, "cannot be combined with shard"),
        (
            {"scorers": SCORERS, "store": "runs.sqlite", "engine": "rya"},
            "no engine is called 'rya'. Did you mean 'ray'",
        ),
    ],
)
def test_what_a_cluster_cannot_do_is_refused(conversations, given, message):
    with pytest.raises(ConfigError, match=message):
        run(conversations(2), **{"engine": "ray", **given})
