"""Scorers, formats and providers other than judgekit's own: those of installed packages, and your own code."""

import importlib.util
import sys
import tomllib
from collections.abc import Callable, Collection, Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from inspect import getattr_static
from pathlib import Path
from types import ModuleType
from typing import Literal, TypeAlias, TypeVar, cast

from judgekit.errors import ConfigError, JudgekitError, error_with_location, join_limited

Group: TypeAlias = Literal["scorers", "readers", "providers"]
Kind = TypeVar("Kind")

_NAMES_SHOWN = 8


def is_reference(name: str, own: Collection[str] = ()) -> bool:
    """Return whether a name is ``package.module:object``, ``file.py:object``, or that of a module that is no ``own`` name."""
    module, colon, _ = name.partition(":")
    if "." in module or "/" in module:
        return True
    is_module = Path(f"{module}.py").is_file() or (
        module.isidentifier() and importlib.util.find_spec(module) is not None
    )
    return bool(colon) and module not in own and is_module


@cache
def entry_point_references(group: Group) -> Mapping[str, str]:
    """Return the entry points of installed packages in ``judgekit.<group>``, as references by name."""
    return {point.name: f"{point.module}:{point.attr}" for point in entry_points(group=f"judgekit.{group}")}


_CONFIG = Path("judgekit.toml")
_ALL = "*"
_named: set[str] = set()
"""The modules and packages that you named in this process, or `_ALL`: what a stored run may name too."""
_reading: ContextVar[bool] = ContextVar("reading", default=False)


def allow_code(*names: str) -> None:
    """Allow stored runs to name these modules, or without names any code."""
    _named.update(*((name, name.partition(".")[0]) for name in names or (_ALL,)))


@contextmanager
def of_stored_run() -> Generator[None]:
    """Let only references be imported that you named, since those of a run may be somebody else's."""
    before = _reading.set(True)
    try:
        yield
    finally:
        _reading.reset(before)


def check_named(module: str) -> None:
    """Check that you named a module that a stored run names, and make it importable.

    Raises:
        ConfigError: Neither this process nor the config of the working directory names it.
    """
    if _ALL in _named:
        _add_to_path(Path.cwd())
    if not _named.isdisjoint((_ALL, module, module.partition(".")[0])):
        return
    for text in _config_texts():
        for reference in {text, text.partition("/")[0], text.partition(",")[0]}:
            named, colon, _ = reference.rpartition(":")
            if colon and module in (named, Path(named).stem):
                allow_code(module, _imported(named).__name__)
                return
    raise ConfigError(f"{module} is code that a stored run names: {_CONFIG} does not name it; --allow-code runs it")


def _config_texts() -> Iterator[str]:
    """Yield all texts in the config of the working directory."""
    try:
        parts: list[object] = [tomllib.loads(_CONFIG.read_text(encoding="utf-8"))]
    except (OSError, ValueError):
        return
    while parts:
        part = parts.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            parts += cast("dict[str, object]", part).values()
        elif isinstance(part, list):
            parts += cast("list[object]", part)


def import_object(name: str, group: Group) -> object:
    """Return the object of an installed package with a name, or the one that your reference names.

    A reference is ``package.module:object`` or ``path/to/file.py:object``. Only then, modules are imported from the
    working directory too, or by a file from its own folder.
    """
    if name in (packages := entry_point_references(group)):
        return _named_object(packages[name], import_module)
    return _named_object(name, _own_module)


def _named_object(reference: str, load: Callable[[str], ModuleType]) -> object:
    module_name, _, name = reference.rpartition(":") if ":" in reference else (reference, "", "")
    module = _module(module_name, reference, load)
    if not name:
        raise ConfigError(f"{reference}: name an object in it: {reference}:NAME{_names_in(module)}")
    named: object = module
    for part in name.split("."):
        try:
            named = getattr(named, part)
        except AttributeError:
            raise ConfigError(f"{reference}: {module_name} has no {name}{_names_in(module)}") from None
        except Exception as error:  # of a module that loads its names late
            raise ConfigError(f"{reference}: {error_with_location(error)}") from error
    return named


def is_named(name: str, group: Group, own: Collection[str]) -> bool:
    """Return whether a name is one of judgekit's ``own``, of an installed package, or a reference."""
    return name in own or name in entry_point_references(group) or ":" in name


def find_object(
    name: str, group: Group, own: Mapping[str, Kind], needs: Collection[str], what: str, guess: str = ""
) -> Kind:
    """Return an object by its name: one of judgekit's ``own``, of an installed package, or of your own code.

    Args:
        name: The name, or a reference.
        group: The group of entry points.
        own: The objects of judgekit, which no package can replace.
        needs: The attributes that the object must have. A class is instantiated.
        what: The kind of object, for errors.
        guess: Another name that may be meant, for errors.
    """
    if name in own:
        return own[name]
    packages = entry_point_references(group)
    if not is_named(name, group, own):
        unknown = ConfigError.unknown(what, name, {**own, **packages}, guess)
        raise ConfigError(f"{unknown}. For your own, give package.module:NAME")
    imported = import_object(name, group)
    try:
        instance = imported() if isinstance(imported, type) else imported
        missing = [need for need in needs if not hasattr(instance, need)]
    except JudgekitError:
        raise
    except Exception as error:
        raise ConfigError(f"{name}: {error_with_location(error)}") from error
    if missing:
        raise ConfigError(f"{name}: not a {what}: it has no {join_limited(missing, separator=', ')}")
    return cast("Kind", instance)


def _module(name: str, reference: str, load: Callable[[str], ModuleType]) -> ModuleType:
    try:
        return load(name)
    except ConfigError:
        raise
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise ConfigError(f"{reference}: no module named {error.name}, neither here nor installed") from error
        raise ConfigError(f"{reference}: {error_with_location(error)}") from error
    except Exception as error:
        raise ConfigError(f"{reference}: {error_with_location(error)}") from error


def _own_module(name: str) -> ModuleType:
    if _reading.get():
        check_named(name)
    module = _imported(name)
    allow_code(name, module.__name__)
    return module


def _imported(name: str) -> ModuleType:
    file = Path(name)
    is_file = name.endswith(".py") or "/" in name
    _add_to_path(file.parent.absolute() if is_file else Path.cwd())
    if is_file and not file.is_file():
        raise ConfigError(f"no such file: {name}")
    return _loaded(file) if is_file else import_module(name)


def _add_to_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.append(str(folder))  # last, so that no file there hides a module of Python


def _loaded(file: Path) -> ModuleType:
    """Return the module of a file, which has the name of the file unless another module has it."""
    path = str(file.absolute())
    for name in (file.stem, path):
        loaded = sys.modules.get(name)
        if loaded is not None and getattr(loaded, "__file__", None) == path:
            return loaded
        if loaded is None and (name == path or getattr(importlib.util.find_spec(name), "origin", path) == path):
            spec = importlib.util.spec_from_file_location(name, path)
            if spec is None or spec.loader is None:
                break
            module = sys.modules[name] = importlib.util.module_from_spec(spec)
            try:
                spec.loader.exec_module(module)
            except BaseException:
                del sys.modules[name]
                raise
            return module
    raise ConfigError(f"{file}: not a Python file")


def _names_in(module: ModuleType) -> str:
    own = (
        name
        for name, value in vars(module).items()
        if getattr_static(value, "__module__", None) == module.__name__
        or hasattr(cast("object", type(value)), "ascore")
    )
    names = join_limited([name for name in own if not name.startswith("_")], _NAMES_SHOWN, ", ")
    return f"; it has {names}" if names else ""
