"""The automations API, `/v1/automations` and `/v1/runs`, and webhooks for other systems: `/hooks/NAME`.

The events of an automation are in its channel, `/v1/events?channel=automation/ID`; those of a run are in `run/ID`.
"""

from msgspec import Struct
from starlette.requests import Request

from portico import limits
from portico.doors.rest.commands import routes
from portico.doors.rest.query import number, numbered
from portico.features.automations import commands as ac
from portico.features.automations.automations import Automations, Delivered
from portico.features.automations.events import AutomationPlan
from portico.features.automations.hook import HEADERS
from portico.features.automations.listing import AutomationInfo, info_of, words
from portico.features.automations.plan import check_plan
from portico.features.automations.schedule import first_due
from portico.features.automations.state import MissedTimes, RunSummary
from portico.features.automations.triggers import schedules_of
from portico.server.app import App
from portico.server.body import check_depth, read_as
from portico.server.door import Door
from portico.server.route import Table
from portico.server.routes import Routes


class Listing(Struct, omit_defaults=True):
    automations: list[AutomationInfo]
    file_error: str = ""
    """The error in automations.toml. Its previous contents apply until the error is fixed."""


class History(Struct, omit_defaults=True):
    runs: list[RunSummary]
    """Newest first."""
    missed: list[MissedTimes] = []
    """Times when one automation was due and did not run, newest first."""


class CheckedPlan(Struct, omit_defaults=True):
    """The plan is right."""

    when: str
    next: list[int] = []


class AutomationsDoor(Door):
    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.routes = automation_routes(app, app.automations)


def automation_routes(app: App, automations: Automations) -> Table:
    store, read, one = automations.store, Routes(app), "/v1/automations/{id}"

    @read("/v1/automations", "read", "All automations.")
    async def listing(request: Request) -> Listing:
        app.view(request).require("automations")
        found = [info_of(automations, state, times=1) for state in store.automations.values()]
        return Listing(found, automations.file_error)

    summary = "Check a plan, and when it would be due; nothing is made."

    @read("/v1/automations/check", "read", summary, methods=("POST",), body=AutomationPlan)
    async def check(request: Request) -> CheckedPlan:
        plan = await read_as(request, AutomationPlan)
        check_plan(plan, app.host, automations.jobs, "")
        now = app.host.now()
        due = first_due(schedules_of(plan), now, now)
        return CheckedPlan(words(plan, "NAME"), [due] if due is not None else [])

    @read(one, "read", "An automation.")
    async def show(request: Request) -> AutomationInfo:
        app.view(request).require("automations")
        return info_of(automations, store.get(request.path_params["id"]))

    limit = numbered("how many at most", 1, 10_000)

    @read(f"{one}/runs", "read", "Its runs.", query={"limit": limit})
    async def history(request: Request) -> History:
        app.view(request).require("automations")
        state = store.get(request.path_params["id"])
        return History(store.runs_of(state.id)[: -_count(request) - 1 : -1], state.missed[::-1])

    @read("/v1/runs", "read", "All runs.", query={"limit": limit})
    async def all_runs(request: Request) -> History:
        app.view(request).require("automations")
        found = sorted(store.runs.values(), key=lambda run: run.claimed)
        return History(found[: -_count(request) - 1 : -1])

    @read("/v1/runs/{id}", "read", "A run.")
    async def one_run(request: Request) -> RunSummary:
        app.view(request).require("automations")
        return store.run(request.path_params["id"])

    @read(
        "/hooks/{name}",
        "open",
        "A signed delivery that starts an automation; durable before the answer.",
        methods=("POST",),
        max_body=limits.HOOK_BYTES,
        body=str,
        status=202,
        codes=["conflict", "rate_limited"],
    )
    async def hook(request: Request) -> Delivered:
        body = await request.body()
        check_depth(body)
        headers = {name: request.headers[name] for name in HEADERS if name in request.headers}
        return await automations.deliver(request.path_params["name"], headers, body)

    return [*read.table, *routes(app, ac.COMMANDS)]


def _count(request: Request) -> int:
    return number(request, "limit", 100, 1, 10_000)
