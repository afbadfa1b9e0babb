"""From TOML, the environment and the command line to judges and scorers."""

import json
import re
from dataclasses import fields
from pathlib import Path

import pytest

from judgekit.config import Config, describe_scorers
from judgekit.errors import ConfigError, PromptError
from judgekit.judges.judge import Judge
from judgekit.judges.limits.budget import Budget
from judgekit.judges.prompt_file import shipped_prompts
from judgekit.judges.providers.price import Price
from judgekit.scorers.repeat import Repeat
from judgekit.scorers.selective import Selective
from judgekit.scorers.text.matches import ExactMatch, Similarity
from judgekit.scorers.text.rouge import ROUGE
from judgekit.scorers.text.translation import BLEU, CHRF
from judgekit.scorers.tool_calls.accuracy import ToolCallAccuracy
from judgekit.scorers.tool_calls.arguments import ArgMatch
from judgekit.scorers.tool_calls.f1 import ToolCallF1
from judgekit.scorers.tool_calls.match import ToolCallMatch
from judgekit.scorers.tool_calls.modes import ToolMatch
from judgekit.scorers.topic import TopicAdherence
from judgekit.scoring import Scorer, signature
from judgekit.specs import ScorerSpec
from judgekit.traces.images import ImageSettings
from judgekit.traces.message import Usage

FILE_OF_ALL = """
[judges.default]
model = "openai/judge-model"
[judges.local]
model = "openai/qwen3-32b"
base_url = "http://localhost:8000/v1"
[[scorers]]
name = "topic_adherence"
as = "topic_recall"          # the name of this instance
mode = "recall"              # any further key is a constructor argument
judge = "local"
"""
NAMES = [
    *("tool_call_accuracy", "tool_call_f1", "tool_call_match", "tool_constraints", "exact_match", "string_presence"),
    *("regex", "similarity", "json_match", "json_diff", "bleu", "chrf", "ter", "rouge", "ngram_precision"),
    *("answer_match", "classification", "reciprocal_rank", "average_precision", "ndcg", "err", "auc", "precision_at_k"),
    *("recall_at_k", "hit_rate", "adaptability", "collaboration_efficiency", "portability", "max_messages"),
    *("max_tool_calls", "max_repeated_calls", "max_tool_error_rate", "max_tokens", "max_cost", "max_seconds"),
    *("errors_ignored", "invented_arguments", "unfinished", "claims_without_call", "never_says"),
    *("imported", "topic_adherence", "agent_goal_accuracy_with_reference", "agent_goal_accuracy_without_reference"),
    *("handoff_quality", "groundedness", "failure_analysis", "weighted_criteria", "pairwise", "panel", "prompt"),
]
OWN = ". For your own scorer, give file.py:NAME or package.module:NAME"
KNOWN = f"{', '.join(NAMES[:10])}, and {len(NAMES) - 10} more"
NEEDED = {
    "tool_call_match": 'match="exact"',
    "never_says": "pattern=sorry",
    "tool_constraints": 'constraints=[{"type":"max_steps","n":3}]',
    "weighted_criteria": 'weights={"was_polite":1}',
    "pairwise": "question=Which one was polite?",
    "panel": 'scorers=["prompt:tone,judge=openai/a", {"name": "prompt", "prompt": "tone", "judge": "openai/b"}]',
    "prompt": "prompt=tone,as=prompt",
    "regex": r"\bParis\b",
    "err": "max_grade=4",
    "precision_at_k": "10",
    "recall_at_k": "k=10",
    "hit_rate": "10",
    "max_messages": "20",
    "max_tool_calls": "8",
    "max_tool_error_rate": "0.1",
    "max_tokens": "8000",
    "max_cost": "budget=0.05",
    "max_seconds": "30.5",
    "imported": "quality",
}
"""Options that have no default, as they stand on the command line."""
CALLED = {
    "similarity": "levenshtein_similarity",
    "rouge": "rougeL_f1",
    "precision_at_k": "precision_at_10",
    "recall_at_k": "recall_at_10",
    "hit_rate": "hit_rate_at_10",
    "imported": "quality",
}
"""Names that say what was asked for."""
JUDGED = NAMES[NAMES.index("topic_adherence") :]


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path, monkeypatch):
    """In a folder of its own, without a judgekit.toml."""
    monkeypatch.chdir(tmp_path)


def read(text: str, judge: str | None = None, environment: dict[str, str] | None = None) -> Config:
    path = Path("mine.toml")
    path.write_text(text, encoding="utf-8")
    return Config(path, judge, environment or {})


def built(text: str, judge: str | None = None, environment: dict[str, str] | None = None) -> list[Scorer]:
    config = read(text, judge, environment)
    return [config.build(spec) for spec in config.scorers]


def problem(text: str) -> str:
    with pytest.raises((ConfigError, PromptError)) as caught:
        built(text)
    return str(caught.value)


def asked(text: str, judge: str | None = None, environment: dict[str, str] | None = None) -> Scorer:
    """The scorer that a ``--scorer`` asks for."""
    return Config(None, judge, environment or {}).build(ScorerSpec.parse(text))


# --- the file


def test_a_file_gives_the_scorers_and_judges_that_it_says():
    (scorer,) = built(FILE_OF_ALL)
    assert isinstance(scorer, TopicAdherence)
    assert (scorer.mode, scorer.name) == ("recall", "topic_recall")
    assert dict(scorer.judge) == dict(Judge("openai/qwen3-32b", base_url="http://localhost:8000/v1"))


def test_a_scorer_that_names_no_judge_has_the_default_one():
    text = FILE_OF_ALL.replace('judge = "local"\n', "")
    assert dict(built(text)[0].judge) == dict(Judge("openai/judge-model"))


