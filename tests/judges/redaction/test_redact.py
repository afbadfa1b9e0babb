"""What a judge is not to see is taken out of a sample before it is asked."""

import asyncio
import html
import json
import os
import re
import sys
import time
import unicodedata
from urllib.parse import quote, unquote

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from judgekit import AIMessage, HumanMessage, SystemMessage, ToolCall, ToolMessage
from judgekit.judges.judge import Judge
from judgekit.judges.prompt_file import load_prompt
from judgekit.judges.redaction.patterns import PATTERNS
from judgekit.judges.redaction.redact import redact_sample
from judgekit.judges.request import Reply
from judgekit.scorers.prompted import PromptScorer
from judgekit.traces.message import MediaPart, OtherPart, ReasoningPart, RefusalPart, TextPart
from judgekit.traces.recording import ToolDefinition
from judgekit.traces.sample import ExpectedCall, Sample
from judgekit.traces.trace import Trace

GOAL = load_prompt("agent_goal_with_reference")


def hidden(text, *names):
    """A text as a judge is shown it, with these patterns or all of them."""
    return redact_sample(Sample.of([HumanMessage(text)], id="1"), names or tuple(PATTERNS)).trace.messages[0].text


KEY = "sk-proj-abcdefgh12345678"
SURROUNDED = [
    ("\x1b[32mann@x.org\x1b[0m", "\x1b[32m<email 1>"),
    (f"key \x1b[1;31m{KEY}\x1b[0m.", "key \x1b[1;31m<secret 1>."),
    (f"sk-\x1b[31m{KEY[3:]}", "<secret 1>"),
    ("ab\x1b[0mAKIAIOSFODNN7EXAMPLE", "ab\x1b[0m<secret 1>"),
    ("\x1b[1;33m4111 1111 \x1b[0m1111 1111", "\x1b[1;33m<card 1>"),
    ("+49 30 \x1b[1m1234567", "<phone 1>"),
    ("password=\x1b[32mhunter22\x1b[0m", "password=\x1b[32m<secret 1>"),
    ("ip \x1b[36m10.0.0.1\x1b[39m", "ip \x1b[36m<ip 1>"),
    (f"\x9b31m{KEY}", "\x9b31m<secret 1>"),
    (f"\\x1b[31m{KEY} \\u001b[31m{KEY} \\033[31m{KEY} \\e[31m{KEY} ^[[31m{KEY} [31m{KEY}", None),
    ("\x1b]8;;http://e.org\x1b\\ann@x.org\x1b]8;;\x1b\\", None),
    ("phone=%2B49+30+1234567&a=1", "phone=<phone 1>&a=1"),
    ("msg=call+%28555%29+123-4567+now", "msg=call+<phone 1>+now"),
    (
        "email=ann%40x.org&password=hunter+two&card=4111+1111+1111+1111",
        "email=<email 1>&password=<secret 1>&card=<card 1>",
    ),
    ("tel_(555) 123-4567 n_020 7946 0958 x_10.0.0.1", "tel_<phone 1> n_<phone 2> x_<ip 1>"),
    ("_https://x.org/a 链接https://x.org/b", "_<url 1> 链接<url 2>"),
    (f"密钥{KEY} 卡号4111111111111111号 电话020 7946 0958", "密钥<secret 1> 卡号<card 1>号 电话<phone 1>"),
    (f"key_{KEY} id_AKIAIOSFODNN7EXAMPLE_1 _DE89370400440532013000", "key_<secret 1> id_<secret 2>_1 _<iban 1>"),
    ("total=555+123+4567", "total=555+123+4567"),
    (f"\x1b[1m{KEY}\x1b(B\x1b[m sk-\x1b(B{KEY[3:]}", "\x1b[1m<secret 1> <secret 1>"),
    (f"\x1b]0;title\x07{KEY}", None),
    ("ann\0@x.org 4111\x0111111111\u31641111 10.0.\x7f0.1", "<email 1> <card 1> <ip 1>"),
]


@pytest.mark.parametrize(("text", "shown"), SURROUNDED)
def test_values_in_colors_and_forms_and_behind_letters_of_any_kind_are_replaced(text, shown):
    assert hidden(text) == shown if shown else not re.search("ann@|abcdefgh|e.org", hidden(text))


