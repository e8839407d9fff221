"""Automations in the host's own words, `/v1/automations` and `/v1/runs`, and where other systems call: `/hooks/NAME`.

An automation's events are those of its channel, `/v1/events?channel=automation/ID`; a run's those of `run/ID`.
"""

from typing import get_args

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from portico import limits
from portico.automation.automations import Automations, Delivered
from portico.automation.hook import HEADERS
from portico.automation.listing import AutomationInfo, info_of, words
from portico.automation.plan import check_plan
from portico.automation.schedule import next_due
from portico.automation.state import MissedTimes, RunSummary
from portico.commands import AutomationCommand
from portico.doors.app import App
from portico.doors.body import JsonResponse, check_depth, read_as
from portico.doors.door import Door
from portico.doors.rest.commands import routes
from portico.doors.rest.query import number, numbered
from portico.doors.route import Route, Table
from portico.events import AutomationPlan


class Listing(Struct, omit_defaults=True):
    automations: list[AutomationInfo]
    file_error: str = ""
    """What is wrong in automations.toml; until it is mended, what it said before holds."""


class History(Struct, omit_defaults=True):
    runs: list[RunSummary]
    """Newest first."""
    missed: list[MissedTimes] = []
    """Of one automation: when it was due and got no run, newest first."""


class CheckedPlan(Struct, omit_defaults=True):
    """The plan is right."""

    when: str
    next: list[int] = []


class AutomationsDoor(Door):
    def __init__(self, app: App) -> None:
        super().__init__(app)
        self.routes = automation_routes(app, app.automations)


def automation_routes(app: App, automations: Automations) -> Table:
    store = automations.store

    async def listing(request: Request) -> Response:
        app.view(request).require("automations")
        found = [info_of(automations, state, times=1) for state in store.automations.values()]
        return JsonResponse(Listing(found, automations.file_error))

    async def show(request: Request) -> Response:
        app.view(request).require("automations")
        return JsonResponse(info_of(automations, store.get(request.path_params["id"])))

    async def history(request: Request) -> Response:
        app.view(request).require("automations")
        state = store.get(request.path_params["id"])
        return JsonResponse(History(store.runs_of(state.id)[: -_count(request) - 1 : -1], state.missed[::-1]))

    async def all_runs(request: Request) -> Response:
        app.view(request).require("automations")
        found = sorted(store.runs.values(), key=lambda run: run.claimed)
        return JsonResponse(History(found[: -_count(request) - 1 : -1]))

    async def one_run(request: Request) -> Response:
        app.view(request).require("automations")
        return JsonResponse(store.run(request.path_params["id"]))

    async def check(request: Request) -> Response:
        plan = await read_as(request, AutomationPlan)
        check_plan(plan, app.host, automations.jobs, "")
        now = app.host.now()
        due = next_due(plan.schedule, now, now) if plan.schedule is not None else None
        return JsonResponse(CheckedPlan(words(plan, "NAME"), [due] if due is not None else []))

    async def hook(request: Request) -> Response:
        body = await request.body()
        check_depth(body)
        headers = {name: request.headers[name] for name in HEADERS if name in request.headers}
        return JsonResponse(await automations.deliver(request.path_params["name"], headers, body), 202)

    limit = {"limit": numbered("how many at most", 1, 10_000)}
    one = "/v1/automations/{id}"
    return [
        Route("/v1/automations", listing, "read", summary="All automations.", doc={"answer": Listing}),
        Route(
            "/v1/automations/check",
            check,
            "read",
            ("POST",),
            "Check a plan, and when it would be due; nothing is made.",
            doc={"body": AutomationPlan, "answer": CheckedPlan},
        ),
        Route(one, show, "read", summary="An automation.", doc={"answer": AutomationInfo}),
        Route(f"{one}/runs", history, "read", summary="Its runs.", doc={"answer": History, "query": {**limit}}),
        Route("/v1/runs", all_runs, "read", summary="All runs.", doc={"answer": History, "query": {**limit}}),
        Route("/v1/runs/{id}", one_run, "read", summary="A run.", doc={"answer": RunSummary}),
        Route(
            "/hooks/{name}",
            hook,
            "open",
            ("POST",),
            "A signed delivery that starts an automation; durable before the answer.",
            max_body=limits.HOOK_BYTES,
            doc={"body": str, "answer": Delivered, "status": 202, "codes": ["conflict", "rate_limited"]},
        ),
        *routes(app, get_args(AutomationCommand)),
    ]


def _count(request: Request) -> int:
    return number(request, "limit", 100, 1, 10_000)
