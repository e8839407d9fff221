"""Secret inputs of `portico run`. A value is never an argument: arguments are in the history of the shell and in the
list of processes. It comes from a file, from standard input, or from a prompt without echo."""

import sys
from typing import Any

import typer

from portico.features.jobs.step import JobInput
from portico.features.jobs.workflow.inputs import HIDDEN, secrets_of
from portico.features.secrets.store import LONGEST
from portico.kernel.errors import BadRequest

FILE = "-file"
"""Ends the option of a secret input: `--token-file PATH`."""


def secret_of(flag: str, spec: dict[str, JobInput]) -> str | None:
    """The secret input that an option such as `--token-file` reads."""
    name = flag.removeprefix("--").removesuffix(FILE).replace("-", "_")
    found = (key for key in secrets_of(spec) if key.replace("-", "_") == name)
    return next(found, None) if flag.endswith(FILE) else None


def read_secret(flag: str, path: str) -> str:
    """The text of a file; `-` is standard input. A newline at its end is left out."""
    try:
        if path == "-":
            data = sys.stdin.buffer.read(LONGEST + 2)
        else:
            with open(path, "rb") as file:
                data = file.read(LONGEST + 2)
        return data.decode().removesuffix("\n").removesuffix("\r")
    except OSError as error:
        raise BadRequest(f"{path!r} cannot be read: {error.strerror}.", field=flag) from None
    except UnicodeDecodeError:
        raise BadRequest(f"{path!r} is no text; encode it, for example with base64.", field=flag) from None


def not_an_argument(name: str) -> BadRequest:
    words = f"{name!r} is a secret, and other programs see arguments. Leave it out to be asked for it, or use"
    return BadRequest(f"{words} --{name}{FILE} PATH ('-' reads standard input).", field=f"--{name}")


def ask_secrets(spec: dict[str, JobInput], given: dict[str, Any]) -> dict[str, Any]:
    """The inputs with the secrets that are needed and were not given."""
    found = dict(given)
    for name in [name for name, each in spec.items() if each.type == "secret" and each.needed and name not in given]:
        if not sys.stdin.isatty():
            words = f"The input {name!r} is missing. Use --{name}{FILE} PATH ('-' reads standard input)."
            raise BadRequest(words, field=f"--{name}{FILE}")
        about = f" ({spec[name].about})" if spec[name].about else ""
        found[name] = typer.prompt(f"{name}{about}", hide_input=True, err=True)
    return found


def planned_secrets(spec: dict[str, JobInput], given: dict[str, Any]) -> dict[str, Any]:
    """The inputs for a plan, which needs no values of secrets."""
    return {**dict.fromkeys(secrets_of(spec), HIDDEN), **given}