def test_what_is_personal_or_secret_is_replaced_by_its_kind_and_a_number():
    cases = [
            ("email", "Write to ann.lee+x@mail.example.co.uk.", "Write to <email 1>."),
            ("email", "<jo_1@x.de>, mailto:jürgen@bücher.de!", "<<email 1>>, mailto:<email 2>!"),
            ("url", "See https://x.org/a?b=c&d=(e)#f, (www.foo.com/), or HTTP://Y.IO.", "See <url 1>, (<url 2>), or <url 3>."),
            ("url", '{"url":"https://x.org/1"}', '{"url":"<url 1>"}'),
            ("iban", "DE89 3704 0044 0532 0130 00, or GB82WEST12345698765432.", "<iban 1>, or <iban 2>."),
            ("iban", "BE68 5390 0754 7034 WAS PAID", "<iban 1> WAS PAID"),
            ("card", "4111 1111 1111 1111, 4111-1111-1111-1111 and 5555555555554444", "<card 1>, <card 1> and <card 2>"),
            ("card", "3782 822463 10005, 30569309025904", "<card 1>, <card 2>"),
            ("card", "until 12 2027 4111 1111 1111 1111 123", "until 12 2027 <card 1> 123"),
            ("phone", "+49 (0)30 1234567; +15551234567", "<phone 1>; <phone 2>"),
            ("phone", "(555) 123-4567, 555.123.4567 or 1-800-555-0199", "<phone 1>, <phone 1> or <phone 2>"),
            ("phone", "020 7946 0958, 06.12.34.56.78, 030/1234567, 0041 44 668 18 00", "<phone 1>, <phone 2>, <phone 3>, <phone 4>"),
            ("ip", "10.0.0.1, 2001:db8::1 and fe80::1%eth0", "<ip 1>, <ip 2> and <ip 3>%eth0"),
            ("ip", "at 192.168.0.1.", "at <ip 1>."),
            ("secret", "sk-proj-abcdefgh12345678, ghp_16C7e42F292c6912E7710c838347Ae178B4a", "<secret 1>, <secret 2>"),
            ("secret", "AKIAIOSFODNN7EXAMPLE sk_live_4eC39HqLyjWDarjtT1zdp7dc", "<secret 1> <secret 2>"),
            ("secret", "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0", "Bearer <secret 1>"),
        ]  # fmt: skip
    for name, text, shown in cases:
        assert hidden(text, name) == shown
        assert hidden(text) == shown


def test_ordinary_text_stays():
    cases = [
        "Order 12345 of 2024-01-15, 10:30:45, is 1 of 12; see messages 3, 4 and 17.",
        "2024-05-15T10:30:00+02:00, 15.05.2024 10:30, 05/15/2024 11:30, 01-02-2024 10:30:45, 20240515, 05/06/2024 12 people",
        "It costs $1,234.56 or 1.234.567,89 EUR, which is 12,345,678 cents, or 100 000 000.",
        "order #W2378156, item 4716270921, reservation ZFA04Y, flight HAT001, user sara_doe_496, zip 10115",
        "at 1700000000, 1700000000004 or 1700000000000000004 since 1970",
        "0.1, 0.123456789, 0.4111111111111111, 3.0123456789, 3.141592653589793, -12.5, 1e-05, +5, 48.8566140, 2.3522219",
        "INV-0123456789, 555-123-4567-89, 550e8400-e29b-41d4-a716-446655440000, 00:1A:2B:3C:4D:5E, 12:34:56, v1.2.3, 1.2.3.4.5, 999.1.1.1",
        "std::vector<int>, a[::2], Foo::bar(), ratio 3:2, [12, 34, 56], ::",
        "skateboarding-lessons, sketch_generator_tool, pk_of_the_customers_table, hf_mistral_7b, eyJ",
        "4111 1111 1111 1112 and 4111111111111112 are no cards, and DE88 3704 is no account",
        "AB12 CDEF 3456 GHIJ 7890, ISBN 978-3-16-148410-0, 3M, @home, a@b, me@localhost, e.g. this@",
        "call_9pQ2, toolu_01A09q90qw90lq917835lq9, chatcmpl-1, get_user_details_by_id_0123456789",
        "http://, www., https:, 007, 24/7, 1-2-3, 10-20, 5 1/2, 2+2, 0800",
        # what resembles secrets
        '{"password": {"type": "string"}, "has_password": false, "secret": "", "api_key": null, "max_tokens": 100}',
        '{"note": "the password: ", "user": "x"}, (password: str, secret: Optional[int] = None)',
        "Bearer certificates, tokens: 5, password_reset: true, secrets: [1], keys: a, monkey: b, the password is there",
        "-----BEGIN CERTIFICATE-----\nAbc=\n-----END CERTIFICATE-----",
        "npm_config_registry, secret_of_the_customers_table_2, key-value-pairs, SKU 12345, ACME, dapi-client, xai-tools",
        "a[::2], x()[::1], std::add, commit 4f2a9c1e8b7d6a5f4e3d2c1b0a9f8e7d6c5b4a39, de12cdef34567890abcdef1234567890",
        "de12cdef-3456-4890-abcd-ef1234567890, 2024-01-15\n2024-01-16\n2024-01-17, 12\n34\n56\n78, 0.5\n0.25\n0.125",
    ]
    for text in cases:
        assert hidden(text) == text


