"""Writing a workflow in Python: functions that give the same file, and so the same tree, as YAML by hand.

    tests = run("pytest -q", id="tests", may_fail=True)
    fix = prompt("Fix this: {{ steps.tests.reason }}", check=[{"run": "pytest -q"}], if_="{{ steps.tests.reason }}")
    print(workflow(tests, fix, about="Fix the tests.").text)

The keyword arguments are the keys of the file. Those that are words of Python end with `_`: `if_`, `else_`, `as_`, and
`from_` of an input. A host never runs Python of a project: it gets the text, as a file or with `portico run`.
"""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from portico.features.jobs.entry import Entry
from portico.features.jobs.workflow.files import load_text

Step = dict[str, Any]
"""A step as it is in the file."""
_PLACE = "<python>"


class WrittenWorkflow(Struct, frozen=True):
    text: str
    """The file: for `.portico/jobs/NAME.yaml`, or `workflow` of `POST /v1/jobs`."""
    entry: Entry
    """The tree that it gives."""


def workflow(*steps: Step, job: str = "main", **keys: Any) -> WrittenWorkflow:
    """The checked workflow. Raises all mistakes, with their places in its text."""
    import yaml  # late: it costs 15 ms, and hosts that only import this package need it rarely

    data = {**_keys(keys), "steps": list(steps)}
    text = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120)
    return WrittenWorkflow(text, load_text(text, _PLACE, job))


def prompt(text: str, **keys: Any) -> Step:
    """An agent's turn."""
    return {"prompt": text, **_keys(keys)}


def run(command: str | list[str], **keys: Any) -> Step:
    """A command."""
    return {"run": command, **_keys(keys)}


def http(url: str, **keys: Any) -> Step:
    """One request. `method`, `headers`, `json` and `body` belong to the request, all other keys to the step."""
    request = {name: keys.pop(name) for name in ("method", "headers", "json", "body") if name in keys}
    return {"http": {"url": url, **_data(request)}, **_keys(keys)}


def ask(question: str, **keys: Any) -> Step:
    """A question to a person."""
    return {"ask": question, **_keys(keys)}


def wait(seconds: float | str | None = None, *, until: str | None = None, hook: str | None = None, **keys: Any) -> Step:
    """A wait: seconds, until a time, or for a hook."""
    given = {"seconds": seconds, "until": until, "hook": hook}
    return {"wait": {name: value for name, value in given.items() if value is not None}, **_keys(keys)}


def call(job: str, **keys: Any) -> Step:
    """Another workflow of the folder."""
    return {"call": job, **_keys(keys)}


def each(items: str | list[Any], *steps: Step, **keys: Any) -> Step:
    """The same steps for every item."""
    return {"each": _data(items), **_keys(keys), "steps": list(steps)}


def parallel(*branches: Step, **keys: Any) -> Step:
    """Branches that run at the same time."""
    return {"parallel": list(branches), **_keys(keys)}


def loop(*steps: Step, most: int, until: str | None = None, **keys: Any) -> Step:
    """Steps that are repeated."""
    return {"loop": {"most": most, **({} if until is None else {"until": until})}, **_keys(keys), "steps": list(steps)}


def group(*steps: Step, **keys: Any) -> Step:
    """Steps with common settings, usually with `if_` and `else_`."""
    return {**_keys(keys), "steps": list(steps)}


def _keys(keys: Mapping[str, Any]) -> dict[str, Any]:
    return {name.removesuffix("_"): _data(value) for name, value in keys.items()}


def _data(value: Any) -> Any:
    """A copy without shared parts, which would become anchors; `from_` of inputs as in the file."""
    if isinstance(value, Mapping):
        return {name.removesuffix("_") if name == "from_" else name: _data(each) for name, each in value.items()}
    return [_data(each) for each in value] if isinstance(value, list | tuple) else value
