"""The address at which a phone reaches this host, or the ways to get one."""

import shutil

from portico.kernel.errors import Conflict
from portico.server.origin import is_loopback
from portico.server.settings import ServerSettings


def phone_address(settings: ServerSettings, port: int, root_path: str) -> str:
    """`server.public_url`, or the address that the host listens on with TLS. A token is never sent over plain HTTP to
    another machine, so there is no other one."""
    if settings.public_url:
        return settings.public_url.rstrip("/")
    if settings.tls_cert and not is_loopback(settings.host) and settings.host not in ("0.0.0.0", "::"):
        name = f"[{settings.host}]" if ":" in settings.host else settings.host
        return f"https://{name}:{port}{root_path}"
    raise Conflict(_ways(port), field="server.public_url")


def _ways(port: int) -> str:
    tailscale = "installed here" if shutil.which("tailscale") else "not installed here"
    return (
        "A phone cannot reach this host: it listens on this machine only. Choose one way. "
        f"(1) Tailscale ({tailscale}): run `tailscale serve --bg {port}` and set server.public_url to the https "
        f"address that it prints. (2) A tunnel: run `cloudflared tunnel --url http://127.0.0.1:{port}` and set "
        "server.public_url to its https address. (3) The local network: start the host with `portico serve --lan`."
    )