def test_scorers_stand_in_the_order_of_the_file():
    names = [name for name in reversed(NAMES) if name not in {*NEEDED, *CALLED}]
    text = "\n".join(f'[[scorers]]\nname = "{name}"' for name in names)
    assert [one.name for one in built(text, "openai/a")] == names


def test_a_scorer_may_be_a_text_as_on_the_command_line():
    assert built('scorers = ["tool_call_f1", "rouge:rouge1"]') == [ToolCallF1(), ROUGE("rouge1")]


def test_two_scorers_of_one_kind_are_told_apart_by_their_names():
    text = '[[scorers]]\nname = "tool_call_f1"\n[[scorers]]\nname = "tool_call_f1"\nas = "f1_again"\n'
    assert built(text) == [ToolCallF1(), ToolCallF1(name="f1_again")]


def test_all_settings_of_a_judge_can_stand_in_the_file():
    text = """
    [judges.default]
    model = "openai/a"
    base_url = "http://localhost:1/v1"
    params = {temperature = 0, top_p = 0.5}
    api_key_env = "MY_KEY"
    price = {input = 0.4, output = 1.6, cached = 0.1}
    timeout = 5
    attempts = 2
    concurrency = 3
    budget = {usd = 2.5, requests = 100, tokens = 50000}
    requests_per_minute = 60
    tokens_per_minute = 90000
    redact = ["email"]
    images = {detail = "low"}
    store_text = false
    offline = true
    cache = "replies.sqlite"
    cache_mode = "refresh"
    [[scorers]]
    name = "topic_adherence"
    """
    (scorer,) = built(text)
    assert dict(scorer.judge) == dict(
        Judge(
            "openai/a",
            base_url="http://localhost:1/v1",
            params={"temperature": 0, "top_p": 0.5},
            api_key_env="MY_KEY",
            price=Price(0.4, 1.6, 0.1),
            timeout=5,
            attempts=2,
            concurrency=3,
            budget=Budget(usd=2.5, requests=100, tokens=50_000),
            requests_per_minute=60,
            tokens_per_minute=90_000,
            redact=["email"],
            images=ImageSettings(detail="low"),
            store_text=False,
            offline=True,
            cache=Path("replies.sqlite"),
            cache_mode="refresh",
        )
    )
    # (1,000,000 - 500,000) fresh at 0.4, 500,000 cached at 0.1 and 250,000 written at 1.6 dollars a million
    usage = Usage(input_tokens=1_000_000, cached_tokens=500_000, output_tokens=250_000)
    assert scorer.judge.price.of(usage) == pytest.approx(0.2 + 0.05 + 0.4)


def test_judgekit_toml_is_read_where_it_is_there_and_no_other_is_named():
    Path("judgekit.toml").write_text('[[scorers]]\nname = "tool_call_f1"\n')
    assert [spec.name for spec in Config(None, None, {}).scorers] == ["tool_call_f1"]
    assert read("").scorers == []


def test_without_a_file_there_are_no_scorers():
    assert Config(None, None, {}).scorers == []


