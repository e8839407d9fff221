"""The listener: what passes, and the attacks on the only way out of a sandbox. Every server is on loopback."""

import asyncio
import os
import resource
from contextlib import suppress
from pathlib import Path

import pytest

from portico.kernel.errors import LogUnavailable
from portico.sandbox import egress as listening
from portico.sandbox.network import Destination, Network, Verdict
from tests.sandbox.outside import Names, NotingGate, listener, serving, site, speak

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nKeep-Alive: timeout=5\r\nConnection: keep-alive\r\n\r\nhi"
HERE = [["127.0.0.1"]]


@pytest.fixture(params=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, bool]]:
    """A host runs on uvloop, whose transports differ in details."""
    return "asyncio", {"use_uvloop": request.param == "uvloop"}


def reaching(*hosts: str, asks: bool = False, ports: tuple[int, ...] = ()) -> Network:
    """A network in which these hosts may be on loopback, as all servers of these tests are."""
    return Network(hosts, ports, asks, private=tuple(host.partition(":")[0] for host in hosts))


async def test_a_tunnel_carries_both_directions(tmp_path: Path) -> None:
    gate = NotingGate()
    async with site() as echo, listener(tmp_path, reaching(f"echo.test:{echo.port}"), gate, Names({"echo.test": HERE})):
        said = await speak(tmp_path, b"CONNECT echo.test:%d HTTP/1.1\r\n\r\nearly" % echo.port, b" and late")
    assert said == b"HTTP/1.1 200 Connection established\r\n\r\nearly and late"
    assert (gate.opens, gate.sent, gate.received) == ([(f"echo.test:{echo.port}", "policy")], 14, 14)


async def test_a_request_over_http_reaches_the_host_that_it_names(tmp_path: Path) -> None:
    """The Host header names another server than the address; the server gets the one that was judged."""
    request = b"POST http://web.test:%d/x HTTP/1.1\r\nHost: other.test\r\nContent-Length: 4\r\n\r\nbody"
    gate, names = NotingGate(), Names({"web.test": HERE})
    async with site(OK) as web, listener(tmp_path, reaching(f"web.test:{web.port}"), gate, names):
        said = await speak(tmp_path, request % web.port)
    assert (gate.sent, gate.received) == (len(web.got), len(said)), "an address and headers are data, too"
    assert said == b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi"
    head = b"POST /x HTTP/1.1\r\nHost: web.test:%d\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody" % web.port
    assert web.got == head


async def test_a_smuggled_second_request_is_dropped(tmp_path: Path) -> None:
    request = b"POST http://web.test:%d/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\n"
    second = b"GET http://evil.test/ HTTP/1.1\r\n\r\n"
    async with site(OK) as web, listener(tmp_path, reaching(f"web.test:{web.port}"), names=Names({"web.test": HERE})):
        await speak(tmp_path, request % web.port + second, second)
    assert b"evil" not in web.got
    assert web.got.endswith(b"1\r\na\r\n0\r\n\r\n")


async def test_interim_responses_pass(tmp_path: Path) -> None:
    async with (
        site(b"HTTP/1.1 100 Continue\r\n\r\n" + OK) as web,
        listener(tmp_path, reaching(f"web.test:{web.port}"), names=Names({"web.test": HERE})),
    ):
        said = await speak(tmp_path, b"GET http://web.test:%d/ HTTP/1.1\r\nExpect: 100-continue\r\n\r\n" % web.port)
    assert said.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n")


