"""Automations: what clients ask of the catalogue and of runs becomes commands of the host (0.9)."""

import hashlib
import re
from typing import TYPE_CHECKING

from portico.doors.ahp.act.command import Method, optional, text
from portico.doors.ahp.view import automations as view
from portico.doors.ahp.wire import rpc
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.rpc import WireError
from portico.features.automations import commands as ac
from portico.features.automations.automations import Automations
from portico.features.automations.commands import RunNamed
from portico.features.automations.state import AutomationState
from portico.kernel.errors import BadRequest, Conflict, NotFound

if TYPE_CHECKING:
    from portico.doors.ahp.act.client import EditorClient
    from portico.doors.ahp.act.client_action import ClientAction


def offered(connection: "EditorClient") -> Json:
    """Capabilities for `initialize`, for clients that may start jobs."""
    if connection.broker.automations is None or not connection.dialect.since("0.9.0"):
        return {}
    can: Json = {"create": {}, "schedules": {}, "runCancellation": {}, "runHistoryLimit": view.HISTORY}
    return {"automations": can} if connection.view.may(ac.RunAutomation) else {}


def _all(connection: "EditorClient") -> Automations:
    connection.view.require("automations")
    found = connection.broker.automations
    if found is None:
        raise WireError(rpc.METHOD_NOT_FOUND, "This host has no automations.")
    return found


# -- actions ---------------------------------------------------------------------------------------------------


async def act(client_action: "ClientAction") -> None:
    await {"createRequested": _create, "updateRequested": _update, "removed": _remove}[
        client_action.type.partition("/")[2]
    ](client_action)


async def _create(client_action: "ClientAction") -> None:
    connection, action = client_action.connection, client_action.action
    resource, said = action["resource"], action["definition"]
    if not resource.startswith(view.AUTOMATION) or resource == view.AUTOMATION:
        raise BadRequest(f"An automation is called '{view.AUTOMATION}ID'.", field="resource")
    known = _find(_all(connection), resource)
    if known is not None:
        if view.definition(known) != {"enabled": True, **said}:
            raise Conflict(f"There is another automation {resource!r}.")
        connection.broker.automation_feed.tell(known.id)
        return
    plan = view.plan_of(said)
    kept = {key: value for key, value in said.items() if key != "enabled"}
    await client_action.do(
        ac.CreateAutomation(
            name=_name(resource, plan.title),
            plan=plan,
            enabled=said.get("enabled") is not False,
            uri=resource,
            meta={view.SAID: kept},
        )
    )


def _name(resource: str, title: str) -> str:
    """A name of ours for what a client calls by a URI."""
    slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:40].strip("-") or "automation"
    return f"{slug}-{hashlib.sha256(resource.encode()).hexdigest()[:8]}"


async def _update(client_action: "ClientAction") -> None:
    action, host = client_action.action, client_action.connection.host
    known = _find(_all(client_action.connection), action["resource"])
    if known is None:
        raise NotFound("automation", action["resource"])
    shown = view.definition(known, str(host.default_folder()))
    said = {**shown, **action["changes"]}
    enabled = said.pop("enabled") is not False
    plan = view.changed(known.plan, shown, said)
    if known.source == "file":
        raise Conflict("It is written in a file of the host: change it there.")
    await client_action.do(ac.EditAutomation(automation=known.id, plan=plan, meta={**known.meta, view.SAID: said}))
    if enabled is not known.enabled:
        switch = ac.ResumeAutomation if enabled else ac.PauseAutomation
        await client_action.do(switch(automation=known.id))


async def _remove(client_action: "ClientAction") -> None:
    automations = _all(client_action.connection)
    known = _find(automations, client_action.action["resource"])
    if known is None:
        return  # as the protocol wants it
    if automations.open_runs(known.id):
        raise Conflict("A run of it is not over; cancel that first.")
    await client_action.do(ac.DeleteAutomation(automation=known.id))


async def cancel(client_action: "ClientAction", run: str) -> None:
    await client_action.do(ac.CancelRun(run=run))


# -- commands --------------------------------------------------------------------------------------------------


async def definitions(connection: "EditorClient", params: Json) -> Json:
    """Empty: schedules are part of the protocol, and this host defines no additional trigger events."""
    _all(connection)
    return {"items": []}


async def run(connection: "EditorClient", params: Json) -> Json:
    automations, request = _all(connection), text(params, "requestId")
    state = _known(automations, text(params, "automation"))
    try:
        caller = connection.as_client.asking(f"ahp {request}")
        named: RunNamed = await connection.host.do(ac.RunAutomation(automation=state.id), caller)
    except Conflict as error:
        if error.field == "id":
            raise BadRequest("This 'requestId' was used for another automation.", field="requestId") from error
        active = automations.store.open_runs(state.id)
        if not active:
            raise
        return {"resource": view.RUN + active[-1].id}
    return {"resource": view.RUN + named.run}


async def fetch(connection: "EditorClient", params: Json) -> Json:
    """One older page, published before the answer."""
    feed = connection.broker.automation_feed
    state = _known(_all(connection), text(params, "automation"))
    cursor, current = optional(params, "cursor", str), feed.entry(state).get("runsNextCursor")
    if current is None and cursor is None:
        return {}
    if cursor is not None and cursor != current:
        raise BadRequest("This cursor is not the current one.", field="cursor")
    feed.widen(state.id)
    return {}


def _find(automations: Automations, resource: str) -> AutomationState | None:
    """Find an automation by the client's name for it, or by ours if it was created elsewhere."""
    store = automations.store
    found = store.find(resource) or store.find(resource.removeprefix(view.AUTOMATION))
    return found if found is not None and view.uri_of(found) == resource else None


def _known(automations: Automations, resource: str) -> AutomationState:
    found = _find(automations, resource)
    if found is None:
        raise WireError(rpc.SESSION_NOT_FOUND, f"There is no automation {resource!r}.")
    return found


COMMANDS = {
    "listAutomationTriggerDefinitions": Method(definitions, "automations", seed=False, since="0.9.0"),
    "runAutomation": Method(run, ac.RunAutomation, seed=False, since="0.9.0"),
    "fetchAutomationRuns": Method(fetch, "automations", seed=False, since="0.9.0"),
}
