"""Strict reader for entries in JSON, YAML or plain data. Every error names the exact position.

The attack: an entry is a file that another person may have written. YAML anchors can make a value that contains itself
or that unfolds to gigabytes, and nesting can exhaust the stack; all three end here as an ordinary error.
"""

import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Literal, TypeVar

import msgspec
import msgspec.inspect as shape

from portico.features.jobs.entry import (
    DEFAULT_CRITERIA_RETRIES,
    WORKFLOW_KINDS,
    Check,
    DrivingRetry,
    Entry,
    EntryError,
    Job,
    Model,
)
from portico.features.jobs.validate import check_driving, validate_entry

Syntax = Literal["json", "yaml"]
T = TypeVar("T")

# The deepest work tree seen in practice has 6 levels; two levels of data per work keep this far below Python's stack.
MAX_DEPTH = 200
# A large hand-written entry has some 2,000 values; this is where a generated or hostile one stops.
MAX_VALUES = 200_000
# JavaScript clients read the entry too; beyond this they round.
MAX_INTEGER = 2**53 - 1
CHECKS_FAILED = "These checks failed:\n$check-output"
"""The retry prompt for a plain list of checks."""


class EntrySyntaxError(EntryError):
    """The text is not valid JSON or YAML."""


def load_file(path: Path, code_path: str = "") -> Entry:
    """The validated entry of a `.json`, `.yaml` or `.yml` file."""
    return load_entry(read_file(path), code_path)


