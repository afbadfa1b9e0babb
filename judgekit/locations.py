"""Files by path, and objects by URL: S3, Google Cloud Storage and Azure, through fsspec, which only URLs import."""

import io
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from os import environ
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple, Self, TypeAlias, cast

from judgekit.distribution import install_command
from judgekit.errors import ConfigError, JudgekitError, text_path, truncated

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_EXTRAS = {"s3": "s3", "gs": "gcs", "az": "azure", "abfs": "azure", "abfss": "azure"}
"""The extra that brings the library for each scheme."""
_OPTIONS: Mapping[str, Mapping[str, object]] = {"s3": {"max_concurrency": 2}}  # parts of 50 MB, held in memory
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://")
_AS_PATH = re.compile(rf"({'|'.join(_EXTRAS)}):/", re.IGNORECASE)
_QUERY = re.compile(r"\?[^/]*=")
_BLOCK = 1 << 22
"""The bytes that one request reads."""
_BUFFER = 1 << 18
_SHOWN = 300
_ADVICE = {
    "AccessDenied": "access denied; check the permissions of your credentials",
    "AuthorizationHeaderMalformed": "wrong region; set AWS_REGION to that of the bucket",
    "ExpiredToken": "the credentials have expired; log in again",
    "IllegalLocationConstraintException": "wrong region; set AWS_REGION to that of the bucket",
    "InvalidAccessKeyId": "the service does not know the access key; check the credentials in the environment",
    "NoSuchBucket": "there is no such bucket",
    "NoSuchKey": "there is no such object",
    "PermanentRedirect": "wrong region; set AWS_REGION to that of the bucket",
    "PreconditionFailed": "it changed while it was being read; read it again",
    "SignatureDoesNotMatch": "the secret key is wrong; check the credentials in the environment",
    "301": "wrong region; set AWS_REGION to that of the bucket",
    "403": "access denied; check the credentials in the environment, and their permissions",
    "404": "there is no such object",
}
_BY_CLASS = {
    "ClientAuthenticationError": "the credentials are missing or wrong; set them in the environment",
    "ConnectTimeoutError": "the service did not answer in time",
    "FileExpired": _ADVICE["PreconditionFailed"],
    "NoCredentialsError": "no credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE",
    "PartialCredentialsError": "incomplete credentials; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
    "ReadTimeoutError": "the service did not answer in time",
}
_MAY_STILL_WRITE = ("AccessDenied", "403")
"""The answers to somebody who may write an object, and not look at it."""


class ObjectVersion(NamedTuple):
    """A version of an object: its ETag, which changes whenever the object is written, and its size in bytes."""

    etag: str
    size: int


class Url(str):
    """The URL of an object or of a prefix. It holds no credentials, since it is stored and shown.

    Args:
        text: The URL.
        version: The version of the object that was found; ``None`` before anything was looked up. Only this version
            is read.
    """

    __slots__ = ("version",)
    version: ObjectVersion | None

    def __new__(cls, text: str, version: ObjectVersion | None = None) -> Self:
        """Return the URL, which is a text."""
        url = super().__new__(cls, text)
        url.version = version
        return url

    @property
    def scheme(self) -> str:
        """The scheme, such as ``s3``."""
        return self.partition("://")[0]

    @property
    def name(self) -> str:
        """The last part of the name."""
        return PurePosixPath(self).name

    @property
    def suffix(self) -> str:
        """The suffix of the name."""
        return PurePosixPath(self).suffix

    def current_version(self) -> ObjectVersion:
        """Return the version that the object has now.

        Raises:
            FileNotFoundError: There is no such object.
            IsADirectoryError: It is a prefix.
            OSError: The service cannot be asked.
            ConfigError: The library for this service is not installed.
        """
        if self.endswith("/"):
            raise IsADirectoryError("is a folder")
        with _plain_errors():
            system, path = self._connected()
            try:
                details = system.info(path)
            except PermissionError:
                system.ls(path)  # unlike the answer to a HEAD request, the answer to this one says why
                raise
        if details["type"] == "directory":
            raise IsADirectoryError("is a folder")
        return _version(details)

    def objects(self) -> "list[Url]":
        """Return the objects below this prefix, with their versions."""
        with _plain_errors():
            system, path = self._connected()
            return self._named(system.find(path, detail=True))

    def matches(self) -> "list[Url]":
        """Return the objects that match this pattern, with their versions."""
        with _plain_errors():
            system, path = self._connected()
            return self._named(system.glob(path, detail=True))

    def open(self, mode: Literal["rb"] = "rb") -> IO[bytes]:  # noqa: ARG002 - like a path's
        """Open the object, which is read block by block. It must still have the version that was found, if any."""
        with _plain_errors():
            system, path = self._connected()
            file = system.open(path, "rb", block_size=_BLOCK)
            if self.version is not None and _version(file.details) != self.version:
                raise OSError(_ADVICE["PreconditionFailed"])
        return io.BufferedReader(_ObjectReader(file), _BUFFER)

    def upload(self, file: Path) -> None:
        """Replace the object with a file, once all of it has arrived."""
        with _plain_errors():
            system, path = self._connected()
            system.put_file(str(file), path)

    def check_writable(self) -> None:
        """Check that there is a bucket to write to, and that the service accepts the credentials.

        Whether they permit writing shows only when the object is written.

        Raises:
            OSError: The object cannot be written.
            ConfigError: The library for this service is not installed.
        """
        try:
            self.current_version()
        except PermissionError as error:
            if _code(error.__cause__) not in _MAY_STILL_WRITE:
                raise
        except FileNotFoundError as error:
            if str(error) == _ADVICE["NoSuchBucket"]:
                raise
        except IsADirectoryError:
            if self.endswith("/"):
                raise

    @property
    def endpoint(self) -> str:
        """The address of the service that is asked; empty if it is unknown, or if credentials are looked for elsewhere."""
        if self.scheme != "s3" or not (environ.get("AWS_ACCESS_KEY_ID") and environ.get("AWS_SECRET_ACCESS_KEY")):
            return ""
        with _plain_errors():
            return str(self._connected()[0].s3.meta.endpoint_url)

    def _connected(self) -> tuple[Any, str]:
        try:
            registry: Any = import_module("fsspec.registry")
            kind = registry.get_filesystem_class(self.scheme)
        except ImportError as error:
            extra = _EXTRAS[self.scheme]
            raise ConfigError(f"{self.scheme}:// URLs need a library: {install_command(extra)}") from error
        # As fsspec.core.url_to_fs does, which reads "::" in the name of an object as another URL.
        account = kind._get_kwargs_from_urls(self)  # noqa: SLF001
        path = kind._strip_protocol(self)  # noqa: SLF001
        return kind(**_OPTIONS.get(self.scheme, {}), **account, use_listings_cache=False), path

    def _named(self, listing: Mapping[str, Mapping[str, object]]) -> "list[Url]":
        """Return the URLs of objects that a listing names without the scheme and the account."""
        bucket = "/".join(self.split("/")[:3])
        files = (
            (name, details) for name, details in listing.items() if details["type"] == "file" and not name.endswith("/")
        )
        return [Url(f"{bucket}/{name.lstrip('/').partition('/')[2]}", _version(details)) for name, details in files]


