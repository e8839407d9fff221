"""`portico doctor`: is everything there, and what to do about what is not."""

import asyncio
import shutil
import sqlite3
import sys
from collections.abc import Iterable
from dataclasses import dataclass

import typer

from portico import __version__
from portico.agents.agent import Agent, AgentContext, AgentInfo
from portico.agents.registry import discover
from portico.cli.output import HomeOption, JsonFlag, print_json, run
from portico.client import Client
from portico.doors.web import NO_PAGES, pages_folder, pages_missing
from portico.errors import LogUnavailable, PorticoError
from portico.home import Home
from portico.log.examination import examine
from portico.settings import load

_ROOM = 100_000_000
"""Bytes: some days of work."""
HOST_SECONDS = 5


@dataclass
class Finding:
    what: str
    ok: bool
    detail: str


def doctor(as_json: JsonFlag = False, home: HomeOption = None) -> None:
    """Check the home folder, the settings, the log, the running host and the agents. Exit code 1 if something is wrong.

    Example: portico doctor
    """
    findings = run(_look(Home.default(home)))
    if as_json:
        print_json([{"what": f.what, "ok": f.ok, "detail": f.detail} for f in findings])
    else:
        for finding in findings:
            print(f"{'ok  ' if finding.ok else 'MISS'}  {finding.what}: {finding.detail}")
    if not all(finding.ok for finding in findings if not finding.what.startswith("agent ")):
        raise typer.Exit(1)


async def _look(home: Home) -> list[Finding]:
    findings = [
        Finding("portico", True, __version__),
        Finding("python", sys.version_info >= (3, 11), sys.version.split()[0]),
        Finding("pages", not pages_missing(), NO_PAGES if pages_missing() else str(pages_folder())),
        Finding("sqlite", sqlite3.sqlite_version_info >= (3, 37), sqlite3.sqlite_version),
        _home(home),
        Finding(
            "git", shutil.which("git") is not None, shutil.which("git") or "not found: changes of files are not shown"
        ),
    ]
    try:
        agents = discover(AgentContext(home.path, load(home.settings_path).settings.agents))
    except PorticoError as error:
        return [*findings, Finding("settings", False, error.message)]
    there = "" if home.settings_path.exists() else " (none yet: every value is the default)"
    findings += [Finding("settings", True, f"{home.settings_path}{there}"), await _log(home), await _host(home)]
    return findings + [agent_finding(info) for info in await _described(home, agents)]


async def _described(home: Home, agents: Iterable[Agent]) -> list[AgentInfo]:
    """By the running host, whose environment may be another than ours; without one as it would find them here."""
    try:
        async with asyncio.timeout(HOST_SECONDS), Client.local(home.path) as client:
            return await client.agents()
    except (PorticoError, TimeoutError):  # it does not run, or the line about the host says what is wrong with it
        return [await _describe(agent) for agent in agents]


async def _describe(agent: Agent) -> AgentInfo:
    try:
        return await agent.describe()
    finally:
        await agent.close()


def agent_finding(info: AgentInfo) -> Finding:
    """What is missing (a sign-in too), or what there is."""
    signed_in = [f"signed in to {each.name}" for each in info.resources if each.state == "given"]
    count = len(info.models)
    models = f"{count} model{'s' * (count != 1)}" if count else "ready; it tells its models when it first runs"
    there = ", ".join([models, *signed_in]) + (f" ({info.label})" if info.label else "")
    return Finding(f"agent {info.id}", info.missing is None, info.missing or there)


def _home(home: Home) -> Finding:
    try:
        home.make()
    except PorticoError as error:
        return Finding("home", False, error.message)
    free = shutil.disk_usage(home.path).free
    enough = free > _ROOM
    advice = "" if enough else ": make some room, a full disk stops every turn"
    return Finding("home", enough, f"{home.path} ({free // 1_000_000} MB free{advice})")


async def _log(home: Home) -> Finding:
    try:
        return Finding("log", True, await asyncio.to_thread(examine, home.log_path, in_use=home.endpoint() is not None))
    except LogUnavailable as error:
        return Finding("log", False, error.message)


async def _host(home: Home) -> Finding:
    endpoint = home.endpoint()
    if endpoint is None:
        return Finding("host", True, "not running; start it with: portico serve")
    try:
        async with asyncio.timeout(HOST_SECONDS), Client.local(home.path) as client:
            about = await client.about()
    except (PorticoError, TimeoutError) as error:
        return Finding("host", False, f"{endpoint.url} (process {endpoint.pid}) does not answer: {error}")
    down = about["log"]["down"]
    return Finding("host", down is None, down or f"{endpoint.url}, {about['sessions']} sessions")
