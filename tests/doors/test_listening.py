"""Where a host can listen: TLS, a Unix socket, sockets of systemd; and the local clients still find it."""

import asyncio
import os
import shutil
import socket
import ssl
import subprocess
import sys
from http.cookies import SimpleCookie
from pathlib import Path

import httpx
import pytest

from portico.client import Client
from portico.kernel.errors import BadRequest, Unreachable
from portico.server.home import Home
from portico.server.server import Server
from portico.server.sockets import listen_unix
from tests.doors.standing import options, standing
from tests.process import PORTICO, environment, needs_openssl, watchdog


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    """Signed by itself, for one name."""
    needs_openssl()
    cert, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += ["-keyout", str(key), "-out", str(cert), "-days", "2", "-subj", f"/CN={name}"]
    subprocess.run([*command, "-addext", f"subjectAltName=DNS:{name}"], check=True, capture_output=True)
    return cert, key


def subject(port: int, cert: Path) -> str:
    """The name in the certificate that a new connection gets."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    with socket.create_connection(("127.0.0.1", port)) as raw, context.wrap_socket(raw) as wrapped:
        found = wrapped.getpeercert(binary_form=True)
    assert found is not None
    text = subprocess.run(
        ["openssl", "x509", "-inform", "der", "-noout", "-subject"], input=found, capture_output=True, check=True
    )
    return text.stdout.decode().strip().rpartition("=")[2].strip()


async def test_tls_with_a_certificate_that_is_renewed(tmp_path: Path) -> None:
    cert, key = certificate(tmp_path, "first.example")
    flags = {"server.tls_cert": str(cert), "server.tls_key": str(key)}
    async with standing(tmp_path, flags=flags) as here:
        assert here.url.startswith("https://")
        async with Client.local(here.home.path) as client:
            assert (await client.about())["you"] == "owner"
        async with httpx.AsyncClient(verify=False, trust_env=False) as browser:
            answer = await browser.get(here.server.login_url)
            cookie = SimpleCookie(answer.headers["set-cookie"])
            (name,) = cookie
            assert name == f"__Host-portico-{here.server.port}"
            assert (cookie[name]["secure"], cookie[name]["path"], cookie[name]["domain"]) == (True, "/", "")
            assert (await browser.get(f"{here.url}/jobs.html", follow_redirects=False)).status_code != 303
        assert await asyncio.to_thread(subject, here.server.port, cert) == "first.example"
        assert here.server.certificate is not None
        cert.write_text("broken")
        assert not here.server.certificate.reload()
        with pytest.raises(Unreachable, match="cannot be read"):  # the command line ended with a traceback
            Client.local(here.home.path)
        assert await asyncio.to_thread(subject, here.server.port, cert) == "first.example"
        certificate(tmp_path, "second.example")
        while await asyncio.to_thread(subject, here.server.port, cert) != "second.example":  # noqa: ASYNC110 - a file
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("missing", ["server.tls_key", "file"])
async def test_a_certificate_that_cannot_be_used_is_told_at_the_start(tmp_path: Path, missing: str) -> None:
    flags = {"server.tls_cert": str(tmp_path / "none.pem")}
    if missing == "file":
        flags["server.tls_key"] = str(tmp_path / "none.pem")
    with pytest.raises(BadRequest):
        await Server(options(tmp_path, flags=flags)).__aenter__()


async def test_a_unix_socket_and_no_address(tmp_path: Path) -> None:
    path = tmp_path / "portico.sock"
    async with standing(tmp_path, flags={"server.unix_socket": str(path), "server.trusted_proxies": ["unix"]}) as here:
        assert (here.server.port, path.stat().st_mode & 0o777) == (0, 0o660)
        async with Client.local(here.home.path) as client:
            session = await client.start(agent="scripted", cwd=str(tmp_path))
            records = [record async for record in session.send("hello")]
            assert records[-1].event.outcome == "completed"  # type: ignore[attr-defined]
        transport = httpx.AsyncHTTPTransport(uds=str(path))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as proxy:
            forwarded = {
                "X-Forwarded-Proto": "https",
                "X-Forwarded-Host": "localhost",
                "X-Forwarded-For": "203.0.113.9",
            }
            answer = await proxy.get(f"/login?tkn={here.home.token()}", headers=forwarded)
            assert "__Host-portico-0=" in answer.headers["set-cookie"]
    assert not path.exists()


def test_a_socket_that_a_dead_host_left_is_replaced_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "s"
    listen_unix(path).close()
    second = listen_unix(path)
    second.listen()
    with pytest.raises(BadRequest, match="in use"):
        listen_unix(path)
    second.close()
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(BadRequest):
        listen_unix(file)
    assert file.read_text() == "mine"


HANDED = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.set_inheritable(3, True)
os.environ["LISTEN_PID"], os.environ["LISTEN_FDS"] = str(os.getpid()), "1"
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_UNIX])
def test_sockets_of_systemd(tmp_path: Path, family: socket.AddressFamily) -> None:
    """As `systemd-socket-activate` hands them over: from descriptor 3 on, with two variables."""
    path = tmp_path / "activated"
    with socket.socket(family) as waiting:
        waiting.bind(("127.0.0.1", 0) if family is socket.AF_INET else str(path))
        waiting.listen()
        command = [
            sys.executable,
            "-c",
            HANDED,
            str(waiting.fileno()),
            PORTICO,
            "serve",
            "--agent",
            "demo",
            "--print-ready",
        ]
        with (
            subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                text=True,
                cwd=tmp_path,
                pass_fds=[waiting.fileno()],
                env=environment(PORTICO_HOME=str(tmp_path / "home")),
            ) as process,
            watchdog(process),
        ):
            assert process.stdout is not None
            expected = waiting.getsockname()[1] if family is socket.AF_INET else 0
            assert process.stdout.readline() == f"READY:{expected}\n"
            assert asyncio.run(_you(tmp_path / "home")) == "owner"
            process.terminate()
            assert process.wait(60) == 0
    assert os.path.exists(path) is (family is socket.AF_UNIX), "systemd's socket is not ours to remove"


@pytest.mark.skipif(shutil.which("systemd-socket-activate") is None, reason="needs systemd-socket-activate")
def test_systemd_starts_it_with_the_first_connection(tmp_path: Path) -> None:
    """The real program: it listens, and starts the host for whoever connects, who is answered, on every socket."""
    paths = [tmp_path / "first", tmp_path / "second"]
    serve = [PORTICO, "serve", "--agent", "demo", "--home", str(tmp_path / "home")]
    command = ["systemd-socket-activate", *(f"--listen={path}" for path in paths), *serve]
    with (
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path, env=environment()) as process,
        watchdog(process),
    ):
        assert process.stderr is not None
        for path in paths:
            assert process.stderr.readline().startswith(f"Listening on {path} as ")
        assert not (tmp_path / "home").exists(), "nobody has come yet"
        for path in paths:
            with httpx.Client(transport=httpx.HTTPTransport(uds=str(path)), timeout=60) as client:
                assert client.get("http://localhost/healthz").json() == {"ok": True}
        assert asyncio.run(_you(tmp_path / "home")) == "owner"
        process.terminate()
        assert process.wait(60) == 0
    assert all(path.exists() for path in paths)


async def _you(home: Path) -> str:
    assert Home(home).endpoint() is not None
    async with Client.local(home) as client:
        return str((await client.about())["you"])
