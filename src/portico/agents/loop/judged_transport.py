"""Requests of the host for a sandboxed session: judged, pinned to the judged address, and recorded.

The attack: a name that has a public address when it is judged and a private one when it is connected to (rebinding),
or a page that the record of connections does not show.
"""

import ssl
from collections.abc import AsyncIterator

import httpx

from portico.sandbox.egress import Approach, ConnectionDenied, Egress
from portico.sandbox.network import Destination, parse_target
from portico.sandbox.trace import ConnectionTrace


class JudgedTransport(httpx.AsyncBaseTransport):
    def __init__(self, egress: Egress, verify: ssl.SSLContext | bool) -> None:
        self._egress = egress
        self._inner = httpx.AsyncHTTPTransport(verify=verify, trust_env=False)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        url = request.url
        target = parse_target(url.netloc.decode("ascii"), 443 if url.scheme == "https" else 80)
        if target is None:
            raise ConnectionDenied("400", f"{url.host!r} is no host that a sandbox can reach.")
        async with self._egress.approached(target) as approach:
            response = await self._send(request, target, approach)
        stream = response.stream
        assert isinstance(stream, httpx.AsyncByteStream)
        self._egress.gate.moved(target, len(request.url.raw_path), 0)
        response.stream = _Counted(stream, self._egress, target)
        return response

    async def _send(self, request: httpx.Request, target: Destination, approach: Approach) -> httpx.Response:
        failed: httpx.ConnectError | None = None
        for address in approach.addresses:
            pinned = httpx.Request(
                request.method,
                request.url.copy_with(host=address),
                headers=request.headers,
                stream=request.stream,
                extensions={
                    **request.extensions,
                    "sni_hostname": target.host,
                    "trace": ConnectionTrace(approach.connected),
                },
            )
            try:
                response = await self._inner.handle_async_request(pinned)
                approach.connected()
                return response
            except httpx.ConnectError as error:
                failed = error
        approach.failed()
        raise ConnectionDenied("502", f"{target} cannot be reached: {failed or 'it has no address'}.", "")

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Counted(httpx.AsyncByteStream):
    """The body of a response, whose bytes are recorded."""

    def __init__(self, stream: httpx.AsyncByteStream, egress: Egress, target: Destination) -> None:
        self._stream = stream
        self._egress = egress
        self._target = target

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for data in self._stream:
            self._egress.gate.moved(self._target, 0, len(data))
            yield data

    async def aclose(self) -> None:
        await self._stream.aclose()
