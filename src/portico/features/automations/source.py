"""`automations.toml` in the home folder: the only place where the automations in it can be changed.

One table for each automation, named after it. A broken edit changes nothing and reports the error and its position.
"""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from portico.features.automations import commands as ac
from portico.features.automations import events as ae
from portico.features.automations.events import AutomationPlan
from portico.features.automations.handlers import FILE
from portico.features.automations.plan import check_name, check_plan
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest, PorticoError, nearest

if TYPE_CHECKING:
    from portico.features.automations.automations import Automations

CALLER = c.Caller.inside(FILE)


def read(path: Path) -> dict[str, AutomationPlan]:
    """Read the plans by name. Raises for the first mistake and reports its position."""
    try:
        text = path.read_text("utf-8")
        import tomllib  # late: most hosts have no such file

        document = tomllib.loads(text)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:  # also what is no UTF-8, or no TOML
        raise BadRequest(f"{str(path)!r} cannot be read: {error}") from None
    return {check_name(name): _plan(name, table) for name, table in document.items()}


def _plan(name: str, table: object) -> AutomationPlan:
    if not isinstance(table, dict):
        raise BadRequest(f"[{name}] is a table: each automation has one, named after it.", field=name)
    try:
        return msgspec.convert(table, AutomationPlan)
    except msgspec.ValidationError as error:
        raise _mistake(name, str(error)) from None


def _mistake(name: str, message: str) -> BadRequest:
    text, _, path = message.partition(" - at `$")
    place = f"{name}{path.rstrip('`')}" if path else name
    unknown = text.partition("unknown field `")[2].rstrip("`")
    if not unknown:
        return BadRequest(f"{place}: {text}.", field=place)
    shape = _shape(path.rstrip("`").lstrip("."))
    known = shape.__struct_fields__ if shape is not None else ()
    near = nearest(unknown, known)
    hint = f"Did you mean {near!r}?" if near else f"It has: {', '.join(known)}."
    return BadRequest(f"{place}: there is no key {unknown!r}. {hint}", field=f"{place}.{unknown}")


def _shape(path: str) -> type[msgspec.Struct] | None:
    from portico.kernel import events as e  # the shapes by the keys that hold them

    shapes: dict[str, type[msgspec.Struct]] = {
        "": AutomationPlan,
        "schedule": ae.Schedule,
        "hook": ae.Hook,
        "files": ae.FilesTrigger,
        "after": ae.After,
        "job": ae.JobAction,
        "prompt": ae.PromptAction,
        "budget": e.Budget,
    }
    inner = re.sub(r"^on\[\.\.\.\]\.?|^on\[\d+\]\.?", "", path)
    if inner == "" and path:
        return ae.Trigger
    return shapes.get(inner, ae.Match if inner.startswith("hook.filter") else None)


def check(path: Path, automations: "Automations") -> dict[str, AutomationPlan]:
    """As `read`, with the rules that need a host. Nothing is changed."""
    found = read(path)
    for name, plan in found.items():
        known = automations.store.find(name)
        if known is not None and known.plan == plan and known.source == "file":
            continue  # a time that has passed since is no mistake
        try:
            check_plan(plan, automations.host, automations.jobs, name)
        except PorticoError as error:
            where = f"{name}.{error.field}" if error.field else name
            raise BadRequest(f"{where}: {error.message}", field=where) from None
        if known is not None and known.source != "file":
            raise BadRequest(f"{name}: there is an automation of this name that was made elsewhere.", field=name)
    return found


async def apply(path: Path, automations: "Automations") -> None:
    """Update the automations to match the file. A mistake leaves all of them unchanged. If several hosts have the file,
    the one with the lease applies it."""
    try:
        wanted = check(path, automations)
    except PorticoError as error:
        automations.file_error = error.message
        automations.host.logger.warning("%s: %s The automations stay as they are.", FILE, error.message)
        return
    automations.file_error = ""
    if not automations.lease.held():
        return
    known = {state.name: state for state in automations.store.automations.values() if state.source == "file"}
    gone = [ac.DeleteAutomation(automation=state.id) for name, state in known.items() if name not in wanted]
    await _do_all(automations, gone)
    changed = [
        ac.CreateAutomation(name=name, plan=plan)
        if name not in known
        else ac.EditAutomation(automation=known[name].id, plan=plan)
        for name, plan in wanted.items()
        if name not in known or known[name].plan != plan
    ]
    await _do_all(automations, changed)


async def _do_all(automations: "Automations", commands: Sequence[c.Command]) -> None:
    """Execute many independent commands in one commit."""
    for start in range(0, len(commands), _TOGETHER):
        await asyncio.gather(*(automations.host.do(each, CALLER) for each in commands[start : start + _TOGETHER]))


_TOGETHER = 500
"""Commands per batch: separate commits would take a second per thousand."""