ATTACKS = [
    ("CONNECT private.test:443", "'private.test' is 10.0.0.7, a private address"),
    ("CONNECT loopback.test:443", "'loopback.test' is 127.0.0.1, a private address"),
    ("CONNECT metadata.test:80", "'metadata.test' is 169.254.169.254, a private address"),
    ("CONNECT mixed.test:443", "'mixed.test' is 192.168.0.1, a private address"),
    ("CONNECT mapped.test:443", "'mapped.test' is ::ffff:127.0.0.1, a private address"),
    ("CONNECT 127.0.0.1:443", "private address of this machine"),
    ("CONNECT 2130706433:443", "private address of this machine"),
    ("CONNECT 0x7f.1:443", "private address of this machine"),
    ("CONNECT 0:443", "private address of this machine"),
    ("CONNECT [::1]:443", "private address of this machine"),
    ("CONNECT [::ffff:127.0.0.1]:443", "private address of this machine"),
    ("CONNECT [::ffff:a00:7]:443", "private address of this machine"),
    ("CONNECT [64:ff9b::7f00:1]:443", "private address of this machine"),
    ("CONNECT [fe80::1]:443", "private address of this machine"),
    ("CONNECT 169.254.169.254:80", "private address of this machine"),
    ("GET http://10.0.0.7/", "private address of this machine"),
    ("GET http://private.test/", "'private.test' is 10.0.0.7, a private address"),
    ("CONNECT 127.0.0.1:11434", "private address of this machine"),
    ("CONNECT private.test:22", "'strict'"),
    ("CONNECT private.test:8443", "'strict'"),
    ("CONNECT unknown.test:443", "'strict'"),
    ("CONNECT private.test.evil.test:443", "'strict'"),
    ("GET http://unknown.test/", "'strict'"),
    ("CONNECT 93.184.215.14:443", "'strict'"),
]


@pytest.mark.parametrize(("line", "why"), ATTACKS)
async def test_attacks_are_refused_and_recorded(line: str, why: str, tmp_path: Path) -> None:
    table = {
        "private.test": [["10.0.0.7"]],
        "loopback.test": [["127.0.0.1"]],
        "metadata.test": [["169.254.169.254"]],
        "mixed.test": [["93.184.215.14", "192.168.0.1"]],
        "mapped.test": [["::ffff:127.0.0.1"]],
    }
    names, gate = Names(table), NotingGate()
    async with listener(tmp_path, Network(tuple(table)), gate, names):
        said = (await speak(tmp_path, f"{line} HTTP/1.1\r\n\r\n".encode())).decode()
    assert said.startswith("HTTP/1.1 403 ")
    assert why in said.partition("\r\n\r\n")[2]
    assert len(gate.refusals) == 1
    assert gate.opens == []
    if "strict" in why:
        assert names.looked_up == [], "the lookup of a refused name can carry data out"