@given(st.integers(2 * 10**14, 7 * 10**14 - 1))
def test_of_ten_numbers_that_differ_in_the_last_digit_one_is_a_card(digits):
    assert [hidden(f"{digits}{last}", "card") for last in range(10)].count("<card 1>") == 1


def seconds(text):
    """How long it takes to look a text through for everything, of the processor's time."""
    started = time.process_time()
    hidden(text)
    return time.process_time() - started


def test_a_long_text_of_any_shape_takes_no_long_time():
    """A pattern that takes more than linear time needs a second for 12,000 characters; the others need a hundredth."""
    cases = [" ", "0", "1", "4", "a", "A", ".", "-", ":", "+", "(", "@", "/", "é", "0 ", "1-", "+1 ", "01", "0 1", "(0", "4111 ",
         "4111-1111 ", "A1", "AA11", "AA11 ", "a@", "@a", "a.", "a@a.", "1.", "1:", "a:", "::", "www.", "http://", "http://.",
         "sk-", "sk_a", "eyJ.", "eyJ-", "eyJaaaaaaaa.", "AKIA", "AIza", "12:34 ", "\\", "\\n", "\\u005cu005c", "%25", "%C2", "&amp;",
         "&", "\u200b", "4\u00a0", "secret=", 'secret":"\\', '"secret":"a\\"', "password='", "-----BEGIN PRIVATE KEY-----\n", "SG.a_",
         "Bearer a", "secret    :", "de89-", "[4111111111111111,", '"x":4111111111111111,', "\\ud83d"]  # fmt: skip
    for unit in cases:
        assert seconds(unit * (12_000 // len(unit)) + "!x") < 0.8, unit
        assert seconds(f'"secret": "{unit * (12_000 // len(unit))}') < 0.8, unit


# Wrapped


def luhn(digits):
    return sum(sum(map(int, str(int(digit) * (2 - place % 2)))) for place, digit in enumerate(digits)) % 10 == 0


ISSUED = {
    **dict.fromkeys(["sk-", "sk-proj-", "sk-ant-api03-", "ghp_", "github_pat_", "glpat-", "xoxb-", "sk_live_", "rk_live_"], 44),
    **dict.fromkeys(["npm_", "pypi-", "hf_", "dop_v1_", "shpat_", "r8_", "ATATT3xFfGF0", "lin_api_", "ntn_", "secret_"], 44),
    **dict.fromkeys(["gsk_", "xai-", "pplx-"], 44),
    **dict.fromkeys(["SK", "AC", "dapi", "key-"], 32),
    "AIza": 35, "123456789:AA": 33, "SG.abcdefghijklmnopqrstuv.": 43, "eyJhbGciOiJIUzI1NiJ9.": 43,
    "MTk4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.": 27,
}  # fmt: skip
"""What the keys of well-known issuers begin with, and how many characters follow."""

HEX = st.integers(16**63, 16**64 - 1).map(lambda number: f"7{number:x}")
SHAPES = {
    "email": st.from_regex(r"\A[a-z]{4,8}\.[a-z0-9]{3,6}@[a-z]{3,8}\.(org|co\.uk)\Z"),
    "card": st.integers(0, 10**14 - 1).map(lambda n: next(f"4{n:014}{d}" for d in range(10) if luhn(f"4{n:014}{d}"))),
    "iban": st.integers(0, 10**18 - 1).map(lambda n: f"DE{98 - int(f'{n:018}131400') % 97:02}{n:018}"),
    "phone": st.integers(10**9, 10**10 - 1).map(lambda number: f"+49{number}"),
    "ip": st.lists(st.integers(11, 250), min_size=4, max_size=4).map(lambda parts: ".".join(map(str, parts))),
    "secret": st.builds(lambda prefix, random: prefix + random[: ISSUED[prefix]], st.sampled_from([*ISSUED]), HEX)
    | HEX.map(lambda random: f"AKIA{random[:16].upper()}"),
}  # fmt: skip


def spread(by):
    """In groups of four, where a value is written so."""
    return lambda text: by.join(re.findall(".{1,4}", text)) if re.fullmatch(r"(\+|DE)?\d+", text) else text


def as_json(text):
    return json.dumps({"status": "ok", "said": f"line\n\t{text}\n", "n": [1.0]})


def fullwidth(text):
    return "".join(chr(ord(one) + 0xFEE0) for one in text)


SPACES = (" ", "-", "\t", "\n", ".", *"\u00a0\u2009\u202f\u2010\u2011\u2013\u2015\u2212")
WRAPPINGS = {
    "plain": str,
    "behind an escaped line break": lambda text: rf"ERROR\n{text}\r\ndone",
    "behind an escaped tab": lambda text: rf"who:\t{text}\tpaid",
    "JSON": as_json,
    "JSON in JSON": lambda text: as_json(as_json(text)),
    "JSON in JSON in JSON": lambda text: as_json(as_json(as_json(text))),
    "a JSON string three times": lambda text: json.dumps(json.dumps(json.dumps(f"\n{text}\n"))),
    "JSON that breaks off": lambda text: as_json(as_json(text))[:-20],
    "JSON lines": lambda text: "\n".join([as_json("fine"), as_json(text), as_json("fine")]),
    "a fence": lambda text: f"Here it is:\n```json\n{as_json(text)}\n```\nBye.",
    "all letters escaped": lambda text: '"' + "".join(f"\\u{ord(one):04x}" for one in text) + '"',
    "escaped solidus": lambda text: json.dumps({"at": f"/{text}/"}).replace("/", r"\/"),
    "percent-encoded": lambda text: f"?to=%20{quote(text, safe='')}%0A",
    "percent-encoded twice": lambda text: quote(quote(f" {text} ", safe=""), safe=""),
    "a percent-encoded neighbor": lambda text: f"%20{text}%20",
    "HTML": lambda text: f"<p>{''.join(f'&#{ord(one)};' for one in text)}</p>",
    "HTML in JSON": lambda text: as_json(text.replace("@", "&commat;").replace("+", "&#x2B;")),
    "fullwidth": fullwidth,
    "fullwidth, percent-encoded": lambda text: quote(fullwidth(text), safe=""),
    "invisible characters": "\u200b".join,
    "soft hyphens in JSON": lambda text: as_json("\u00ad".join(text)),
    "Chinese around": lambda text: f"号码\uff1a{text}。",
    "underscores around": lambda text: f"_{text}_",
    "another script's digits": lambda text: text.translate({48 + digit: 0x660 + digit for digit in range(10)}),
    "lower case": lambda text: text.lower() if text.startswith("DE") else text,
    **{f"{by!r} within": spread(by) for by in SPACES},
    **{f"{by!r} within, in JSON": lambda text, by=by: as_json(spread(by)(text)) for by in SPACES},
}


def plainly(text):
    """A text with encodings taken off by Python's own means, over and over."""
    for _ in range(6):
        text = re.sub(r"\\+u([0-9a-fA-F]{4})", lambda found: chr(int(found[1], 16)), text)
        text = re.sub(r"\\+[nrt]", " ", text).replace("\\", "")
        text = unicodedata.normalize("NFKC", html.unescape(unquote(text)))
    text = "".join(str(unicodedata.decimal(one, one)) for one in text if unicodedata.category(one) != "Cf")
    return re.sub(r"[\u2010-\u2015\u2212]", "-", text).lower()


def together(text):
    """A text without what may stand between the parts of a number."""
    return re.sub(r"[\s.-]", "", plainly(text))


@pytest.mark.parametrize("kind", SHAPES)
@settings(max_examples=8)
@given(st.data())
def test_a_value_is_found_in_every_wrapping_and_has_one_mark_in_all(kind, data):
    value = data.draw(SHAPES[kind])
    for name, wrap in WRAPPINGS.items():
        shown = hidden(f"It is {value}, so {value}\n\n# {wrap(value)}", kind)
        assert together(value) not in together(shown), name
        marks = re.findall(rf"<{kind} \d+>", shown)
        assert len(marks) == 3, name
        if name not in ("underscores around", "Chinese around"):  # which may belong to an address
            assert set(marks) == {f"<{kind} 1>"}, name


DOCUMENTS = st.dictionaries(
    st.sampled_from(["a", "to", "password", "n"]),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-9, 9)
        | st.sampled_from(["ann@x.org", "\nbob@y.net", 'f"i\\ne', "", 4111111111111111]),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text('ab\n"\\/', max_size=4), inner, max_size=3),
        max_leaves=12,
    ),
)