def read_file(path: Path) -> object:
    """The plain data of a file, by its suffix."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise EntrySyntaxError(str(path), f"Cannot be read: {error.strerror or error}.") from error
    syntax: Syntax = "yaml" if path.suffix.lower() in (".yaml", ".yml") else "json"
    return parse(text, syntax, name=str(path))


def parse(text: bytes | str, syntax: Syntax = "json", *, name: str = "entry") -> object:
    """The plain data of a text, not yet checked. `name` starts the error message if it cannot be parsed."""
    try:
        decoded = text if isinstance(text, str) else text.decode()
        decoded = decoded.removeprefix("\ufeff")
        return msgspec.json.decode(decoded) if syntax == "json" else _yaml(decoded)
    except RecursionError:
        raise EntrySyntaxError(name, f"Is nested more than {MAX_DEPTH} levels deep.") from None
    # ValueError: not UTF-8, or a YAML date or number that Python cannot hold.
    except (msgspec.DecodeError, ValueError) as error:
        raise EntrySyntaxError(name, f"Is not valid {syntax.upper()}: {error}") from error


def _yaml(text: str) -> object:
    import yaml  # late: most entries are JSON

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def load_entry(data: object, code_path: str = "") -> Entry:
    """The validated entry of plain data (dicts and lists)."""
    return validate_entry(read_entry(data, code_path), code_path)


def read_entry(data: object, code_path: str = "") -> Entry:
    """The entry of plain data with the right keys, kinds and types, not yet validated."""
    root = f"{code_path}entry"
    _check_driving_first(data, root)
    data = _whole_tasks(data)
    _Check().value(data, _type_info(Entry), root)
    return _converted(data, Entry, root)


def _whole_tasks(data: object) -> object:
    """Expand short forms of tasks: a plain list of checks as `criteria` gets the default retries and a prompt with the
    failed checks; an `output` may be just its name."""
    tasks = data.get("tasks") if isinstance(data, Mapping) else None
    if not isinstance(data, Mapping) or not isinstance(tasks, Mapping):
        return data
    return {**data, "tasks": {name: _whole_task(task) for name, task in tasks.items()}}


def _whole_task(task: object) -> object:
    if not isinstance(task, Mapping):
        return task
    whole = dict(task)
    if isinstance(task.get("criteria"), list):
        action = {"retryTimes": DEFAULT_CRITERIA_RETRIES, "additionalPrompt": [CHECKS_FAILED]}
        whole["criteria"] = {"checks": task["criteria"], "failureAction": action}
    if isinstance(task.get("output"), str):
        whole["output"] = {"name": task["output"]}
    return whole


def drop_unknown_keys(data: object, code_path: str = "") -> list[str]:
    """Removes from plain data every key that no entry has, and returns where they were. Other mistakes are raised."""
    check = _Collect()
    check.value(data, _type_info(Entry), f"{code_path}entry")
    for owner, key, _ in check.unknown:
        owner.pop(key, None)
    return [path for _, _, path in check.unknown]


def _check_driving_first(data: object, root: str) -> None:
    """The first rules of an entry are about its models, also when other keys are missing or wrong."""
    if not isinstance(data, Mapping):
        return
    models = data.get("models", {})
    retries = data.get("drivingSessionRetries", [])
    check = _Check()
    check.value(models, _type_info(dict[str, str]), f"{root}.models")
    check.value(retries, _type_info(list[DrivingRetry]), f"{root}.drivingSessionRetries")
    check_driving(models, _converted(retries, list[DrivingRetry], f"{root}.drivingSessionRetries"), root)


def _converted(data: object, kind: type[T], root: str) -> T:
    try:
        return msgspec.convert(data, kind)
    except msgspec.ValidationError as error:
        raise EntryError(root, str(error)) from error


_type_info = cache(shape.type_info)


class _Check:
    """Compares plain data with a type and reports where they differ."""

    def __init__(self) -> None:
        self.open: set[int] = set()
        self.seen = 0

    def value(self, value: object, kind: shape.Type, path: str) -> None:
        self.seen += 1
        if self.seen > MAX_VALUES:
            raise EntryError(path, f"The entry has more than {MAX_VALUES} values.")
        if not isinstance(value, Mapping | list | tuple):
            _check_scalar(value, kind, path)
            return
        if id(value) in self.open:
            raise EntryError(path, "Contains itself.")
        if len(self.open) >= MAX_DEPTH:
            raise EntryError(path, f"Is nested more than {MAX_DEPTH} levels deep.")
        self.open.add(id(value))
        self.container(value, kind, path)
        self.open.remove(id(value))

    def container(
        self, value: Mapping[object, object] | list[object] | tuple[object, ...], kind: shape.Type, path: str
    ) -> None:
        match _chosen(value, kind, path), value:
            case shape.StructType() as struct, Mapping():
                self.struct(value, struct, path)
            case shape.DictType(value_type=inner) | (shape.AnyType() as inner), Mapping():
                for key, item in _string_keys(value, path):
                    self.value(item, inner, f'{path}["{key}"]')
            case shape.ListType(item_type=inner) | (shape.AnyType() as inner), list() | tuple():
                for index, item in enumerate(value):
                    self.value(item, inner, f"{path}[{index}]")
            case shape.TupleType() as pair, list() | tuple():
                if len(value) != len(pair.item_types):
                    raise EntryError(path, f"Should have {len(pair.item_types)} elements but has {len(value)}.")
                for index, (item, item_type) in enumerate(zip(value, pair.item_types, strict=True)):
                    self.value(item, item_type, f"{path}[{index}]")
            case expected, _:
                raise _mismatch(value, expected, path)

    def struct(self, value: Mapping[object, object], struct: shape.StructType, path: str) -> None:
        fields = {each.encode_name: each for each in struct.fields}
        if struct.cls is Job:
            del fields["flow"]  # only a workflow has it
        known = [struct.tag_field, *fields] if struct.tag_field else list(fields)
        for key, _ in _string_keys(value, path):
            if key not in known:
                self.unknown_key(value, key, path, known)
        for key, each in fields.items():
            if key in value:
                self.value(value[key], _without_none(each), f"{path}.{key}")
            elif each.required:
                raise EntryError(f"{path}.{key}", "Should exist.")
        if struct.cls is Model and sum(key in value for key in fields) != 1:
            raise EntryError(path, "Should have either category or id.")
        if struct.cls is Check and sum(key in value for key in fields) != 1:
            raise EntryError(path, f"Should have exactly one of {', '.join(fields)}.")

    def unknown_key(self, owner: Mapping[object, object], key: str, path: str, known: list[str]) -> None:
        raise EntryError(f"{path}.{key}", f"Unknown key. Known keys: {', '.join(known)}.")


class _Collect(_Check):
    """Collects unknown keys instead of refusing them."""

    def __init__(self) -> None:
        super().__init__()
        self.unknown: list[tuple[dict[object, object], str, str]] = []

    def unknown_key(self, owner: Mapping[object, object], key: str, path: str, known: list[str]) -> None:
        assert isinstance(owner, dict)
        self.unknown.append((owner, key, f"{path}.{key}"))


def _string_keys(value: Mapping[object, object], path: str) -> list[tuple[str, object]]:
    for key in value:
        if not isinstance(key, str):
            raise EntryError(path, f"Keys should be strings but {key!r} is {_described(key)}.")
        _check_text(key, path)
    return [(str(key), item) for key, item in value.items()]


def _without_none(field: shape.Field) -> shape.Type:
    """The type of a field without None: an optional key is omitted in files, never null."""
    if field.default is None and isinstance(field.type, shape.UnionType):
        kinds = tuple(each for each in field.type.types if not isinstance(each, shape.NoneType))
        return kinds[0] if len(kinds) == 1 else shape.UnionType(kinds)
    return field.type


def _chosen(value: object, kind: shape.Type, path: str) -> shape.Type:
    """The member of a union that this container is meant to be: a work by its `kind`, others by their form."""
    if not isinstance(kind, shape.UnionType):
        return kind
    types = [each for each in kind.types if isinstance(each, shape.StructType)]
    structs = {each.tag: each for each in types if each.tag not in WORKFLOW_KINDS}
    if isinstance(value, Mapping) and None in structs:
        return structs[None]
    if isinstance(value, Mapping) and structs:
        if "kind" not in value:
            raise EntryError(f"{path}.kind", "Should exist.")
        tag = value["kind"]
        if not isinstance(tag, str):
            raise EntryError(f"{path}.kind", f"Should be a string but is {_described(tag)}.")
        if tag not in structs:
            known = ", ".join(str(each) for each in structs)
            raise EntryError(f"{path}.kind", f'"{tag}" is not a valid kind. Known kinds: {known}.')
        return structs[tag]
    lists = [each for each in kind.types if isinstance(each, shape.ListType)]
    return lists[0] if lists and isinstance(value, list | tuple) else kind


def _check_scalar(value: object, kind: shape.Type, path: str) -> None:
    match kind:
        case shape.UnionType():
            if not any(_fits(value, each) for each in kind.types):
                raise _mismatch(value, kind, path)
        case shape.LiteralType():
            if value not in kind.values:
                known = ", ".join(f'"{each}"' for each in kind.values)
                raise EntryError(path, f"Should be one of {known}.")
        case _ if not _fits(value, kind):
            raise _mismatch(value, kind, path)
        case shape.IntType() | shape.FloatType():
            _check_range(value, kind, path)
        case shape.StrType():
            _check_text(str(value), path)


def _check_text(text: str, path: str) -> None:
    """YAML can escape half a character, which no client could be sent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise EntryError(path, f"Should be valid Unicode but contains {text!a}.") from None


