"""Tailscale as the way from a phone to a host on loopback: `tailscale serve` forwards HTTPS from the user's
own tailnet.

The attack: pairing replaces what the user already serves there, or offers the host to the internet. So an HTTPS port
that another program uses, or that `tailscale funnel` opens to the internet, is left alone.
"""

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field

from portico.kernel.errors import Conflict
from portico.sandbox.policy import Unconfined
from portico.workspace.child import environment
from portico.workspace.escapes import plain
from portico.workspace.process import run

T = TypeVar("T", bound=Struct)

_PROGRAM = "tailscale"
_ASK_SECONDS = 5.0
"""Timeout of the commands that only read. They answer within a second."""
_SERVE_SECONDS = 10.0
"""Timeout of `serve`. It waits for a person if the tailnet does not allow it. All three are below the 30 seconds after
which clients give up."""
_PORTS = (443, 8443, 10000)
"""HTTPS ports, in the order in which they are tried."""
_WORDS = 300
"""Characters of its last output that an error contains: a sentence with a link."""


class Node(Struct):
    dns_name: str = field(default="", name="DNSName")


class Status(Struct):
    """The part of `tailscale status --json` that is used."""

    backend_state: str = field(default="", name="BackendState")
    node: Node = field(default_factory=Node, name="Self")
    cert_domains: list[str] | None = field(default=None, name="CertDomains")


class Handler(Struct):
    proxy: str = field(default="", name="Proxy")


class Site(Struct):
    handlers: dict[str, Handler] | None = field(default=None, name="Handlers")


class ServeStatus(Struct):
    """The part of `tailscale serve status --json` that is used."""

    tcp: dict[str, msgspec.Raw] | None = field(default=None, name="TCP")
    """By port in use."""
    web: dict[str, Site] | None = field(default=None, name="Web")
    """By `name:port`, like the funnels."""
    funnels: dict[str, bool] | None = field(default=None, name="AllowFunnel")
    foreground: "dict[str, ServeStatus] | None" = field(default=None, name="Foreground")
    """The same for commands that run in terminals of the user."""

    def all(self) -> "Iterator[ServeStatus]":
        yield self
        yield from (self.foreground or {}).values()


class Forwarded(NamedTuple):
    url: str
    port: int
    """The HTTPS port, for `tailscale serve --https=PORT off`."""


def installed() -> bool:
    return shutil.which(_PROGRAM) is not None


async def forward(target: str) -> Forwarded:
    """Forward an HTTPS address of this machine's tailnet to `target`, also after a reboot. Does nothing if it is
    forwarded already. Raises Conflict with the reason and the next step."""
    name = await _name()
    served = _decode(await _run("serve", "status", "--json") or "{}", ServeStatus)
    uses = {_use(served, name, port): port for port in reversed(_PORTS)}
    for use in (target, None):
        if (port := uses.get(use)) is None:
            continue
        if use is None:
            await _run("serve", "--bg", f"--https={port}", target, seconds=_SERVE_SECONDS)
        return Forwarded(f"https://{name}" if port == 443 else f"https://{name}:{port}", port)
    ports = ", ".join(map(str, _PORTS))
    raise Conflict(f"other programs use its HTTPS ports {ports}: free one with `tailscale serve --https=443 off`")


def _use(served: ServeStatus, name: str, port: int) -> str | None:
    """What an HTTPS port is used for: the target of all its paths, or another text. None: it is free."""
    site = f"{name}:{port}"
    if any((each.funnels or {}).get(site) for each in served.all()):
        return "funnel"
    for each in (served.foreground or {}).values():
        if str(port) in (each.tcp or {}) or site in (each.web or {}):
            return "a terminal of the user"
    handlers: Mapping[str, Handler] = (served.web or {}).get(site, Site()).handlers or {}
    if list(handlers) == ["/"]:
        return handlers["/"].proxy.rstrip("/") or "files"
    return "several" if handlers or str(port) in (served.tcp or {}) else None


async def _name() -> str:
    """Return the name of this machine in its tailnet."""
    status = _decode(await _run("status", "--json"), Status)
    if status.backend_state != "Running":
        raise Conflict("it is not logged in: run `tailscale up`")
    name = status.node.dns_name.rstrip(".").lower()
    if not name or name not in [each.lower() for each in status.cert_domains or []]:
        raise Conflict("its tailnet has no HTTPS certificates: enable them at https://login.tailscale.com/admin/dns")
    return name


async def _run(*arguments: str, seconds: float = _ASK_SECONDS) -> str:
    done = await run(
        [_PROGRAM, *arguments],
        policy=Unconfined("the network of the machine, set up for its owner"),
        cwd=Path.home(),
        env=environment(),
        timeout=seconds,
        raw=True,  # warnings on stderr are no part of the JSON
    )
    text = done.data.decode("utf-8", "replace")
    if done.code == 0 and not done.timed_out:
        return text
    words = " ".join(f"{done.output} {plain(text)}".split()) or "it printed nothing"
    how = "waits" if done.timed_out else "failed"
    raise Conflict(f"`{_PROGRAM} {' '.join(arguments)}` {how}: {words[:_WORDS].rstrip('.')}")


def _decode(text: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except msgspec.DecodeError as error:
        raise Conflict(f"its answer cannot be read ({error}): update Tailscale") from error