@given(DOCUMENTS, st.integers(1, 4), st.sampled_from([None, 2]))
@example({"a": [None, None, [None, None], [None, None, None, 4111111111111111]]}, 4, 2)  # far from a quotation mark
def test_json_stays_json_and_holds_what_its_values_become(document, times, indent):
    text = json.dumps(document, indent=indent)
    for _ in range(times):
        text = json.dumps(text)
    shown = hidden(text, "email", "secret", "card")
    for _ in range(times + 1):
        shown = json.loads(shown)
    call = redact_sample(Sample.of([AIMessage("", tool_calls=[ToolCall("f", document)])]), ["email", "secret", "card"])
    alike = re.compile(r"<(\w+) \d+>")  # numbers are given in the order of the text
    assert alike.sub(r"\1", json.dumps(shown)) == alike.sub(
        r"\1", json.dumps(call.trace.messages[0].tool_calls[0].args)
    )
    for mark, value in (("email", "@"), ("card", "4111111111111111")):
        assert (value in json.dumps(document)) <= (mark in json.dumps(shown) or "<secret" in json.dumps(shown))
        assert value not in json.dumps(shown)


@pytest.mark.parametrize(
    "text",
    [
        '{"b": 1.0, "a": 1e5, "a": 1E+05, "n": 123456789012345678901234567890, "s": "\\u00e9\\/\\ud83d\\ude00", }',
        '  [1.10, -0.0, NaN ,"\\u0041"]\r\n',
        r"C:\new\table\x41\u00e9, \d+\.\d{2}, 100%, 5%20x, &amp; &lt;b&gt; R&D;",
        f"{fullwidth('wide')} \u0663\u0664 \u3000 \u200b\u00ad\ufeff \u2013 \ud800",
    ],
)
def test_all_but_the_finds_stays_as_it_is(text):
    assert hidden(text) == text
    assert hidden(f"a\\u0040b.org {text} c%40d.org") == f"<email 1> {text} <email 2>"


