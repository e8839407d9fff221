"""Automations on the wire (0.9): the catalogue's entries and the states of runs. Pure.

The definition that a client sent is stored with the automation (`meta`) and shown unchanged while it still matches the
plan: clients wait until they see exactly what they sent. Other automations are described from their plan.
"""

import re

from msgspec.structs import replace

from portico.doors.ahp.view import names
from portico.doors.ahp.wire.record import Json
from portico.doors.ahp.wire.versions import iso
from portico.features.automations.decide import stop_time
from portico.features.automations.events import AutomationPlan, PromptAction, Schedule
from portico.features.automations.schedule import cron_of
from portico.features.automations.state import AutomationState, RunSummary
from portico.kernel.errors import BadRequest
from portico.kernel.host import Host

CATALOGUE = "ahp-automations://"
AUTOMATION = "ahp-automation:/"
RUN = "ahp-automation-run:/"
HISTORY = 50
"""Runs of an automation that are shown initially, as in other hosts."""
SAID = "ahp"
"""In an automation's `meta`: its definition as a client wrote it."""


def uri_of(of: AutomationState) -> str:
    return of.uri or AUTOMATION + of.id


def entry(host: Host, of: AutomationState, runs: list[RunSummary], next_due: int | None, shown: int = HISTORY) -> Json:
    """`runs`: all of them, oldest first."""
    active = any(run.open for run in runs)
    own = of.source != "file"  # an automation from a file is edited in the file
    window = runs[-shown:] if shown < len(runs) else runs
    made: Json = {
        "resource": uri_of(of),
        "definition": definition(of, str(host.default_folder())),
        "runs": [summary(host, of, run) for run in reversed(window)],
        "operations": [*(["update"] if own else []), *(["remove"] if own and not active else []), "run"],
        "createdAt": iso(of.created),
        "modifiedAt": iso(of.modified),
    }
    if next_due is not None:
        made["nextRunAt"] = iso(next_due)
    if len(window) < len(runs):
        made["runsNextCursor"] = window[0].id
    return made | ({"runCount": of.runs} if of.plan.stop_after_runs else {})


def definition(of: AutomationState, folder: str = "") -> Json:
    """`folder`: the default if the plan names none; VS Code shows no automation without an agent and a folder."""
    said = of.meta.get(SAID)
    if isinstance(said, dict) and _expressed(plan_of(said)) == _expressed(of.plan):
        return {**said, "enabled": of.enabled}
    return {**_described(of, folder), "enabled": of.enabled}


def _expressed(plan: AutomationPlan) -> AutomationPlan:
    """The plan without the fields that a definition cannot express."""
    default = AutomationPlan()
    return replace(
        plan,
        prompt=replace(plan.prompt, worktree=False, base="") if plan.prompt is not None else None,
        missed="skip" if plan.missed == "skip" else "last",
        **{name: getattr(default, name) for name in _UNSAID},
    )


_UNSAID = ("missed_limit", "overlap", "parallel", "stop_after_failures", "budget", "keep_days", "keep_runs")
_SAID = ("title", "schedule", "missed", "stop_after_runs", "stop_at")


def _described(of: AutomationState, folder: str) -> Json:
    plan, action = of.plan, of.plan.prompt or of.plan.job
    session: Json = {}
    if plan.prompt is not None:
        session |= {"provider": plan.prompt.agent} if plan.prompt.agent else {}
        config = {"config": plan.prompt.model_config} if plan.prompt.model_config else {}
        session |= {"model": {"id": plan.prompt.model, **config}} if plan.prompt.model else {}
        session |= {"config": plan.prompt.config} if plan.prompt.config else {}
    cwd = (action.cwd if action is not None else "") or ("" if "provider" in session else folder)
    session |= {"workingDirectories": [names.file_uri(cwd)]} if cwd else {}
    conditions = [{"kind": "afterRuns", "max": plan.stop_after_runs}] if plan.stop_after_runs else []
    conditions += [{"kind": "afterDate", "date": iso(until)}] if (until := stop_time(of)) is not None else []
    return {
        "title": plan.title or of.name,
        "message": {"text": of.input or of.name, "origin": {"kind": "automation"}},
        "session": session,
        "triggers": _triggers(plan),
        **({"disableConditions": conditions} if conditions else {}),
    }


def _triggers(plan: AutomationPlan) -> list[Json]:
    """The triggers that clients know. Hooks and similar triggers are omitted."""
    if plan.schedule is None or not plan.schedule.cron:
        return []
    schedule = {"expression": cron_of(plan.schedule), "timeZone": plan.schedule.zone}
    misfire = "skip" if plan.missed == "skip" else "runOnce"
    return [{"id": "schedule", "kind": "schedule", "schedule": schedule, "misfirePolicy": misfire}]


def changed(plan: AutomationPlan, shown: Json, wanted: Json) -> AutomationPlan:
    """Apply the difference between two definitions to the plan. Clients only know some fields of a plan."""
    before, after = plan_of(shown), plan_of(wanted)
    assert before.prompt is not None
    fields: Json = {name: getattr(after, name) for name in _SAID if getattr(before, name) != getattr(after, name)}
    said: Json = {
        name: value
        for name in PromptAction.__struct_fields__
        if (value := getattr(after.prompt, name)) != getattr(before.prompt, name)
    }
    if plan.prompt is not None:
        if plan.prompt.title != before.prompt.title:
            said.pop("title", None)
        return replace(plan, prompt=replace(plan.prompt, **said), **fields)
    assert plan.job is not None
    if said.keys() - {"title", "text", "cwd"}:
        raise BadRequest("It starts a job: the entry says which agents do it.", field="definition.session")
    job = replace(plan.job, input=said.get("text", plan.job.input), cwd=said.get("cwd", plan.job.cwd))
    return replace(plan, job=job, **fields)


