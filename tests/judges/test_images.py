"""Images of a recording in requests: over a real server, in caches and budgets, and in what runs store."""

import asyncio
import base64
import hashlib
import json
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from judgekit.errors import ConfigError, RejectedError
from judgekit.judges.judge import Judge
from judgekit.judges.prompt_file import load_prompt
from judgekit.judges.scripted import ScriptedJudge
from judgekit.runs.hashes import hash_media
from judgekit.scorers.pairwise import Pairwise
from judgekit.scorers.prompted import PromptScorer
from judgekit.scoring import attempt
from judgekit.traces.images import ImageSettings
from judgekit.traces.media import media_hash
from judgekit.traces.message import AIMessage, HumanMessage, MediaPart, TextPart, ToolCall, ToolMessage
from judgekit.traces.sample import Sample
from judgekit.traces.trace import Trace

pytestmark = pytest.mark.usefixtures("no_waits")

# 60 x 40 pixels of one color, as Pillow writes them.
JPEG = (
    "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAKBueIx4ZKCMgoy0qqC+8P//8Nzc8P//////////////////////////////////////////////////////"
    "////2wBDAaq0tPDS8P//////////////////////////////////////////////////////////////////////////////wAARCAAoADwDASIAAhEB"
    "AxEB/8QAHwAAAQUBAQEBAQEAAAAAAAAAAAECAwQFBgcICQoL/8QAtRAAAgEDAwIEAwUFBAQAAAF9AQIDAAQRBRIhMUEGE1FhByJxFDKBkaEII0KxwRVS"
    "0fAkM2JyggkKFhcYGRolJicoKSo0NTY3ODk6Q0RFRkdISUpTVFVWV1hZWmNkZWZnaGlqc3R1dnd4eXqDhIWGh4iJipKTlJWWl5iZmqKjpKWmp6ipqrKz"
    "tLW2t7i5usLDxMXGx8jJytLT1NXW19jZ2uHi4+Tl5ufo6erx8vP09fb3+Pn6/8QAHwEAAwEBAQEBAQEBAQAAAAAAAAECAwQFBgcICQoL/8QAtREAAgEC"
    "BAQDBAcFBAQAAQJ3AAECAxEEBSExBhJBUQdhcRMiMoEIFEKRobHBCSMzUvAVYnLRChYkNOEl8RcYGRomJygpKjU2Nzg5OkNERUZHSElKU1RVVldYWVpj"
    "ZGVmZ2hpanN0dXZ3eHl6goOEhYaHiImKkpOUlZaXmJmaoqOkpaanqKmqsrO0tba3uLm6wsPExcbHyMnK0tPU1dbX2Nna4uPk5ebn6Onq8vP09fb3+Pn6"
    "/9oADAMBAAIRAxEAPwBtFFFI0CiiigAooooAKKKKACiiigAooooAKKKKACiiigAooooAKKKKACiiigAooooA/9k="
)
GIF = (
    "R0lGODdhPAAoAIEAAMgeHgAAAAAAAAAAACwAAAAAPAAoAEAIUAABCBxIsKDBgwgTKlzIsKHDhxAjSpxIsaLFixgzatzIsaPHjyBDihxJsqTJkyhTqlzJ"
    "sqXLlzBjypxJs6bNmzhz6tzJs6fPn0CDCh1K1GZAADs="
)
WEBP = "UklGRkQAAABXRUJQVlA4IDgAAABQAwCdASo8ACgAP5nM4Gk5Mi2oIqgDIDMJZwAAE/GOHwhFgAD+2ib9B8XL/+pW/XRR6VeFEBAAAA=="


def png(shade=0, width=60, height=40, rest=b""):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    pixels = b"".join(b"\0" + bytes([shade]) * 3 * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    written = chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + written + rest).decode()


PNG = png()


def image(data=PNG, **fields):
    return MediaPart(kind="image", data=data, **fields)


def recording(*parts, **fields):
    asked = HumanMessage([TextPart("what is this?"), *parts, TextPart("in short")])
    return Sample(id="s", trace=Trace(messages=[asked, AIMessage("A red flag.")]), **fields)


