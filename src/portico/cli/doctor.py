"""`portico doctor`: is everything there, and what to do about what is not."""

import asyncio
import shutil
import sqlite3
import sys
from dataclasses import dataclass

import typer

from portico import __version__
from portico.agents.agent import AgentContext, AgentInfo
from portico.agents.registry import discover
from portico.cli.output import HomeOption, JsonFlag, print_json, run
from portico.client import Client
from portico.errors import LogUnavailable, PorticoError
from portico.home import Home
from portico.log.examination import examine
from portico.settings import load


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
        Finding("sqlite", sqlite3.sqlite_version_info >= (3, 37), sqlite3.sqlite_version),
        _home(home),
        Finding(
            "git", shutil.which("git") is not None, shutil.which("git") or "not found: changes of files are not shown"
        ),
    ]
    try:
        settings = load(home.settings_path).settings
        findings.append(Finding("settings", True, str(home.settings_path)))
    except PorticoError as error:
        return [*findings, Finding("settings", False, error.message)]
    findings += [await _log(home), await _host(home)]
    for agent in discover(AgentContext(home.path, settings.agents)):
        info = await agent.describe()
        await agent.close()
        findings.append(agent_finding(info))
    return findings


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
    return Finding("home", free > 100_000_000, f"{home.path} ({free // 1_000_000} MB free)")


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
        async with asyncio.timeout(5), Client.local(home.path) as client:
            about = await client.about()
    except (PorticoError, TimeoutError) as error:
        return Finding("host", False, f"{endpoint.url} (process {endpoint.pid}) does not answer: {error}")
    down = about["log"]["down"]
    return Finding("host", down is None, down or f"{endpoint.url}, {about['sessions']} sessions")
