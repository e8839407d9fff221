"""`portico automations apply`: register the triggers (`on`) of workflow files. A file alone starts nothing: a cloned
repository must not start work."""

from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from portico.cli.output import JsonFlag, plain, print_json
from portico.cli.verb import connected
from portico.client.client import Client, segment
from portico.features.automations.events import AutomationPlan, JobAction, Trigger
from portico.features.jobs.step import Flow
from portico.features.jobs.workflow.files import FOLDER, load_workflow, workflows
from portico.kernel.errors import AlreadyExists, BadRequest, NotFound, PorticoError


@connected
async def apply(
    client: Client,
    jobs: Annotated[list[str] | None, typer.Argument(help="Workflows; all with 'on', if absent.")] = None,
    cwd: Annotated[Path, typer.Option(help="The project.")] = Path(),
    as_json: JsonFlag = False,
) -> None:
    """Make or change the automations of workflow files: one for each file with 'on', named after it.

    Example: portico automations apply dependencies
    """
    folder = cwd.absolute()
    applied = [await _applied(client, name, plan) for name, plan in plans_of(folder, jobs or []).items()]
    if as_json:
        print_json(applied)
        return
    for each in applied:
        print(plain(f"{each['name']}: {each['change']}, starts {each['when']}"))
        if "secret" in each:
            print(f"address: {client.url}/hooks/{each['name']}\nsecret, shown this once: {each['secret']}")


def plans_of(folder: Path, names: list[str]) -> dict[str, AutomationPlan]:
    """The automations of the workflows in a project, by name."""
    found = workflows(folder)
    if unknown := [name for name in names if name not in found]:
        raise NotFound("workflow", unknown[0], f"{FOLDER} of {folder} has: {', '.join(found) or 'none'}.")
    plans: dict[str, AutomationPlan] = {}
    for name in names or found:
        flow = load_workflow(found[name]).jobs[name].flow
        assert flow is not None
        if flow.on:
            action = JobAction(job=name, cwd=str(folder))
            plans[_name(name)] = AutomationPlan(on=triggers_of(flow), job=action)
        elif name in names:
            raise BadRequest(f"{found[name]} has no 'on', so nothing starts it.", field="on")
    if not plans:
        raise BadRequest(f"No workflow in {folder / FOLDER} has 'on'. Name the triggers there.", field="on")
    return plans


def _name(job: str) -> str:
    """Automations have lower case letters, digits and hyphens in their names."""
    return job.lower().replace("_", "-").replace(".", "-")


def triggers_of(flow: Flow) -> list[Trigger]:
    """The triggers of a file. Raises for a mistake in them."""
    try:
        return msgspec.convert(flow.on, list[Trigger])
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `$")
        where = f"on{place.rstrip('`')}" if place else "on"
        raise BadRequest(f"{flow.file}: {where}: {text}. Triggers: schedule, hook, files, after.", field="on") from None


async def _applied(client: Client, name: str, plan: AutomationPlan) -> dict[str, Any]:
    body = msgspec.to_builtins(plan)
    address = f"/v1/automations/{segment(name)}"
    try:
        before = msgspec.json.decode(await client.call("GET", address))
    except PorticoError as error:
        if error.code != NotFound.code:
            raise
        made = msgspec.json.decode(await client.call("POST", "/v1/automations", {"name": name, "plan": body}))
        change, secret = "added", {"secret": made["secret"]} if "secret" in made else {}
    else:
        started = before["plan"].get("job", {})
        if (started.get("job"), started.get("cwd")) != (body["job"]["job"], body["job"]["cwd"]):
            words = (
                f"There is another automation {name!r}. Delete or rename it: portico automations edit {name} --rename"
            )
            raise AlreadyExists(words)
        same = before["plan"].get("on") == body["on"]
        change, secret = "unchanged" if same else "changed", {}
        if not same:
            # Settings of the automation stay as they are: only its triggers are in the file.
            await client.call("PATCH", address, {"plan": {**before["plan"], "on": body["on"]}})
    after = msgspec.json.decode(await client.call("GET", address))
    return {"name": name, "change": change, "when": after["when"], **secret}