@pytest.fixture
def scorer(tmp_path):
    """A scorer of yes or no, asking the given judge."""
    head = "description: Good?\ninputs: [conversation]\nsource: ours\nscale: {yes_it_is: 1, no_it_is_not: 0}\n"
    (tmp_path / "good.md").write_text(f"---\n{head}---\nIs it good?\n")
    return lambda judge: PromptScorer(tmp_path / "good.md", judge)


GOOD = {"reason": "It is.", "evidence": [1], "verdict": "yes_it_is"}


def scored(scorer, *samples):
    return [asyncio.run(attempt(scorer, sample)) for sample in samples]


def sent(server):
    """The parts of the last question."""
    return server.requests[-1].body["messages"][1]["content"]


def pictures(server):
    return [part["image_url"] for part in sent(server) if part["type"] == "image_url"]


def test_images_are_sent_as_data_in_their_places(server, scorer):
    server.script = [server.says(GOOD)]
    call = ToolCall("screenshot", {}, id="c")
    sample = Sample(
        id="s",
        trace=Trace(
            messages=[
                HumanMessage([image(), TextPart("and"), image(JPEG, name="photo.jpg")]),
                AIMessage("I look.", tool_calls=[call]),
                ToolMessage([image(GIF)], tool_call_id="c"),
                AIMessage([TextPart("Here it is."), image(WEBP)]),
            ]
        ),
    )
    (score,) = scored(scorer(Judge("openai/m", base_url=server.url, images={"detail": "low"})), sample)
    assert (score.value, score.warnings, "hidden_media" in score.details) == (1, (), False)
    parts = sent(server)
    assert [part["type"] for part in parts] == ["text", *["image_url", "text"] * 4]
    held = (("png", PNG), ("jpeg", JPEG), ("gif", GIF), ("webp", WEBP))
    assert pictures(server) == [{"url": f"data:image/{kind};base64,{data}", "detail": "low"} for kind, data in held]
    before = [part["text"].splitlines()[-1].partition("] ")[2] for part in parts[:-1:2]]
    assert before == [
        "image 1: image/png, 60 x 40",
        "image 2: image/jpeg, 60 x 40",
        "image 1: image/gif, 60 x 40",
        "image 1: image/webp, 60 x 40",
    ]
    whole = "\n".join(part["text"] for part in parts if part["type"] == "text")
    assert "1] user\n| [image 1]\n| and\n| [image 2 photo.jpg]\n[" in whole
    assert "This recording has images" in server.requests[-1].body["messages"][0]["content"]


def test_the_type_sent_is_that_of_the_bytes_and_data_urls_are_data(server, scorer):
    server.script = [server.says(GOOD)]
    told = image(mime_type="image/jpeg")
    by_url = MediaPart(kind="image", url=f"data:image/png;base64,{PNG}")
    scored(scorer(Judge("openai/m", base_url=server.url, images=True)), recording(told, by_url))
    assert [one["url"][:22] for one in pictures(server)] == ["data:image/png;base64,"] * 2
    assert (by_url.url, by_url.data, by_url.mime_type) == (None, PNG, "image/png")


def test_equal_images_are_one_entry_of_the_cache_and_others_are_not(server, scorer):
    server.script = [server.says(GOOD)]
    judged = scorer(Judge("openai/m", base_url=server.url, images=True))
    same = MediaPart(kind="image", url=f"data:image/png;base64,{PNG}")
    scored(judged, recording(image(mime_type="image/png")), recording(same))
    assert len(server.requests) == 1
    scored(judged, recording(image(png(9), mime_type="image/png")))
    scored(scorer(Judge("openai/m", base_url=server.url, images={"detail": "high"})), recording(same))
    assert len(server.requests) == 3


