"""The inputs of a job: checked and converted when it starts, whether they come from a form, from flags or from REST."""

from typing import Any

import msgspec

from portico.features.jobs.step import JobInput
from portico.features.jobs.workflow.problem import did_you_mean
from portico.kernel.errors import BadRequest

HIDDEN = "[secret]"
"""Shown in place of a secret input."""
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def check_inputs(spec: dict[str, JobInput], given: dict[str, Any], data: Any = None) -> dict[str, Any]:
    """The values of all inputs. `data`: the payload of the hook, for inputs with `from`. Raises all mistakes."""
    wrong = [f"There is no input {name!r}.{did_you_mean(name, list(spec))}" for name in given if name not in spec]
    found: dict[str, Any] = {}
    for name, each in spec.items():
        value = given.get(name, at_pointer(data, each.pointer) if each.pointer and name not in given else None)
        if value is None:
            value = each.default
        if value is None:
            wrong += [f"The input {name!r} is missing{_about(each)}."] if each.needed else []
            found[name] = _empty(each)
            continue
        try:
            found[name] = _converted(each, value)
        except ValueError as error:
            wrong.append(f"The input {name!r} {error}.")
    if wrong:
        raise BadRequest(" ".join(wrong), field="inputs")
    return found


def default_error(each: JobInput) -> str:
    """What is wrong with the declaration; empty: nothing."""
    if (each.type == "choice") != bool(each.choices):
        return "'choices' and 'type: choice' belong together."
    if each.type == "secret" and (each.default is not None or each.pointer):
        return "A secret has no 'default' and no 'from': files and payloads are stored as they are."
    if each.default is None:
        return ""
    try:
        _converted(each, each.default)
    except ValueError as error:
        return f"The default {error}."
    return ""


def secrets_of(spec: dict[str, JobInput]) -> frozenset[str]:
    return frozenset(name for name, each in spec.items() if each.type == "secret")


def variable_of(name: str) -> str:
    """The environment variable of an input."""
    return f"PORTICO_INPUTS_{name.upper().replace('-', '_')}"


def shown_inputs(spec: dict[str, JobInput], inputs: dict[str, Any]) -> dict[str, Any]:
    """The inputs without the values of secrets."""
    hidden = secrets_of(spec)
    return {name: HIDDEN if name in hidden and value else value for name, value in inputs.items()}


def _about(each: JobInput) -> str:
    return f" ({each.about})" if each.about else ""


def _empty(each: JobInput) -> Any:
    return [] if each.type == "list" else False if each.type == "boolean" else ""


def _converted(each: JobInput, value: Any) -> Any:
    match each.type:
        case "number":
            return _number(value)
        case "boolean":
            if isinstance(value, bool):
                return value
            if str(value).lower() not in _WORDS:
                raise ValueError("should be true or false")
            return _WORDS[str(value).lower()]
        case "list":
            return _list(value)
        case "choice" if str(value) not in each.choices:
            raise ValueError(f"should be one of {', '.join(map(repr, each.choices))}")
    if not isinstance(value, str | int | float):
        raise ValueError("should be a text")
    return value if isinstance(value, str) else str(value)


def _number(value: Any) -> int | float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return value
    try:
        number = float(str(value))
    except ValueError:
        raise ValueError("should be a number") from None
    return int(number) if number.is_integer() else number


def _list(value: Any) -> list[Any]:
    if isinstance(value, list):
        return value
    if not isinstance(value, str):
        raise ValueError("should be a list")
    if value.lstrip().startswith("["):
        try:
            return msgspec.json.decode(value, type=list[Any])
        except msgspec.DecodeError:
            raise ValueError("should be a JSON array, or words with commas between them") from None
    return [word.strip() for word in value.split(",") if word.strip()]


def at_pointer(data: Any, pointer: str) -> Any:
    """The value at a JSON pointer; None if it is absent."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(data, dict) and name in data:
            data = data[name]
        elif isinstance(data, list) and name.isdecimal() and int(name) < len(data):
            data = data[int(name)]
        else:
            return None
    return data
