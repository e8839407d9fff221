"""Checks of folders that commands name: whether the caller may use them, and whether the agent can."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from portico.kernel import commands as c
from portico.kernel import limits
from portico.kernel.agent import Checks
from portico.kernel.errors import BadRequest, Conflict, Forbidden
from portico.kernel.folders import below, check_folder, whole

if TYPE_CHECKING:
    from portico.kernel.host import Host
    from portico.kernel.services import HostServices


def check_reach(host: "Host", caller: c.Caller, folder: str | None, *scopes: c.Scope) -> None:
    """A folder outside of the workspaces, where the host does not work yet, needs one of the scopes: agents read, and
    jobs run, in the whole folder that they are started in."""
    if folder is None or any(map(caller.may, scopes)):
        return
    known = (each for of in host.ownership.visible(caller, host.list()) for each in whole(of) if each not in ("", "/"))
    if not any(below(str(root), folder) is not None for root in (*host.workspaces, *known)):
        needed = " or ".join(map(repr, scopes))
        raise Forbidden(
            f"{folder!r} is in no workspace (portico serve --workspace FOLDER); elsewhere the scope {needed} is "
            f"needed, which the token {caller.name!r} does not have.",
            field="cwd",
        )


async def check_folders(host: "HostServices", agent: str, cwd: str, folders: Iterable[str]) -> list[str]:
    """The folders that a new session gets beside its own, each once."""
    more = [check_folder(each, "folders") for each in folders]
    more = [each for each in dict.fromkeys(more) if each != cwd]
    if len(more) > limits.FOLDERS:
        raise BadRequest(f"A session has at most {limits.FOLDERS} folders beside its own.", field="folders")
    if more:
        await check_agent(host, agent)
    return more


async def check_agent(host: "HostServices", agent: str) -> None:
    info = await host.described(agent)
    if not info.capabilities.folders and isinstance(host.agent(agent), Checks):
        await host.readiness.check(agent)  # it may have run in another version, or never
        info = await host.described(agent)
    if not info.capabilities.folders:
        raise Conflict(f"{info.name} works in one folder.")
