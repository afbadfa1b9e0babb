"""Files and objects by path or URL, with a real S3 server on this machine."""

import pickle
import sys
from importlib import import_module
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from judgekit.atomic import atomic_write
from judgekit.errors import ConfigError, OfflineError
from judgekit.judges.offline import check_storage_offline
from judgekit.locations import Url, location_text, require_local, to_location

SECRET = "not-to-be-shown"  # noqa: S105 - of nothing


@pytest.mark.parametrize("text", ["a.jsonl", "./logs//a.jsonl", "/logs/a b.jsonl", "-", "s3:/a", "no scheme://a"])
def test_a_path_stays_a_path(text):
    assert to_location(text) == Path(text)
    assert location_text(text) == str(Path(text))
    assert to_location(Path("a.jsonl")) == Path("a.jsonl")


@pytest.mark.parametrize(
    "text",
    [
        "s3://bucket/a.jsonl",
        "gs://bucket/logs//a.jsonl",
        "s3://bucket",
        "s3://bucket/logs/run?.jsonl",
        "s3://bucket/user@example.org/a=b.jsonl",
        "az://container/a.jsonl",
        "abfss://container@account.dfs.core.windows.net/a.jsonl",
    ],
)
def test_a_url_stays_as_it_is(text):
    url = to_location(text)
    assert isinstance(url, Url)
    assert url == text
    assert to_location(url) is url
    assert url.version is None


def test_the_name_of_a_url():
    url = to_location("S3://bucket/logs/a.jsonl.GZ")
    assert (str(url), url.scheme, url.name, url.suffix) == ("s3://bucket/logs/a.jsonl.GZ", "s3", "a.jsonl.GZ", ".GZ")


def test_a_file_uri_is_a_path():
    assert to_location("file:///logs/a%FF.jsonl") == Path("/logs/a\udcff.jsonl")


@pytest.mark.parametrize(
    "text",
    [
        f"s3://AKIAEXAMPLE:{SECRET}@bucket/a.jsonl",
        f"s3://AKIAEXAMPLE:{SECRET}/more@bucket/a.jsonl",
        f"gs://{SECRET}@bucket/a.jsonl",
        f"abfs://name:{SECRET}@account.dfs.core.windows.net/a.jsonl",
        f"s3://bucket/a.jsonl?X-Amz-Signature={SECRET}",
        f"az://container/a.jsonl?sv=2024&sig={SECRET}",
    ],
)
def test_credentials_in_a_url_are_refused_and_not_repeated(text):
    """A URL is stored with its run and shown in reports."""
    with pytest.raises(ConfigError, match=r"holds credentials or a query.*in the environment") as caught:
        to_location(text)
    assert SECRET not in str(caught.value)
    assert "AKIA" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (
            "https://example.org/a.jsonl",
            "https:// URLs are not read or written; use a local file, or one of s3://, gs://",
        ),
        ("s3://", "s3://: names no bucket, as in s3://bucket/name.jsonl"),
        ("s3:///a.jsonl", "names no bucket"),
        (Path("s3://bucket/a.jsonl"), "a Path cannot hold a URL; pass it as text: 's3://...'"),
    ],
)
def test_what_is_no_location(given, found):
    with pytest.raises(ConfigError, match=found):
        to_location(given)


