"""`portico automations`: work that starts automatically."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any
from zoneinfo import ZoneInfo

import msgspec
import typer
from msgspec import Struct

from portico.cli.apply_automations import apply
from portico.cli.output import HomeOption, JsonFlag, dollars, plain, print_json, print_table, run, when
from portico.cli.verb import connected, with_options
from portico.client.client import Client, segment
from portico.features.automations import commands as ac
from portico.features.automations.events import AutomationPlan
from portico.features.automations.listing import AutomationInfo
from portico.features.automations.state import MissedTimes, RunSummary
from portico.features.automations.triggers import schedules_of
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest, PorticoError
from portico.kernel.events import Json
from portico.server.home import Home

app = typer.Typer(help="Schedules, hooks and other automations, and their runs.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="Its name or id.")]


class _Listing(msgspec.Struct):
    automations: list[AutomationInfo]
    file_error: str = ""


class _History(msgspec.Struct):
    runs: list[RunSummary]
    missed: list[MissedTimes] = []


@app.command("list")
@connected
async def list_automations(client: Client, as_json: JsonFlag = False) -> None:
    """All automations: when they start, when next, and how the last run ended.

    Example: portico automations list
    """
    found = msgspec.json.decode(await client.call("GET", "/v1/automations"), type=_Listing)
    if as_json:
        print_json(found)
        return
    if found.file_error:
        print(plain(f"automations.toml: {found.file_error}"))
    rows = [[each.name, _is(each), plain(each.when), _next(each), _last(each)] for each in found.automations]
    print_table(["name", "is", "starts", "next", "last run"], rows, "No automations. Try: portico automations add -h")


@app.command()
@connected
async def show(client: Client, name: NameArgument, as_json: JsonFlag = False) -> None:
    """One automation with its plan.

    Example: portico automations show morning-review
    """
    found = await _get(client, name)
    if as_json:
        print_json(found)
        return
    lines = [f"{found.name} ({found.id}): {'on' if found.enabled else 'paused'} {found.reason}".rstrip()]
    lines += [f"starts: {found.when}", f"next: {_dues(found) or 'never by itself'}"]
    lines += [f"last: {_last(found) or 'no run yet'}", f"written by {found.by} ({found.source})"]
    lines.append(msgspec.json.format(msgspec.json.encode(found.plan), indent=2).decode())
    print(plain("\n".join(lines)))


class PlanOptions(Struct, kw_only=True):
    """Options of a plan."""

    cron: Annotated[str | None, typer.Option("--cron", help="Five fields or @daily, in the zone.")] = None
    every: Annotated[str | None, typer.Option("--every", help="An interval: 90s, 15m, 2h, 1d.")] = None
    at: Annotated[str | None, typer.Option("--at", help="Once: 2027-01-31T09:00, in the zone.")] = None
    zone: Annotated[
        str | None, typer.Option("--zone", help="An IANA time zone, such as Europe/Berlin; UTC if absent.")
    ] = None
    hook: Annotated[bool, typer.Option("--hook", help="When another system calls POST /hooks/NAME.")] = False
    files: Annotated[Path | None, typer.Option("--files", help="When files in this folder change.")] = None
    glob: Annotated[list[str] | None, typer.Option("--glob", help="Which files of --files; several times.")] = None
    after: Annotated[str | None, typer.Option("--after", help="When a run of this automation has ended.")] = None
    after_job: Annotated[str | None, typer.Option("--after-job", help="When a job of this name has ended.")] = None
    outcome: Annotated[
        list[str] | None, typer.Option("--outcome", help="succeeded, failed or canceled, for --after.")
    ] = None
    job: Annotated[str | None, typer.Option("--job", help="Start this job of the host's entry.")] = None
    input: Annotated[str | None, typer.Option("--input", help="The job's input.")] = None
    prompt: Annotated[str | None, typer.Option("--prompt", help="Send this to an agent in a session of its own.")] = (
        None
    )
    agent: Annotated[str | None, typer.Option("--agent", help="The agent of --prompt.")] = None
    model: Annotated[str | None, typer.Option("--model", help="The model of --prompt.")] = None
    place: Annotated[str | None, typer.Option("--place", help="Of several hosts: the place where it runs.")] = None
    label: Annotated[str | None, typer.Option("--label", help="Of several hosts: a label of the one that runs it.")] = (
        None
    )
    cwd: Annotated[Path | None, typer.Option("--cwd", help="Where it works; the first workspace if absent.")] = None
    worktree: Annotated[bool, typer.Option("--worktree", help="In a git worktree of its own.")] = False
    budget: Annotated[
        float | None,
        typer.Option("--budget", parser=dollars, help="Dollars that each run may cost; then it waits and asks."),
    ] = None
    rules: Annotated[list[str] | None, typer.Option("--set", help="A rule or setting of the plan: overlap=queue.")] = (
        None
    )
    plan: Annotated[
        Path | None, typer.Option("--plan", help="The whole plan as JSON, in a file; the rest changes it.")
    ] = None


@app.command()
@connected
@with_options
async def add(
    client: Client,
    name: Annotated[str, typer.Argument(help="Lower case letters, digits and hyphens.")],
    said: PlanOptions,
    as_json: JsonFlag = False,
) -> None:
    """Make an automation. A hook's secret is shown this once.

    Example: portico automations add morning --cron "0 7 * * 1-5" --zone Europe/Berlin --prompt "Review what changed."
    """
    plan = _changed({}, said)
    made = msgspec.json.decode(await client.call("POST", "/v1/automations", {"name": name, "plan": plan}))
    found = await _get(client, name)
    if as_json:
        print_json(made)
        return
    print(plain(f"{name} ({made['automation']}): {found.when}"))
    if found.next:
        print(f"next: {_dues(found)}")
    if "secret" in made:
        print(f"address: {client.url}/hooks/{name}\nsecret, shown this once: {made['secret']}")


@app.command()
@connected
@with_options
async def edit(
    client: Client,
    name: NameArgument,
    said: PlanOptions,
    rename: Annotated[str | None, typer.Option("--rename", help="Another name.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Change an automation; what is not named stays.

    Example: portico automations edit morning --cron "30 6 * * 1-5"
    """
    plan = _changed(msgspec.to_builtins((await _get(client, name)).plan), said)
    body: Json = {"plan": plan, **({"name": rename} if rename else {})}
    await client.call("PATCH", f"/v1/automations/{segment(name)}", body)
    found = await _get(client, rename or name)
    print_json(found) if as_json else print(plain(f"{found.name}: {found.when}"))


