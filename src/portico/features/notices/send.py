"""One attempt to deliver: a signed POST (Standard Webhooks), a push to a browser, or a program of the owner with the
notice on its input."""

import asyncio
import base64
import binascii
import hashlib
import hmac
import os
import ssl
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from portico.addresses import NoAddress, PrivateAddress, resolve, system_lookup
from portico.features.notices import push
from portico.features.notices.notice import Delivery, NotSent
from portico.features.notices.push import PushTarget
from portico.kernel.errors import PorticoError
from portico.sandbox.policy import Unconfined
from portico.server.settings import NoticeCommand, NoticeSettings, Webhook
from portico.workspace.child import environment
from portico.workspace.process import run

if TYPE_CHECKING:
    import httpx
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey as PrivateKey

Target = Webhook | NoticeCommand | PushTarget

WEBHOOK_SECONDS = 10.0
"""For the whole call, names and TLS included: receivers are to answer first and work later."""

COMMAND_SECONDS = 30.0
"""For a program: long enough for one that calls a service itself."""

_RESOLVERS = 4
"""Separate threads: lookups that hang must not block those of the host."""


class Gone(NotSent):
    """The receiver no longer exists. For a browser: the subscription has ended."""


class PushSender(NamedTuple):
    key: "PrivateKey"
    contact: str
    base: str
    """How people reach this host."""


def body_of(delivery: Delivery) -> bytes:
    """The same bytes at every attempt."""
    notice = delivery.notice
    time = datetime.fromtimestamp(notice.time / 1000, UTC).isoformat(timespec="milliseconds")
    data = {"id": delivery.id, **msgspec.to_builtins(notice)}
    del data["kind"], data["time"]
    return msgspec.json.encode({"type": notice.kind, "timestamp": time.replace("+00:00", "Z"), "data": data})


def signature(secrets: str, ident: str, timestamp: int, body: bytes) -> str:
    """One signature per secret, separated by spaces, so that a secret can be rotated without a gap."""
    content = f"{ident}.{timestamp}.".encode() + body
    return " ".join(
        "v1," + base64.b64encode(hmac.digest(key, content, hashlib.sha256)).decode() for key in keys_of(secrets)
    )


def keys_of(secrets: str) -> list[bytes]:
    """`whsec_` and base64; NotSent where it is something else."""
    try:
        found = [base64.b64decode(each.removeprefix("whsec_"), validate=True) for each in secrets.split()]
    except binascii.Error:
        found = []
    if not found or any(len(key) < 16 for key in found):
        words = "The secret must be 'whsec_' and at least 16 bytes in base64: echo whsec_$(openssl rand -base64 32)"
        raise NotSent(words)
    return found


def secret_of(webhook: Webhook) -> str:
    """Read at every attempt: a file or a variable may change."""
    if webhook.secret_file:
        try:
            return Path(webhook.secret_file).expanduser().read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise NotSent(f"The secret's file cannot be read: {error}") from error
    if webhook.secret_env and not os.environ.get(webhook.secret_env):
        raise NotSent(f"The host has no variable {webhook.secret_env!r}, which is to hold the secret.")
    return os.environ[webhook.secret_env] if webhook.secret_env else webhook.secret


def is_allowed(url: "httpx.URL", settings: NoticeSettings, *, from_client: bool) -> bool:
    """Return whether the settings allow a private address here: by `HOST:PORT`, or by `HOST` alone if the URL is in the
    settings, too. A client chooses the endpoint of its browser, and must not reach every port of a host."""
    host = url.raw_host.decode("ascii")
    name = f"[{host}]" if ":" in host else host
    allowed = settings.allow_private
    return f"{name}:{_port(url)}" in allowed or (host in allowed and not from_client)


def _port(url: "httpx.URL") -> int:
    return url.port or (443 if url.scheme == "https" else 80)