def test_a_folder_may_be_called_like_a_scheme(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("s3:").mkdir()
    Path("s3:/a.jsonl").write_text("{}")
    assert to_location(Path("s3:/a.jsonl")) == require_local("s3:/a.jsonl", "") == Path("s3:/a.jsonl")


@pytest.mark.parametrize("path", ["s3://bucket/runs.sqlite", Path("s3://bucket/runs.sqlite")])
def test_a_file_that_must_be_local(path):
    with pytest.raises(ConfigError, match=r"^s3://bucket/runs.sqlite: is a URL; because$"):
        require_local(path, "because")


@pytest.mark.parametrize(("text", "library"), [("gs://bucket/a.jsonl", "gcsfs"), ("az://container/a.jsonl", "adlfs")])
def test_a_missing_library_is_named_with_its_command(text, library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(ConfigError, match=rf"^{text[:2]}:// URLs need a library: pip install '{library}>=[\d.]+'$"):
        to_location(text).open()


def test_an_object_is_read_and_sought_in(bucket):
    content = bytes(range(256)) * 40_000
    url = to_location(bucket.put("a.bin", content))
    with url.open() as file:
        assert file.read(10) == content[:10]
        assert file.seek(-3, 2) == len(content) - 3
        assert file.read() == content[-3:]
        assert file.seek(5_000_001) == file.tell() == 5_000_001
        assert file.read(2) == content[5_000_001:5_000_003]
        file.seek(0)
        assert b"".join(file) == content


def test_objects_below_a_prefix_and_of_a_pattern(bucket):
    for name in ("a.jsonl", "logs/b.jsonl", "logs/c/d.json", "logs/e::file.jsonl", "logs/"):
        bucket.put(name, "1234")
    below = to_location("s3://bucket/logs").objects()
    assert below == to_location("s3://bucket/logs/").objects()
    assert sorted(below) == ["s3://bucket/logs/b.jsonl", "s3://bucket/logs/c/d.json", "s3://bucket/logs/e::file.jsonl"]
    assert len(to_location("s3://bucket").objects()) == 4
    assert to_location("s3://bucket/*.jsonl").matches() == ["s3://bucket/a.jsonl"]
    assert max(to_location("s3://bucket/**/*.json*").matches()) == "s3://bucket/logs/e::file.jsonl"
    assert [one.open().read() for one in below] == [b"1234"] * 3
    assert {one.version for one in below} == {to_location("s3://bucket/a.jsonl").current_version()}


def test_a_url_takes_its_version_to_another_process(bucket):
    bucket.put("logs/a.jsonl", "1234")
    (url,) = to_location("s3://bucket/logs").objects()
    sent = pickle.loads(pickle.dumps(url))  # noqa: S301 - made above
    assert (sent, sent.version) == (url, url.version)
    assert sent.version.size == 4


def test_an_object_that_changes_is_not_read_on(bucket):
    url = Url(bucket.put("a.jsonl", b"1" * 9_000_000))
    known = Url(url, url.current_version())
    with known.open() as file:
        assert file.read(3) == b"111"
        bucket.put("a.jsonl", b"2" * 9_000_000)
        with pytest.raises(OSError, match=r"^it changed while it was being read; read it again$"):
            file.read()
    with pytest.raises(OSError, match="it changed while it was being read"):
        known.open()
    assert url.open().read(1) == b"2"


@pytest.mark.parametrize(
    ("text", "kind", "found"),
    [
        ("s3://bucket/none.jsonl", FileNotFoundError, "there is no such object"),
        ("s3://no-bucket/none.jsonl", FileNotFoundError, "there is no such bucket"),
        ("s3://bucket/logs", IsADirectoryError, "is a folder"),
        ("s3://bucket/logs/", IsADirectoryError, "is a folder"),
    ],
)
def test_what_is_not_there(bucket, text, kind, found):
    bucket.put("logs/a.jsonl", "1234")
    with pytest.raises(kind, match=f"^{found}$"):
        to_location(text).current_version()


@pytest.fixture
def locked(bucket, s3_server):
    """A bucket of which no key is known."""
    bucket.put("a.jsonl", "1234")
    _call(f"{s3_server}/moto-api/reset-auth", b"0")
    yield
    _call(f"{s3_server}/moto-api/reset-auth", b"1000000")


def _call(url: str, data: bytes) -> None:
    with urlopen(Request(url, data, {"Content-Type": "text/plain"})):  # noqa: S310 - on this machine
        pass


@pytest.mark.usefixtures("locked")
@pytest.mark.parametrize("use", ["current_version", "objects", "check_writable"])
def test_wrong_credentials(use):
    with pytest.raises(PermissionError) as caught:
        getattr(to_location("s3://bucket/a.jsonl"), use)()
    assert str(caught.value) == "the service does not know the access key; check the credentials in the environment"


@pytest.mark.usefixtures("new_client")
def test_no_credentials(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    with pytest.raises(
        OSError, match=r"^no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE$"
    ):
        to_location("s3://bucket/a.jsonl").current_version()


@pytest.mark.usefixtures("new_client")
def test_a_server_that_is_down(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(OSError, match=r'^Could not connect to the endpoint URL: "http://127.0.0.1:1/bucket/a.jsonl"$'):
        to_location("s3://bucket/a.jsonl").current_version()


class Answer(Exception):  # noqa: N818 - as the clients of services raise it
    """An error with the code of an answer, as botocore's."""

    def __init__(self, code: str) -> None:
        super().__init__("what\nthe service   says")
        self.response = {"Error": {"Code": code}}


@pytest.mark.parametrize(
    ("error", "found"),
    [
        (Answer("PermanentRedirect"), "wrong region; set AWS_REGION to that of the bucket"),
        (Answer("AuthorizationHeaderMalformed"), "wrong region; set AWS_REGION to that of the bucket"),
        (Answer("AccessDenied"), "access denied; check the permissions of your credentials"),
        (Answer("ExpiredToken"), "the credentials have expired; log in again"),
        (Answer("SignatureDoesNotMatch"), "the secret key is wrong; check the credentials in the environment"),
        (Answer("SlowDown"), "SlowDown: what the service says"),
        (TimeoutError(), "the service did not answer in time"),
        (ValueError(), "ValueError"),
    ],
)
def test_errors_are_plain_lines(new_client, monkeypatch, error, found):
    """Errors that the server of the tests does not raise, as the client passes them on."""

    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("s3fs.S3FileSystem.info", fail)
    with pytest.raises(OSError, match=f"^{found}$"):
        to_location("s3://bucket/a.jsonl").current_version()


def test_an_object_is_replaced_when_all_of_the_new_one_is_there(bucket):
    url = to_location(bucket.put("a.json", "old"))
    with atomic_write(url) as file:
        file.write(b"new")
        file.flush()
        assert bucket.get("a.json") == b"old"
    assert bucket.get("a.json") == b"new"
    assert bucket.names() == ["a.json"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_an_error_leaves_the_old_object(bucket, error):
    url = to_location(bucket.put("a.json", "old"))
    with pytest.raises(error), atomic_write(url) as file:  # noqa: PT012 - what raises is in it
        file.write(b"half")
        raise error
    assert bucket.get("a.json") == b"old"


def test_an_upload_that_breaks_off_leaves_the_old_object(bucket, new_client, monkeypatch):
    """A large object is sent in parts, which nobody sees before the last one has arrived."""
    url = to_location(bucket.put("a.json", "old"))
    sent = []

    async def part(self: object, method: str, *args: object, **kwargs: object) -> object:
        if method == "upload_part":
            sent.append(kwargs["PartNumber"])
            if kwargs["PartNumber"] == 2:
                raise OSError("connection lost")
        return await real(self, method, *args, **kwargs)

    real = import_module("s3fs").S3FileSystem._call_s3
    monkeypatch.setattr("s3fs.S3FileSystem._call_s3", part)
    with pytest.raises(OSError, match=r"^connection lost$"), atomic_write(url) as file:
        file.truncate(101 << 20)
    assert sent[:2] == [1, 2]
    assert bucket.get("a.json") == b"old"
    assert (bucket.names(), bucket.uploads()) == (["a.json"], [])


def test_there_must_be_a_bucket_to_write_to(bucket):
    to_location("s3://bucket/new/a.json").check_writable()
    with (
        pytest.raises(FileNotFoundError, match="there is no such bucket"),
        atomic_write(to_location("s3://no-bucket/a")),
    ):
        pytest.fail("it began to write")
    with pytest.raises(IsADirectoryError):
        to_location("s3://bucket/new/").check_writable()


@pytest.mark.usefixtures("new_client")
def test_whoever_may_write_need_not_be_allowed_to_look(monkeypatch):
    def denied(*_: object) -> None:
        raise PermissionError("Forbidden") from Answer("AccessDenied")

    monkeypatch.setattr("s3fs.S3FileSystem.info", denied)
    monkeypatch.setattr("s3fs.S3FileSystem.ls", denied)
    assert to_location("s3://bucket/a.json").check_writable() is None


@pytest.mark.usefixtures("bucket")
def test_offline_only_storage_on_this_machine_is_used(monkeypatch):
    url = to_location("s3://bucket/a.jsonl")
    check_storage_offline(url)
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", "https://s3.example.org")
    import_module("s3fs").S3FileSystem.clear_instance_cache()
    with pytest.raises(OfflineError, match=r"^s3://bucket/a.jsonl: offline mode only allows storage on this machine"):
        check_storage_offline(url)


@pytest.mark.usefixtures("bucket")
@pytest.mark.parametrize("text", ["s3://bucket/a.jsonl", "gs://bucket/a.jsonl", "az://container/a.jsonl"])
def test_offline_nobody_is_asked_for_credentials(monkeypatch, text):
    """Without them in the environment, the libraries may ask the services of a cloud for them."""
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(OfflineError, match="with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
        check_storage_offline(to_location(text))
