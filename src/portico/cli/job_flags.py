"""The inputs of a workflow as flags of `portico run`."""

from typing import Any

from portico.cli.secret_inputs import FILE, not_an_argument, read_secret, secret_of
from portico.features.jobs.step import Flow, JobInput
from portico.features.jobs.workflow.inputs import check_inputs
from portico.features.jobs.workflow.problem import did_you_mean
from portico.features.jobs.workflow.template import text_of
from portico.kernel.errors import BadRequest


def read_flags(spec: dict[str, JobInput], arguments: list[str]) -> dict[str, Any]:
    """The inputs given as `--name VALUE` or `--name=VALUE`; a boolean needs no value, and a secret is in a file
    (`--name-file PATH`). Raises all mistakes."""
    given: dict[str, Any] = {}
    rest = list(arguments)
    while rest:
        flag, equals, value = rest.pop(0).partition("=")
        name = flag.removeprefix("--").replace("-", "_")
        found = next((key for key in spec if key.replace("-", "_") == name), None)
        secret = secret_of(flag, spec) if found is None else None
        if found is not None and spec[found].type == "secret":
            raise not_an_argument(found)
        found = found or secret
        if not flag.startswith("--") or found is None:
            known = [f"--{key}{FILE if each.type == 'secret' else ''}" for key, each in spec.items()]
            raise BadRequest(f"There is no option {flag!r}.{did_you_mean(flag, known)}", field=flag)
        if not equals and spec[found].type == "boolean" and (not rest or rest[0].startswith("--")):
            value = "true"
        elif not equals:
            if not rest:
                raise BadRequest(f"The option {flag!r} needs a value.", field=flag)
            value = rest.pop(0)
        given[found] = read_secret(flag, value) if secret else value
    check_inputs({name: each for name, each in spec.items() if name in given}, given)
    return given


def inputs_help(job: str, flow: Flow) -> str:
    """The description and the inputs of a workflow, as `--help` prints them."""
    lines = [f"Usage: portico run {job} [OPTIONS]", "", *([flow.about, ""] if flow.about else []), "Inputs:"]
    for name, each in flow.inputs.items():
        kind = "|".join(each.choices) if each.choices else each.type.upper()
        default = "" if each.default is None else f" [{text_of(each.default)}]"
        option = f"{name}{FILE} PATH" if each.type == "secret" else f"{name} {kind}"
        asked = " (required; asked for on a terminal)" if each.type == "secret" else " (required)"
        words = [each.about, default.strip(), asked.strip() if each.needed else ""]
        lines.append(f"  --{option}  {' '.join(filter(None, words))}".rstrip())
    return "\n".join(lines if flow.inputs else [*lines[:-1], "It has no inputs."])
