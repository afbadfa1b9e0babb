"""What models cost by litellm's price list, which is read where litellm is installed, and never imported."""

import asyncio
import importlib
import importlib.util
import json
import random
import sys
from collections import Counter
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from judgekit.cli import main
from judgekit.jobs.api import run
from judgekit.judges.doctor import diagnose
from judgekit.judges.judge import Judge
from judgekit.judges.prompt import Prompt
from judgekit.judges.providers.price import Price
from judgekit.judges.providers.price_list import ListPrice, find_list_price, find_list_shutdown_date
from judgekit.judges.providers.provider import PROVIDERS, Provider
from judgekit.judges.scripted import ScriptedClient
from judgekit.scorers.prompted import PromptScorer
from judgekit.scoring import signature
from judgekit.traces.message import AIMessage, HumanMessage, Usage
from judgekit.traces.sample import Sample

needs_litellm = pytest.mark.skipif(importlib.util.find_spec("litellm") is None, reason="litellm is not installed")
FILE = "model_prices_and_context_window_backup.json"
CHAT: dict[str, Any] = {"mode": "chat", "litellm_provider": "openai", "input_cost_per_token": 1e-6}
CHAT |= {"output_cost_per_token": 4e-6}
MODELS: dict[str, Any] = {
    "sample_spec": {"mode": "one of: chat, embedding", "litellm_provider": "one of https://docs.litellm.ai"},
    "gpt-cached": {
        **CHAT,
        "cache_read_input_token_cost": 2.5e-7,
        "cache_read_input_token_cost_priority": 1e-6,
        "input_cost_per_token_batches": 5e-7,
        "input_cost_per_audio_token": 9e-6,
        "search_context_cost_per_query": {"search_context_size_low": 0.01},
    },
    "gpt-plain": CHAT,
    "gpt-long": {
        **CHAT,
        "cache_read_input_token_cost": 1e-7,
        "input_cost_per_token_above_200k_tokens": 2e-6,
        "output_cost_per_token_above_200k_tokens": 6e-6,
        "cache_read_input_token_cost_above_200k_tokens": 2e-7,
        "input_cost_per_token_above_272000_tokens": 3e-6,
        "input_cost_per_token_above_200k_tokens_priority": 9e-6,
    },
    "gpt-writes": {**CHAT, "cache_creation_input_token_cost": 1.25e-6, "cache_read_input_token_cost": 1e-7},
    "gpt-writes-free": {**CHAT, "cache_creation_input_token_cost": 0.0, "cache_read_input_token_cost": 0.0},
    "gpt-thinks": {**CHAT, "output_cost_per_reasoning_token": 9e-6},
    "gpt-off-peak": {**CHAT, "off_peak_pricing": {"input_cost_per_token": 5e-7, "hours_utc": "00:00-06:00"}},
    "gpt-flex": {
        **CHAT,
        "input_cost_per_token_flex": 5e-7,
        "output_cost_per_token_flex": 3e-6,
        "cache_creation_input_token_cost_above_12hr_flex": 9.0,
        "input_cost_per_token_above_272k_tokens": 2e-6,
        "input_cost_per_token_above_272k_tokens_flex": 1e-6,
    },
    "gpt-decides": {
        **CHAT,
        "input_cost_per_token_decisions": 1e-7,
        "output_cost_per_token_decisions": 0.0,
        "cache_read_input_token_cost_decisions": 1e-8,
        "cache_creation_input_token_cost_decisions": 1.25e-7,
        "input_cost_per_token_above_272k_tokens_decisions": 2e-7,
        "output_cost_per_token_above_272k_tokens_decisions": 0.0,
    },
    "gpt-decides-somehow": {**CHAT, "input_cost_per_token_decisions": 1e-7},
    "claude-1": {**CHAT, "litellm_provider": "anthropic", "cache_creation_input_token_cost": 1.25e-6},
    "gemini/gemini-1": {**CHAT, "litellm_provider": "gemini"},
    "fireworks_ai/accounts/f/models/m": {**CHAT, "litellm_provider": "fireworks_ai"},
    # what is not sure
    "gpt-free": {**CHAT, "input_cost_per_token": 0.0, "output_cost_per_token": 0.0},
    "gpt-half": {**CHAT, "output_cost_per_token": None},
    "gpt-text": {**CHAT, "input_cost_per_token": "1e-6"},
    "gpt-negative": {**CHAT, "input_cost_per_token": -1e-6},
    "gpt-by-request": {**CHAT, "input_cost_per_request": 0.005},
    "gpt-by-second": {**CHAT, "output_cost_per_second": 0.005},
    "gpt-tiered": {**CHAT, "tiered_pricing": [{"range": [0, 1000], "input_cost_per_token": 1e-6}]},
    "gpt-search-preview": CHAT,
    "text-embedding-1": {**CHAT, "mode": "embedding"},
    "azure/gpt-plain": {**CHAT, "litellm_provider": "azure"},
    "claude-2": {**CHAT, "litellm_provider": "bedrock_converse"},
    "bedrock/claude-3": {**CHAT, "litellm_provider": "bedrock"},
    "vertex_ai/gemini-1": {**CHAT, "litellm_provider": "vertex_ai-language-models"},
    "perplexity/sonar": {**CHAT, "litellm_provider": "perplexity"},
    "gpt-odd": ["no entry"],
}
ASKED = Prompt("good", "Good?", ("conversation",), "", "You judge.", "Good?", scale=(("yes", 1.0), ("no", 0.0)))
GOOD = {"reason": "r", "evidence": [1], "verdict": "yes"}