def test_a_secret_is_known_by_its_name_and_ends_where_it_ends():
    cases = [
            ("password=hunter2&user=x passwd: hunter2, PASSWORD = hunter3", "password=*1&user=x passwd: *1, PASSWORD = *2"),
            ('{"password": "a \\" b, c", "db_secret": null, "x": 1}', '{"password": "*1", "db_secret": null, "x": 1}'),
            ('{"password": "ends so\\\\", "x": "y"}', '{"password": "*1", "x": "y"}'),
            ('"{\\"password\\": \\"a \\\\\\" b\\\\\\\\\\", \\"x\\": 1}"', '"{\\"password\\": \\"*1\\", \\"x\\": 1}"'),
            ('{"password": 1234, "pwd": "1234", "a": true}', '{"password": "*1", "pwd": "*1", "a": true}'),
            ('{"password": "breaks o', '{"password": "*1'),
            ("{'apiKey': 'it is', \"x\": 1}", "{'apiKey': '*1', \"x\": 1}"),
            ("Authorization: Basic dXNlcjpw, X-Api-Key: k3y", "Authorization: Basic *1, X-Api-Key: *2"),
            ('-H "Authorization: Bearer abc.def" -v', '-H "Authorization: Bearer *1" -v'),
            ("use Bearer abcdefgh12345678==", "use Bearer *1"),
            ("AccountName=x;AccountKey=ab/c+d==;EndpointSuffix=y", "AccountName=x;AccountKey=*1;EndpointSuffix=y"),
            ("secret%3D%22two words%22", "secret%3D%22*1%22"),
            ("&quot;client_secret&quot;: &quot;s3c r3t&quot;,", "&quot;client_secret&quot;: &quot;*1&quot;,"),
            ("-----BEGIN RSA PRIVATE KEY-----\nAb+/=\n\n-----END RSA PRIVATE KEY-----\nx", "*1\nx"),
            ('{"private_key": "-----BEGIN PRIVATE KEY-----\\nAb+/=\\n-----END PRIVATE KEY-----\\n"}', '{"private_key": "*1\\n"}'),
            ("-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNz\nAb", "*1"),
            ("password => hunter2, password := 'hunter2'; b'pwd': b'hunter2'", "password => *1, password := '*1'; b'pwd': b'*1'"),
            ('os.environ["DB_PASSWORD"] = f"a b"; user[password]=x&y', 'os.environ["DB_PASSWORD"] = f"*1"; user[password]=*2&y'),
            ("if password == 'a b': password := null", "if password == '*1': password := null"),
            ("mysql --password hunter2 --api-key 'k 3' --secret -v", "mysql --password *1 --api-key '*2' --secret -v"),
            ("the password is here, secret key", "the password is here, secret key"),
            ("<db_password>hunter2</db_password> -p<password> -h x", "<db_password>*1</db_password> -p<password> -h x"),
            ("mysql://root:hunter2@db/x redis://:h@y:1 http://x:80/@a", "mysql://*1@db/x redis://*2@y:1 http://x:80/@a"),
            ("password=\x01hunter2", "password=\x01*1"),
        ]  # fmt: skip
    for text, shown in cases:
        assert hidden(text, "secret") == re.sub(r"\*(\d)", r"<secret \1>", shown)