def plan_of(said: Json) -> AutomationPlan:
    """The plan for a definition; BadRequest names what this host does not support."""
    message, session = _object(said, "message"), _object(said, "session")
    if _object(message, "origin").get("kind") != "automation":
        raise BadRequest("The message of an automation has the origin 'automation'.", field="definition.message.origin")
    if not isinstance(message.get("text"), str) or not isinstance(said.get("title"), str):
        raise BadRequest("A definition has a 'title' and a message with 'text'.", field="definition.message.text")
    folders = session.get("workingDirectories") or []
    if message.get("attachments") or (isinstance(folders, list) and len(folders) > 1):
        raise BadRequest("An automation here has a text and one folder.", field="definition.message.attachments")
    model = _object(session, "model") or _object(message, "model")
    prompt = PromptAction(
        text=message["text"],
        agent=str(session.get("provider") or ""),
        model=str(model.get("id") or ""),
        model_config=_object(model, "config"),
        cwd=names.folder_of(str(folders[0])) if isinstance(folders, list) and folders else "",
        title=said["title"],
        config=_object(session, "config"),
    )
    schedule, missed = _schedule(said.get("triggers"))
    runs, until = _conditions(said.get("disableConditions"))
    return AutomationPlan(
        title=said["title"],
        schedule=schedule,
        prompt=prompt,
        missed="skip" if missed == "skip" else "last",
        stop_after_runs=runs,
        stop_at=until,
    )


def _schedule(triggers: object) -> tuple[Schedule | None, str]:
    if not isinstance(triggers, list) or not triggers:
        return None, ""
    first = triggers[0] if isinstance(triggers[0], dict) else {}
    field = "definition.triggers"
    if len(triggers) > 1 or first.get("kind") != "schedule" or not first.get("id"):
        raise BadRequest("An automation here has one trigger at most: a schedule with an 'id'.", field=field)
    when = _object(first, "schedule")
    expression, zone = when.get("expression"), when.get("timeZone")
    if not isinstance(expression, str) or not isinstance(zone, str) or len(expression.split()) != 5:
        raise BadRequest("A schedule has an 'expression' of five fields and a 'timeZone'.", field=field)
    return Schedule(cron=expression, zone=zone), str(first.get("misfirePolicy") or "")


def _conditions(said: object) -> tuple[int, str]:
    runs, until, seen = 0, "", set[object]()
    for each in said if isinstance(said, list) else []:
        kind = each.get("kind") if isinstance(each, dict) else None
        if kind in seen or kind not in ("afterRuns", "afterDate"):
            raise BadRequest(
                "There is one condition of each kind, 'afterRuns' or 'afterDate'.", field="disableConditions"
            )
        seen.add(kind)
        if kind == "afterRuns":
            most = each.get("max")
            if not isinstance(most, int) or isinstance(most, bool) or most < 1:
                raise BadRequest("'max' is a number of runs.", field="disableConditions")
            runs = most
        else:
            until = str(each.get("date") or "")
            if not re.search(r"T.*(?:Z|[+-]\d\d:?\d\d)$", until):
                raise BadRequest("'date' is a time with its zone.", field="disableConditions")
    return runs, until


def _object(of: Json, field: str) -> Json:
    found = of.get(field)
    return found if isinstance(found, dict) else {}


# -- runs ------------------------------------------------------------------------------------------------------


def summary(host: Host, of: AutomationState, run: RunSummary) -> Json:
    session = session_of(host, run)
    shown = {
        "resource": RUN + run.id,
        "automation": uri_of(of),
        "origin": origin(of, run),
        "lifecycle": lifecycle(run),
        "sessionCount": 1 if session else 0,
    }
    return shown | ({"primarySession": session} if session else {})


def state(host: Host, of: AutomationState | None, run: RunSummary) -> Json:
    session = session_of(host, run)
    shown: Json = {
        "resource": RUN + run.id,
        "automation": uri_of(of) if of is not None else AUTOMATION + run.automation,
        "origin": origin(of, run),
        "lifecycle": lifecycle(run),
        "sessions": [session] if session else [],
    }
    return shown | ({"primarySession": session} if session else {})


def session_of(host: Host, run: RunSummary) -> str:
    found = host.find(run.session) if run.session else None
    return names.session_uri(found.summary) if found is not None else ""


def origin(of: AutomationState | None, run: RunSummary) -> Json:
    if run.cause == "person":
        return {"kind": "manual"}
    triggers = definition(of)["triggers"] if of is not None else []
    shown: Json = {"kind": "trigger", "triggerId": triggers[0]["id"] if triggers else run.cause}
    if run.cause == "schedule":
        shown["scheduledFor"] = iso(run.due)
    return shown | ({"catchUp": True} if run.late else {})


_STATUS = {"succeeded": "completed", "failed": "failed", "interrupted": "failed"}


def lifecycle(run: RunSummary) -> Json:
    shown: Json = {"status": run.status, "createdAt": iso(run.claimed)}
    started = {"startedAt": iso(run.started)} if run.started is not None else {}
    if run.open:
        return shown | started
    status = _STATUS.get(run.status, "cancelled")
    shown |= {"status": status, "completedAt": iso(run.ended or run.claimed), **started}
    if status == "completed":
        return {"startedAt": shown["createdAt"], **shown}
    if status == "failed":
        shown["error"] = {"errorType": "automationExecution", "message": run.reason or "The run failed."}
    return shown
