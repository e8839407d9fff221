"""The tasks' own solutions as a script for the model server.

It shows that an agent's tools, approvals and edits carry them out, and says nothing about what a model can do.
"""

import re
from collections.abc import Iterable

from bench.tasks.task import Task
from portico.testing.model import ModelRule, Script, ScriptedCall, Step


def script(tasks: Iterable[Task]) -> Script:
    return Script(rules=[_rule(task) for task in tasks])


def _rule(task: Task) -> ModelRule:
    """What is there is read before it is edited, as agents demand it."""
    calls = [ScriptedCall(kind="read", args={"path": name}) for name in task.solution if name in task.files]
    calls += [_call(task.files.get(name), name, text) for name, text in task.solution.items()]
    calls += [ScriptedCall(kind="execute", args={"command": f"rm {name}"}) for name in task.gone]
    return ModelRule(steps=[*(Step(calls=[call]) for call in calls), Step(say=task.said)], match=re.escape(task.prompt))


def _call(before: str | None, name: str, text: str) -> ScriptedCall:
    if before is None:
        return ScriptedCall(kind="write", args={"path": name, "content": text})
    return ScriptedCall(kind="edit", args={"path": name, "old": before, "new": text})