def test_other_spellings_of_what_is_personal():
    cases = [
            ("::1, [::1]:80, ::ffff:10.0.0.1, 2001:db8::, fe80::1%eth0", "<ip 1>, [<ip 1>]:80, <ip 2>, <ip 3>, <ip 4>%eth0"),
            ("host_10.0.0.1_x", "host_<ip 1>_x"),
            ("gb82 west 1234 5698 7654 32, GB82-WEST-1234-5698-7654-32", "<iban 1>, <iban 1>"),
            ("card_4111111111111111_paid, 4111+1111+1111+1111", "card_<card 1>_paid, <card 1>"),
            ('{"cards": [1, null, 4111111111111111, "x", 4111111111111111]}', '{"cards": [1, null, "<card 1>", "x", "<card 1>"]}'),
            ('{"in": "{\\"card\\": 4111111111111111}"}', '{"in": "{\\"card\\": \\"<card 1>\\"}"}'),
            ('{"in": "[4111111111111111]"}', '{"in": "[\\"<card 1>\\"]"}'),
            (r"https:\/\/x.org\/a%20b?c=d and https%3A%2F%2Fx.org%2Fa.", "<url 1> and <url 2>."),
        ]  # fmt: skip
    for text, shown in cases:
        assert hidden(text) == shown


# Where


CARD = 4111111111111111
MAIL = "ann@x.org"

FULL = Sample.of(
    [
        SystemMessage(f"Serve {MAIL}."),
        HumanMessage([TextPart(f"I am {MAIL}."), OtherPart({MAIL: [CARD, 1.5, True, None]})], name=MAIL),
        AIMessage(
            [ReasoningPart(f"{MAIL}?"), RefusalPart(f"Not {MAIL}."), MediaPart(kind="file", name=MAIL, data=MAIL)],
            tool_calls=[
                ToolCall("find", {"who": {"mail": [MAIL, "Bob"], MAIL: 7}, "card": CARD, "sure": True}, id=MAIL),
                ToolCall("find", args_raw=f"who={MAIL}", args_error="not JSON"),
            ],
            agent=MAIL,
        ),
        ToolMessage(f"{MAIL} paid with {CARD}", tool_call_id=MAIL, name="find"),
    ],
    id=MAIL,
    reference=f"{MAIL} is served",
    references=[MAIL, "fine"],
    reference_topics=[f"the account of {MAIL}", "travel"],
    reference_tool_calls=[ExpectedCall("find", {"who": MAIL})],
    documents=[MAIL],
    fields={MAIL: {"card": CARD}},
    baseline={"messages": [HumanMessage(MAIL)]},
    metadata={"mail": MAIL},
)


TOOL = ToolDefinition(MAIL, description=f"Writes to {MAIL}.", parameters={"enum": [MAIL, CARD]})


def texts(record):
    """All texts and numbers of a record, whichever way they are nested."""
    if isinstance(record, BaseModel):
        record = dict(record)
    if isinstance(record, dict):
        return [found for pair in record.items() for part in pair for found in texts(part)]
    if isinstance(record, list | tuple):
        return [found for part in record for found in texts(part)]
    return [record]


def test_all_that_a_judge_may_be_shown_is_redacted():
    full = FULL.model_copy(update={"trace": FULL.trace.model_copy(update={"tools": (TOOL,)})})
    shown = redact_sample(full, ["email", "card"])
    found = texts(shown.model_copy(update={"id": "", "metadata": {}}))
    # Ids are not shown, and hold calls and results together; nor is what is in a file.
    assert [one for one in found if MAIL in str(one) or str(CARD) in str(one)] == [MAIL] * 5
    assert shown.trace.id == shown.trace.messages[2].tool_calls[0].id == shown.trace.messages[3].tool_call_id == MAIL
    assert shown.trace.messages[2].content[2].data == shown.trace.tools[0].name == MAIL
    rendered = shown.trace.render()
    assert MAIL not in rendered
    assert str(CARD) not in rendered


