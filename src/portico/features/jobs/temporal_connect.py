"""Connect to a Temporal server and explain connection errors."""

import asyncio
import logging
import re
from functools import cache
from pathlib import Path

from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.runtime import LogForwardingConfig, LoggingConfig, Runtime, TelemetryConfig, TelemetryFilter
from temporalio.service import RPCError, RPCStatusCode, TLSConfig

from portico.features.jobs.temporal_messages import CONVERTER
from portico.kernel.errors import BadRequest, PorticoError, Unreachable
from portico.server.settings import JobSettings

CONNECT_SECONDS = 5.0
LEVELS = TelemetryFilter(core_level="WARN", other_level="ERROR")
_REFUSED = (RPCStatusCode.UNAUTHENTICATED, RPCStatusCode.PERMISSION_DENIED)


def check(settings: JobSettings) -> None:
    if not re.fullmatch(r"\S+:\d{1,5}", settings.address) or "/" in settings.address:
        words = f"jobs.address is {settings.address!r}; it should be HOST:PORT, such as '127.0.0.1:7233'."
        raise BadRequest(words, field="jobs.address")
    if bool(settings.tls_cert) != bool(settings.tls_key):
        raise BadRequest("jobs.tls_cert and jobs.tls_key belong together; one is missing.", field="jobs.tls_key")


@cache
def _runtime() -> Runtime:
    """The runtime of the process, without logging to stdout. By default the library logs there: if the parent process
    reads only the ready line, the pipe fills up and blocks all jobs."""
    forwarded = LogForwardingConfig(logging.getLogger("portico.temporal"))
    return Runtime(telemetry=TelemetryConfig(logging=LoggingConfig(LEVELS, forwarded)))


async def connect(settings: JobSettings) -> Client:
    """Connect. Raises `Unreachable` if no server answers, and `BadRequest` if the server rejects the settings."""
    tls = _tls(settings)
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            client = await Client.connect(
                settings.address,
                namespace=settings.namespace,
                api_key=settings.api_key or None,
                tls=tls,
                data_converter=CONVERTER,
                runtime=_runtime(),
            )
            await client.workflow_service.describe_namespace(DescribeNamespaceRequest(namespace=settings.namespace))
    except RPCError as error:
        raise _refusal(settings, error) from error
    except (RuntimeError, OSError, TimeoutError, ValueError) as error:
        said = re.search(r'message: "([^"]+)"', str(error))  # the library prints the debug form of its errors
        why = said[1] if said else str(error).strip() or "no answer in time"
        words = f"Temporal at {settings.address} does not answer ({why})."
        raise Unreachable(f"{words} Is it running, and jobs.address right?", field="jobs.address") from error
    return client


def _tls(settings: JobSettings) -> bool | TLSConfig:
    if not (settings.tls or settings.tls_ca or settings.tls_cert):
        return bool(settings.api_key)
    return TLSConfig(
        server_root_ca_cert=_read(settings.tls_ca, "jobs.tls_ca"),
        client_cert=_read(settings.tls_cert, "jobs.tls_cert"),
        client_private_key=_read(settings.tls_key, "jobs.tls_key"),
    )


def _read(path: str, field: str) -> bytes | None:
    try:
        return Path(path).expanduser().read_bytes() if path else None
    except OSError as error:
        raise BadRequest(f"{field} cannot be read: {error}.", field=field) from error


def _refusal(settings: JobSettings, error: RPCError) -> PorticoError:
    if error.status is RPCStatusCode.NOT_FOUND:
        words = f"Temporal at {settings.address} has no namespace {settings.namespace!r}."
        hint = f"Make it (temporal operator namespace create {settings.namespace}), or set jobs.namespace."
        return BadRequest(f"{words} {hint}", field="jobs.namespace")
    if error.status in _REFUSED:
        words = f"Temporal at {settings.address} refuses us ({error.message}): look at jobs.api_key and jobs.tls_cert."
        return BadRequest(words, field="jobs.api_key")
    return Unreachable(f"Temporal at {settings.address} does not answer ({error.message}).", field="jobs.address")
