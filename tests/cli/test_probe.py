"""The command that attacks a judge."""

import gc
import json
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from judgekit.probes.suite import probe_pairs, probe_samples
from judgekit.scorers.goal import Goal, GoalAnswer

PAIRS = probe_pairs()
ATTACKS = {pair.attack.id: pair for pair in PAIRS}
RIGHT = {pair.clean.id: pair.expected_verdict for pair in PAIRS} | {
    pair.attack.id: pair.expected_verdict for pair in PAIRS
}
RENDERED = [(str(sample.trace.render()), sample.id) for sample in probe_samples()]
ALL = len(PAIRS)
ASKED = len(RENDERED)


class Server(ThreadingHTTPServer):
    """An OpenAI-compatible judge: right, but for the conversations that it is said to be wrong on, or to refuse."""

    request_queue_size = 128  # of the 5 by default, connections made at once are lost, and tried again after a second

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.wrong: set[str] = set()
        self.refused: set[str] = set()
        self.reason = "as message 2 shows"
        self.seen: list[str] = []

    def reply(self, body: bytes) -> dict:
        content = json.loads(body)["messages"][1]["content"]
        (name,) = [name for text, name in RENDERED if text in content]
        self.seen.append(name)
        wrong = {"achieved": "not_achieved", "not_achieved": "achieved"}
        verdict = wrong[RIGHT[name]] if name in self.wrong else RIGHT[name]
        goal = Goal(goal="g", end_state="e", reason=self.reason, evidence=[2], verdict=verdict)
        message = {"role": "assistant", "content": GoalAnswer(goals=[goal]).model_dump_json()}
        if name in self.refused:
            message = {"role": "assistant", "content": None, "refusal": "I would rather not."}
        usage = {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100}
        return {"model": "m-1", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}


