"""Compare the data of a file with the structs and report every difference."""

import math
import threading
from functools import cache
from typing import Any, TypeVar

import msgspec
import msgspec.inspect as shape

from portico.features.jobs.workflow.file import KINDS, CheckKeys, StepKeys, WaitTime
from portico.features.jobs.workflow.problem import Path, Problems, did_you_mean

T = TypeVar("T")


_LOCK = threading.Lock()


def _type_info(kind: Any) -> shape.Type:
    """Inspected once: it takes milliseconds. Files are read in threads, and two of them in it have ended a host with a
    segmentation fault (once, Python 3.11.7)."""
    with _LOCK:
        return _inspected(kind)


@cache
def _inspected(kind: Any) -> shape.Type:
    return shape.type_info(kind)


_ONE_OF: tuple[type, ...] = (CheckKeys, WaitTime)
"""Structs with exactly one of their keys."""


def convert(data: Any, kind: type[T], problems: Problems) -> T:
    """The data as a struct. Raises all problems that were found so far."""
    value = _Reader(problems).value(data, _type_info(kind), ())
    problems.check()
    return msgspec.convert(value, kind)


class _Reader:
    """Returns the data with the kind of each step and with texts where texts are expected."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems

    def value(self, value: Any, kind: shape.Type, path: Path) -> Any:
        chosen = self._chosen(value, kind)
        match chosen:
            case shape.StructType():
                return self._struct(value, chosen, path)
            case shape.ListType():
                return [self.value(each, chosen.item_type, (*path, index)) for index, each in enumerate(value)]
            case shape.DictType():
                return {key: self.value(each, chosen.value_type, (*path, key)) for key, each in value.items()}
            case shape.AnyType():
                return value
            case None if isinstance(value, dict) and _has_steps(kind):
                return self._step(value, kind, path)
            case None:
                self._problems.add(path, f"Should be {_expected(kind)} but is {_described(value)}.")
                return value
        return self._scalar(value, chosen, path)

    def _chosen(self, value: Any, kind: shape.Type) -> shape.Type | None:
        """The member of a union that fits the value; None: none does, or it is a step."""
        kinds = kind.types if isinstance(kind, shape.UnionType) else (kind,)
        if _has_steps(kind):
            return None
        texts_last = sorted(kinds, key=lambda each: isinstance(each, shape.StrType))
        return next((each for each in texts_last if _fits(value, each)), None)

    def _step(self, value: dict[str, Any], kind: shape.Type, path: Path) -> Any:
        key = next((key for key in KINDS if key in value), None)
        if key is None:
            hints = [did_you_mean(name, list(KINDS)) for name in value]
            hint = next((each for each in hints if each.startswith(" Did")), "")
            self._problems.add(path, f"A step needs one of the keys {', '.join(KINDS)}.{hint}")
            return value
        return {"kind": key, **self._struct(value, _type_info(KINDS[key]), path)}

    def _struct(self, value: dict[str, Any], kind: shape.Type, path: Path) -> dict[str, Any]:
        assert isinstance(kind, shape.StructType)
        fields = {each.encode_name: each for each in kind.fields}
        for key in value.keys() - fields.keys():
            where = f" in a {kind.cls.KEY!r} step" if issubclass(kind.cls, StepKeys) else ""
            self._problems.add((*path, key, ""), f"Unknown key {key!r}{where}.{did_you_mean(key, list(fields))}")
        for key, each in fields.items():
            if each.required and value.get(key) is None:
                self._problems.add(path, f"The key {key!r} is missing.")
        if kind.cls in _ONE_OF and len(value) != 1:
            self._problems.add(path, f"Should have exactly one of {', '.join(fields)}.")
        known = {key: item for key, item in value.items() if key in fields and item is not None}
        return {key: self.value(item, fields[key].type, (*path, key)) for key, item in known.items()}

    def _scalar(self, value: Any, kind: shape.Type, path: Path) -> Any:
        match kind:
            case shape.LiteralType() if value not in kind.values:
                words = [str(each) for each in kind.values]
                hint = did_you_mean(str(value), words)
                listed = "" if hint.startswith(" Known") else f" ({', '.join(words)})"
                self._problems.add(path, f"{value!r} is not one of its values{listed}.{hint}")
            case shape.IntType() | shape.FloatType():
                self._number(value, kind, path)
            case shape.StrType() if not isinstance(value, str):
                return str(value).lower() if isinstance(value, bool) else str(value)
        return value

    def _number(self, value: Any, kind: shape.IntType | shape.FloatType, path: Path) -> None:
        if not math.isfinite(value):
            self._problems.add(path, "Should be a finite number.")
        elif kind.ge is not None and value < kind.ge:
            self._problems.add(path, f"Should be at least {kind.ge} but is {value}.")
        elif kind.gt is not None and value <= kind.gt:
            self._problems.add(path, f"Should be more than {kind.gt} but is {value}.")


def _has_steps(kind: shape.Type) -> bool:
    kinds = kind.types if isinstance(kind, shape.UnionType) else (kind,)
    return any(isinstance(each, shape.StructType) and issubclass(each.cls, StepKeys) for each in kinds)


def _fits(value: Any, kind: shape.Type) -> bool:
    match kind:
        case shape.AnyType():
            return True
        case shape.StructType() | shape.DictType():
            return isinstance(value, dict)
        case shape.ListType():
            return isinstance(value, list)
        case shape.BoolType():
            return isinstance(value, bool)
        case shape.IntType():
            return isinstance(value, int) and not isinstance(value, bool)
        case shape.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool)
        case shape.LiteralType():
            return isinstance(value, str)
        case shape.StrType():
            return isinstance(value, str | int | float)
        case _:
            return False


def _expected(kind: shape.Type) -> str:
    kinds = kind.types if isinstance(kind, shape.UnionType) else (kind,)
    if _has_steps(kind):
        return "a step"
    return " or ".join(dict.fromkeys(_word(each) for each in kinds if not isinstance(each, shape.NoneType)))


def _word(kind: shape.Type) -> str:
    match kind:
        case shape.StructType() | shape.DictType():
            return "a mapping"
        case shape.ListType():
            return "a list"
        case shape.BoolType():
            return "true or false"
        case shape.IntType():
            return "a whole number"
        case shape.FloatType():
            return "a number"
        case _:
            return "a text"


def _described(value: Any) -> str:
    match value:
        case None:
            return "empty"
        case bool():
            return str(value).lower()
        case int() | float():
            return f"the number {value}"
        case str():
            return "a text"
        case list():
            return "a list"
        case _:
            return "a mapping"