async def test_rebinding_between_two_lookups_does_not_help(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first answer is public, the second is not. Only the first is used, for the judgement and the connection."""
    dialed: list[str] = []

    async def dial(make: object, address: str, port: int) -> None:
        dialed.append(address)
        raise OSError("tests connect to loopback only")

    monkeypatch.setattr(asyncio.get_running_loop(), "create_connection", dial)
    names = Names({"rebind.test": [["93.184.215.14"], ["127.0.0.1"]]})
    async with listener(tmp_path, Network(("rebind.test",)), names=names):
        first, second = [await speak(tmp_path, b"CONNECT rebind.test:443 HTTP/1.1\r\n\r\n") for _ in range(2)]
    assert (first[9:12], second[9:12]) == (b"502", b"403")
    assert (dialed, names.looked_up) == (["93.184.215.14"], ["rebind.test", "rebind.test"])


async def test_the_connection_uses_the_address_that_was_judged(tmp_path: Path) -> None:
    names = Names({"echo.test": [["127.0.0.1"], ["10.0.0.7"]]})
    async with site() as echo, listener(tmp_path, reaching(f"echo.test:{echo.port}"), names=names):
        said = await speak(tmp_path, b"CONNECT echo.test:%d HTTP/1.1\r\n\r\nx" % echo.port)
    assert said.endswith(b"\r\n\r\nx")
    assert names.looked_up == ["echo.test"]


@pytest.mark.parametrize("port_is_named", [True, False])
async def test_only_named_ports_of_this_machine_are_forwarded(port_is_named: bool, tmp_path: Path) -> None:
    async with (
        site() as model,
        listener(tmp_path, Network(ports=(model.port if port_is_named else 1,))),
    ):
        said = await speak(tmp_path, b"CONNECT 127.0.0.1:%d HTTP/1.1\r\n\r\nhello" % model.port)
    assert said.startswith(b"HTTP/1.1 200 " if port_is_named else b"HTTP/1.1 403 ")
    assert model.connections == port_is_named


# -- a person is asked -------------------------------------------------------------------------------------------


async def test_a_connection_to_an_unknown_host_waits_for_the_answer(tmp_path: Path) -> None:
    async with site() as echo:
        target = f"docs.test:{echo.port}"
        gate = NotingGate({target: Verdict(True, "ada")})
        gate.answer.clear()
        network = Network(asks=True, private=("docs.test",))
        async with listener(tmp_path, network, gate, Names({"docs.test": HERE})):
            waiting = asyncio.create_task(speak(tmp_path, f"CONNECT {target} HTTP/1.1\r\n\r\nx".encode()))
            await gate.was_asked.wait()
            assert echo.connections == 0
            gate.answer.set()
            assert (await waiting).endswith(b"\r\n\r\nx")
    assert gate.opens == [(target, "ada")]


async def test_concurrent_connections_to_one_host_are_one_question(tmp_path: Path) -> None:
    gate, target = NotingGate({"docs.test:443": Verdict(True, "ada")}), Destination("docs.test", 443)
    gate.answer.clear()
    async with listener(tmp_path, Network(asks=True), gate) as egress:
        waiting = [asyncio.create_task(egress.judge(target)) for _ in range(20)]
        await gate.was_asked.wait()
        gate.answer.set()
        assert {each.by for each in await asyncio.gather(*waiting)} == {"ada"}
    assert gate.asked == ["docs.test:443"]


async def test_a_refusal_names_who_refused(tmp_path: Path) -> None:
    gate = NotingGate()
    async with listener(tmp_path, Network(asks=True), gate):
        said = await speak(tmp_path, b"CONNECT docs.test:443 HTTP/1.1\r\n\r\n")
    assert said.startswith(b"HTTP/1.1 403 ada denied docs.test:443.\r\n")
    assert b"X-Portico-Refused-By: ada\r\n" in said
    assert said.endswith(b"\r\n\r\nada denied docs.test:443.\n")
    assert gate.refusals == [("docs.test:443", "ada")]


async def test_a_gate_that_fails_refuses(tmp_path: Path) -> None:
    class Failing(NotingGate):
        async def decide(self, target: Destination) -> Verdict:
            raise LogUnavailable("The disk is full.")

    async with listener(tmp_path, Network(asks=True), Failing()):
        said = await speak(tmp_path, b"CONNECT docs.test:443 HTTP/1.1\r\n\r\n")
    assert said.endswith(b"(host). Nobody could be asked: The disk is full.\n")


async def test_a_host_that_was_added_is_reachable_immediately(tmp_path: Path) -> None:
    async with site() as echo, listener(tmp_path, Network(), names=Names({"docs.test": HERE})) as egress:
        line = b"CONNECT docs.test:%d HTTP/1.1\r\n\r\nx" % echo.port
        before = await speak(tmp_path, line)
        egress.network = reaching(f"docs.test:{echo.port}")
        after = await speak(tmp_path, line)
    assert (before[:13], after[:13]) == (b"HTTP/1.1 403 ", b"HTTP/1.1 200 ")


# -- bounds ------------------------------------------------------------------------------------------------------


async def test_an_endless_body_is_not_stored(tmp_path: Path) -> None:
    """64 MB that a server reads pass without being stored."""
    async with (
        site(b"") as sink,
        listener(tmp_path, reaching(f"sink.test:{sink.port}"), names=Names({"sink.test": HERE})),
    ):
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        _, writer = await asyncio.open_unix_connection(str(tmp_path / "e.sock"))
        writer.write(b"POST http://sink.test:%d/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" % sink.port)
        piece = b"100000\r\n" + bytes(0x100000) + b"\r\n"
        for _ in range(64):
            writer.write(piece)
            await writer.drain()
            sink.got = b""
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 32 * 1024
        writer.close()


async def test_a_program_that_does_not_read_stops_its_server(tmp_path: Path) -> None:
    written = 0

    async def pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal written
        while not writer.is_closing():
            writer.write(bytes(65536))
            await writer.drain()
            written += 65536

    names = Names({"pour.test": HERE})
    async with serving(pour) as port, listener(tmp_path, reaching(f"pour.test:{port}"), names=names):
        _, writer = await asyncio.open_unix_connection(str(tmp_path / "e.sock"), limit=1024)
        writer.write(b"CONNECT pour.test:%d HTTP/1.1\r\n\r\n" % port)
        while True:
            before = written
            await asyncio.sleep(0.1)
            if written and written == before:
                break
        assert written < 32 * 1024 * 1024
        writer.close()


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"GET http://a.test/ HTTP/1.1\r\nX: " + b"a" * 70_000, b"431"),
        (b"\x16\x03\x01\x02\x00\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", b"400"),
    ],
)
async def test_what_is_not_a_request_is_rejected(sent: bytes, status: bytes, tmp_path: Path) -> None:
    async with listener(tmp_path, Network()):
        assert (await speak(tmp_path, sent, end=False))[9:12] == status


async def test_ten_thousand_hosts_leave_nothing_open(tmp_path: Path) -> None:
    gate = NotingGate()
    async with listener(tmp_path, Network(asks=True), gate) as egress:
        before = len(os.listdir("/proc/self/fd"))
        for batch in range(20):
            lines = [f"CONNECT h{batch}-{each}.test:443 HTTP/1.1\r\n\r\n".encode() for each in range(100)]
            await asyncio.gather(*(speak(tmp_path, line) for line in lines))
        assert len(gate.refusals) == 2000
        assert egress.open_connections == 0
        assert len(os.listdir("/proc/self/fd")) <= before + 2


async def test_too_many_connections_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listening, "CONNECTIONS", 2)
    async with listener(tmp_path, Network()):
        held = [await asyncio.open_unix_connection(str(tmp_path / "e.sock")) for _ in range(2)]
        assert (await speak(tmp_path, end=False))[9:12] == b"503"
        for _, writer in held:
            writer.close()


async def test_closing_ends_every_connection(tmp_path: Path) -> None:
    async with site() as echo:
        async with listener(tmp_path, reaching(f"echo.test:{echo.port}"), names=Names({"echo.test": HERE})):
            reader, writer = await asyncio.open_unix_connection(str(tmp_path / "e.sock"))
            writer.write(b"CONNECT echo.test:%d HTTP/1.1\r\n\r\n" % echo.port)
            await reader.readuntil(b"\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
    assert not (tmp_path / "e.sock").exists()


@pytest.mark.parametrize("step", [1, 7, 4096])
async def test_a_head_in_pieces_is_one_head(tmp_path: Path, step: int) -> None:
    """The end of the head may be split between pieces; each piece is searched once."""
    async with site(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") as there:
        head = f"GET http://a.test:{there.port}/ HTTP/1.0\r\nConnection: keep-alive\r\nX: {'a' * 2000}\r\n\r\n".encode()
        pieces = [head[at : at + step] for at in range(0, len(head), step)]
        async with listener(tmp_path, reaching(f"a.test:{there.port}"), names=Names({"a.test": HERE})):
            said = await speak(tmp_path, *pieces)
    assert said.startswith(b"HTTP/1.1 200 OK")
    assert b"Connection: close" in said, "one request for each connection, also for HTTP/1.0 with keep-alive"
    assert b"HTTP/1.1\r\n" in there.got.splitlines(keepends=True)[0]


async def test_a_slow_head_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A program that opens connections and sends nothing must not use up those of its sandbox."""
    monkeypatch.setattr("portico.sandbox.egress.HEAD_SECONDS", 0.2)
    async with listener(tmp_path, Network()) as egress:
        reader, writer = await asyncio.open_unix_connection(str(tmp_path / "e.sock"))
        writer.write(b"GET http://a.test/ HTTP/1.1\r\nX: ")
        with suppress(ConnectionResetError):
            assert await asyncio.wait_for(reader.read(), 10) == b""
        writer.close()
        assert egress.open_connections == 0