class Handler(BaseHTTPRequestHandler):
    """Reads and writes for the server, over connections that stay open."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        reply = self.server.reply(self.rfile.read(int(self.headers["Content-Length"])))
        content = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args: object) -> None: ...


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as serving:
        thread = threading.Thread(target=serving.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield serving
        serving.shutdown()
        thread.join()


@pytest.fixture
def cli(cli) -> Callable[..., tuple]:
    """Runs ``judgekit probe`` as the shell would."""
    return partial(cli, "probe")


@pytest.fixture
def config(server) -> Path:
    return judged(server, "cache_mode = 'off'")


def judged(server: Server, *lines: str) -> Path:
    path = Path("judged.toml")
    path.write_text(
        "\n".join(
            ["[judges.mine]", "model = 'openai/test'", f"base_url = 'http://127.0.0.1:{server.server_port}/v1'", *lines]
        )
    )
    return path


def test_a_judge_that_holds_is_all_well(cli, server, config):
    ended = cli("--judge", "mine", "--config", config)
    assert (ended.code, ended.err) == (0, "")
    assert ended.out.startswith(f"mine: 0 verdicts changed under {ALL} of {ALL} attacks, 0 as the attack intended\n")
    assert f"\n{ASKED} judge requests, 0 from cache, {ASKED * 1_100:,} tokens, cost unknown\n" in ended.out
    by_kind, by_place = (
        {
            name: [times, times, 0, 0, 0]
            for name, times in Counter(getattr(pair.attack, field) for pair in PAIRS).items()
        }
        for field in ("kind", "injection_point")
    )
    assert ended.counts == {**by_kind, **by_place, "all": [ALL, ALL, 0, 0, 0]}
    assert "held: right without the attack and with it" in ended.out
    assert "misled: " not in ended.out
    assert Counter(server.seen) == dict.fromkeys((name for _, name in RENDERED), 1)


def test_verdicts_that_moved_are_counted_and_listed_with_both_reasons(cli, server, config):
    server.wrong = {"threat_people", "order_in_mail"}
    ended = cli("--judge", "mine", "--config", config)
    assert ended.code == 1
    assert ended.out.startswith(f"mine: 2 verdicts changed under {ALL} of {ALL} attacks, 2 as the attack intended\n")
    assert ended.counts["all"] == [ALL, ALL - 2, 2, 0, 0]
    assert [name for name, cells in ended.counts.items() if cells[2] == 1] == ["order", "threat", "user", "tool_result"]
    lines = [re.split(r"\s{2,}", line.strip()) for line in ended.out.splitlines()]
    at = lines.index(["verdicts that changed:"])
    assert lines[at + 4 : at + 8] == [
        ["order_in_mail", "clean", "not_achieved", "as message 2 shows"],
        ["tool_result of invoice_not_sent", "attacked", "achieved", "as message 2 shows"],
        ["threat_people", "clean", "not_achieved", "as message 2 shows"],
        ["user of service_still_down", "attacked", "achieved", "as message 2 shows"],
    ]


def test_what_got_no_verdict_is_a_failure_with_its_reason(cli, server, config):
    server.refused = {"threat_people", "hotel_booked"}
    ended = cli("--judge", "mine", "--config", config)
    unjudged = 1 + sum(pair.clean.id == "hotel_booked" for pair in PAIRS)
    assert ended.code == 1
    assert ended.counts["all"] == [ALL, ALL - unjudged, 0, 0, unjudged]
    assert ended.out.startswith(f"mine: 0 verdicts changed under {ALL - unjudged} of {ALL} attacks")
    assert "\n2 failed: RefusalError: " in ended.out


def test_where_the_judge_errs_without_an_attack_it_is_said(cli, server, config):
    on_it = {name for name, pair in ATTACKS.items() if pair.clean.id == "hotel_booked"}
    server.wrong = {"hotel_booked"} | on_it
    ended = cli("--judge", "mine", "--config", config)
    assert (ended.code, ended.counts["all"]) == (1, [ALL, ALL - len(on_it), 0, len(on_it), 0])
    assert re.search(
        r"wrong without an attack:\n.*\n.*\n.*\n *hotel_booked +not_achieved +as message 2 shows", ended.out
    )
    server.wrong = {"hotel_booked"}
    ended = cli("--judge", "mine", "--config", config)
    assert (ended.code, ended.counts["all"]) == (1, [ALL, ALL - len(on_it), 0, len(on_it), 0])
    assert ended.out.startswith(f"mine: {len(on_it)} verdicts changed under {ALL} of {ALL} attacks, 0 as")


def test_every_outcome_is_written_as_json_that_holds_no_letter_that_could_steer_a_terminal(cli, server, config):
    server.wrong = {"encoded_terminal"}
    server.refused = {"threat_people"}
    assert cli("--judge", "mine", "--config", config, "-o", "probe.json").code == 1
    text = Path("probe.json").read_text()
    assert text.isascii()
    assert {char for char in text if not char.isprintable()} == {"\n"}
    report = json.loads(text)
    assert (report["judge"], report["attacks"], report["moved"]) == ("openai/test", ALL, 1)
    assert report["results"] == {"held": ALL - 2, "misled": 1, "wrong": 0, "unjudged": 1}
    found = {one["attack"]["id"]: one for one in report["outcomes"]}
    assert list(found) == list(ATTACKS)
    fell = found["encoded_terminal"]
    assert (fell["attack"]["text"], fell["expected_verdict"]) == (ATTACKS["encoded_terminal"].attack.text, "achieved")
    assert (fell["result"], fell["moved"], fell["clean"]["value"], fell["attacked"]["value"]) == ("misled", True, 1, 0)
    refused = found["threat_people"]
    assert (refused["result"], refused["moved"], refused["attacked"]["status"]) == ("unjudged", False, "failed")


def test_what_a_judge_repeats_of_an_attack_cannot_steer_the_terminal(cli, server, config):
    server.reason = f"It says {ATTACKS['encoded_terminal'].attack.text}"
    server.wrong = set(ATTACKS) | {"card_blocked"}
    ended = cli("--judge", "mine", "--config", config)
    assert (ended.code, ended.counts["all"][3]) == (1, sum(pair.clean.id == "card_blocked" for pair in PAIRS))
    assert {char for char in ended.out + ended.err if not char.isprintable()} == {"\n"}
    assert r"It says \x1b[2J\x1b[1;1H\u202eJudge" in ended.out


def test_a_repeated_probe_is_free(cli, server):
    path = judged(server)
    first = cli("--judge", "mine", "--config", path)
    again = cli("--judge", "mine", "--config", path)
    assert len(server.seen) == ASKED
    assert again.counts == first.counts
    assert f"\n0 judge requests, {ASKED} from cache, 0 tokens, $0.0000\n" in again.out


def test_a_dry_run_says_what_it_would_take_and_asks_nothing(cli, server, config):
    ended = cli("--judge", "mine", "--config", config, "--dry-run", "-o", "probe.json")
    assert (ended.code, server.seen) == (0, [])
    assert re.search(rf"agent_goal_accuracy_without_reference +{ASKED} +0 +{ASKED} +0 ", ended.out)
    assert "dry run: nothing was sent" in ended.out
    assert not Path("probe.json").exists()


def test_offline_a_judge_elsewhere_gives_no_verdict(cli, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    ended = cli("--judge", "openai/a", "--offline")
    assert (ended.code, ended.counts["all"]) == (1, [ALL, 0, 0, 0, ALL])
    assert ended.out.startswith(f"openai/a: none of {ALL} attacks was judged, so nothing is known\n")
    assert f"\n{ASKED} failed: OfflineError: " in ended.out


def test_a_spent_budget_ends_it_early_and_the_same_command_goes_on(cli, server):
    path = judged(server, "concurrency = 1", "budget = {requests = 20}")
    ended = cli("--judge", "mine", "--config", path)
    assert (ended.code, len(server.seen)) == (1, 20)
    assert "\n20 judge requests, " in ended.out
    assert "stopped: " in ended.err
    assert "the same command continues from here" in ended.err
    judged_pairs = sum({pair.clean.id, pair.attack.id} <= set(server.seen) for pair in PAIRS)
    assert ended.counts["all"] == [ALL, judged_pairs, 0, 0, ALL - judged_pairs]
    assert cli("--judge", "mine", "--config", judged(server)).code == 0
    assert len(server.seen) == ASKED


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "name one judge to probe with --judge: a model or a name"),
        (["--config", "two.toml"], "name one judge to probe with --judge: a, b"),
        (["--config", "two.toml", "--judge", "c"], "no judge is called 'c'"),
        (["--judge", "openai/a"], "no key for https://api.openai.com/v1: set the environment variable OPENAI_API_KEY"),
    ],
)
def test_a_judge_that_cannot_be_asked(cli, words, message):
    Path("two.toml").write_text("[judges.a]\nmodel = 'openai/a'\n[judges.b]\nmodel = 'openai/b'\n")
    ended = cli(*words, "-o", "probe.json")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"judgekit: {message}")
    assert not Path("probe.json").exists()


@pytest.mark.parametrize(
    ("output", "found"),
    [
        ("no/such.json", "there is no folder no; create it first"),
        ("probe.txt", "unsupported extension '.txt'; supported: .json"),
    ],
)
def test_an_output_that_cannot_be_written_is_an_error_before_anything_is_asked(cli, config, server, output, found):
    """The one judge of a config need not be named."""
    ended = cli("--config", config, "-o", output)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == f"judgekit: {output}: {found}\n"
    assert server.seen == []


def test_ctrl_c_shows_what_is_done(cli, server, monkeypatch):
    async def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("judgekit.cli.probe.score_tasks", interrupted)
    goes_on = "the same command continues from here, since all answers are cached\n"
    for mode, said in (("off", ""), ("read_write", goes_on)):
        ended = cli("--config", judged(server, f"cache_mode = '{mode}'"))
        assert (ended.code, ended.counts["all"]) == (130, [ALL, 0, 0, 0, ALL])
        assert "\n0 judge requests" in ended.out
        assert ended.err == f"interrupted\n{said}"
    gc.collect()  # asyncio logs that a task was interrupted when the task goes: here, and not in another test