LARGE = base64.b64encode(base64.b64decode(PNG) + bytes(20_000_000)).decode()
HIDDEN = [
    pytest.param({"data": LARGE}, "more than max_bytes = 5,000,000", id="20 MB"),
    pytest.param({"data": "&&&"}, "its data is not base64", id="no base64"),
    pytest.param({"data": PNG[:24]}, "its data is not a PNG, JPEG, GIF or WebP", id="without its header"),
    pytest.param({"data": "aGVsbG8="}, "its data is not a PNG, JPEG, GIF or WebP", id="text"),
    pytest.param({"data": ""}, "its data is not base64", id="empty"),
    pytest.param({"url": "https://x.test/a.png"}, "only its address is recorded, which", id="address"),
    pytest.param({"url": "file:///etc/passwd"}, "only a path or address is recorded, which is never", id="file"),
    pytest.param({"url": "/etc/passwd"}, "only a path or address is recorded, which is never", id="path"),
    pytest.param({"url": "http://[x"}, "only a path or address is recorded, which is never", id="no address"),
    pytest.param({"sha256": "00"}, "the run stores only its hash", id="hash"),
    pytest.param({}, "its data is not recorded", id="nothing"),
]


@pytest.mark.parametrize(("fields", "reason"), HIDDEN)
def test_an_image_that_is_not_shown_is_said_with_the_reason(server, scorer, fields, reason):
    server.script = [server.says(GOOD)]
    hidden = MediaPart(kind="image", **fields)
    sample = recording(hidden, image())
    (score,) = scored(scorer(Judge("openai/m", base_url=server.url, images=True)), sample)
    assert [one["url"] for one in pictures(server)] == [f"data:image/png;base64,{PNG}"]
    [warning] = score.warnings
    assert warning.startswith(f"1 image not shown to the judge: {reason}")
    [told] = score.details["hidden_media"]
    assert (told["kind"], told["count"]) == ("image", 1)
    assert "] image 1: not shown\n" in sent(server)[0]["text"]
    assert "] image 2: image/png, 60 x 40" in sent(server)[0]["text"]


def test_a_server_that_rejects_an_image_fails_the_score(server, scorer):
    server.script = [(400, {}, {"error": {"message": "this model takes no image_url"}})]
    (score,) = scored(scorer(Judge("openai/m", base_url=server.url, images=True)), recording(image()))
    assert (score.status, score.error) == ("failed", RejectedError.__name__)
    assert "this model takes no image_url" in score.reason


def test_an_address_is_sent_only_if_allowed_and_never_to_litellm(server, scorer):
    server.script = [server.says(GOOD)]
    judge = Judge("openai/m", base_url=server.url, images=ImageSettings(addresses=True))
    never = ("file:///etc/passwd", "file://x.test/etc/passwd", "ftp://x.test/a.png", "https://x.test/a b.png")
    parts = [image(None, url=url) for url in ("https://x.test/a.png?k=1", *never)]
    (score,) = scored(scorer(judge), recording(*parts))
    assert pictures(server) == [{"url": "https://x.test/a.png?k=1"}]
    assert score.details["hidden_media"][0]["count"] == 4
    with pytest.raises(ConfigError, match="litellm would fetch"):
        Judge("litellm/openai/m", images={"addresses": True})


def test_a_judge_without_images_is_asked_as_before_and_the_score_says_what_it_did_not_see(scorer):
    judge = ScriptedJudge(lambda _: GOOD)
    sound = MediaPart(kind="audio", data="AAAA")
    (score,) = scored(scorer(judge), recording(image(mime_type="image/png"), image(), sound))
    assert score.warnings == (
        "2 images not shown to the judge: the judge is not set to take images (images = true)",
        "1 audio recording not shown to the judge: judges are shown images only",
    )
    [request] = judge.requests
    assert "| [image image/png]\n| [image]\n| [audio]\n" in request.messages[1].content
    assert request.images == ()
    assert request.messages[0].content == load_prompt("tone").system


def test_a_recording_without_images_has_the_same_key_for_both_kinds_of_judges(scorer):
    plain = recording()
    judges = ScriptedJudge(lambda _: GOOD), ScriptedJudge(lambda _: GOOD, images=True)
    for judge in judges:
        assert scored(scorer(judge), plain)[0].warnings == ()
    first, second = (judge.requests[0] for judge in judges)
    assert (first.key, first.prompt) == (second.key, second.prompt)