class Sender:
    def __init__(self) -> None:
        self._client: httpx.AsyncClient | None = None
        self._threads = ThreadPoolExecutor(_RESOLVERS, "notices")
        self._lookup = system_lookup(self._threads)

    async def send(
        self, delivery: Delivery, target: Target, settings: NoticeSettings, now: int, sender: PushSender | None = None
    ) -> None:
        """NotSent: it did not arrive. `sender` is for pushes."""
        if isinstance(target, NoticeCommand):
            await self._command(delivery, target)
            return
        try:
            async with asyncio.timeout(WEBHOOK_SECONDS):
                if isinstance(target, PushTarget):
                    assert sender is not None
                    await self._push(delivery, target, settings, now, sender)
                else:
                    await self._post(delivery, target, settings, now)
        except TimeoutError:
            raise NotSent(f"No answer within {WEBHOOK_SECONDS:g} seconds.") from None

    async def _push(
        self, delivery: Delivery, target: PushTarget, settings: NoticeSettings, now: int, sender: PushSender
    ) -> None:
        headers = push.headers(delivery, target, sender.key, sender.contact, now)
        body = push.encrypt(target, push.payload(delivery.notice, sender.base))
        await self._call(target.endpoint, headers, body, settings, from_client=True)

    async def _post(self, delivery: Delivery, target: Webhook, settings: NoticeSettings, now: int) -> None:
        body, timestamp = body_of(delivery), now // 1000
        headers = {
            "Content-Type": "application/json",
            "webhook-id": delivery.id,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(secret_of(target), delivery.id, timestamp, body),
        }
        await self._call(target.url, headers, body, settings, from_client=False)

    async def _call(
        self, address: str, headers: dict[str, str], body: bytes, settings: NoticeSettings, *, from_client: bool
    ) -> None:
        import httpx  # late: most hosts have no webhooks

        url = httpx.URL(address)
        headers = {"Host": url.netloc.decode("ascii"), "User-Agent": "Portico", **headers}
        name = url.raw_host.decode("ascii")
        allowed = (name,) if is_allowed(url, settings, from_client=from_client) else ()
        try:
            addresses = await resolve(name, _port(url), allowed, self._lookup)
        except PrivateAddress as refused:
            raise NotSent(f"{refused} Name it in notices.allow_private if that is meant.") from None
        except NoAddress as failed:
            raise NotSent(str(failed)) from failed
        error: Exception | None = None
        for found in addresses:
            request = httpx.Request(
                "POST",
                url.copy_with(host=found),
                headers=headers,
                content=body,
                extensions={"sni_hostname": name, "timeout": httpx.Timeout(WEBHOOK_SECONDS).as_dict()},
            )
            try:
                # Nothing of the answer's body is read, however long it is.
                response = await self._http().send(request, stream=True, follow_redirects=False)
            except httpx.ConnectError as failed:
                error = failed
                continue
            except (httpx.HTTPError, ssl.SSLError) as failed:
                raise NotSent(f"{type(failed).__name__}: {failed}"[:300]) from failed
            await response.aclose()
            if response.is_success:
                return
            hint = "; redirects are not followed" if response.is_redirect else ""
            if response.status_code in (404, 410):
                raise Gone(f"The receiver answered {response.status_code}.")
            raise NotSent(f"The receiver answered {response.status_code}{hint}.")
        raise NotSent(f"It cannot be reached: {error}"[:300])

    def _http(self) -> "httpx.AsyncClient":
        if self._client is None:
            import httpx

            # The caller limits the number of connections.
            unbounded = httpx.Limits(max_connections=None, max_keepalive_connections=0)
            self._client = httpx.AsyncClient(trust_env=False, limits=unbounded, timeout=WEBHOOK_SECONDS)
        return self._client

    async def _command(self, delivery: Delivery, target: NoticeCommand) -> None:
        try:
            done = await run(
                target.command,
                policy=Unconfined("a program of the settings, started by the host"),
                cwd=Path.home(),
                env=environment(),
                timeout=COMMAND_SECONDS,
                stdin=body_of(delivery) + b"\n",
            )
        except (OSError, PorticoError) as error:
            raise NotSent(f"{target.command[0]!r} does not start: {error}") from error
        if done.timed_out:
            raise NotSent(f"It did not end within {COMMAND_SECONDS:g} seconds.")
        if done.code:
            raise NotSent(f"It ended with {done.code}: {done.output.strip()[-200:]}")

    async def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._client is not None:
            await self._client.aclose()
