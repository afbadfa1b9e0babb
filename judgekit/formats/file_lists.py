"""The files that a path, a folder, a pattern or a URL names, and what their names say about their contents."""

import glob
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Literal, TypeAlias

from judgekit.errors import ConfigError, TraceError
from judgekit.locations import Location, Url, to_location

Container: TypeAlias = Literal["lines", "document", "objects", "archive", "csv", "parquet"]
STANDARD_STREAM = Path("-")
"""Standard input or output."""

_SUFFIXES: dict[str, Container] = {
    "": "document",
    ".json": "document",
    ".jsonl": "lines",
    ".ndjson": "lines",
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".arrow": "parquet",  # an Arrow table, read in the same way
    ".eval": "archive",
    ".traj": "document",  # from SWE-agent
    ".txt": "document",
    ".log": "document",
}
_FOLDER_SUFFIXES = _SUFFIXES.keys() - {"", ".txt", ".log"}
"""The suffixes of files to read in folders. Other suffixes are common in all kinds of files."""
_SUFFIX_LIST = f"{', '.join(filter(None, _SUFFIXES))}, all also with .gz or .zst"
_DATASET_METADATA = ("dataset_info.json", "dataset_dict.json", "state.json")
"""Metadata that Hugging Face's `save_to_disk` writes next to a dataset's tables."""


def list_files(path: Path | str) -> Sequence[Location]:
    """Return the readable files in a folder, or the files that match a pattern; else the path itself.

    Hidden files and the metadata of Hugging Face datasets are left out. Files are sorted by name. Objects of a bucket
    come with the version that they have now. A folder without such files, or an object that is not there, is an error.
    """
    path = to_location(path)
    if isinstance(path, Url):
        return _list_objects(path)
    if path.is_dir():
        inside = {PurePosixPath(file.relative_to(path)): file for file in path.rglob("*")}
        files = sorted(file for name in _with_records(inside) if (file := inside[name]).is_file())
        if not files:
            raise TraceError(f"contains no readable files; known suffixes: {_SUFFIX_LIST}", path=path)
        return files
    if path.exists() or not glob.has_magic(str(path)):
        return [path]
    fitting = glob.glob(str(path), recursive=True)  # noqa: PTH207 - Path.glob shows hidden files
    return sorted(file for file in map(Path, fitting) if file.is_file()) or [path]


def _list_objects(url: Url) -> Sequence[Url]:
    try:
        return [Url(url, url.current_version())]
    except IsADirectoryError:
        start = len(url.rstrip("/")) + 1
        inside = {PurePosixPath(below[start:]): below for below in _listed(url, url.objects)}
        if urls := sorted(inside[name] for name in _with_records(inside)):
            return urls
        raise TraceError(f"contains no readable files; known suffixes: {_SUFFIX_LIST}", path=url) from None
    except FileNotFoundError as error:
        if glob.has_magic(url) and (matches := _listed(url, url.matches)):
            return sorted(matches)
        raise TraceError(str(error), path=url) from error
    except OSError as error:
        raise TraceError(f"cannot be read: {error}", path=url) from error


def _listed(url: Url, objects: Callable[[], Sequence[Url]]) -> Sequence[Url]:
    try:
        return objects()
    except OSError as error:
        raise TraceError(f"cannot be listed: {error}", path=url) from error


def locate_object(url: Url) -> Url:
    """Return the URL with the version of the object that is read."""
    objects = [url] if url.version is not None else _list_objects(url)
    if list(objects) != [url]:
        raise TraceError("is a folder or a pattern; name one object", path=url)
    return objects[0]


def _with_records(names: Iterable[PurePosixPath]) -> Iterator[PurePosixPath]:
    """Yield the names, relative to a folder, of visible files that hold records."""
    shown = [name for name in names if not any(part.startswith(".") for part in name.parts)]
    datasets = {folder for name in shown if _suffix(name) == ".arrow" for folder in (name.parent, name.parent.parent)}
    for name in shown:
        if _suffix(name) in _FOLDER_SUFFIXES and not (name.name in _DATASET_METADATA and name.parent in datasets):
            yield name


def require_json_lines(path: Location) -> None:
    """Check that JSON Lines in this file would be read as such again, by the suffix of its name."""
    if path != STANDARD_STREAM and _SUFFIXES.get(_suffix(path)) not in ("lines", "document"):
        problem = "would be written as JSON Lines, so its name must end in .jsonl, .jsonl.gz or .jsonl.zst"
        raise ConfigError(f"{path}: {problem}")


def container_of(path: Location) -> Container:
    """Return the container that a file's name shows."""
    suffix = _suffix(path)
    if suffix not in _SUFFIXES:
        raise TraceError(f"unknown suffix {suffix!r}; known suffixes: {_SUFFIX_LIST}", path=path)
    return _SUFFIXES[suffix]


def _suffix(path: Location | PurePosixPath) -> str:
    """Return the suffix of a name, without the suffix of a compressed file."""
    return PurePosixPath(path.name.lower().removesuffix(".gz").removesuffix(".zst")).suffix
