"""How much an agent does without asking: as it starts, and by its own settings (modes, `allow_all`, `yolo`).

The attack: a token that may drive but not approve sets `config.mode` to one in which the agent does not ask, or starts
an agent that never asks. So agents classify every value of every option (`ClassifiesOptions`). A change to a looser
class needs the scope `approve`. An unknown value counts as the loosest. A `fallback` of the session counts too.

A message that begins with a command of the agent (`/yolo`) is an option: the command is its name, the rest its value.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any, Protocol, runtime_checkable

from msgspec import Struct

from portico.kernel import fallback
from portico.kernel.context import CONTEXT
from portico.kernel.errors import Forbidden
from portico.kernel.events import Audited, Event, Json

APPROVAL_KEYS = frozenset(
    {
        "approvals",
        "autoApprove",
        "permissions",
        "globalAutoApproveEnabled",
        "editAutoApprovePatterns",
        "terminalAutoApproveRules",
    }
)
"""What `approval.session_policy` and `policy.session_rules` read: changing one is as good as approving."""

BUDGET = "budget"
"""What the session may cost. Giving one tightens; changing or dropping it is as good as approving."""
SANDBOX = "sandbox"
"""Where its processes run. The feature of sandboxes decides who may change it."""
HOST_KEYS = frozenset({fallback.SETTING, CONTEXT, BUDGET, SANDBOX, "commands", "isolation", "branch"})
"""Settings that the host itself understands and that decide over no call; never an agent's."""

_ABSENT = object()


class Autonomy(IntEnum):
    """The larger, the looser."""

    ASKS = 0
    ASKS_LESS = 1
    ASKS_NOBODY = 2
    UNKNOWN = 3


WORDS = {
    Autonomy.ASKS: "asks",
    Autonomy.ASKS_LESS: "asks less",
    Autonomy.ASKS_NOBODY: "asks nobody",
    Autonomy.UNKNOWN: "is not known to ask",
}


@runtime_checkable
class ClassifiesOptions(Protocol):
    """An agent that knows what its options do to approvals. All options of other agents are unknown."""

    def autonomy(self, option: str, value: object) -> Autonomy:
        """With this value of this option; None: it is not set. The option `""` is the agent itself, as it starts."""


class Loosened(Struct, frozen=True):
    setting: str
    value: object
    agent: str = ""
    """Empty: the host's own setting."""
    autonomy: Autonomy = Autonomy.ASKS_NOBODY

    @property
    def field(self) -> str:
        named = f"config.{self.setting}" if self.setting else "agent"
        return "text" if self.setting.startswith("/") else named

    def __str__(self) -> str:
        if not self.setting:
            return f"the agent {self.agent} does not ask"
        said = f"{self.setting} {self.value}".rstrip()
        what = repr(said) if self.field == "text" else f"{self.field} = {self.value!r}"
        return f"{what} ({self.agent} {WORDS[self.autonomy]})" if self.agent else what


class Answering(Struct, frozen=True):
    """Who answers in a session, and with which settings."""

    agent: str
    config: Mapping[str, Any]

    @property
    def agents(self) -> list[str]:
        return [self.agent, *(fallback.split(each)[0] for each in fallback.check(self.config))]


def loosened(agents: Mapping[str, object], before: Answering | None, after: Answering) -> list[Loosened]:
    """What the change makes looser. Without `before` it is a new session, compared with no settings at all."""
    old = before.config if before is not None else {}
    changed = [key for key in (*after.config, *old) if after.config.get(key, _ABSENT) != old.get(key, _ABSENT)]
    counted = APPROVAL_KEYS | {BUDGET} if BUDGET in old else APPROVAL_KEYS
    own = [Loosened(key, after.config.get(key)) for key in dict.fromkeys(changed) if key in counted]
    return [*own, *_of_agents(agents, before, after)]


def _of_agents(agents: Mapping[str, object], before: Answering | None, after: Answering) -> Iterator[Loosened]:
    known = before.agents if before is not None else []
    for ident in dict.fromkeys(after.agents):
        if ident not in known and classify(agents.get(ident), "", None) is not Autonomy.ASKS:
            yield Loosened("", None, ident)
        old = before.config if before is not None and ident in known else {}
        for key in dict.fromkeys((*after.config, *old)):
            was, now = old.get(key), after.config.get(key)
            if key in APPROVAL_KEYS | HOST_KEYS or was == now:
                continue
            autonomy = classify(agents.get(ident), key, now)
            if autonomy > classify(agents.get(ident), key, was) or autonomy is Autonomy.UNKNOWN:
                yield Loosened(key, now, ident, autonomy)


def classify(agent: object, option: str, value: object) -> Autonomy:
    if isinstance(agent, ClassifiesOptions):
        return agent.autonomy(option, value)
    return Autonomy.UNKNOWN if value is not None else Autonomy.ASKS


_COMMAND = re.compile(r"\s*(/\w\S*)\s*(.*)", re.DOTALL)


def commanded(agents: Mapping[str, object], text: str, answering: Answering) -> list[Loosened]:
    """What a message makes looser by being a command of the agent. A path is none, unless the agent calls one so."""
    match = _COMMAND.match(text)
    if match is None:
        return []
    command, argument = match[1].lower(), match[2].strip()
    announced = {f"/{each.get('name')}".lower() for each in answering.config.get("commands") or []}
    if "/" in command[1:] and command not in announced:
        return []
    classes = {ident: classify(agents.get(ident), command, argument) for ident in answering.agents}
    return [Loosened(command, argument, ident, each) for ident, each in classes.items() if each is not Autonomy.ASKS]


def check(found: Sequence[Loosened]) -> None:
    """For a caller who may not approve."""
    if found:
        what = "; ".join(map(str, found))
        raise Forbidden(
            "This lets an agent act without asking, which needs the scope 'approve' (in a session of somebody else, "
            f"the right to approve): {what}.",
            field=found[0].field,
        )


def audited(session: str, found: Sequence[Loosened], by: str) -> list[Event]:
    """For the host's channel, written together with the change itself."""
    if not found:
        return []
    detail: Json = {"session": session, "settings": [str(each) for each in found]}
    return [Audited(action="approval.loosened", by=by, detail=detail)]