class Verdict(BaseModel):
    verdict: str


SAMPLES = [Sample.of([HumanMessage(f"Hi {number}"), AIMessage("Hello")], id=str(number)) for number in range(3)]
NAME = "litellm 9.8.7"
EXACT = {"openai", "anthropic", "gemini", "mistral", "groq"}
"""Providers without discounts that are not modeled."""


@pytest.fixture
def installed(tmp_path, monkeypatch) -> Callable[..., Path]:
    """Installs a litellm that cannot be imported, with such a price list."""

    def install(prices: object = MODELS) -> Path:
        site = tmp_path / "site"
        for folder in ("litellm", "litellm-9.8.7.dist-info"):
            (site / folder).mkdir(parents=True)
        (site / "litellm" / "__init__.py").write_text("raise RuntimeError('litellm was imported')")
        (site / "litellm-9.8.7.dist-info" / "METADATA").write_text("Name: litellm\nVersion: 9.8.7\n")
        path = site / "litellm" / FILE
        path.write_text(prices if isinstance(prices, str) else json.dumps(prices))
        monkeypatch.delitem(sys.modules, "litellm", raising=False)
        monkeypatch.syspath_prepend(site)
        return path

    return install


@pytest.fixture
def missing(monkeypatch) -> None:
    """No litellm is installed."""
    monkeypatch.setattr("judgekit.judges.providers.price_list.find_spec", lambda _: None)


@pytest.fixture
def openai(server, monkeypatch) -> Any:
    """OpenAI's own server."""
    monkeypatch.setitem(PROVIDERS, "openai", Provider(PROVIDERS["openai"].connect, server.url, "OPENAI_API_KEY"))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    server.script = [server.says(GOOD)]
    return server


# --- what the list says


