"""`portico doctor`: is everything there, and what to do about what is not."""

import asyncio
import dataclasses
import shlex
import shutil
import sqlite3
import sys
from collections.abc import Iterable, Sequence
from itertools import count
from pathlib import Path
from typing import Annotated

import typer

from portico import __version__
from portico.agents.agent import Agent, AgentContext, AgentInfo, Check
from portico.agents.loop.roots import nowhere
from portico.agents.registry import discover
from portico.agents.suggestions import KnownAgent, not_installed
from portico.cli.finding import Finding
from portico.cli.output import HomeOption, JsonFlag, print_json, run
from portico.cli.trial import probe_asking
from portico.client import Client
from portico.doors.web import NO_PAGES, pages_folder, pages_missing
from portico.features.readiness.checks import check_agent
from portico.kernel.errors import BadRequest, LogUnavailable, PorticoError
from portico.sandbox import available, cgroup
from portico.sandbox.seccomp import FILTER
from portico.server.app import DoorInfo
from portico.server.home import Home
from portico.server.identity import read_tokens
from portico.server.maintenance.examination import examine
from portico.server.oidc import missing_package
from portico.server.registry import load_doors
from portico.server.settings_load import load

_ROOM = 100_000_000
"""Bytes: some days of work."""
HOST_SECONDS = 5


EditorFlag = Annotated[
    bool, typer.Option("--editor", help="Connect as an editor would, and print the settings to paste into it.")
]
AddressOption = Annotated[
    str | None, typer.Option("--address", help="With --editor: another host's address, with ?tkn=TOKEN.")
]


def doctor(
    editor: EditorFlag = False, address: AddressOption = None, as_json: JsonFlag = False, home: HomeOption = None
) -> None:
    """Check the home folder, the settings, the log, the running host, and start each agent. Exit code 1 if something
    but an agent is wrong.

    With --editor: whether VS Code and others get in (origin, token, versions), and what to paste into their settings.

    Example: portico doctor --editor
    """
    if editor or address is not None:
        _check_editor(Home.default(home), address, as_json)
        return
    findings = run(_look(Home.default(home)))
    if as_json:
        print_json([dataclasses.asdict(finding) for finding in findings])
    else:
        _print(findings)
    if not all(finding.ok for finding in findings if not finding.what.startswith(("agent ", "known agent "))):
        raise typer.Exit(1)


def _print(findings: Iterable[Finding]) -> None:
    for finding in findings:
        status = f" ({finding.status.replace('_', ' ')})" if finding.status else ""
        sign = "ok  " if finding.ok else "-   " if finding.status == "not_installed" else "MISS"
        print(f"{sign}  {finding.what}{status}: {finding.detail}")


def _check_editor(home: Home, given: str | None, as_json: bool) -> None:
    from portico.cli import editor_check

    address = editor_check.find_address(home, given)
    findings = run(editor_check.check(address))
    paste = editor_check.settings(address) if all(each.ok for each in findings) else {}
    if as_json:
        found = [{"what": f.what, "ok": f.ok, "detail": f.detail} for f in findings]
        print_json({"address": address.url, "findings": found, "settings": paste})
    else:
        _print(findings)
        for where, lines in paste.items():
            print(f"\n{where}:\n\n{lines}")
    if not all(each.ok for each in findings):
        raise typer.Exit(1)