def test_arguments_are_redacted_in_keys_and_values_however_deep():
    call, broken = redact_sample(FULL, ["email", "card"]).trace.messages[2].tool_calls
    assert call.args == {"who": {"mail": ["<email 1>", "Bob"], "<email 1>": 7}, "card": "<card 1>", "sure": True}
    assert broken.args_raw == "who=<email 1>"


def test_what_is_not_redacted_stays_what_it_is():
    sample = Sample.of([AIMessage("", tool_calls=[ToolCall("f", {"a": 1, "b": 1.0, "c": True, "d": None, "e": [""]})])])
    shown = redact_sample(sample, ["email", "card", "phone"])
    assert shown == sample
    assert [type(one) for one in shown.trace.messages[0].tool_calls[0].args.values()] == [
        int,
        float,
        bool,
        type(None),
        list,
    ]


def test_the_same_text_has_the_same_number_in_all_of_a_sample():
    sample = Sample.of(
        [HumanMessage("bob@x.org or Ann@x.org"), ToolMessage("ann@x.org, card 4111-1111-1111-1111, eve@x.org")],
        reference="eve@x.org, bob@x.org, 4111111111111111",
    )
    shown = redact_sample(sample, ["email", "card"])
    assert [message.text for message in shown.trace.messages] == [
        "<email 1> or <email 2>",
        "<email 2>, card <card 1>, <email 3>",
    ]
    assert shown.reference == "<email 3>, <email 1>, <card 1>"


def test_numbers_are_the_same_in_every_process(run_python):
    program = """
from judgekit.judges.redaction.redact import redact_sample
from judgekit.traces.message import HumanMessage
from judgekit.traces.sample import Sample
sample = Sample.of([HumanMessage("a@x.org")], reference="b@x.org", reference_topics=["c@x.org"], fields={"d": "d@x.org"})
print(redact_sample(sample, ["email"]).model_dump_json(exclude={"id"}))
"""
    path = os.pathsep.join(sys.path)
    said = {run_python("-c", program, PYTHONHASHSEED=str(seed), PYTHONPATH=path).stdout for seed in range(2)}
    assert len(said) == 1
    assert said.pop().count("<email ") == 4


def test_the_sample_itself_is_not_changed():
    before = FULL.model_dump_json()
    redact_sample(FULL, ["email", "card"])
    assert FULL.model_dump_json() == before


def test_without_anything_to_redact_the_sample_is_the_same():
    assert redact_sample(FULL, ()) is FULL


def test_a_function_takes_the_place_of_names():
    shown = redact_sample(FULL, lambda text: text.replace(MAIL, "Ann").replace("4111", "****"))
    assert shown.trace.messages[0].text == "Serve Ann."
    assert shown.trace.messages[2].tool_calls[0].args == {
        "who": {"mail": ["Ann", "Bob"], "Ann": 7},
        "card": "****111111111111",
        "sure": True,
    }
    assert shown.reference_topics == ("the account of Ann", "travel")
    assert shown.trace.messages[2].tool_calls[0].name == "find"


def test_a_function_is_not_asked_about_what_is_no_text_and_no_number():
    args = {"yes": True, "no": False, "nothing": None}
    shown = redact_sample(Sample.of([AIMessage("", tool_calls=[ToolCall("f", args)])]), lambda text: text.upper())
    assert shown.trace.messages[0].tool_calls[0].args == {"YES": True, "NO": False, "NOTHING": None}


# Before key, request and store


class Opinion(BaseModel):
    reason: str


def conversation(mail, card):
    return Sample.of(
        [
            HumanMessage(f"I am {mail}."),
            AIMessage("", tool_calls=[ToolCall("pay", {"to": mail, "card": card}, id="1")]),
            ToolMessage(f'{{"paid": "{mail}", "card": {card}}}', tool_call_id="1"),
            AIMessage("Done."),
        ],
        reference=f"{mail} is paid",
    )