def test_decisions_have_prices_of_their_own(installed):
    installed()
    price = find_list_price("openai-decisions/gpt-decides", ())
    assert (price.input, price.output, price.cached, price.written) == (0.1, 0, 0.01, 0.125)
    assert [(tokens, tier.input, tier.written) for tokens, tier in price.tiers] == [(272_000, 0.2, 0.125)]
    usage = Usage(input_tokens=1000, output_tokens=9, cached_tokens=100, extra={"cache_write_tokens": 500})
    assert price.of(usage) == pytest.approx((400 * 0.1 + 500 * 0.125 + 100 * 0.01) / 1e6)
    assert find_list_price("openai/gpt-decides", ()).input == 1
    assert find_list_price("openai-decisions/gpt-decides-somehow", ()) is None
    assert find_list_price("openai-decisions/gpt-plain", ()) is None


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("openai/gpt-cached", Price(1, 4, 0.25)),
        ("litellm/openai/gpt-cached", Price(1, 4, 0.25)),
        ("openai/gpt-plain", Price(1, 4)),
        ("litellm/anthropic/claude-1", Price(1, 4)),
        ("litellm/gemini/gemini-1", Price(1, 4)),
        ("litellm/fireworks_ai/accounts/f/models/m", Price(1, 4)),
        # of several prices that cannot be told apart, the highest
        ("openai/gpt-writes", Price(1.25, 4, 0.1)),
        ("openai/gpt-writes-free", Price(1, 4)),
        ("openai/gpt-thinks", Price(1, 9)),
        ("openai/gpt-off-peak", Price(1, 4)),
    ],
)
def test_a_price_is_that_of_the_model_s_own_entry(installed, model, price):
    installed()
    assert find_list_price(model, ()) == ListPrice(**price.model_dump(), source=NAME)
    assert "litellm" not in sys.modules


@pytest.mark.parametrize(
    "model",
    [
        *(
            f"openai/{name}"
            for name in MODELS
            if name.startswith(("gpt-free", "gpt-half", "gpt-text", "gpt-neg", "gpt-by"))
        ),
        *("openai/gpt-tiered", "openai/gpt-odd", "openai/gpt-search-preview", "openai/text-embedding-1"),
        *("litellm/azure/gpt-plain", "litellm/bedrock_converse/claude-2", "litellm/bedrock/claude-3"),
        *("litellm/vertex_ai/gemini-1", "litellm/perplexity/sonar"),
        # another provider's, or a name that is only like one
        *(
            *("openai/claude-1", "openai/gpt-cache", "openai/gpt-cached-2025", "openai/openai/gpt-plain"),
            "openai/sample_spec",
        ),
        *("litellm/gpt-plain", "litellm/anthropic/gpt-plain", "litellm/openai/claude-1", "demo/gpt-plain"),
        *("openai/", "litellm/", "litellm//gpt-plain"),
    ],
)
def test_a_price_that_is_not_sure_is_unknown(installed, model):
    installed()
    assert find_list_price(model, ()) is None


@pytest.mark.parametrize(
    ("used", "cost"),
    [
        (Usage(input_tokens=199_999, output_tokens=10, cached_tokens=9), (199_990 * 1 + 9 * 0.1 + 10 * 4) / 1e6),
        (Usage(input_tokens=200_001, output_tokens=10, cached_tokens=1), (200_000 * 2 + 1 * 0.2 + 10 * 6) / 1e6),
        (Usage(input_tokens=272_001, output_tokens=10, cached_tokens=1), (272_000 * 3 + 1 * 0.1 + 10 * 4) / 1e6),
        (Usage(input_tokens=300_000), None),
        (Usage(output_tokens=10), None),
        (None, None),
    ],
)
def test_a_long_request_costs_the_price_of_long_requests(installed, used, cost):
    installed()
    price = find_list_price("openai/gpt-long", ())
    assert price is not None
    assert price.of(used) == (cost if cost is None else pytest.approx(cost, rel=1e-12))


