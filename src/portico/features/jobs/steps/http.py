"""One HTTP request. The attack: a value from outside makes the host call a service of its own network. So names are
resolved here, private addresses are refused as for notices, and redirects are not followed."""

import ssl
from collections.abc import Callable, Container
from functools import partial
from typing import Any

from portico.addresses import Lookup, NoAddress, PrivateAddress, resolve
from portico.features.jobs.step import FlowStep, HttpDo
from portico.features.jobs.step_values import StepValues
from portico.features.jobs.steps.outcome import OUTPUT_CHARS, StepOutcome, with_output
from portico.features.jobs.workflow.quote import unmarked
from portico.features.secrets.mask import Mask
from portico.sandbox.egress import Approach
from portico.sandbox.network import Destination, EgressGate, normal
from portico.sandbox.trace import ConnectionTrace

HTTP_SECONDS = 60.0
"""Unless the step has a timeout: longer than any API that answers while a person waits."""


async def run(
    step: FlowStep, values: StepValues, allowed: Container[str], lookup: Lookup, gate: EgressGate
) -> StepOutcome:
    """`allowed`: names of hosts that may have a private address (`notices.allow_private`). `gate` records the
    request."""
    import httpx  # late: most workflows send no request

    do = step.do
    assert isinstance(do, HttpDo)
    address = values.text(do.url)
    try:
        url = httpx.URL(address)
    except httpx.InvalidURL:
        return StepOutcome(False, f"{values.shown(do.url)!r} is not a URL.")
    if url.scheme not in ("http", "https") or not url.raw_host:
        return StepOutcome(False, f"The URL should begin with https:// or http://, not {values.shown(do.url)!r}.")
    name = url.raw_host.decode("ascii")
    port = url.port or (443 if url.scheme == "https" else 80)
    target = Destination(_recorded_name(normal(name) or name, values.mask), port)
    approach = Approach(gate, target, "policy")
    try:
        found = await resolve(name, port, allowed, lookup)
    except PrivateAddress as refused:
        gate.refused(target, "policy")
        return StepOutcome(False, f"{refused} Name it in notices.allow_private if that is meant.")
    except NoAddress as failed:
        approach.failed()
        return StepOutcome(False, str(failed))
    headers = {"Host": url.netloc.decode("ascii"), "User-Agent": "Portico"}
    headers |= {key: values.text(value) for key, value in do.headers.items()}
    content = _content(do, values, headers)
    timeout = httpx.Timeout(step.timeout or HTTP_SECONDS)
    away: Exception | None = None

    def connected() -> None:
        if approach.connected():
            gate.moved(target, len(content), 0)

    extensions = {"sni_hostname": name, "trace": ConnectionTrace(connected)}
    async with httpx.AsyncClient(timeout=timeout, trust_env=False) as client:
        for each in found:
            request = client.build_request(
                do.method, url.copy_with(host=each), headers=headers, content=content, extensions=extensions
            )
            try:
                response = await client.send(request, stream=True, follow_redirects=False)
                received = partial(gate.moved, target, 0)
                status, text = response.status_code, await _text(response, values.mask, received)
            except httpx.ConnectError as failed_to_connect:
                away = failed_to_connect
                continue
            except (httpx.HTTPError, ssl.SSLError) as failed_request:
                approach.failed()
                return StepOutcome(False, values.mask.text(f"{type(failed_request).__name__}: {failed_request}")[:300])
            return _outcome(step, f"{do.method} {values.shown(do.url)}", status, text)
    approach.failed()
    return StepOutcome(False, values.mask.text(f"It cannot be reached: {away}")[:300])


def _recorded_name(name: str, mask: Mask) -> str:
    """The name of the host, unless it is a part of a secret (an address with a token), or a secret is a part of it."""
    wanted = name.lower().encode()
    for form, secret in mask.forms:
        if wanted in form.lower() or form.lower() in wanted:
            return f"[redacted: {secret}]"
    return name


def _content(do: HttpDo, values: StepValues, headers: dict[str, str]) -> bytes:
    import msgspec

    if do.json is None:
        return values.text(do.body).encode()
    headers.setdefault("Content-Type", "application/json")
    return msgspec.json.encode(unmarked(values.value(do.json)))


async def _text(response: Any, mask: Mask, received: Callable[[int], None]) -> str:
    data, cut = b"", False
    async for chunk in response.aiter_bytes():
        data += chunk
        received(len(chunk))
        if cut := len(data) > OUTPUT_CHARS:
            break
    await response.aclose()
    text = data.decode(response.charset_encoding or "utf-8", "replace")
    return mask.beginning(text) if cut else mask.text(text)


def _outcome(step: FlowStep, what: str, status: int, text: str) -> StepOutcome:
    if 200 <= status < 300:
        return with_output(step, text, StepOutcome(True, f"{what}: {status}", exit_code=status))
    hint = " Redirects are not followed." if 300 <= status < 400 else ""
    reason = f"{what} returned {status}.{hint}\n{text[:1000]}".strip()
    return StepOutcome(False, reason, output=text, exit_code=status)
