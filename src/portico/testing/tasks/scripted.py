"""The tasks' own solutions as a script for the model server.

It shows that an agent's tools, approvals and edits carry them out, and says nothing about what a model can do.
"""

import re
from collections.abc import Iterable, Iterator

from portico.testing.model import ModelRule, Script, ScriptedCall, Step
from portico.testing.tasks.task import BenchTask


def script(tasks: Iterable[BenchTask]) -> Script:
    return Script(rules=[rule for task in tasks for rule in _rules(task)])


def _rules(task: BenchTask) -> Iterator[ModelRule]:
    yield _rule(task.prompt, task.files, task.solution, task.gone, task.said)
    if task.then:
        yield _rule(task.then, task.files | task.solution, task.second, [], task.said)


def _rule(prompt: str, files: dict[str, str], solution: dict[str, str], gone: list[str], said: str) -> ModelRule:
    """What is there is read before it is edited, as agents demand it."""
    calls = [ScriptedCall(kind="read", args={"path": name}) for name in solution if name in files]
    calls += [_call(files.get(name), name, text) for name, text in solution.items()]
    calls += [ScriptedCall(kind="execute", args={"command": f"rm {name}"}) for name in gone]
    return ModelRule(steps=[*(Step(calls=[call]) for call in calls), Step(say=said)], match=re.escape(prompt))


def _call(before: str | None, name: str, text: str) -> ScriptedCall:
    if before is None:
        return ScriptedCall(kind="write", args={"path": name, "content": text})
    return ScriptedCall(kind="edit", args={"path": name, "old": before, "new": text})
