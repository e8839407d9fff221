"""An ACP agent inside a sandbox: its state, its model and its variables, from what its program is configured with."""

import os
from collections.abc import Mapping
from urllib.parse import urlsplit

from msgspec.structs import replace

from portico.agents.acp.autonomy import kind_of
from portico.agents.acp.program import Program
from portico.agents.supervisor import agent_environment
from portico.features.sandboxes.agent import AgentProcess
from portico.sandbox.vendors import VENDORS, Vendor

_XDG = (
    ("XDG_CONFIG_HOME", ".config"),
    ("XDG_DATA_HOME", ".local/share"),
    ("XDG_STATE_HOME", ".local/state"),
    ("XDG_CACHE_HOME", ".cache"),
)
_LOOPBACK = ("127.0.0.1", "localhost", "::1")


def vendor_of(program: Program) -> Vendor:
    return VENDORS.get(kind_of(program) or "", Vendor())


def confined_process(program: Program, tool_port: int) -> AgentProcess:
    """Return what the program needs in a sandbox. `tool_port`: of the server with the session's tools."""
    vendor = vendor_of(program)
    env = agent_environment(program.pass_env, program.env)
    hosts, ports = models_of(env)
    return AgentProcess(
        command=[program.path() or program.command[0], *program.command[1:]],
        env=env,
        vendor=replace(
            vendor,
            state=tuple(located(path, vendor, env) for path in vendor.state),
            strict_state=tuple(located(path, vendor, env) for path in vendor.strict_state),
            hosts=(*vendor.hosts, *hosts),
            ports=(*ports, tool_port),
        ),
    )


def models_of(env: Mapping[str, str]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the hosts, and the ports on loopback, of the addresses among the variables: models of the user."""
    hosts: list[str] = []
    ports: list[int] = []
    for value in env.values():
        if value.startswith(("http://", "https://")):
            try:
                address = urlsplit(value)
                port = address.port or (443 if address.scheme == "https" else 80)
            except ValueError:
                continue
            if address.hostname in _LOOPBACK:
                ports.append(port)
            elif address.hostname:
                hosts.append(f"{address.hostname}:{port}")
    return tuple(dict.fromkeys(hosts)), tuple(dict.fromkeys(ports))


def located(path: str, vendor: Vendor, env: Mapping[str, str]) -> str:
    """Return where the variables put a part of the vendor's state: in XDG folders or in the vendor's own."""
    for variable, prefix in (*vendor.homes, *_XDG):
        if (folder := env.get(variable)) and (path == prefix or path.startswith(f"{prefix}/")):
            return os.path.join(folder, path.removeprefix(prefix).lstrip("/")).rstrip("/")
    return path
