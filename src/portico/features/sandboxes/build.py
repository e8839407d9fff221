"""Builds the policy of a folder from the settings and from what exists on this machine."""

import os
from collections.abc import Iterable
from typing import Literal

from msgspec.structs import replace

from portico.features.sandboxes.agent import AgentProcess
from portico.features.sandboxes.devcontainer import image_for
from portico.features.sandboxes.grants import SandboxGrants
from portico.features.sandboxes.paths import (
    MadeInside,
    create_state,
    git_folders,
    program_folders,
    protected,
    unmoved,
    without_links,
)
from portico.sandbox.policy import MIB, Limits, Machine, Policy, SandboxedSession, SandboxRules, policy_for
from portico.server.settings import AgentSandbox, SandboxSettings
from portico.workspace.jail import closed_folders


def build_policy(
    folder: str,
    folders: Iterable[str],
    grants: SandboxGrants,
    process: AgentProcess,
    rules: SandboxRules,
    mode: Literal["project", "strict"],
    made_inside: MadeInside = lambda git: False,
) -> Policy:
    """Return the policy of a process that works in the folder. Reads the disk: call it in a thread. `made_inside`: see
    `protected`."""
    here = os.path.realpath(folder)
    others = tuple(os.path.realpath(each) for each in folders)
    every = list(dict.fromkeys([here, *others]))
    git = tuple(found for each in every for found in git_folders(each))
    session = SandboxedSession(
        folder=here,
        folders=others,
        git=git,
        protect=tuple(path for each in every for path in protected(each, git, made_inside)),
        read=unmoved(grants.read),
        write=unmoved(grants.write),
        hosts=grants.hosts,
    )
    machine = Machine(
        home=process.env.get("HOME") or os.path.expanduser("~"),
        private=tuple(map(str, closed_folders())),
        programs=program_folders(process.command, process.env.get("PATH")),
    )
    if rules.container:
        rules = replace(rules, image=image_for(rules.image, here))
    vendor = without_links(process.vendor, machine.home)
    found = policy_for(session, vendor, rules, machine, mode)
    create_state(found, vendor)
    return found


def machine_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0


def rules_of(settings: SandboxSettings, agent: str) -> SandboxRules:
    own = settings.agents.get(agent)
    sources: list[SandboxSettings | AgentSandbox] = [settings] if own is None else [settings, own]
    return SandboxRules(
        presets=tuple(settings.presets),
        hosts=tuple(host for each in sources for host in each.hosts),
        ports=tuple(port for each in sources for port in each.ports),
        read=tuple(os.path.expanduser(path) for each in sources for path in each.read),
        write=tuple(os.path.expanduser(path) for each in sources for path in each.write),
        private=tuple(settings.allow_private),
        container=settings.backend == "container",
        image=settings.image if settings.backend == "container" else "",
        limits=Limits(
            memory=settings.memory_mb * MIB or machine_memory() // 2,
            processes=settings.processes,
            tmp=settings.tmp_mb * MIB,
        ),
    )