def test_a_quiet_image_is_no_order(scorer):
    """What a recording says in the words of a line of an image gets no image."""
    judge = ScriptedJudge(lambda _: GOOD, images=True)
    scored(scorer(judge), recording(TextPart("[0123456789ab 1] image 1: image/png, 60 x 40"), image()))
    [request] = judge.requests
    parts = request.content(request.messages[1])
    assert [type(part).__name__ for part in parts] == ["str", "Image", "str"]
    assert parts[0].count("image/png, 60 x 40") == 2
    assert "\n| [0123456789ab 1] image 1" in parts[0]


LINE = st.text() | st.sampled_from(["[image 1]", "] image 1: image/png, 60 x 40", "\n[", "| ", "\u2028["])


@given(st.lists(LINE | st.just(None), max_size=6), st.lists(LINE | st.just(None), max_size=6))
def test_any_recording_has_its_images_in_order_and_no_text_gets_one(asked, answered):
    shades = iter(range(12))
    held = []

    def part(text):
        if text is not None:
            return TextPart(text)
        held.append(png(next(shades), 1, 1))
        return image(held[-1])

    messages = [HumanMessage([*map(part, asked)]), AIMessage([*map(part, answered)]), AIMessage("end")]
    judge = ScriptedJudge(lambda _: {"reason": "r", "goals": [], "verdict": "no"}, images=True)
    prompt = load_prompt("agent_goal_without_reference")
    request = judge.build_request(prompt, Sample(id="s", trace=Trace(messages=messages)), _Any)
    parts = request.content(request.messages[1])
    assert [one.url.partition(",")[2] for one in parts if not isinstance(one, str)] == held
    kept = "".join(one if isinstance(one, str) else "\n" for one in parts)
    assert kept == request.messages[1].content


class _Any(BaseModel):
    reason: str


def test_those_of_the_user_come_first_and_then_the_latest(scorer):
    judge = ScriptedJudge(lambda _: GOOD, images=ImageSettings(max_images=2))
    shots = [ToolMessage([image(png(shade))], tool_call_id=None, name="shot") for shade in range(3)]
    sample = Sample(id="s", trace=Trace(messages=[HumanMessage([image(png(9))]), *shots, AIMessage("done")]))
    (score,) = scored(scorer(judge), sample)
    assert [one.url.partition(",")[2] for _, one in judge.requests[0].images] == [png(9), png(2)]
    assert score.warnings == ("2 images not shown to the judge: more than max_images = 2",)


def test_images_take_at_most_half_of_a_limited_conversation():
    large = [image(png(shade, 1120, 1120)) for shade in range(3)]  # 1,568 tokens each
    messages = [HumanMessage("look"), *(ToolMessage([one, TextPart("x" * 20_000)]) for one in large), AIMessage("done")]
    shown = Trace(messages=messages).render(budget_tokens=4_000, images=ImageSettings())
    assert len(shown.images) == 1
    assert len(shown.encode()) <= 4 * (4_000 - 1_568)
    assert shown.hidden_media == {("image", "no room for it within conversation_tokens"): 2}
    assert len(Trace(messages=messages).render(budget_tokens=40_000, images=ImageSettings()).images) == 3


def test_tokens_of_images_are_estimated_and_reserved():
    judge = ScriptedJudge(lambda _: GOOD, images=True)
    prompt = load_prompt("agent_goal_without_reference")
    plain = judge.build_request(prompt, recording(), _Any)
    shown = judge.build_request(prompt, recording(image(png(0, 2800, 1400))), _Any)
    assert 1_568 <= shown.input_tokens - plain.input_tokens < 1_568 + 400
    assert 5_000 <= shown.most_input_tokens - plain.most_input_tokens < 5_000 + 1_500


def test_redaction_drops_images_and_their_addresses(server, scorer):
    server.script = [server.says(GOOD)]
    judge = Judge("openai/m", base_url=server.url, images=ImageSettings(addresses=True), redact=["image"])
    (score,) = scored(scorer(judge), recording(image(), image(png(1)), image()))
    assert "| <image 1>\n| <image 2>\n| <image 1>\n" in sent(server)
    assert score.warnings == ()
    judge = Judge("openai/m", base_url=server.url, images=ImageSettings(addresses=True), redact=["url"])
    (score,) = scored(scorer(judge), recording(image(None, url="https://x.test/a.png")))
    assert "x.test" not in json.dumps(server.requests[-1].body)
    assert len(score.warnings) == 1