Location: TypeAlias = Path | Url
"""A file, or an object in a bucket."""


class _ObjectReader(io.RawIOBase):
    """The bytes of an object, whose errors are plain ones."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        view = memoryview(buffer)
        with _plain_errors():
            content = self._file.read(len(view))
        view[: len(content)] = content
        return len(content)

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def close(self) -> None:
        self._file.close()
        super().close()


def to_location(given: Path | str) -> Location:
    """Return the file or object that a path, its text, or a URL names.

    Raises:
        ConfigError: The URL is of another scheme, holds credentials, or names no bucket.
    """
    if isinstance(given, Url):
        return given
    if isinstance(given, Path):
        if (was := _AS_PATH.match(str(given))) and not given.exists():
            raise ConfigError(f"{given}: a Path cannot hold a URL; pass it as text: '{was[1]}://...'")
        return given
    match = _SCHEME.match(given)
    scheme = match[1].lower() if match else "file"
    if scheme == "file":
        return text_path(given)
    if scheme not in _EXTRAS:
        schemes = ", ".join(f"{scheme_name}://" for scheme_name in _EXTRAS)
        raise ConfigError(f"{scheme}:// URLs are not read or written; use a local file, or one of {schemes}")
    rest = given[len(scheme) + 3 :]
    bucket = rest.partition("/")[0]
    if ":" in bucket or ("@" in bucket and _EXTRAS[scheme] != "azure") or _QUERY.search(rest):
        raise ConfigError(
            f"{scheme}://...: this URL holds credentials or a query, which would be stored with the run; name only the "
            "bucket and the object, and give credentials in the environment"
        )
    if not bucket:
        raise ConfigError(f"{given}: names no bucket, as in {scheme}://bucket/name.jsonl")
    return Url(f"{scheme}://{rest}")


def location_text(given: str) -> str:
    """Return the text of a file or an object that is named on the command line."""
    return str(to_location(given))


def require_local(path: Path | str, what: str) -> Path:
    """Return the path of a file that must be on this machine.

    Raises:
        ConfigError: It is a URL. ``what`` says what kind of file has to be local, and why.
    """
    match = _AS_PATH.match(str(path))
    if match and not Path(path).exists():
        raise ConfigError(f"{match[1]}://{str(path)[match.end() :].lstrip('/')}: is a URL; {what}")
    return Path(path)


def _version(details: Mapping[str, object]) -> ObjectVersion:
    etag = details.get("ETag") or details.get("etag") or details.get("generation") or ""
    return ObjectVersion(str(etag).strip('"'), cast("int", details["size"]))


@contextmanager
def _plain_errors() -> Generator[None]:
    """Turn the errors of all libraries into an `OSError` whose text is one plain line."""
    try:
        yield
    except (JudgekitError, IsADirectoryError):
        raise
    except Exception as error:  # each library raises its own, and those of its HTTP client
        kind = next(
            (error_kind for error_kind in (FileNotFoundError, PermissionError) if isinstance(error, error_kind)),
            OSError,
        )
        raise kind(_explanation(error)) from error


def _explanation(error: Exception) -> str:
    code = _code(error)
    if advice := _ADVICE.get(code) or _BY_CLASS.get(type(error).__name__):
        return advice
    if isinstance(error, FileNotFoundError):
        return _ADVICE["404"]
    if isinstance(error, TimeoutError):
        return _BY_CLASS["ReadTimeoutError"]
    text = " ".join(str(error).split()) or type(error).__name__
    return truncated(f"{code}: {text}" if code else text, _SHOWN)


def _code(error: BaseException | None) -> str:
    """Return the code of the service's answer, such as ``NoSuchKey``, which an error or its causes hold."""
    while error is not None:
        response = getattr(error, "response", None)
        if isinstance(response, dict):
            details = cast("dict[str, dict[str, object]]", response).get("Error", {})
            return str(details.get("Code", ""))
        error = error.__cause__ or error.__context__
    return ""