BAD_FILES = {
    "an unknown table": (
        '[judge.default]\nmodel = "openai/a"',
        "mine.toml: no table is called 'judge'. Did you mean 'judges'? Known: store_text, gate, min_coverage, no_answer, judges, scorers",
    ),
    "an unknown key of a judge": (
        '[judges.local]\nmodel = "openai/a"\nbase-url = "http://x"',
        "mine.toml: no key of [judges.local] is called 'base-url'. Did you mean 'base_url'? Known: model, base_url, ",
    ),
    "a judge without a model": ('[judges.local]\nbase_url = "x"', "mine.toml: judges.local.model: Field required"),
    "a model without a provider": (
        '[judges.local]\nmodel = "gpt-x"',
        "mine.toml: a judge's model is written as provider/model, found 'gpt-x'. Did you mean 'openai/gpt-x'?",
    ),
    "a parameter of the API among the settings": (
        '[judges.local]\nmodel = "openai/a"\ntemperature = 0',
        "mine.toml: no key of [judges.local] is called 'temperature'. Did you mean 'params = {temperature = 0}'? Known: model",
    ),
    "an option of a scorer among the settings": (
        '[judges.local]\nmodel = "openai/a"\nmin_confidence = 0.8',
        "mine.toml: no key of [judges.local] is called 'min_confidence': it is an option of a scorer, as in [[scorers]]",
    ),
    "a key": (
        '[judges.local]\nmodel = "openai/a"\napi_key = "sk"',
        "mine.toml: no key of [judges.local] is called 'api_key': keys come from the environment, and api_key_env names",
    ),
    "an unknown key of a judge called price": (
        '[judges.price]\nmodel = "openai/a"\ntimeuot = 5',
        "mine.toml: no key of [judges.price] is called 'timeuot'. Did you mean 'timeout'? Known: model",
    ),
    "a prompt behind a colon": (
        '[judges.default]\nmodel = "openai/a"\n[[scorers]]\nname = "prompt:tone"',
        "no scorer is called 'prompt:tone': in a table, options have their own keys, as in name = \"prompt\", prompt = \"tone\"",
    ),
    "an unknown prompt": (
        '[judges.default]\nmodel = "openai/a"\n[[scorers]]\nname = "prompt"\nprompt = "ton"',
        "no prompt is called 'ton'. Did you mean 'tone'? Known: ",
    ),
    "an unknown provider": (
        '[judges.local]\nmodel = "openia/a"',
        "mine.toml: no judge provider is called 'openia'. Did you mean 'openai'? Known: openai",
    ),
    "a setting out of range": (
        '[judges.local]\nmodel = "openai/a"\nattempts = 0',
        "mine.toml: judges.local.attempts: Input should be greater than or equal to 1, found 0",
    ),
    "an unknown key of a price": (
        '[judges.local]\nmodel = "openai/a"\nprice = {input = 1, output = 1, cache = 1}',
        "mine.toml: no key of [judges.local.price] is called 'cache'. Did you mean 'cached'? Known: input, output, cached",
    ),
    "a judge outside of judges": (
        '[judges]\nmodel = "openai/a"',
        "mine.toml: judges.model: Input should be an object, found 'openai/a'",
    ),
    "scorers that are no list": ('[scorers]\nname = "tool_call_f1"', "mine.toml: scorers: write [[scorers]], in two brackets, above each scorer"),
    "a scorer without a name": ('[[scorers]]\nmode = "f1"', "a [[scorers]] table has no key name, found mode"),
    "a scorer whose name is misspelt": ('[[scorers]]\nnmae = "tool_call_f1"', "a [[scorers]] table has no key name. Is it the key 'nmae'?"),
    "a name that is no text": ('[[scorers]]\nname = "tool_call_f1"\nas = 5', "a [[scorers]] table: as: Input should be a valid string, found 5"),
    "an unknown scorer": (
        '[[scorers]]\nname = "tool_cal_f1"',
        f"no scorer is called 'tool_cal_f1'. Did you mean 'tool_call_f1'? Known: {KNOWN}{OWN}",
    ),
    "an unknown option": (
        '[judges.default]\nmodel = "openai/a"\n[[scorers]]\nname = "topic_adherence"\nmod = "f1"',
        "no option of topic_adherence is called 'mod'. Did you mean 'mode'? Known: judge, mode",
    ),
    "an option of another scorer": (
        '[[scorers]]\nname = "tool_call_f1"\nmode = "f1"',
        "no option of tool_call_f1 is called 'mode'. Known: args, scope, requestor, include_failed, include_delegations",
    ),
    "an unknown value": (
        '[judges.default]\nmodel = "openai/a"\n[[scorers]]\nname = "topic_adherence"\nmode = "recal"',
        "topic_adherence: no mode of topic adherence is called 'recal'. Did you mean 'recall'? Known: precision, recall, f1, accuracy",
    ),
    "an unknown judge": (
        '[judges.local]\nmodel = "openai/a"\n[[scorers]]\nname = "topic_adherence"\njudge = "lokal"',
        "no judge is called 'lokal'. Did you mean 'local'? Known: local, or any model as provider/model",
    ),
    "a judge that is no text": (
        '[[scorers]]\nname = "topic_adherence"\njudge = 5',
        "topic_adherence: judge must be a name or a model, found 5",
    ),
    "no judge named at all": (
        '[[scorers]]\nname = "topic_adherence"',
        "topic_adherence asks a judge: name one with --judge provider/model, in JUDGEKIT_JUDGE, or as [judges.default] in judgekit.toml",
    ),
    "a default judge that is misspelt": (
        '[judges.defualt]\nmodel = "openai/a"\n[[scorers]]\nname = "topic_adherence"',
        "topic_adherence asks a judge: name one with --judge provider/model, in JUDGEKIT_JUDGE, or as [judges.default] in judgekit.toml; the config has defualt, and none is called default",
    ),
    "no TOML": ("judges = = 1", "mine.toml: cannot be read: Invalid value (at line 1, column 10)"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_what_does_not_fit_is_an_error_that_names_the_nearest(text, message):
    found = problem(text)
    assert found.startswith(message)
    assert "\n" not in found


@pytest.mark.parametrize(
    ("path", "message"),
    [("missing.toml", "No such file or directory"), (".", "Is a directory"), ("latin.toml", "can't decode byte 0xe9")],
)
def test_a_file_that_cannot_be_read_is_an_error_that_names_it(path, message):
    Path("latin.toml").write_bytes(b"# caf\xe9\n")
    with pytest.raises(ConfigError, match=f"^{re.escape(path)}: cannot be read: .*{message}"):
        Config(Path(path), None, {})


# --- who is the judge


@pytest.mark.parametrize(
    ("judge", "environment", "own", "expected"),
    [
        (None, None, None, "openai/default"),
        (None, None, "local", "openai/local"),
        (None, "cloud", None, "openai/cloud"),
        (None, "cloud", "local", "openai/cloud"),
        ("flag", None, "local", "openai/flag"),
        ("flag", "cloud", None, "openai/flag"),
        ("flag", "cloud", "local", "openai/flag"),
        ("", "", "local", "openai/local"),
        (None, "openai/other", "local", "openai/other"),
        ("openai/other", "cloud", "local", "openai/other"),
        (None, None, "openai/other", "openai/other"),
    ],
)
def test_the_flag_goes_before_the_environment_and_the_environment_before_the_file(judge, environment, own, expected):
    text = "".join(f'[judges.{name}]\nmodel = "openai/{name}"\n' for name in ("default", "local", "cloud", "flag"))
    text += '[[scorers]]\nname = "topic_adherence"\n' + (f'judge = "{own}"\n' if own else "")
    found = {} if environment is None else {"JUDGEKIT_JUDGE": environment}
    assert built(text, judge, found)[0].judge.model == expected


def test_a_judge_that_is_unknown_on_the_command_line_names_the_nearest():
    with pytest.raises(ConfigError) as caught:
        built(FILE_OF_ALL, "defult")
    assert (
        str(caught.value)
        == "no judge is called 'defult'. Did you mean 'default'? Known: default, local, or any model as provider/model"
    )


def test_a_name_from_the_file_may_look_like_a_model():
    text = '[judges."openai/a"]\nmodel = "openai/b"\n[[scorers]]\nname = "topic_adherence"\n'
    assert built(text, "openai/a")[0].judge.model == "openai/b"


def test_scorers_with_one_judge_share_it_and_its_limits():
    text = f'{FILE_OF_ALL}\n[[scorers]]\nname = "agent_goal_accuracy_without_reference"\njudge = "local"\n'
    first, second = built(text)
    assert first.judge is second.judge
    first, second = built(text, "openai/a")
    assert first.judge is second.judge


def test_just_the_judges_that_are_asked_are_used():
    config = read(FILE_OF_ALL + '\n[[scorers]]\nname = "tool_call_f1"\n')
    assert config.judges_used == {}
    for spec in config.scorers:
        config.build(spec)
    assert list(config.judges_used) == ["local"]


def test_nothing_is_taken_from_the_environment_of_the_process(monkeypatch):
    monkeypatch.setenv("JUDGEKIT_JUDGE", "openai/from-the-process")
    assert built(FILE_OF_ALL)[0].judge.model == "openai/qwen3-32b"


# --- --scorer


@pytest.mark.parametrize(
    ("text", "name", "alias", "options"),
    [
        ("tool_call_f1", "tool_call_f1", None, {}),
        ("tool_call_f1:", "tool_call_f1", None, {}),
        ("topic_adherence:mode=recall", "topic_adherence", None, {"mode": "recall"}),
        ("topic_adherence:as=r,mode=recall", "topic_adherence", "r", {"mode": "recall"}),
        ("topic_adherence: as = r , mode = recall ", "topic_adherence", "r", {"mode": "recall"}),
        ("s:judge=openai/a:free", "s", None, {"judge": "openai/a:free"}),
        ("s:a=1,b=1.5,c=true,d=null", "s", None, {"a": 1, "b": 1.5, "c": True, "d": None}),
        ('s:a="1",b={"x":1},c=', "s", None, {"a": "1", "b": {"x": 1}, "c": ""}),
        ("s:a=b=c", "s", None, {"a": "b=c"}),
        ("s:a=x y", "s", None, {"a": "x y"}),
        ('s:a={"x":[1,"y"],"z":{}},as=b', "s", "b", {"a": {"x": [1, "y"], "z": {}}}),
        ('s: a = [1, 2] , b = "x, y" , c = 1 ', "s", None, {"a": [1, 2], "b": "x, y", "c": 1}),
        (r's:a="\",b=",c="]"', "s", None, {"a": '",b=', "c": "]"}),
        ("s:a=x[1],b=it's", "s", None, {"a": "x[1]", "b": "it's"}),
        ("s:,a=1,,b=2,", "s", None, {"a": 1, "b": 2}),
    ],
)
def test_a_scorer_on_the_command_line_is_a_name_with_options(text, name, alias, options):
    found = ScorerSpec.parse(text)
    assert (found.name, found.alias, found.options) == (name, alias, options)


def test_the_command_line_and_the_file_mean_the_same():
    spec = ScorerSpec.parse("topic_adherence:as=topic_recall,mode=recall,judge=local")
    assert [spec] == read(FILE_OF_ALL).scorers
    spec = ScorerSpec.parse('tool_call_match:match={"order":"any","args":{"only":["a","b"]}},as=loose')
    text = '[[scorers]]\nname = "tool_call_match"\nas = "loose"\nmatch = {order = "any", args = {only = ["a", "b"]}}'
    assert [spec] == read(text).scorers


def test_tables_and_lists_are_options_like_others():
    loose = asked('tool_call_match:match={"order":"any","extra":"allow"},as=loose')
    assert (loose.match.order, loose.match.extra, loose.name) == ("any", "allow", "loose")
    assert asked("tool_call_match:match=contains").match == loose.match
    assert [one.n for one in asked(f"tool_constraints:{NEEDED['tool_constraints']}").constraints] == [3]


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("tool_call_f1:args=rouge", ToolCallF1(args=ROUGE())),
        ("tool_call_f1:args=rouge:rouge1", ToolCallF1(args=ROUGE("rouge1"))),
        (
            'tool_call_f1:args="rouge:rouge1,stemmer=true",as=a',
            ToolCallF1(args=ROUGE("rouge1", stemmer=True), name="a"),
        ),
        ('tool_call_f1:args={"name":"similarity","measure":"indel"}', ToolCallF1(args=Similarity("indel"))),
        (
            'tool_call_accuracy:args={"text":"similarity","ignore":["id"]}',
            ToolCallAccuracy(args=ArgMatch(text=Similarity(), ignore=["id"])),
        ),
        (
            'tool_call_f1:args={"text":{"name":"exact_match","normalize":true}}',
            ToolCallF1(args=ExactMatch(normalize=True)),
        ),
        ('tool_call_f1:args={"text":"casefold"}', ToolCallF1(args=ArgMatch(text="casefold"))),
        (
            'tool_call_match:match={"args":"chrf","tools":{"a*":{"text":"bleu"},"b":{"mode":"ignore"}}}',
            ToolCallMatch(ToolMatch(args=CHRF(), tools={"a*": BLEU(), "b": ArgMatch(mode="ignore")})),
        ),
    ],
)
def test_what_compares_arguments_may_be_a_scorer(text, made):
    assert asked(text) == made


