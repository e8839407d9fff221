"""Checks that need no model: a command has to succeed, files have to be there, JSON has to fit a schema."""

import asyncio
import os
import re
import shlex
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from portico.features.jobs.entry import FilesCheck, SchemaCheck
from portico.features.secrets.mask import Mask
from portico.kernel.errors import PorticoError
from portico.kernel.events import Json
from portico.sandbox.policy import Confinement
from portico.workspace.glob import Glob
from portico.workspace.process import command_environment, run

Changes = dict[str, int]
"""Changed lines by path."""

TAIL_CHARS = 4_000
"""Of the output, for the decision and the next prompt: the last error of a test run, not its whole log."""
CHECK_SECONDS = 30 * 60.0
"""A long test suite; the task's own `timeout` is usually the shorter one."""

OFFENDING_PATHS = 20
"""That a decision names: enough to see what is wrong."""
SCHEMA_SECONDS = 10.0
JSON_BYTES = 10 * 1024 * 1024
"""Of a file that a schema is checked against."""
_FENCED = re.compile(r"```[a-zA-Z]*\n(.*?)```", re.DOTALL)


class Checked(Struct, frozen=True):
    passed: bool
    reason: str
    output: str
    exit_code: int | None = None


async def check_command(
    command: str | list[str],
    cwd: str,
    policy: Confinement,
    env: Mapping[str, str] | None = None,
    shown: str = "",
    mask: Mask | None = None,
) -> Checked:
    """`shown`: the command as its author wrote it. `mask`: for the output, before it is cut."""
    line = shown or (command if isinstance(command, str) else shlex.join(command))
    env = command_environment() if env is None else env
    try:
        done = await run(
            command,
            policy=policy,
            cwd=Path(cwd),
            env=env,
            timeout=CHECK_SECONDS,
            filters=mask.stream if mask is not None else None,
        )
    except PorticoError as error:
        return Checked(False, f"Command could not be run: {line}: {error.message}", error.message)
    output = (done.output if mask is None else mask.text(done.output))[-TAIL_CHARS:].strip()
    if done.timed_out:
        return Checked(False, _told(f"Command did not end within {CHECK_SECONDS:g} seconds: {line}", output), output)
    if done.code != 0:
        reason = _told(f"Command failed with exit code {done.code}: {line}", output)
        return Checked(False, reason, output, done.code)
    return Checked(True, f"Command passed: {line}", output, done.code)


def _told(what: str, output: str) -> str:
    return f"{what}\n{output}" if output else what


# -- files -----------------------------------------------------------------------------------------------------


async def check_files(check: FilesCheck, cwd: str, changes: Changes | None) -> Checked:
    """`changes`: what the task changed so far, by path; None where that is not known."""
    wrong = await asyncio.to_thread(_wrong_files, check, Path(cwd))
    if check.changed_only or check.max_changed_lines is not None:
        wrong += _wrong_changes(check, changes)
    if wrong:
        return Checked(False, _told("Files check failed", "\n".join(wrong)), "\n".join(wrong))
    return Checked(True, "Files check passed", "")


def _wrong_files(check: FilesCheck, folder: Path) -> list[str]:
    missing = [f"missing: {glob}" for glob in check.exist if not _found(folder, glob)]
    return missing + [f"should not be there: {path}" for glob in check.absent for path in _found(folder, glob)]


def _found(folder: Path, pattern: str) -> list[str]:
    """Files that match, as globs do everywhere in the workspace: without a slash at any depth. A plain name with one
    is looked at directly."""
    if "/" in pattern and not set(pattern) & set("*?[{"):
        return [pattern] if os.path.lexists(folder / pattern) else []
    glob = Glob(pattern)
    return list(islice((path for path in files_below(folder) if glob.matches(path)), OFFENDING_PATHS))


def files_below(folder: Path) -> Iterator[str]:
    """Every file below; links to folders are not followed, and the `.git` folder is skipped."""
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != ".git")
        yield from (os.path.relpath(os.path.join(here, name), folder) for name in sorted(names))


def _wrong_changes(check: FilesCheck, changes: Changes | None) -> list[str]:
    if changes is None:
        return ["what was changed is not known: the working directory is no git work tree"]
    globs = [Glob(pattern) for pattern in check.changed_only]
    outside = [path for path in changes if globs and not any(glob.matches(path) for glob in globs)]
    wrong = [f"should not have been changed: {path}" for path in outside[:OFFENDING_PATHS]]
    lines = sum(changes.values())
    if check.max_changed_lines is not None and lines > check.max_changed_lines:
        wrong.append(f"{lines} lines were changed; {check.max_changed_lines} is the limit")
    return wrong


# -- schema ----------------------------------------------------------------------------------------------------


async def check_schema(check: SchemaCheck, cwd: str, answer: str) -> Checked:
    """In a thread with a limit: a `pattern` of a schema can run for minutes."""
    what = f"The JSON file {check.file!r}" if check.file is not None else "The JSON in the answer"
    try:
        async with asyncio.timeout(SCHEMA_SECONDS):
            wrong = await asyncio.to_thread(_schema_errors, check, Path(cwd), answer)
    except TimeoutError:
        wrong = [f"could not be checked within {SCHEMA_SECONDS:g} seconds"]
    if wrong:
        return Checked(False, _told(f"{what} does not fit its schema", "\n".join(wrong)), "\n".join(wrong))
    return Checked(True, f"{what} fits its schema", "")


def _schema_errors(check: SchemaCheck, folder: Path, answer: str) -> list[str]:
    try:
        value = json_of(answer) if check.file is None else msgspec.json.decode(_read(folder, check.file))
    except (OSError, ValueError, RecursionError) as error:
        return [str(error)]
    return schema_errors(check.schema, value)


def schema_errors(schema: Json, value: Any) -> list[str]:
    from jsonschema import Draft202012Validator
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    # An empty registry: a schema that refers elsewhere must not make us fetch anything.
    validator = Draft202012Validator(schema, registry=Registry())
    try:
        errors = list(islice(validator.iter_errors(value), OFFENDING_PATHS))
    except (Unresolvable, RecursionError) as error:  # it refers elsewhere, or to itself without end
        return [f"the schema cannot be used: {error}"]
    return [f"{error.json_path}: {error.message[:500]}" for error in errors]


def _read(folder: Path, name: str) -> bytes:
    path = (folder / name).resolve(strict=True)
    if not path.is_relative_to(folder.resolve()):
        raise ValueError(f"{name!r} leads out of the working directory")
    if path.stat().st_size > JSON_BYTES:
        raise ValueError(f"{name!r} has more than {JSON_BYTES} bytes")
    return path.read_bytes()


def json_of(text: str) -> Any:
    """The JSON that an agent answered with: its whole text, or the last fenced block of it that is JSON."""
    for candidate in (text, *reversed(_FENCED.findall(text))):
        try:
            return msgspec.json.decode(candidate.strip())
        except (ValueError, RecursionError):
            continue
    raise ValueError("there is no JSON in the answer")