def test_calls_and_runs_keep_the_hash_and_not_the_picture(server, scorer):
    server.script = [server.says(GOOD)]
    sample = recording(image(mime_type="image/png"), baseline=recording(image(JPEG)).trace)
    (score,) = scored(scorer(Judge("openai/m", base_url=server.url, images=True)), sample)
    [call] = score.calls
    kept = call.exchange.model_dump_json()
    assert PNG not in kept
    assert f"(sha256 {hashlib.sha256(base64.b64decode(PNG)).hexdigest()})" in kept
    stored = hash_media(sample)
    assert not {PNG, JPEG} & {*stored.model_dump_json().split('"')}
    assert [part.sha256 for part in stored.trace.messages[0].content if isinstance(part, MediaPart)] == [
        hashlib.sha256(base64.b64decode(PNG)).hexdigest()
    ]
    assert hash_media(stored) == stored
    assert hash_media(recording()) == recording()


def test_two_recordings_that_differ_only_in_an_image_are_not_the_same():
    answer = {
        "strengths_first": "a",
        "evidence_first": [1],
        "strengths_second": "b",
        "evidence_second": [1],
        "reason": "equal",
        "verdict": "tie",
    }
    judge = ScriptedJudge(lambda _: answer)
    pair = recording(image(), baseline=recording(image(png(7))).trace)
    (score,) = scored(Pairwise("Which is better?", judge), pair)
    assert (score.label, len(judge.requests)) == ("tie", 2)
    assert "not shown to the judge" in score.warnings[0]
    (score,) = scored(Pairwise("Which is better?", judge), recording(image(), baseline=recording(image()).trace))
    assert score.label == "same"


BASE64 = st.binary(min_size=1).map(base64.b64encode).map(bytes.decode)


@given(BASE64, st.sampled_from(["image/png", "text/plain;charset=utf-8", None]))
def test_a_picture_is_one_picture_however_it_is_written(data, mime_type):
    plain = MediaPart(kind="file", data=data, mime_type=mime_type)
    assert MediaPart(kind="file", url=f"data:{mime_type or ''};base64,{data}") == plain
    assert MediaPart.model_validate_json(plain.model_dump_json()) == plain
    for_urls = data.replace("+", "-").replace("/", "_").rstrip("=")
    assert {media_hash(one) for one in (data, for_urls, f"{data[:2]}\n{data[2:]}\r\n")} == {
        hashlib.sha256(base64.b64decode(data)).hexdigest()
    }


def test_a_data_url_that_says_another_type_keeps_both():
    found = MediaPart(kind="image", url="data:image/png;base64,AAAA", mime_type="image/jpeg", extra={"a": 1})
    assert (found.mime_type, found.extra) == ("image/png", {"a": 1, "mime_type": "image/jpeg"})
    assert MediaPart(kind="image", url="data:,%C3%A9").data == base64.b64encode("é".encode()).decode()
    assert MediaPart(kind="image", url="data:nothing").url == "data:nothing"


@given(st.text(), st.text())
def test_any_text_may_stand_where_data_or_an_address_is_expected(data, url):
    held = MediaPart(kind="image", data=data), MediaPart(kind="image", url=f"data:image/png;base64,{url}")
    for part in (*held, MediaPart(kind="image", url=url)):
        Trace(messages=[HumanMessage([part])]).render(images=ImageSettings(addresses=True))


@given(st.integers(0, 200), st.binary(max_size=30), st.sampled_from([PNG, JPEG, GIF, WEBP]))
def test_a_damaged_image_is_shown_or_hidden_but_never_an_error(at, damage, data):
    content = base64.b64decode(data)
    part = image(base64.b64encode(content[:at] + damage + content[at + len(damage) :]).decode())
    shown = Trace(messages=[HumanMessage([part])]).render(images=ImageSettings())
    assert len(shown.images) + sum(shown.hidden_media.values()) == 1