def test_it_may_be_a_table_in_a_file():
    text = """
        [[scorers]]
        name = "tool_call_match"
        [scorers.match]
        order = "any"
        args = {ignore = ["id"], text = {name = "rouge", type = "rouge1"}}
        tools = {"search*" = {name = "similarity"}}
    """
    how = ToolMatch(order="any", args=ArgMatch(ignore=["id"], text=ROUGE("rouge1")), tools={"search*": Similarity()})
    assert built(text) == [ToolCallMatch(how)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tool_call_f1:args=ndcg", "tool_call_f1: args: text: ndcg cannot compare two texts; BLEU, "),
        ('tool_call_f1:args={"text":"fuzzy"}', "tool_call_f1: args: text: expected 'exact' or 'casefold' or 'normalized', a function of two texts, or a scorer of texts, found 'fuzzy'"),
        ('tool_call_f1:args={"text":5}', "tool_call_f1: args: text: expected 'exact' or "),
        ("tool_call_f1:args=rogue", "no scorer is called 'rogue'. Did you mean 'rouge'? Known: "),
        ('tool_call_f1:args={"name":"rogue"}', "no scorer is called 'rogue'. Did you mean 'rouge'? Known: "),
        ('tool_call_f1:args={"name":"rouge","measure":1}', "no option of rouge is called 'measure'. Known: "),
        ('tool_call_match:match={"args":"ndcg"}', "tool_call_match: match: args: text: ndcg cannot compare two texts; BLEU, "),
    ],
)  # fmt: skip
def test_a_comparer_that_cannot_be_is_an_error_that_says_where(text, message):
    with pytest.raises(ConfigError) as caught:
        asked(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("topic_adherence:recal", "topic_adherence: no mode of topic adherence is called 'recal'. Did you mean 'recall'? Known: precision, recall, f1, accuracy"),
        ("topic_adherence:recall,mode=f1", "topic_adherence: expected option=value after the colon, found 'recall'"),
        ("json_match:strict", "json_match: expected option=value after the colon, found 'strict'"),
        ("adaptability:exact_match", "adaptability: expected option=value after the colon, found 'exact_match'"),
        ("auc:search", "auc: expected option=value after the colon, found 'search'"),
        ("exact_match:paris", "exact_match: normalize must be true or false, found 'paris'"),
        ("answer_match:2", "answer_match: threshold must be above 0 and at most 1, found 2"),
        ("classification:recall", "classification: recall is computed for one class: name it with positive=..., or use recall_macro, recall_micro or recall_weighted"),
        ("bleu:max_order=2.5", "bleu: max_order must be an integer of at least 1, found 2.5"),
        ("topic_adherence:mode=f1,mode=recall", "--scorer topic_adherence:mode=f1,mode=recall: 'mode' is given twice; as=... names the scorer"),
        ("tool_call_f1:name=strict", "--scorer tool_call_f1:name=strict: 'name' is given twice; as=... names the scorer"),
        ("topic_adherence:mode=1", "topic_adherence: no mode of topic adherence is called 1. Did you mean 'f1'? Known: precision, recall, f1, accuracy"),
        ("topic_adherence:mode=null", "topic_adherence: no mode of topic adherence is called None. Known: precision, recall, f1, accuracy"),
        ("topic_adherence:as=5", "a [[scorers]] table: as: Input should be a valid string, found 5"),
        ('s:a={"b":1', """--scorer s:a={"b":1: a begins like JSON but is invalid: Expecting ',' delimiter: line 1 column 7 (char 6)"""),
        ("s:a=[x,y]", "--scorer s:a=[x,y]: a begins like JSON but is invalid: Expecting value: line 1 column 2 (char 1)"),
        ('s:a="x" y,b=1', """--scorer s:a="x" y,b=1: a begins like JSON but is invalid: expected a comma after it, found 'y,b=1'"""),
        ("tool_call_match", "tool_call_match: the option match=... is required; judgekit scorers tool_call_match shows it"),
        ("tool_constraints:requestor=user", "tool_constraints: the option constraints=... is required; judgekit scorers tool_constraints shows it"),
        ("tool_call_accuracy:strict_order=no", "tool_call_accuracy: strict_order must be true or false, found 'no'"),
        ('tool_call_match:match={"order":"nay"}', "tool_call_match: match: order: Input should be 'sequence', 'in_order' or 'any', found 'nay'"),
        ("topic_adherence:mode=f1,recall", "--scorer topic_adherence:mode=f1,recall: expected option=value, found 'recall'; quote texts that contain commas"),
        ("tool_call_match:exact,match=contains", "tool_call_match: expected option=value after the colon, found 'exact'"),
        ('pairwise:"Which" one', "--scorer pairwise:\"Which\" one: the text after the colon begins like JSON but is invalid: expected a comma after it, found 'one'"),
        ("pairwise:Which one, and why?", "--scorer pairwise:Which one, and why?: expected option=value, found 'and why?'; quote texts that contain commas"),
        ("prompt", "prompt: the option prompt=... is required; judgekit scorers prompt shows it"),
        ("prompt:topic_adherence", "prompt: the prompt topic_adherence has no scale; only its own scorer can read its answer"),
        ("panel:scorers=tone", 'panel: scorers must be a list of scorers, such as [{name = "prompt", prompt = "tone", judge = "a"}]'),
        ("adaptability:scorer=5", "adaptability: expected a scorer as a table or a text, found 5"),
        ("adaptability:scorer=tool_cal_f1", f"no scorer is called 'tool_cal_f1'. Did you mean 'tool_call_f1'? Known: {KNOWN}{OWN}"),
        ("panel:scorers=[5]", "panel: expected a scorer as a table or a text, found 5"),
        ("topic", f"no scorer is called 'topic'. Known: {KNOWN}{OWN}"),
        ("", f"no scorer is called ''. Known: {KNOWN}{OWN}"),
    ],
)  # fmt: skip
def test_a_scorer_that_cannot_be_is_an_error_that_says_what_can(text, message):
    with pytest.raises(ConfigError) as caught:
        asked(text, "openai/a")
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (ValueError("odd"), "tool_call_f1: args, requestor: odd"),
        (TypeError("no such thing"), "tool_call_f1: args, requestor: no such thing"),
        (ConfigError("args: odd"), "tool_call_f1: args: odd"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_what_a_scorer_says_of_its_options_is_an_error_that_names_scorer_and_option(raised, said, monkeypatch):
    def refuse(self):
        raise raised

    monkeypatch.setattr(ToolCallF1, "__post_init__", refuse, raising=False)
    with pytest.raises(ConfigError) as caught:
        asked("tool_call_f1:args=1,requestor=2")
    assert str(caught.value) == said


def test_a_record_that_does_not_fit_says_where(monkeypatch):
    monkeypatch.setattr(ToolCallF1, "__post_init__", lambda self: Price.model_validate(self.args), raising=False)
    with pytest.raises(ConfigError, match=r"^tool_call_f1: args: output: Field required, found \{'input': 1\}$"):
        asked('tool_call_f1:args={"input":1}')


# --- what there is


def test_each_scorer_is_described_and_says_whether_it_asks():
    found = list(describe_scorers())
    own, prompts = found[: len(NAMES) - 1], found[len(NAMES) - 1 :]
    assert [(name, asks) for name, _, asks in own] == [(name, name in JUDGED) for name in NAMES[:-1]]
    assert all("1 if " in description for _, description, _ in own)
    scaled = [prompt for prompt in shipped_prompts() if prompt.scale]
    assert [(name, asks) for name, _, asks in prompts] == [(f"prompt:{prompt.name}", True) for prompt in scaled]
    for (_, description, _), prompt in zip(prompts, scaled, strict=True):
        assert description.startswith(f"{prompt.description} {prompt.scale[0][0]} ")
        assert description.endswith(prompt.skipped)


@pytest.mark.parametrize("name", NAMES)
def test_each_scorer_is_called_as_it_is_asked_for(name):
    found = asked(f"{name}:{NEEDED.get(name, '')}", "openai/a")
    assert found.name == CALLED.get(name, name)
    assert isinstance(found, Scorer)
    assert ("judge" in {one.name for one in fields(found)}) is hasattr(found, "judge")


def test_what_a_scorer_cannot_do_without_may_stand_first_without_its_name():
    assert asked("tool_call_match:contains,requestor=user") == asked("tool_call_match:match=contains,requestor=user")
    assert asked("prompt:tone", "openai/a").name == "tone"
    assert asked("pairwise:Which one?", "openai/a").question == "Which one?"
    assert asked('pairwise:"Which one, and why = how?",as=both', "openai/a").question == "Which one, and why = how?"
    repeated = asked("prompt: tone ,repeats=3", "openai/a")
    assert isinstance(repeated, Repeat)
    assert (repeated.scorer.name, repeated.repeats) == ("tone", 3)


@pytest.mark.parametrize(
    ("bare", "named"),
    [
        ("rouge:rouge1", "rouge:type=rouge1"),
        ("rouge:rouge1,mode=recall", "rouge:mode=recall,type=rouge1"),
        ("similarity:jaro_winkler", "similarity:measure=jaro_winkler"),
        ("max_repeated_calls:2", "max_repeated_calls:budget=2"),
        ("topic_adherence:recall", "topic_adherence:mode=recall"),
        ("topic_adherence:recall,judge=openai/b,as=r", "topic_adherence:mode=recall,judge=openai/b,as=r"),
        ("topic_adherence:recall,repeats=3", "topic_adherence:mode=recall,repeats=3"),
        ("classification:f1_macro", "classification:measure=f1_macro"),
        ("answer_match:0.5", "answer_match:threshold=0.5"),
        ("exact_match:true", "exact_match:normalize=true"),
        ("ndcg:10", "ndcg:k=10"),
        ("err:4,k=10", "err:max_grade=4,k=10"),
        ('tool_call_f1:{"ignore":["x"]}', 'tool_call_f1:args={"ignore":["x"]}'),
    ],
)
def test_the_first_option_may_stand_without_its_name_where_none_is_needed(bare, named):
    one, other = asked(bare, "openai/a"), asked(named, "openai/a")
    assert type(one) is type(other)
    assert (one.name, signature(one)) == (other.name, signature(other))
    assert signature(one) != signature(
        asked(f"{bare.partition(':')[0]}:{'max_grade=5' if bare[:3] == 'err' else ''}", "openai/a")
    )


def test_a_bare_option_within_a_scorer_is_one_like_any_other():
    assert asked("adaptability:scorer=rouge:rouge1").scorer == ROUGE("rouge1")


def test_a_prompt_file_of_ones_own_is_a_scorer_by_its_path():
    Path("kind.md").write_text(
        "---\ndescription: Kind?\ninputs: [conversation]\nscale: {kind: 1, unkind: 0}\nsource: ours\n---\nKind?",
        encoding="utf-8",
    )
    for text in ("prompt:kind.md", "prompt:./kind.md,as=kind"):
        found = asked(text, "openai/a")
        assert (found.name, found.prompts[0].question) == ("kind", "Kind?")
    (found,) = built('[[scorers]]\nname = "prompt"\nprompt = "kind.md"\nrequire_evidence = true', "openai/a")
    assert (found.name, found.require_evidence) == ("kind", True)


PANEL = """
[judges.small]
model = "openai/small"
[[scorers]]
name = "panel"
as = "tone_of_two"
rule = "unanimous"
scorers = [
    {name = "prompt", prompt = "tone", judge = "small"},
    {name = "prompt", prompt = "tone", judge = "openai/large", repeats = 3},
]
"""


def test_the_members_of_a_panel_are_scorers_with_judges_of_their_own():
    config = read(PANEL)
    (panel,) = map(config.build, config.scorers)
    one, other = panel.scorers
    assert (panel.name, panel.rule) == ("tone_of_two", "unanimous")
    assert (one.judge.model, other.scorer.judge.model, other.repeats) == ("openai/small", "openai/large", 3)
    assert list(config.judges_used) == ["small", "openai/large"]


def test_a_scorer_within_a_scorer_is_asked_for_like_any_other():
    named = asked("adaptability:scorer=tool_call_f1")
    assert named.scorer == ToolCallF1()
    (table,) = built('[[scorers]]\nname = "adaptability"\nscorer = {name = "rouge", type = "rouge1"}')
    assert (table.name, table.scorer) == ("adaptability", ROUGE("rouge1"))
    assert asked("collaboration_efficiency").scorer is None
    judged = asked('collaboration_efficiency:scorer="prompt:tone,judge=openai/b"')
    assert (judged.scorer.judge.model, judged.prompts) == ("openai/b", judged.scorer.prompts)


def test_a_judge_that_a_scorer_names_on_the_command_line_goes_before_the_one_named_for_all(tmp_path):
    file = tmp_path / "judgekit.toml"
    file.write_text('[[scorers]]\nname = "topic_adherence"\njudge = "openai/a"\n', encoding="utf-8")
    config = Config(file, "openai/b", {})
    assert config.build(config.scorers[0]).judge.model == "openai/b"
    assert config.build(ScorerSpec.parse("topic_adherence:judge=openai/c")).judge.model == "openai/c"


def test_a_judge_that_is_named_for_one_scorer_is_asked_by_all_within_it_that_name_none():
    config = Config(None, "openai/run", {})

    def built_with(text):
        return config.build(ScorerSpec.parse(text).with_judge("openai/own"))

    assert built_with("prompt:tone").judge.model == "openai/own"
    assert built_with("prompt:tone,judge=openai/a").judge.model == "openai/a"
    assert built_with("prompt:tone,repeats=3").scorer.judge.model == "openai/own"
    assert built_with('adaptability:scorer="prompt:tone"').scorer.judge.model == "openai/own"
    one, other = built_with('panel:scorers=["prompt:tone","prompt:tone,judge=openai/b,as=b"]').scorers
    assert (one.judge.model, other.judge.model) == ("openai/own", "openai/b")
    doubted = built_with('prompt:tone,repeats=3,min_confidence=.8,escalate="prompt:tone"')
    assert (doubted.scorer.scorer.judge.model, doubted.escalate.judge.model) == ("openai/own", "openai/own")
    assert built_with("tool_call_f1") == ToolCallF1()
    assert config.build(ScorerSpec.parse("prompt:tone")).judge.model == "openai/run"


def test_a_judge_falls_back_to_others_by_name_or_model():
    config = read(FALLBACKS)
    cheap = config.judge("cheap")
    assert [other.model for other in cheap.fallback] == ["openai/large", "openai/other"]
    assert cheap.fallback[0] is config.judge("large")  # one judge, with one budget, whoever asks it
    assert [other.model for other in config.judge("large").fallback] == ["openai/other"]
    assert config.judge("last").fallback == ()
    assert list(config.judges) == ["cheap", "large", "last", "openai/other"]  # those of the file in its order


FALLBACKS = """
[judges.cheap]
model = "openai/cheap"
fallback = ["large", "openai/other"]
[judges.large]
model = "openai/large"
fallback = ["last"]
[judges.last]
model = "openai/other"
"""


@pytest.mark.parametrize(
    ("fallback", "message"),
    [
        ('["larg"]', "no judge is called 'larg'. Did you mean 'large'? Known: "),
        ('["large"]', "judges fall back in a circle: cheap > large > cheap"),
        ('["cheap"]', "judges fall back in a circle: cheap > cheap"),
        ('"large"', "cheap: Input should be a valid list, found 'large'"),
    ],
)
def test_a_fallback_that_leads_nowhere_is_an_error(fallback, message):
    text = FALLBACKS.replace('["large", "openai/other"]', fallback).replace('["last"]', '["cheap"]')
    with pytest.raises(ConfigError, match=re.escape(message)):
        read(text)


def test_switches_hold_for_every_judge_there_is():
    Path("mine.toml").write_text(FALLBACKS, encoding="utf-8")
    config = Config(Path("mine.toml"), None, {}, offline=True)
    judges = [config.judge(name) for name in ("cheap", "large", "last", "openai/unnamed")]
    judges += config.judge("cheap").fallback
    assert [one.offline for one in judges] == [True] * 6


def test_text_that_is_not_to_be_stored_is_stored_by_no_judge():
    config = read("store_text = false\n" + FALLBACKS)
    assert not config.store_text
    assert [config.judge(name).store_text for name in ("cheap", "last", "openai/unnamed")] == [False] * 3
    assert read(FALLBACKS).store_text


def test_a_scorer_that_asks_a_judge_can_be_drawn_several_times():
    spec = ScorerSpec.parse("topic_adherence:mode=recall,repeats=3")
    repeated = Config(None, "openai/a", {}).build(spec)
    assert isinstance(repeated, Repeat)
    assert (repeated.name, repeated.repeats, repeated.scorer.mode) == ("topic_adherence_x3", 3, "recall")
    named = Config(None, "openai/a", {}).build(ScorerSpec.parse("topic_adherence:repeats=3,as=sure"))
    assert (named.name, named.scorer.name) == ("sure", "topic_adherence")


def test_a_scorer_that_asks_a_judge_can_be_heard_only_where_it_is_sure_enough():
    found = asked("prompt:tone,repeats=auto,min_confidence=0.8", "openai/a")
    assert isinstance(found, Selective)
    assert (found.name, found.min_confidence, found.escalate, found.scorer.repeats) == ("tone_auto", 0.8, None, "auto")
    named = asked("prompt:tone,repeats=5,min_confidence=0.8,as=sure", "openai/a")
    assert (named.name, named.scorer.name) == ("sure", "sure")
    plain = asked("pairwise:Which is better?,min_confidence=1", "openai/a")
    assert (plain.name, plain.scorer.name) == ("pairwise", "pairwise")


SURE = """
[judges.default]
model = "openai/small"
[judges.large]
model = "openai/large"
[[scorers]]
name = "prompt"
prompt = "tone"
repeats = 3
min_confidence = 0.8
escalate = {name = "prompt", prompt = "tone", judge = "large", repeats = 2, min_confidence = 0.9}
"""


def test_below_that_another_scorer_is_asked_which_is_one_like_any_other():
    (found,) = built(SURE)
    assert (found.name, found.scorer.scorer.judge.model) == ("tone_x3", "openai/small")
    assert isinstance(found.escalate, Selective)
    assert (found.escalate.scorer.repeats, found.escalate.scorer.scorer.judge.model) == (2, "openai/large")
    told = asked('prompt:tone,repeats=3,min_confidence=0.8,escalate="prompt:tone,judge=openai/large"', "openai/small")
    assert (told.scorer.scorer.judge.model, told.escalate.judge.model) == ("openai/small", "openai/large")


def test_a_cascade_is_one_line():
    cascade = """
        [judges.fast]
        model = "openai-decisions/gpt-6-luna"
        [judges.large]
        model = "openai/large"
        [[scorers]]
        name = "prompt"
        prompt = "tone"
        judge = "fast"
        escalate = {judge = "large", below = 0.8, require_evidence = true}
        """
    (found,) = built(cascade)
    assert (found.name, found.min_confidence) == ("tone", 0.8)
    assert (found.scorer.judge.model, found.escalate.judge.model) == ("openai-decisions/gpt-6-luna", "openai/large")
    assert (found.scorer.require_evidence, found.escalate.require_evidence) == (False, True)
    with pytest.raises(ConfigError, match=r"min_confidence and escalate\.below say the same"):
        built(f"{cascade}\nmin_confidence = 0.7")


def test_who_is_escalated_to_asks_the_same_judge_unless_it_names_another():
    within = 'prompt:tone,repeats=3,min_confidence=.8,escalate="prompt:tone"'
    told = asked(f"{within},judge=openai/small", "openai/large")
    assert (told.min_confidence, told.escalate.judge.model) == (0.8, "openai/small")
    assert asked(within, "openai/large").escalate.judge.model == "openai/large"
    cascade = {"name": "prompt", "prompt": "tone", "repeats": 3, "min_confidence": 0.9, "escalate": "prompt:tone"}
    told = asked(
        f"prompt:tone,repeats=3,min_confidence=0.8,escalate={json.dumps(cascade)},judge=openai/small", "openai/a"
    )
    assert told.escalate.escalate.judge.model == told.escalate.scorer.scorer.judge.model == "openai/small"


def test_a_panel_has_an_escalate_of_its_own():
    members = 'scorers=["prompt:tone","prompt:faithfulness"]'
    panel = asked(f"panel:{members},escalate=true,min_confidence=0.6", "openai/a")
    assert (panel.name, panel.escalate, panel.scorer.escalate) == ("panel", None, True)
    panel = asked(f'panel:{members},min_confidence=0.6,escalate="prompt:tone"', "openai/a")
    assert (panel.escalate.name, panel.scorer.escalate) == ("tone", False)
    with pytest.raises(ConfigError, match=r"Known: scorers, rule, quorum, escalate, weights, repeats, min_confidence$"):
        asked(f"panel:{members},judges=a", "openai/a")


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        ("topic_adherence:escalate=prompt:tone", "topic_adherence: escalate needs min_confidence=..., below which"),
        (
            "topic_adherence:min_confidence=0.8,escalate=true",
            "topic_adherence: expected a scorer as a table or a text, found True",
        ),
        ("topic_adherence:min_confidence=0.8", "topic_adherence reports no confidence: ask several times (repeats)"),
        ("prompt:tone,min_confidence=0.8", "tone reports no confidence"),
        ("topic_adherence:min_confidence=sure", "min_confidence must be above 0 and at most 1, found 'sure'"),
        ("topic_adherence:min_confidense=0.8", "is called 'min_confidense'. Did you mean 'min_confidence'?"),
        ("tool_call_f1:min_confidence=0.8", "no option of tool_call_f1 is called 'min_confidence'"),
        ("topic_adherence:repeats=null", "topic_adherence: repeats is null: give it a value, or leave it out"),
        (
            "prompt:tone,repeats=3,min_confidence=0.8,escalate=prompt:tone,judge=openai/b",
            'either scorer: quote escalate, as in escalate="prompt:tone,judge=openai/b", or put it last',
        ),
        (
            "topic_adherence:min_confidence=7,repeats=3",
            "topic_adherence: min_confidence must be above 0 and at most 1, found 7",
        ),
        ("topic_adherence:repeats=1", "topic_adherence: repeats must be 2 or more, or 'auto', found 1"),
        ("topic_adherence:repeats=many", "topic_adherence: repeats must be a number or 'auto', found 'many'"),
        ("tool_call_f1:repeats=3", "no option of tool_call_f1 is called 'repeats'"),
    ],
)
def test_draws_and_confidences_that_make_no_sense_are_an_error(scorer, message):
    with pytest.raises(ConfigError, match=re.escape(message)):
        Config(None, "openai/a", {}).build(ScorerSpec.parse(scorer))