@pytest.mark.parametrize(
    ("tokens", "tier", "cost"),
    [
        (1_000, "flex", (1_000 * 0.5 + 10 * 3) / 1e6),
        (1_000, "default", (1_000 * 1 + 10 * 4) / 1e6),
        (1_000, "priority", None),
        (300_000, "flex", (300_000 * 1 + 10 * 3) / 1e6),
        (300_000, None, (300_000 * 2 + 10 * 4) / 1e6),
    ],
)
def test_the_flex_tier_has_prices_of_its_own(installed, tokens, tier, cost):
    installed()
    price = find_list_price("openai/gpt-flex", ())
    assert price is not None
    paid = price.of(Usage(input_tokens=tokens, output_tokens=10), tier)
    assert paid == (cost if cost is None else pytest.approx(cost, rel=1e-12))
    assert find_list_price("openai/gpt-plain", ()).of(Usage(input_tokens=1, output_tokens=1), "flex") is None


@pytest.mark.parametrize("params", [["temperature", "seed", "max_tokens", "logprobs"], []])
def test_parameters_that_change_no_price_leave_it_known(installed, params):
    installed()
    assert find_list_price("openai/gpt-plain", params) is not None
    for name in ("service_tier", "web_search_options", "tools", "speed", "inference_geo", "anything_else"):
        assert find_list_price("openai/gpt-plain", [*params, name]) is None


@pytest.mark.parametrize("prices", ["", "{", "[]", "null", '{"gpt-plain": 3}', '{"gpt-plain": {"mode": "chat"}}'])
def test_a_list_of_another_make_says_nothing(installed, prices):
    path = installed(prices)
    assert find_list_price("openai/gpt-plain", ()) is None
    path.unlink()
    assert find_list_price("openai/gpt-cached", ()) is None


def test_without_litellm_no_price_is_known(missing):
    assert find_list_price("openai/gpt-cached", ()) is None
    assert Judge("openai/gpt-cached").known_price is None


# --- whose price it is


def test_a_judge_of_the_provider_s_own_has_the_listed_price_and_no_other(installed, monkeypatch):
    installed()
    plain = "openai/gpt-plain"
    own = Price(7, 9)
    assert Judge(plain).known_price == Judge(plain, base_url="https://api.openai.com/v1/").known_price
    assert Judge(plain).known_price == ListPrice(**Price(1, 4).model_dump(), source=NAME)
    assert Judge(plain).price is None
    for judge in (
        Judge(plain, base_url="http://localhost:8000/v1"),
        Judge("litellm/anthropic/claude-1", base_url="http://localhost:8000/v1"),
        Judge(plain, client=ScriptedClient([])),
        Judge(plain, params={"service_tier": "priority"}),
    ):
        assert judge.known_price is None
        assert judge.model_copy(update={"price": own}).known_price == own
    assert Judge(plain, price=own).known_price == own
    assert Judge("litellm/anthropic/claude-1").known_price is not None
    monkeypatch.setenv("ANTHROPIC_API_BASE", "http://localhost:8000")
    assert Judge("litellm/anthropic/claude-1").known_price is None
    assert Judge(plain).known_price is not None


def test_a_price_is_no_part_of_a_question_nor_of_a_scorer(installed, monkeypatch):
    def known(**settings: Any) -> tuple[str, str, Price | None]:
        judge = Judge("openai/gpt-plain", **settings)
        key = judge.build_request(ASKED, SAMPLES[0], Verdict).key
        return signature(PromptScorer(ASKED, judge)), key, judge.known_price

    with monkeypatch.context() as without:
        without.setattr("judgekit.judges.providers.price_list.find_spec", lambda _: None)
        *nowhere, price = known()
    assert price is None
    installed()
    *listed, price = known()
    assert isinstance(price, ListPrice)
    assert nowhere == listed == [*known(price=Price(1, 2))[:2]]


# --- what it does


def spent(judge: Judge, number: int = 1) -> tuple[Any, ...]:
    found = run(SAMPLES[:number], [PromptScorer(ASKED, judge)])
    [line] = found.summary
    return line.cost_usd, line.price_lists, found


