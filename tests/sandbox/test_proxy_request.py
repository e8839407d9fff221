"""Requests to the proxy: what the server gets, and what is rejected because it can be read in two ways."""

import pytest

from portico.sandbox.proxy_request import Body, Malformed, read_request, refusal


def test_the_head_is_written_again_for_the_host_that_was_judged() -> None:
    head = (
        b"POST http://example.com:8080/a?b=c HTTP/1.1\r\nHost: evil.example\r\nProxy-Authorization: x\r\n"
        b"Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nUpgrade: h2c\r\nContent-Length: 3\r\nAccept: */*"
    )
    request = read_request(head)
    assert str(request.target) == "example.com:8080"
    assert request.head == (
        b"POST /a?b=c HTTP/1.1\r\nHost: example.com:8080\r\n"
        b"Content-Length: 3\r\nAccept: */*\r\nConnection: close\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("line", "path"),
    [
        (b"GET http://example.com HTTP/1.1", b"GET / HTTP/1.1\r\nHost: example.com\r\n"),
        (b"GET HTTP://EXAMPLE.com?q HTTP/1.0", b"GET /?q HTTP/1.1\r\nHost: example.com\r\n"),
        (b"GET http://[2606:4700::1]/ HTTP/1.1", b"GET / HTTP/1.1\r\nHost: [2606:4700::1]\r\n"),
    ],
)
def test_request_lines(line: bytes, path: bytes) -> None:
    head = read_request(line).head
    assert head is not None
    assert head.startswith(path)


@pytest.mark.parametrize(
    "head",
    [
        b"",
        b"GET / HTTP/1.1\r\nHost: example.com",
        b"GET https://example.com/ HTTP/1.1",
        b"GET http://user@example.com/ HTTP/1.1",
        b"GET http://example.com\\@evil/ HTTP/1.1",
        b"GET http://example.com/#x HTTP/1.1",
        b"GET http://exa%6dple.com/ HTTP/1.1",
        b"GET  http://example.com/ HTTP/1.1",
        b"GET http://example.com/ HTTP/2.0",
        b"GET http://example.com/ HTTP/1.1\nX: y",
        b"GET http://example.com/\tHTTP/1.1",
        b"get http://example.com/ HTTP/1.1",
        b"CONNECT example.com HTTP/1.1",
        b"CONNECT http://example.com:443 HTTP/1.1",
        b"POST http://a.b/ HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4",
        b"POST http://a.b/ HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked",
        b"POST http://a.b/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity",
        b"POST http://a.b/ HTTP/1.1\r\nTransfer-Encoding: xchunked",
        b"POST http://a.b/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked",
        b"POST http://a.b/ HTTP/1.1\r\nContent-Length: +3",
        b"POST http://a.b/ HTTP/1.1\r\nContent-Length: 3, 3",
        b"POST http://a.b/ HTTP/1.1\r\nContent-Length : 3",
        b"POST http://a.b/ HTTP/1.1\r\n Content-Length: 3",
        b"POST http://a.b/ HTTP/1.1\r\nX: a\nContent-Length: 3",
        b"POST http://a.b/ HTTP/1.1\r\nX: a\rY: b",
        b"POST http://a.b/ HTTP/1.1\r\nX: a\0b",
    ],
)
def test_a_request_that_can_be_read_in_two_ways_is_rejected(head: bytes) -> None:
    with pytest.raises(Malformed):
        read_request(head)


SECOND = b"GET http://evil.example/ HTTP/1.1\r\n\r\n"


@pytest.mark.parametrize("step", [1, 3, 4096])
@pytest.mark.parametrize(
    ("length", "body"),
    [(0, b""), (5, b"12345"), (None, b"0\r\n\r\n"), (None, b"3;a=b\r\nabc\r\nA\r\n0123456789\r\n0\r\nX: y\r\n\r\n")],
)
def test_nothing_after_the_body_is_forwarded(length: int | None, body: bytes, step: int) -> None:
    reader, data = Body(length), body + SECOND
    found = b"".join(reader.feed(data[at : at + step]) for at in range(0, len(data), step))
    assert (found, reader.done) == (body, True)


@pytest.mark.parametrize(
    "body",
    [
        b"x\r\n",
        b"-1\r\n",
        b"0x3\r\nabc\r\n",
        b"3\nabc",
        b"3\r\nabcd\r\n",
        b"\r\n",
        b"f" * 17 + b"\r\n",
        b"1;" + b"a" * 5000,
    ],
)
def test_a_malformed_chunk_is_rejected(body: bytes) -> None:
    with pytest.raises(Malformed):
        Body(None).feed(body)


def test_a_refusal_cannot_be_split_into_two_responses() -> None:
    said = refusal("403", "no\r\nSet-Cookie: a=b\r\n\r\nHTTP/1.1 200 OK", "eve\r\nX: y")
    head, _, _ = said.partition(b"\r\n\r\n")
    assert [line.partition(b":")[0] for line in head.split(b"\r\n")[1:]] == [
        b"Content-Type",
        b"Content-Length",
        b"X-Portico-Refused-By",
        b"Connection",
    ]