@app.command()
def pause(name: NameArgument, as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """Pause an automation: it starts nothing until it is resumed.

    Example: portico automations pause morning
    """
    _order(ac.PauseAutomation(automation=name), f"{name} is paused", as_json, home)


@app.command()
def resume(name: NameArgument, as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """Resume a paused automation from now on. Missed times are not repeated.

    Example: portico automations resume morning
    """
    _order(ac.ResumeAutomation(automation=name), f"{name} goes on", as_json, home)


@app.command("run")
def run_now(
    name: NameArgument,
    input: Annotated[str | None, typer.Option("--input", help="In place of its input or prompt.")] = None,
    at: Annotated[
        str, typer.Option("--at", help="The time the run is for, such as one that was missed: 2027-01-31T09:00.")
    ] = "",
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Start it now, also a paused one; prints the run's id.

    Example: portico automations run morning --at 2027-01-31T09:00
    """
    _order(ac.RunAutomation(automation=name, input=input, at=at), "", as_json, home)


@app.command()
def cancel(
    run_id: Annotated[str, typer.Argument(metavar="RUN", help="The run's id, for example run-1.")],
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Cancel a run, with what it has started.

    Example: portico automations cancel run-3
    """
    _order(ac.CancelRun(run=run_id), f"{run_id} is being canceled", as_json, home)


@app.command()
def secret(name: NameArgument, as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """Give a hook another secret, and show it this once; the old one is void.

    Example: portico automations secret on-push
    """
    _order(ac.RotateSecret(automation=name), "", as_json, home)


@app.command()
def delete(name: NameArgument, as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """Delete an automation and its history. Running sessions and jobs continue.

    Example: portico automations delete morning
    """
    _order(ac.DeleteAutomation(automation=name), f"{name} is deleted", as_json, home)


@app.command()
@connected
async def history(
    client: Client,
    name: Annotated[str | None, typer.Argument(help="Of one automation; of all, when none is named.")] = None,
    limit: Annotated[int, typer.Option("--limit", help="How many at most.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """Runs, newest first: when they were due, how they ended or why they were skipped, and what they cost.

    Example: portico automations history morning
    """
    path = f"/v1/automations/{segment(name)}/runs" if name else "/v1/runs"
    found = msgspec.json.decode(await client.call("GET", path, limit=limit), type=_History)
    if as_json:
        print_json(found)
        return
    rows = [(each.due, _run_row(each)) for each in found.runs]
    rows += [(each.first, _missed_row(each, name or "")) for each in found.missed]
    rows.sort(key=lambda row: row[0], reverse=True)
    print_table(["run", "of", "due", "by", "ended", "started", "used", "why"], [row for _, row in rows], "No runs yet.")


app.command()(apply)


@app.command()
def validate(
    file: Annotated[Path | None, typer.Argument(help="The home folder's automations.toml, when none is named.")] = None,
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Check an automations.toml: its keys here, and the rest with the running host, if there is one.

    Example: portico automations validate
    """
    from portico.features.automations.source import read  # late: it needs the jobs

    own = Home.default(home)
    if file is not None and not file.exists():
        raise BadRequest(f"There is no file {str(file)!r}.", field="file")
    found = read(file or own.automations_path)

    async def work() -> None:
        async with Client.local(home) as client:
            for name, plan in found.items():
                try:
                    await client.call("POST", "/v1/automations/check", plan)
                except PorticoError as error:
                    raise BadRequest(f"{name}: {error.message}", field=f"{name}.{error.field}") from None

    if own.endpoint() is not None:
        run(work())
    print_json(found) if as_json else print(f"{len(found)} automations: " + (", ".join(found) or "none"))


# -- a plan from options ---------------------------------------------------------------------------------------


def _read_plan(path: Path | None) -> Json:
    if path is None:
        return {}
    try:
        found: Json = msgspec.to_builtins(msgspec.json.decode(path.read_bytes(), type=AutomationPlan))
    except (OSError, msgspec.DecodeError) as error:
        raise BadRequest(f"{str(path)!r}: {error}", field="--plan") from None
    return found


def _changed(before: Json, said: PlanOptions) -> Json:
    plan = _read_plan(said.plan) or before
    _trigger(plan, said)
    _action(plan, said)
    _rules(plan, said)
    return plan


def _trigger(plan: Json, said: PlanOptions) -> None:
    given = {key: value for key in ("cron", "every", "at") if (value := getattr(said, key))}
    named = {"automation": said.after} if said.after else {"job": said.after_job} if said.after_job else {}
    if given or said.hook or said.files is not None or named:
        before = {name: _pop_trigger(plan, name) for name in ("schedule", "hook", "files", "after")}
        plan.pop("on", None)
        plan |= {"schedule": {**given, "zone": before["schedule"].get("zone", "UTC")}} if given else {}
        plan |= {"hook": before["hook"]} if said.hook else {}
        plan |= {"files": {**before["files"], "folder": str(said.files.absolute())}} if said.files is not None else {}
        kept = {key: value for key, value in before["after"].items() if key == "outcomes"}
        plan |= {"after": {**kept, **named}} if named else {}
    more = (("schedule", "zone", said.zone), ("files", "globs", said.glob), ("after", "outcomes", said.outcome))
    for part, key, value in more:
        if value:
            found = _triggers(plan, part)
            if not found:
                raise BadRequest(f"{key!r} is for the trigger {part!r}, which this has not.", field=key)
            for each in found:
                each[key] = value
    kinds = [name for name in ("schedule", "hook", "files", "after") if name in plan]
    if len(kinds) > 1:
        plan["on"] = [{name: plan.pop(name)} for name in kinds]


def _triggers(plan: Json, kind: str) -> list[Json]:
    """Those of a kind, alone or in the list."""
    return [each[kind] for each in (plan, *plan.get("on", [])) if kind in each]


def _pop_trigger(plan: Json, kind: str) -> Json:
    """What one of this kind was before; its options that are not named stay."""
    found = _triggers(plan, kind)
    plan.pop(kind, None)
    return found[0] if found else {}


def _action(plan: Json, said: PlanOptions) -> None:
    if said.job is not None:
        plan.pop("prompt", None)
        plan["job"] = {**plan.get("job", {}), "job": said.job}
    if said.prompt is not None:
        plan.pop("job", None)
        plan["prompt"] = {**plan.get("prompt", {}), "text": said.prompt}
    folder = str(said.cwd.absolute()) if said.cwd is not None else None
    for part, values in (
        ("job", {"input": said.input}),
        ("prompt", {"agent": said.agent, "model": said.model, "worktree": said.worktree or None}),
        ("job" if "job" in plan else "prompt", {"cwd": folder, "place": said.place, "label": said.label}),
    ):
        for key, value in values.items():
            if value is not None:
                plan.setdefault(part, {})[key] = value


def _rules(plan: Json, said: PlanOptions) -> None:
    """`overlap=queue`, `keep_days=7`, `prompt.config.mode=plan`."""
    if said.budget is not None:
        plan.setdefault("budget", {})["dollars"] = said.budget
    for rule in said.rules or ():
        path, sign, text = rule.partition("=")
        if not sign:
            raise BadRequest(f"{rule!r}: a rule is KEY=VALUE.", field="--set")
        *above, key = path.split(".")
        table: Any = plan
        for part in above:
            table = table.setdefault(part, {})
            if not isinstance(table, dict):
                raise BadRequest(f"{rule!r}: {part!r} has no keys of its own.", field="--set")
        try:
            table[key] = msgspec.json.decode(text)
        except msgspec.DecodeError:
            table[key] = text


# -- words -----------------------------------------------------------------------------------------------------


async def _get(client: Client, name: str) -> AutomationInfo:
    return msgspec.json.decode(await client.call("GET", f"/v1/automations/{segment(name)}"), type=AutomationInfo)


def _is(each: AutomationInfo) -> str:
    return "on" if each.enabled else plain(f"paused: {each.reason}" if each.reason else "paused")


def _next(each: AutomationInfo) -> str:
    return _due(each, each.next[0]) if each.next else ""


def _dues(each: AutomationInfo) -> str:
    return ", ".join(_due(each, time) for time in each.next)


def _due(each: AutomationInfo, time: int) -> str:
    """In the zone in which it was written: who wrote 7 in Berlin finds 7."""
    schedule = next(iter(schedules_of(each.plan)), None)
    if schedule is None or schedule.every:
        return when(time)
    return f"{datetime.fromtimestamp(time / 1000, ZoneInfo(schedule.zone)):%Y-%m-%d %H:%M} {schedule.zone}"


def _last(each: AutomationInfo) -> str:
    return f"{each.last.status} {when(each.last.due)}" if each.last is not None else ""


def _run_row(each: RunSummary) -> list[str]:
    why = plain(" ".join(each.reason.split()))
    what = each.session or each.job
    return [each.id, each.name, when(each.due), each.cause, each.status, what, _used(each), why]


def _missed_row(each: MissedTimes, name: str) -> list[str]:
    times = when(each.first) if each.first == each.last else f"{when(each.first)} to {when(each.last)}"
    count = f"{'more than ' if each.more else ''}{each.count}"
    return ["", name, times, "schedule", f"missed {count}", "", "", plain(each.reason)]


def _used(each: RunSummary) -> str:
    tokens = f"{each.input + each.output} tokens" if each.input + each.output else ""
    about = "about " if each.estimated else ""
    cost = f"{about}${each.cost:.2f}" if each.cost is not None else "cost unknown"
    return f"{tokens}, {cost}" if tokens or each.cost is not None else ""


def _order(command: c.Command, words: str, as_json: bool, home: Path | None) -> None:
    async def work() -> None:
        async with Client.local(home) as client:
            answer = await client.do(command)
        print_json(answer) if as_json else print(words or next(iter(msgspec.to_builtins(answer).values())))

    run(work())