def test_the_cost_of_a_run_is_known_by_the_list_which_is_named_with_it(installed, openai):
    installed()
    cost, lists, found = spent(Judge("openai/gpt-cached"), 2)
    assert cost == pytest.approx(2 * (600 * 1 + 400 * 0.25 + 50 * 4) / 1e6)  # what the server says that it took
    assert lists == {NAME}
    assert f"2 judge requests, 0 from cache, 2,100 tokens, $0.0018 at the prices of {NAME}" in str(found)
    assert [call.price_list for row in found for call in row.score.calls] == [NAME] * 2
    cost, lists, found = spent(Judge("openai/gpt-cached"), 2)  # from the cache
    assert (cost, lists, "prices" in str(found)) == (0.0, set(), False)


def test_the_list_is_named_wherever_the_cost_of_a_run_is_shown(installed, openai, monkeypatch, capsys):
    def cli(*words: object) -> str:
        monkeypatch.setattr(sys, "argv", ["judgekit", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return capsys.readouterr().out

    installed()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    Path("samples.jsonl").write_text("".join(f"{sample.model_dump_json()}\n" for sample in SAMPLES))
    Path("good.md").write_text(
        "---\ndescription: d\ninputs: [conversation]\nscale: {'yes': 1.0, 'no': 0.0}\nsource: us\n---\nGood?\n"
    )
    words = ["run", "samples.jsonl", "--scorer", "prompt:good.md", "--judge", "openai/gpt-cached"]
    assert f"\nprices: {NAME}\n" in cli(*words, "--dry-run")
    assert openai.requests == []
    assert f"\nprices: {NAME}\n" in cli(*words, "-o", "summary.md", "-o", "report.html")
    assert f"- `prices: {NAME}`\n" in Path("summary.md").read_text()
    assert f'"prices":"{NAME}"' in Path("report.html").read_text().replace('": "', '":"')
    assert f"\nprices: {NAME}\n" in cli("runs", "last")
    openai.script = [openai.says({"reason": "r", "verdict": "true"})]
    assert (
        f"the provider reports the model judge-1-2026-11-20, with the system fingerprint fp_1; prices: {NAME}"
        in cli("doctor", "--judge", "openai/gpt-cached")
    )


def test_a_cost_that_is_reported_is_taken_before_a_listed_price_and_a_price_that_is_set_before_both(installed, openai):
    installed()
    reply = openai.says(GOOD)
    body = {**reply[2], "usage": {**reply[2]["usage"], "cost": 0.5}}
    openai.script = [(200, {}, body)]
    assert spent(Judge("openai/gpt-cached", cache_mode="off"))[:2] == (0.5, set())
    cost, lists, _ = spent(Judge("openai/gpt-cached", cache_mode="off", price=Price(2, 8)))
    assert (cost, lists) == (pytest.approx((1000 * 2 + 50 * 8) / 1e6), set())
    body["usage"] = None
    assert spent(Judge("openai/gpt-cached", cache_mode="off"))[:2] == (None, set())


def test_a_budget_in_dollars_works_with_a_listed_price(installed, openai):
    installed()
    judge = Judge("openai/gpt-cached", budget={"usd": 0.005}, params={"max_tokens": 500})
    cost, _, found = spent(judge, 3)
    assert found.stop_reason.startswith("openai/gpt-cached: one more request would exceed the budget of $0.005")
    assert 0 < len(openai.requests) < 3
    assert cost == pytest.approx(0.0009 * len(openai.requests))


# --- when models shut down

ENDING: dict[str, Any] = {"litellm_provider": "anthropic", "mode": "chat", "deprecation_date": "2027-01-14"}


@pytest.mark.parametrize(
    ("found", "day"),
    [
        ({}, date(2027, 1, 14)),
        *(
            ({"deprecation_date": other}, None)
            for other in (None, "", "soon", "2027-02-30", 20270114.5, ["2027-01-14"])
        ),
        ({"litellm_provider": "bedrock"}, None),
    ],
)
def test_the_list_has_the_date_on_which_a_model_shuts_down(installed, found, day):
    installed({"claude-1": {**ENDING, **found}, "claude-2": CHAT})
    assert find_list_shutdown_date("litellm/anthropic/claude-1") == day
    assert find_list_shutdown_date("litellm/anthropic/claude-2") is None


def test_the_list_is_only_for_judges_whose_servers_cannot_be_asked(installed, openai, monkeypatch):
    """OpenAI's own word counts more than a list that may be old, also if it is that there is no date."""

    class Connected(ScriptedClient):
        def __init__(self, _: object) -> None:
            super().__init__([{"reason": "r", "verdict": "true"}])

    def day(model: str, **settings: Any) -> date | None:
        found = asyncio.run(diagnose(Judge(model, cache_mode="off", **settings)))
        assert found.problem == ""
        return found.shutdown_date

    installed({"claude-1": ENDING, "gpt-1": {**ENDING, "litellm_provider": "openai"}})
    monkeypatch.setitem(PROVIDERS, "litellm", Provider(Connected))
    openai.script = [openai.says({"reason": "r", "verdict": "true"})]
    openai.model = 200, {}, {"shutdown_date": None}
    assert day("litellm/anthropic/claude-1") == date(2027, 1, 14)
    assert day("litellm/anthropic/claude-1", base_url="http://localhost:8000/v1") is None
    assert day("litellm/anthropic/claude-1", client=Connected(None)) is None
    assert day("openai/gpt-1") is None


# --- litellm itself


@needs_litellm
@pytest.mark.processes
def test_no_price_is_lower_than_litellm_s_own(monkeypatch):
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    monkeypatch.setenv("LITELLM_MODE", "PRODUCTION")
    litellm: Any = importlib.import_module("litellm")
    types: Any = importlib.import_module("litellm.types.utils")
    version = importlib.metadata.version("litellm")
    models = json.loads((Path(litellm.__file__).parent / FILE).read_text())
    # once, and not for each of thousands
    monkeypatch.setattr("judgekit.judges.providers.price_list.from_json", lambda _: models)
    checked: Counter[str] = Counter()
    unknown: set[str] = set()
    dice = random.Random(0)  # noqa: S311 - all models take half a minute
    by_provider: dict[str, list[str]] = {}
    for key, entry in models.items():
        provider = entry.get("litellm_provider")
        by_provider.setdefault(provider if provider in EXACT else "", []).append(key)
    for key in (key for keys in by_provider.values() for key in dice.sample(keys, min(len(keys), 100))):
        entry = models[key]
        provider = entry.get("litellm_provider")
        name = key.removeprefix(f"{provider}/")
        if (price := find_list_price(f"litellm/{provider}/{name}", ())) is None:
            continue
        assert price.source == f"litellm {version}"
        for used, cached, made in ((1_000, 0, 500), (100_001, 4_000, 0), (280_001, 1_000, 50)):
            details = types.PromptTokensDetailsWrapper(cached_tokens=cached)
            usage = types.Usage(
                prompt_tokens=used, completion_tokens=made, total_tokens=used + made, prompt_tokens_details=details
            )
            try:
                own = litellm.cost_per_token(model=f"{provider}/{name}", usage_object=usage, prompt_tokens=used)
            except Exception:  # noqa: BLE001 - litellm cannot ask it either
                unknown.add(provider)
                break
            found = price.of(Usage(input_tokens=used, output_tokens=made, cached_tokens=cached))
            assert found is not None
            assert found >= sum(own) * (1 - 1e-9), (key, used)
            if provider in EXACT and not (provider == "openai" and entry.get("cache_creation_input_token_cost")):
                assert found == pytest.approx(sum(own)), (key, used)
                checked[provider] += 1
    assert not unknown & checked.keys()
    assert all(checked[provider] >= 5 for provider in EXACT)
