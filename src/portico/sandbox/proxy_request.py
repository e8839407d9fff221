"""Requests to the proxy, read strictly: one request per connection, and exactly one way to read it. Pure.

The attack: a request that the proxy and the server read differently, so that a second, unjudged request hides in the
first (request smuggling), or a Host header that names another server than the one that was judged. So a request with
two lengths, an unknown transfer coding or a malformed line is rejected, the head is written again with the host that
was judged, and nothing after the body is forwarded.
"""

import re

from msgspec import Struct

from portico.sandbox.network import Destination, parse_target

HEAD_BYTES = 64 * 1024
"""Head of a request or response: more than the common servers accept."""
_LINE_BYTES = 4096
"""A line of chunked coding with its extensions."""
_FIRST = re.compile(rb"([A-Z][A-Z0-9-]{0,31}) ([\x21-\x7e]{1,16384}) HTTP/1\.([01])\Z")
_HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x20-\x7e\x80-\xff\t]*?)[ \t]*\Z")
_URL = re.compile(r"http://([^/?#@\\]+)([/?][^#]*)?\Z", re.IGNORECASE)
_LENGTH = re.compile(rb"[0-9]{1,18}\Z")
_CHUNK = re.compile(rb"([0-9A-Fa-f]{1,15})(?:[ \t]*;[\x20-\x7e\x80-\xff\t]*)?\Z")
_HOP_BY_HOP = frozenset(
    {b"connection", b"keep-alive", b"te", b"upgrade"}
    | {b"proxy-authenticate", b"proxy-authorization", b"proxy-connection"}
)


class Malformed(Exception):
    """`str` is the reason."""


class ProxyRequest(Struct, frozen=True):
    target: Destination
    head: bytes | None
    """The head for the server; None: CONNECT, a tunnel."""
    body: "Body"


class Body:
    """Finds the end of a request's body in the bytes that arrive, and forwards nothing after it."""

    def __init__(self, length: int | None) -> None:
        """`length`: in bytes; None: chunked coding."""
        self._left = length or 0
        self._state = "data" if length is not None else "size"
        self._line = b""

    @property
    def done(self) -> bool:
        return self._state == "data" and not self._left

    def feed(self, data: bytes) -> bytes:
        """Return the part of the data that belongs to the body. Raises Malformed."""
        at = 0
        while at < len(data) and not self.done:
            at = self._skip(data, at) if self._state in ("data", "chunk") else self._read_line(data, at)
        return data[:at]

    def _skip(self, data: bytes, at: int) -> int:
        step = min(self._left, len(data) - at)
        self._left -= step
        if not self._left and self._state == "chunk":
            self._state = "end"
        return at + step

    def _read_line(self, data: bytes, at: int) -> int:
        end = data.find(b"\n", at)
        self._line += data[at : end + 1 if end >= 0 else len(data)]
        if len(self._line) > _LINE_BYTES:
            raise Malformed("A line of the chunked body is too long.")
        if end < 0:
            return len(data)
        line, self._line = self._line, b""
        if not line.endswith(b"\r\n"):
            raise Malformed("A line of the chunked body does not end with CR LF.")
        self._take_line(line[:-2])
        return end + 1

    def _take_line(self, line: bytes) -> None:
        if self._state == "end":  # the empty line after a chunk
            if line:
                raise Malformed("A chunk is longer than its size.")
            self._state = "size"
        elif self._state == "trailer":
            self._state, self._left = ("trailer", 0) if line else ("data", 0)
        else:
            found = _CHUNK.match(line)
            if found is None:
                raise Malformed("A chunk has no valid size.")
            self._left = int(found[1], 16)
            self._state = "chunk" if self._left else "trailer"


def read_request(head: bytes) -> ProxyRequest:
    """Read the head of a request to the proxy, without its empty line. Raises Malformed."""
    first, *lines = head.split(b"\r\n")
    found = _FIRST.match(first)
    if found is None:
        raise Malformed("The request line is malformed.")
    method, url = found[1], found[2].decode("ascii")
    headers = [_header(line) for line in lines]
    if method == b"CONNECT":
        target = parse_target(url)
        if target is None:
            raise Malformed("CONNECT needs a host and a port.")
        return ProxyRequest(target, None, Body(0))
    address = _URL.match(url)
    target = parse_target(address[1], 80) if address is not None else None
    if address is None or target is None:
        raise Malformed("This is a proxy: the request needs a whole address (http://host/path) without a user name.")
    path = address[2] or "/"
    body = _body(headers)
    origin = path if path.startswith("/") else f"/{path}"
    return ProxyRequest(target, _head(method, origin, target, headers), body)


def _header(line: bytes) -> tuple[bytes, bytes]:
    found = _HEADER.match(line)
    if found is None:
        raise Malformed("A header line is malformed.")
    return found[1], found[2]


def _body(headers: list[tuple[bytes, bytes]]) -> Body:
    lengths = [value for name, value in headers if name.lower() == b"content-length"]
    codings = [value for name, value in headers if name.lower() == b"transfer-encoding"]
    if len(lengths) + len(codings) > 1:
        raise Malformed("The request has more than one length.")
    if codings:
        if codings[0].lower() != b"chunked":
            raise Malformed("The only transfer coding is 'chunked'.")
        return Body(None)
    if lengths and not _LENGTH.match(lengths[0]):
        raise Malformed("Content-Length is not a number.")
    return Body(int(lengths[0]) if lengths else 0)


def _head(method: bytes, path: str, target: Destination, headers: list[tuple[bytes, bytes]]) -> bytes:
    """Write the head for the server: with the host that was judged, and without what is meant for the proxy."""
    connection = b",".join(value for name, value in headers if name.lower() == b"connection").lower()
    named = {name.strip() for name in connection.split(b",")} - {b"content-length", b"transfer-encoding"}
    dropped = _HOP_BY_HOP | named | {b"host"}
    host = str(target) if target.port != 80 else str(target).rpartition(":")[0]
    lines = [b"%s %s HTTP/1.1" % (method, path.encode("ascii")), b"Host: " + host.encode("ascii")]
    lines += [b"%s: %s" % (name, value) for name, value in headers if name.lower() not in dropped]
    return b"\r\n".join([*lines, b"Connection: close", b"", b""])


def close_response(head: bytes) -> bytes:
    """Write the head of a response so that the program opens another connection for its next request."""
    first, *lines = head.split(b"\r\n")
    kept = [line for line in lines if line.partition(b":")[0].strip().lower() not in _HOP_BY_HOP]
    return b"\r\n".join([first, *kept, b"Connection: close", b"", b""])


def is_interim(head: bytes) -> bool:
    """Return whether another response follows (100 Continue). 101 switches protocols and is not interim."""
    return head[:9] in (b"HTTP/1.1 ", b"HTTP/1.0 ") and head[9:10] == b"1" and head[9:12] != b"101"


def refusal(status: str, text: str, by: str = "") -> bytes:
    """The response of the proxy itself. Of an answer to CONNECT, programs show the status line: it has the text too."""
    body = f"{text}\n".encode()
    reason = " ".join(text.split()).encode("ascii", "replace").decode()[:200]
    who = " ".join(by.split()).encode("ascii", "replace").decode()[:100]
    code = status.partition(" ")[0]
    head = [f"HTTP/1.1 {code} {reason}", "Content-Type: text/plain; charset=utf-8", f"Content-Length: {len(body)}"]
    head += [f"X-Portico-Refused-By: {who}"] if who else []
    return "\r\n".join([*head, "Connection: close", "", ""]).encode() + body