def _fits(value: object, kind: shape.Type) -> bool:
    match kind:
        case shape.StrType():
            return isinstance(value, str)
        case shape.BoolType():
            return isinstance(value, bool)
        case shape.IntType():
            return isinstance(value, int) and not isinstance(value, bool)
        case shape.FloatType():
            return isinstance(value, int | float) and not isinstance(value, bool)
        case shape.NoneType():
            return value is None
        case shape.AnyType():
            return value is None or isinstance(value, str | bool | int | float)
        case _:
            return False


def _check_range(value: object, kind: shape.IntType | shape.FloatType, path: str) -> None:
    assert isinstance(value, int | float)
    if not math.isfinite(value) if isinstance(value, float) else abs(value) > MAX_INTEGER:
        raise EntryError(path, f"Should be at most {MAX_INTEGER}.")
    if kind.ge is not None and value < kind.ge:
        raise EntryError(path, f"Should be at least {kind.ge} but is {value}.")
    if kind.gt is not None and value <= kind.gt:
        raise EntryError(path, f"Should be more than {kind.gt} but is {value}.")


def _mismatch(value: object, kind: shape.Type, path: str) -> EntryError:
    return EntryError(path, f"Should be {_expected(kind)} but is {_described(value)}.")


def _expected(kind: shape.Type) -> str:
    match kind:
        case shape.UnionType():
            words = dict.fromkeys(_expected(each) for each in kind.types)
            return " or ".join(words)
        case shape.StructType() | shape.DictType():
            return "an object"
        case shape.ListType() | shape.TupleType():
            return "a list"
        case shape.StrType() | shape.LiteralType():
            return "a string"
        case shape.BoolType():
            return "a boolean"
        case shape.IntType():
            return "an integer"
        case shape.NoneType():
            return "null"
        case _:
            return "a number"


def _described(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list() | tuple():
            return "a list"
        case Mapping():
            return "an object"
        case _:
            return f"a {type(value).__name__}"