async def _look(home: Home) -> list[Finding]:
    findings = [
        Finding("portico", True, __version__),
        Finding("python", sys.version_info >= (3, 11), sys.version.split()[0]),
        Finding("pages", not pages_missing(), NO_PAGES if pages_missing() else str(pages_folder())),
        _sandbox(),
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
    findings += [*_doors(home), settings_finding(home), *_login(home), await _log(home), await _host(home), *_mcp(home)]
    findings += await _temporal(home)
    return findings + await _agents(home, agents)


def settings_finding(home: Home) -> Finding:
    settings = load(home.settings_path).settings
    absent = nowhere(settings.agent.allowed_roots, [Path(each).expanduser() for each in settings.workspaces])
    problem = " ".join(filter(None, [absent, home.misnamed_settings()]))
    there = "" if home.settings_path.exists() else " (none yet: every value is the default)"
    return Finding("settings", not problem, problem or f"{home.settings_path}{there}")


def _login(home: Home) -> list[Finding]:
    settings = load(home.settings_path).settings.login.oidc
    if not settings.issuer:
        return []
    missing = missing_package(settings)
    return [Finding("login", not missing, missing or f"OIDC with {settings.issuer}")]


def _doors(home: Home) -> list[Finding]:
    """List the available doors. The running host itself reports which ones it could not open."""
    try:
        _, infos = load_doors(load(home.settings_path).settings.doors.disabled)
    except BadRequest as error:
        return [Finding("doors", False, error.message)]
    served = [info.name for info in infos if not info.missing and not info.disabled]
    off = [info.name for info in infos if info.disabled]
    words = ", ".join(served) + (f" (disabled: {', '.join(off)})" if off else "")
    return [Finding("doors", True, words), *_missing_doors(infos)]


def _mcp(home: Home) -> list[Finding]:
    """Return the line to paste. It creates a token with the scopes read and drive: with the owner's token, a misled
    model would have all permissions of the owner."""
    settings, endpoint = load(home.settings_path).settings, home.endpoint()
    if "mcp" in settings.doors.disabled or endpoint is None or endpoint.socket is not None:
        return []
    taken = {each.name for each in read_tokens(home)}
    names = (f"mcp-{number}" if number > 1 else "mcp" for number in count(1))
    name = next(each for each in names if each not in taken)
    token = f"$(portico token new {name} --scope read --scope drive --home {shlex.quote(str(home.path))})"
    url = f"{endpoint.url.rstrip('/')}/mcp"
    line = f'claude mcp add --transport http portico {url} --header "Authorization: Bearer {token}"'
    return [Finding("mcp", True, line)]


def _missing_doors(infos: Iterable[DoorInfo]) -> list[Finding]:
    return [Finding(f"door {info.name}", False, info.missing) for info in infos if info.missing]


async def _agents(home: Home, agents: Sequence[Agent]) -> list[Finding]:
    """Start each agent: by the running host, whose environment may differ from ours, or else from this process. Agents
    that may or may not ask for approval are tested from here: a host reads the result with the next request."""
    try:
        async with Client.local(home.path) as client:
            async with asyncio.timeout(HOST_SECONDS):
                infos = await client.agents()
            checks = await asyncio.gather(*(client.check_agent(info.id) for info in infos))
            await _probe_asking(agents, checks)
            infos = await client.agents()
    except (PorticoError, TimeoutError):  # no host is running, or the line about the host reports its problem
        try:
            checks = await asyncio.gather(*map(check_agent, agents))
            await _probe_asking(agents, checks)
            infos = [await agent.describe() for agent in agents]  # their models are known now
        finally:
            await asyncio.gather(*(agent.close() for agent in agents))
    found = [agent_finding(info, check) for info, check in zip(infos, checks, strict=True)]
    return [*found, *(known_finding(each) for each in not_installed(info.id for info in infos))]


def known_finding(known: KnownAgent) -> Finding:
    return Finding(f"known agent {known.id}", False, f"{known.name}. Add it with: {known.add}", "not_installed")


async def _probe_asking(agents: Sequence[Agent], checks: Sequence[Check]) -> None:
    ready = {check.agent for check in checks if check.ok}
    await asyncio.gather(*(probe_asking(agent) for agent in agents if agent.id in ready))


def agent_finding(info: AgentInfo, check: Check) -> Finding:
    """Describe what is missing (including a sign-in), or what is available."""
    signed_in = [f"signed in to {each.name}" for each in info.resources if each.state == "given"]
    there = ", ".join([check.detail, *signed_in]) + (f" ({info.label})" if info.label else "")
    return Finding(f"agent {info.id}", check.ok, there if check.ok else check.detail, check.status)


def _sandbox() -> Finding:
    """Not a failure: without it, sessions that request a sandbox are rejected, and the others work."""
    problem = available.problem()
    if problem is not None:
        reason, fix = problem
        return Finding("sandbox", True, f"does not work: {reason}. To fix it: {fix}")
    filtered = "" if FILTER else "; system calls are not filtered on this processor"
    codex = "; Codex without a sandbox fails with this bubblewrap, so use its full-access mode or a sandbox"
    shown = f"bubblewrap{filtered}; {cgroup.described()}{codex if shutil.which('codex-acp') else ''}"
    return Finding("sandbox", True, shown)


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
    url = load(home.settings_path).settings.log.url
    try:
        if url:
            return Finding("log", True, await _database(url))
        return Finding("log", True, await asyncio.to_thread(examine, home.log_path, in_use=home.endpoint() is not None))
    except PorticoError as error:
        return Finding("log", False, error.message)


async def _database(url: str) -> str:
    try:
        from portico.cluster.postgres.examine import examine as examine_database
    except ImportError as error:
        raise LogUnavailable(f"PostgreSQL needs more packages: pip install 'portico[cluster]' ({error}).") from error
    return await examine_database(url)


async def _temporal(home: Home) -> list[Finding]:
    settings = load(home.settings_path).settings.jobs
    if settings.engine != "temporal":
        return []
    try:
        from portico.features.jobs.temporal_connect import check, connect
    except ImportError as error:
        return [Finding("temporal", False, f"Jobs need more packages: pip install 'portico[temporal]' ({error}).")]
    try:
        check(settings)
        await connect(settings)
    except PorticoError as error:
        return [Finding("temporal", False, error.message)]
    return [Finding("temporal", True, f"{settings.address}, namespace {settings.namespace}")]


async def _host(home: Home) -> Finding:
    endpoint = home.endpoint()
    if endpoint is None:
        return Finding("host", True, "not running; start it with: portico serve")
    try:
        async with asyncio.timeout(HOST_SECONDS), Client.local(home.path) as client:
            about = await client.about()
    except (PorticoError, TimeoutError) as error:
        return Finding("host", False, f"{endpoint.url} (process {endpoint.pid}) does not answer: {error}")
    shut = [
        f"the door {each['name']!r} is not served: {each['missing']}"
        for each in about.get("doors", [])
        if each["missing"]
    ]
    down = about["log"]["down"] or "; ".join(shut) or None
    return Finding("host", down is None, down or f"{endpoint.url}, {about['sessions']} sessions")
