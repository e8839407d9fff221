"""A host behind a company's own authority and proxy: `--cacert`, `SSL_CERT_FILE`, and proxies of the environment."""

import asyncio
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from portico.client import Client
from portico.client.tls import authorities, is_near
from portico.kernel.errors import Unreachable
from tests.doors.standing import Standing, standing
from tests.process import environment, needs_openssl

NAME = "portico.test"
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`ca.pem`, and `host.pem` with `host.key` that it has signed; `other.pem` is another authority."""
    needs_openssl()
    folder = tmp_path_factory.mktemp("certificates")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")
    for name in ("ca", "other"):
        made = ("-keyout", f"{name}.key", "-out", f"{name}.pem", "-days", "2", "-subj", f"/CN=Company {name}")
        _openssl(folder, "req", "-x509", *curve, *made, "-addext", "keyUsage=critical,keyCertSign")
    _openssl(folder, "req", *curve, "-keyout", "host.key", "-out", "host.csr", "-subj", f"/CN={NAME}")
    (folder / "names").write_text(f"subjectAltName=DNS:{NAME},DNS:localhost\nauthorityKeyIdentifier=keyid\n")
    signed = ("-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-extfile", "names", "-days", "2")
    _openssl(folder, "x509", "-req", "-in", "host.csr", "-out", "host.pem", *signed)
    return folder


@pytest.fixture
async def here(tmp_path: Path, certificates: Path) -> AsyncIterator[Standing]:
    flags = {
        "server.tls_cert": str(certificates / "host.pem"),
        "server.tls_key": str(certificates / "host.key"),
        "security.allow_hosts": [NAME],
    }
    async with standing(tmp_path, agents=("scripted",), flags=flags) as here:
        yield here


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*PROXIES, *map(str.lower, PROXIES), "SSL_CERT_FILE", "SSL_CERT_DIR", "PORTICO_CACERT"):
        monkeypatch.delenv(name, raising=False)


def _port(here: Standing) -> str:
    return here.url.rpartition(":")[2]


# -- authorities -------------------------------------------------------------------------------------------------


async def test_an_unknown_authority_is_rejected_with_the_way_out(here: Standing, certificates: Path) -> None:
    url = f"https://localhost:{_port(here)}"
    for cacert in ("", str(certificates / "other.pem")):
        async with Client(url, here.home.token(), cacert=cacert) as client:
            with pytest.raises(Unreachable, match="--cacert FILE or SSL_CERT_FILE"):
                await client.about()


@pytest.mark.parametrize("by", ["argument", "variable"])
async def test_a_named_authority_is_trusted(
    here: Standing, certificates: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    authority = str(certificates / "ca.pem")
    if by == "variable":
        monkeypatch.setenv("SSL_CERT_FILE", authority)
    cacert = authority if by == "argument" else ""
    async with Client(f"https://localhost:{_port(here)}", here.home.token(), cacert=cacert) as client:
        assert (await client.about())["you"] == "owner"


async def test_the_name_in_the_certificate_counts(here: Standing, certificates: Path) -> None:
    url = f"https://127.0.0.1:{_port(here)}"
    async with Client(url, here.home.token(), cacert=str(certificates / "ca.pem")) as client:
        with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
            await client.about()


@pytest.mark.parametrize("text", [None, "not a certificate"])
@pytest.mark.parametrize("by", ["--cacert", "SSL_CERT_FILE"])
def test_a_file_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, by: str
) -> None:
    path = tmp_path / "ca.pem"
    if text is not None:
        path.write_text(text)
    if by == "SSL_CERT_FILE":
        monkeypatch.setenv(by, str(path))
    with pytest.raises(Unreachable, match=f"{by} .*ca.pem"):
        authorities(str(path) if by == "--cacert" else "")


def test_the_command_line_takes_it_for_one_command_and_saves_it(
    here_process: tuple[str, str], certificates: Path, tmp_path: Path
) -> None:
    url, token = here_process

    def portico(*arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        more = {"XDG_CONFIG_HOME": str(tmp_path / "config"), "HOME": str(tmp_path), **variables}
        command = [sys.executable, "-m", "portico", *arguments]
        return subprocess.run(
            command, capture_output=True, text=True, env=environment(**more), cwd=certificates, timeout=60, check=False
        )

    plainly = portico("--url", url, "--token", token, "sessions", "list", "--json")
    assert plainly.returncode != 0
    assert "--cacert FILE or SSL_CERT_FILE" in plainly.stderr
    once = portico("--url", url, "--token", token, "--cacert", "ca.pem", "sessions", "list", "--json")
    assert (once.returncode, json.loads(once.stdout or "null")) == (0, []), once.stderr
    by_variable = portico("sessions", "list", "--json", PORTICO_URL=url, PORTICO_TOKEN=token, SSL_CERT_FILE="ca.pem")
    assert by_variable.returncode == 0, by_variable.stderr
    added = portico("--cacert", "ca.pem", "context", "add", "box", url, "--token", token)
    assert added.returncode == 0, added.stderr
    assert portico("--context", "box", "sessions", "list", "--json").returncode == 0


@pytest.fixture
def here_process(tmp_path: Path, certificates: Path) -> Iterator[tuple[str, str]]:
    """A host in its own process: the command line waits while it runs."""
    home = tmp_path / "serving"
    serve = ["serve", "0", "--tls-cert", str(certificates / "host.pem"), "--tls-key", str(certificates / "host.key")]
    with subprocess.Popen(
        [sys.executable, "-m", "portico", *serve],
        stderr=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env=environment(PORTICO_HOME=str(home)),
    ) as process:
        assert process.stderr is not None
        link = next(line.split()[-1] for line in process.stderr if line.startswith("Log in with:"))
        address, _, token = link.partition("/login?tkn=")
        yield f"https://localhost:{address.rpartition(':')[2]}", token
        process.terminate()
        process.stderr.read()


# -- proxies -----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def proxying(port: str) -> AsyncIterator[tuple[str, list[str]]]:
    """A proxy that knows `portico.test`: its address, and the first line of each request."""
    asked: list[str] = []

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readline()).decode().strip())
        while (await reader.readline()).strip():
            pass
        there = await asyncio.open_connection("127.0.0.1", int(port))
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        await asyncio.gather(copy(reader, there[1]), copy(there[0], writer), return_exceptions=True)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def test_a_host_on_another_machine_is_reached_through_the_proxy(
    here: Standing, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with proxying(_port(here)) as (proxy, asked):
        monkeypatch.setenv("HTTPS_PROXY", proxy)
        async with Client(f"https://{NAME}:8443", here.home.token(), cacert=str(certificates / "ca.pem")) as client:
            assert (await client.about())["you"] == "owner"
            session = await client.start(agent="scripted")
            async for _ in session.send("hi"):
                pass
            assert (await session.state()).turns[-1].outcome == "completed"
        assert {line.split()[:2][1] for line in asked} == {f"{NAME}:8443"}
        assert {line.split()[0] for line in asked} == {"CONNECT"}


async def test_a_host_on_this_machine_is_reached_directly(
    here: Standing, certificates: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    url = f"https://localhost:{_port(here)}"
    async with Client(url, here.home.token(), cacert=str(certificates / "ca.pem")) as client:
        assert (await client.about())["you"] == "owner"


async def test_a_proxy_that_cannot_be_used_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "nonsense://x")
    with pytest.raises(Unreachable, match="Check HTTPS_PROXY"):
        Client("https://box.example")


@pytest.mark.parametrize(
    ("url", "near"),
    [
        ("http://127.0.0.1:8888", True),
        ("https://localhost", True),
        ("http://[::1]:8888/base", True),
        ("http://a.localhost:1", True),
        ("https://box.example", False),
        ("https://127.0.0.1.example", False),
        ("https://10.0.0.1", False),
        ("http://", False),
    ],
)
def test_what_is_near(url: str, near: bool) -> None:
    assert is_near(url) is near