def test_samples_that_differ_in_what_is_redacted_are_one_question(stub, tmp_path):
    asked = stub([Reply(text='{"reason": "<email 1> was paid"}')])
    judge = Judge("any/m", client=asked, redact=["email", "card"], cache=tmp_path / "replies.sqlite")
    samples = [conversation(MAIL, CARD), conversation("bob@y.net", 5555555555554444)]
    answers = [asyncio.run(judge.ask(GOAL, sample, Opinion)).answer.reason for sample in samples]
    assert answers == ["<email 1> was paid"] * 2
    [request] = asked.requests
    sent = "".join(turn.content for turn in request.messages)
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("replies.sqlite*"))
    assert "<email 1>" in sent
    assert b"<email 1> was paid" in kept
    for secret in (MAIL, "bob@y.net", str(CARD), "5555555555554444"):
        assert secret not in sent
        assert secret.encode() not in kept


# What a server is sent


PROMPT = """---
description: Is all well?
inputs: [conversation, baseline, references, reference_topics, documents, tools, fields]
scale: {yes_it_is: 1.0, no_it_is_not: 0.0}
source: test
---
{{ baseline }} {{ references }} {{ reference_topics }} {{ documents }} {{ tools }} {{ fields }}
"""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.data())
def test_a_server_is_sent_no_value_wherever_and_however_it_is_written(server, tmp_path, data):
    values = []

    def written():
        kind = data.draw(st.sampled_from([*SHAPES]))
        values.append(data.draw(SHAPES[kind]))
        return WRAPPINGS[data.draw(st.sampled_from([*WRAPPINGS]))](values[-1])

    number = int(data.draw(SHAPES["card"]))
    password = data.draw(HEX)
    values += [str(number), password]
    parts = [TextPart(written()), RefusalPart(written()), OtherPart({"x": [written(), number]})]
    parts.append(MediaPart(kind="file", name=written()))
    calls = [
        ToolCall("pay", {"to": written(), written(): [number, {"deep": written()}], "password": password}),
        ToolCall("pay", args_raw=f'{{"to": {json.dumps(written())}, "n": {number}, "api_key": "{password}', args_error="broken"),
    ]  # fmt: skip
    messages = [
        SystemMessage(written()),
        HumanMessage(parts, name=written()),
        AIMessage(written(), tool_calls=calls, agent=written()),
        ToolMessage(json.dumps({"said": written(), "card": number, "auth": {"client_secret": password}})),
    ]
    sample = Sample.of(
        messages,
        baseline={"messages": [HumanMessage(written())]},
        reference=written(),
        references=[written()],
        reference_topics=[written()],
        documents=[written(), json.dumps({"cards": [number]})],
        fields={written(): written(), "n": number, "secret": password},
    )
    tool = ToolDefinition("pay", description=written(), parameters={"default": written(), "n": number})
    sample = sample.model_copy(update={"trace": sample.trace.model_copy(update={"tools": (tool,)})})
    (tmp_path / "well.md").write_text(PROMPT)
    server.script = [server.says({"reason": "", "evidence": [], "verdict": "yes_it_is"})]
    judge = Judge("openai/judge-1", base_url=server.url, redact=[*PATTERNS], cache_mode="off")
    score = asyncio.run(PromptScorer(tmp_path / "well.md", judge).ascore(sample))
    assert score.value == 1, score
    sent = json.dumps(server.requests[-1].body, ensure_ascii=False)
    plain, packed = plainly(sent), together(sent)
    assert [one for one in values if one.lower() in plain or together(one) in packed] == []


# Sub-agents


def test_nothing_of_a_sub_agent_is_shown_unredacted():
    talk = [
        HumanMessage("Write to ann@x.org."),
        AIMessage("I write to ann@x.org.", tool_calls=[ToolCall("mail", {"to": "ann@x.org"}, id="m")]),
        ToolMessage("sent to ann@x.org", tool_call_id="m"),
    ]
    inner = Trace(messages=talk, metadata={"call_id": "m", "agent": "of ann@x.org"})
    outer = Trace(messages=talk, children=[inner], metadata={"call_id": "a", "agent": "bob@x.org"})
    own = [HumanMessage("Ask ann@x.org."), AIMessage(tool_calls=[ToolCall("ask", id="a")])]
    sample = Sample(id="1", trace=Trace(messages=own, children=[outer]), baseline=outer)
    shown = redact_sample(sample, ["email"])
    texts = [shown.trace.render(), shown.baseline.render()]
    assert not any("@" in text for text in texts)
    assert "sub-agent" in texts[0]
    assert texts[0].count("<email 1>") == 1 + 4 + 4 + 2  # of the user, of both sub-agents, in the name of one
    assert "@" in sample.trace.render()
