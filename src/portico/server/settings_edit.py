"""Changes one thing in the settings file and leaves everything else as its owner wrote it, comments included.

The text is edited, not made anew; then it is read again, and nothing is written unless just the wanted thing changed.
"""

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from portico.kernel.errors import BadRequest, Conflict
from portico.server.home import write_private

_HEADER = re.compile(r"^\s*\[", re.MULTILINE)


def set_key(path: Path, key: str, value: str | None) -> None:
    """A key outside of all tables; None takes it out."""
    text = _read(path)
    before = tomllib.loads(text)
    found = _HEADER.search(text)
    head, rest = (text[: found.start()], text[found.start() :]) if found else (text, "")
    line = f"{key} = {_toml(value)}\n" if value is not None else ""
    present = re.search(rf"^{re.escape(key)}\s*=[^\n]*(?:\n|\Z)", head, re.MULTILINE)
    if present:
        head = head[: present.start()] + line + head[present.end() :]
    else:
        head = (head if not head or head.endswith("\n") else f"{head}\n") + line
    wanted = {name: each for name, each in before.items() if name != key} | ({key: value} if value is not None else {})
    _write(path, head + rest, wanted)


def set_value(path: Path, key: str, value: Any, check: Callable[[Path], object]) -> None:
    """Set a key of any table, such as `agent.max_steps`; None removes it. `check` reads the new file before it replaces
    the old one, and raises if a value in it is invalid."""
    import tomlkit  # late import: only people who change a setting need it

    document = tomlkit.parse(_read(path))
    *tables, name = key.split(".")
    place: Any = document
    for table in tables:
        place = place.setdefault(table, tomlkit.table(is_super_table=table != tables[-1]))
    if value is None:
        place.pop(name, None)
    else:
        place[name] = value
    text = tomlkit.dumps(document)
    draft = path.with_name(f".{path.name}.new")
    try:
        write_private(draft, text.encode())
        check(draft)
    except BadRequest as error:
        raise BadRequest(error.message.replace(str(draft), str(path)), field="value") from error
    finally:
        draft.unlink(missing_ok=True)
    write_private(path, text.encode())


def add_table(path: Path, name: tuple[str, ...], values: dict[str, Any]) -> None:
    """A new table at the end. Conflict if it is there already."""
    text = _read(path)
    wanted = tomllib.loads(text)
    place = wanted
    for part in name[:-1]:
        place = place.setdefault(part, {})
    if name[-1] in place:
        raise Conflict(f"[{'.'.join(name)}] is in {str(path)!r} already; edit it there.")
    place[name[-1]] = values
    header = ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else json.dumps(part) for part in name)
    lines = [f"{key} = {_toml(value)}\n" for key, value in values.items()]
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    _write(path, f"{text}{gap}[{header}]\n{''.join(lines)}", wanted)


def _toml(value: Any) -> str:
    """Texts and lists of them are written as in JSON; a table stands in one line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{json.dumps(key)} = {_toml(each)}" for key, each in value.items()) + " }"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _read(path: Path) -> str:
    try:
        text = path.read_text("utf-8")
        tomllib.loads(text)
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadRequest(f"The settings {str(path)!r} cannot be read: {error}") from error
    return text


def _write(path: Path, text: str, wanted: dict[str, Any]) -> None:
    try:
        written = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        written = {}
    if written != wanted:
        raise BadRequest(
            f"The settings {str(path)!r} are written in a way that cannot be changed here; edit them by hand."
        )
    write_private(path, text.encode())
