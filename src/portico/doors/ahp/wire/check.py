"""Validates incoming data against its type (`types`, `types_v1`: generated from the protocol's schemas).

A check covers the known fields: it names the first one that is missing or of the wrong type. Unknown fields, union
variants and enum values pass through unchanged, so a newer peer loses no data. Actions that a client may dispatch are
checked in full, because they are sent to other clients. An optional field may be null, which counts as absent.
"""

from collections.abc import Callable
from functools import cache
from types import UnionType
from typing import Any, Literal, NamedTuple, NotRequired, get_args, get_origin, get_type_hints, is_typeddict

from portico.doors.ahp.wire import types, types_v1
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.versions import Dialect
from portico.kernel.errors import BadRequest

Check = Callable[[Any, str], Any]
"""Takes a value and its path; returns the value without nulls that mean absent, or raises BadRequest."""

_NAMES = {str: "string", float: "number", int: "integer", bool: "boolean", dict: "object", list: "array"}


def check(kind: Any, value: Any, at: str = "") -> Any:
    return checker(kind)(value, at)


def check_action(dialect: Dialect, action: Any) -> Json:
    """An action as a client sent it. Types that no client may dispatch are only checked to be an action at all."""
    if not isinstance(action, dict):
        raise _wrong("object", "action")
    if not isinstance(action.get("type"), str):
        raise _wrong("string", "action.type")
    kind = (types_v1 if dialect.seed else types).ACTIONS.get(action["type"])
    return action if kind is None else _record(_shape(kind), action, "action")


@cache
def checker(kind: Any) -> Check:
    origin = get_origin(kind)
    if kind is Any or kind is None:
        return _anything
    if is_typeddict(kind):
        shape = _shape(kind)
        return lambda value, at: _record(shape, value if type(value) is dict else _typed(dict, value, at), at)
    if origin is list:
        return _listed(checker(get_args(kind)[0]))
    if origin is dict:
        return _mapped(checker(get_args(kind)[1]))
    if origin is UnionType:
        return _union(get_args(kind))
    if kind is str or origin is Literal:
        return _text
    return lambda value, at: _typed(kind, value, at)


def _text(value: Any, at: str) -> Any:
    return _typed(str, value, at)


def _anything(value: Any, at: str) -> Any:
    return value


def _listed(inner: Check) -> Check:
    def run(value: Any, at: str) -> Any:
        return [inner(each, f"{at}[{index}]") for index, each in enumerate(_typed(list, value, at))]

    return run


def _mapped(inner: Check) -> Check:
    def run(value: Any, at: str) -> Any:
        found = _typed(dict, value, at)
        return found if inner is _anything else {key: inner(each, f"{at}.{key}") for key, each in found.items()}

    return run


def _union(kinds: tuple[Any, ...]) -> Check:
    """Records are distinguished by their tag; a record among plain values (text or Markdown) by its type."""
    records = [kind for kind in kinds if is_typeddict(kind)]
    plain = [kind for kind in kinds if kind not in records]
    tagged = _tagged(records) if len(records) > 1 else checker(records[0]) if records else None

    def run(value: Any, at: str) -> Any:
        if plain and not isinstance(value, dict):
            return value if any(_is(kind, value) for kind in plain) else _typed(plain[0], value, at)
        return _typed(str, value, at) if tagged is None else tagged(value, at)

    return run


def _tagged(records: list[Any]) -> Check:
    hints = [get_type_hints(kind) for kind in records]
    tag = next((name for name, kind in hints[0].items() if _constants(kind)), None)
    if tag is None:  # they cannot be distinguished
        return checker(dict[str, Any])
    variants = {
        value: _shape(kind) for kind, hint in zip(records, hints, strict=True) for value in _constants(hint[tag])
    }

    def run(value: Any, at: str) -> Any:
        found = _typed(dict, value, at)
        shape = variants.get(_typed(str, found.get(tag), f"{at}.{tag}" if at else tag))
        return found if shape is None else _record(shape, found, at)

    return run


def _constants(kind: Any) -> tuple[Any, ...]:
    """The values of a tag."""
    return get_args(kind) if get_origin(kind) is Literal else ()


class _Shape(NamedTuple):
    """A record type, analyzed once: the checks of its fields, and the required fields."""

    fields: dict[str, Check]
    required: frozenset[str]
    order: tuple[str, ...]


@cache
def _shape(kind: Any) -> _Shape:
    hints = get_type_hints(kind, include_extras=True)
    fields = {name: get_args(each)[0] if get_origin(each) is NotRequired else each for name, each in hints.items()}
    checks = {name: checker(each) for name, each in fields.items()}
    required = frozenset(kind.__required_keys__)
    known = {name: each for name, each in checks.items() if each is not _anything}
    return _Shape(known, required, tuple(name for name in fields if name in required))


def _record(shape: _Shape, value: Json, at: str) -> Json:
    """Return the value itself when nothing has to be removed: every action of every client is checked here."""
    fields, required, order = shape
    if not required <= value.keys():
        raise _missing(next(key for key in order if key not in value), at)
    checked = value
    for key, found in value.items():
        right = fields.get(key)
        if right is None or (right is _text and type(found) is str):
            continue
        if found is None:
            if key in required:
                raise _missing(key, at)
            checked = {name: each for name, each in checked.items() if name != key}
        elif (known := right(found, f"{at}.{key}" if at else key)) is not found:
            checked = {**checked, key: known}
    return checked


def _is(kind: type, value: Any) -> bool:
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return isinstance(value, kind) and (kind is bool or not isinstance(value, bool))


def _typed(kind: type, value: Any, at: str) -> Any:
    if not _is(kind, value):
        raise _wrong(_NAMES[kind], at)
    return value


def _wrong(name: str, at: str) -> BadRequest:
    return BadRequest(f"{repr(at) if at else 'The value'} must be of type {name}.", field=at or None)


def _missing(key: str, at: str) -> BadRequest:
    path = f"{at}.{key}" if at else key
    return BadRequest(f"{path!r} is missing.", field=path)
