"""The address at which a phone reaches this host, or the ways to get one."""

import shutil
from collections.abc import Awaitable, Callable

from portico.features.pairing.pairing import PhoneAddress
from portico.kernel.errors import Conflict, PorticoError
from portico.server import tailscale
from portico.server.origin import is_loopback
from portico.server.settings import ServerSettings

Publish = Callable[[str], Awaitable[ServerSettings]]
"""Stores `server.public_url` in the settings file, and returns the settings that apply then."""


def known_address(settings: ServerSettings, port: int, root_path: str) -> str | None:
    """`server.public_url`, or the address that the host listens on with TLS. A token is never sent over plain HTTP to
    another machine, so there is no other one."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    if settings.tls_cert and not is_loopback(settings.host) and settings.host not in ("0.0.0.0", "::"):
        name = f"[{settings.host}]" if ":" in settings.host else settings.host
        return f"https://{name}:{port}{root_path}"
    return None


async def phone_address(
    settings: ServerSettings, port: int, root_path: str, publish: Publish | None = None
) -> PhoneAddress:
    """The known address, or the one that Tailscale gives a host on loopback. Raises Conflict with the ways to get one.

    Without `publish`, the host accepts requests without a token, and no address is made for it."""
    if known := known_address(settings, port, root_path):
        return PhoneAddress(known)
    reason = _without_tailscale(settings)
    if publish is None:
        reason = reason or "this host accepts everyone: start it without --without-token"
    elif reason is None:
        try:
            forwarded = await tailscale.forward(_target(settings, port))
            settings = await publish(f"{forwarded.url}{root_path}")
        except PorticoError as error:
            reason = error.message
        else:
            if known := known_address(settings, port, root_path):
                off = f"tailscale serve --https={forwarded.port} off"
                return PhoneAddress(known, f"Tailscale forwards {known} to this host. To stop that: {off}")
            reason = "server.public_url is set to nothing by an option or the environment"
    raise Conflict(_ways(port, reason), field="server.public_url")


def _without_tailscale(settings: ServerSettings) -> str | None:
    """Why Tailscale is not used; None: it can be tried."""
    if not is_loopback(settings.host) or settings.unix_socket:
        return "only for hosts that listen on a port of 127.0.0.1"
    if not tailscale.installed():
        return "not installed here"
    if settings.port == 0:
        return "the port of this host changes with each start: set server.port"
    return None


def _target(settings: ServerSettings, port: int) -> str:
    name = "127.0.0.1" if settings.host == "127.0.0.1" else "localhost"  # Tailscale accepts no other
    return f"{'https+insecure' if settings.tls_cert else 'http'}://{name}:{port}"


def _ways(port: int, reason: str | None) -> str:
    tunnel = f"cloudflared tunnel --url http://127.0.0.1:{port}"
    first = f"`{tunnel}`" if shutil.which("cloudflared") else "`portico serve --lan`"
    return (
        f"A phone cannot reach this host: it listens on this machine only. The first way that is available here is "
        f"{first}. (1) Tailscale ({reason}): run `tailscale serve --bg {port}` and set server.public_url to the https "
        f"address that it prints. (2) A tunnel: run `{tunnel}`, or `ssh -R 8080:127.0.0.1:{port} SERVER` to a server "
        "that has TLS, and set server.public_url to its https address. (3) The local network: start the host with "
        "`portico serve --lan`."
    )
