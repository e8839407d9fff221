"""Pairing codes: what a phone gets, what a stranger gets, and certificates for the local network."""

import socket
import ssl
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from portico.features.pairing.commands import PairDevice
from portico.features.pairing.pairing import Pairing, PhoneAddress, qr_rows
from portico.kernel.commands import Caller
from portico.kernel.errors import BadRequest, Conflict, Forbidden, RateLimited
from portico.kernel.host import Host
from portico.server.home import Home
from portico.server.identity import Tokens, read_tokens, revoke_token
from portico.server.lan import LAN_AUTHORITY, certificate, private_address
from portico.server.origin import origin_of
from portico.server.phone_address import phone_address
from portico.server.settings import ServerSettings
from portico.testing.fixtures import HostOpener
from tests.process import HostProcess, inside

ALL = frozenset({"read", "drive", "approve", "files", "terminal", "jobs", "admin"})
OWNER = Caller("owner", "owner", ALL)


@pytest.fixture
async def pairing(open_host: HostOpener, tmp_path: Path) -> tuple[Host, Home, Pairing]:
    host, home = await open_host(), Home(tmp_path / "home")
    home.make()

    async def address() -> PhoneAddress:
        return PhoneAddress("https://box.example")

    return host, home, Pairing(host, home, address)


async def test_a_code_logs_one_device_in_once(pairing: tuple[Host, Home, Pairing]) -> None:
    host, home, codes = pairing
    made = await host.do(PairDevice(), OWNER)
    assert made.url == f"https://box.example/pair#{made.code}"
    assert set(made.scopes) == ALL - {"admin"}
    ident = await codes.redeem(made.code.lower().replace("-", " "), "  Ada's   phone ")
    assert ident is not None
    caller = Tokens(home).by_id(ident)
    assert caller is not None
    assert caller.scopes == ALL - {"admin"}
    (token,) = read_tokens(home)
    assert (token.device, token.name) == ("Ada's phone", f"device-{ident}")
    assert await codes.redeem(made.code, "another") is None
    revoke_token(home, token.name)
    assert Tokens(home).by_id(ident) is None


async def test_a_code_expires_after_five_minutes(
    pairing: tuple[Host, Home, Pairing], monkeypatch: pytest.MonkeyPatch
) -> None:
    host, home, codes = pairing
    made = await host.do(PairDevice(scopes=["read"]), OWNER)
    later = time.monotonic() + 301
    monkeypatch.setattr("portico.features.pairing.pairing.time.monotonic", lambda: later)
    assert await codes.redeem(made.code, "phone") is None
    assert read_tokens(home) == []


async def test_guessing_is_stopped(pairing: tuple[Host, Home, Pairing]) -> None:
    host, home, codes = pairing
    made = await host.do(PairDevice(), OWNER)
    for _ in range(20):
        assert await codes.redeem("BBBBBBBB", "thief") is None
    with pytest.raises(RateLimited):
        await codes.redeem(made.code, "phone")
    assert read_tokens(home) == []


async def test_a_code_gives_no_more_than_its_maker_has(pairing: tuple[Host, Home, Pairing]) -> None:
    host, _, _ = pairing
    few = Caller("few", "few", frozenset({"read", "admin"}))
    assert (await host.do(PairDevice(), few)).scopes == ["read"]
    with pytest.raises(Forbidden, match="your own scopes"):
        await host.do(PairDevice(scopes=["terminal"]), few)
    with pytest.raises(Forbidden):
        await host.do(PairDevice(), Caller("driver", "driver", frozenset({"read", "drive"})))


@pytest.mark.parametrize(
    ("settings", "address"),
    [
        (ServerSettings(public_url="https://box.example/portico/"), "https://box.example/portico"),
        (ServerSettings(host="192.168.1.20", tls_cert="c"), "https://192.168.1.20:8888"),
        (ServerSettings(host="192.168.1.20"), None),  # never plain HTTP
        (ServerSettings(), None),
        (ServerSettings(host="0.0.0.0", tls_cert="c"), None),
    ],
)
async def test_the_address_in_the_code(settings: ServerSettings, address: str | None) -> None:
    if address is not None:
        assert await phone_address(settings, 8888, "") == (address, "")
        return
    with pytest.raises(Conflict, match=r"tailscale serve --bg 8888.*cloudflared tunnel.*portico serve --lan"):
        await phone_address(settings, 8888, "")


def test_a_qr_code_is_a_square_with_a_border() -> None:
    rows = qr_rows("https://box.example/pair#BCDF-GHJK")
    assert {len(row) for row in rows} == {len(rows)}
    assert rows[0] == "0" * len(rows)
    assert rows[2].startswith("001111111")


def test_the_authority_is_created_once_and_signs_private_addresses(tmp_path: Path) -> None:
    from cryptography import x509

    cert, key = certificate(tmp_path, "192.168.1.20")
    authority = (tmp_path / LAN_AUTHORITY).read_bytes()
    assert certificate(tmp_path, "192.168.1.20") == (cert, key)
    before = cert.read_bytes()
    certificate(tmp_path, "192.168.1.21")  # the machine has another address now
    assert cert.read_bytes() != before
    assert (tmp_path / LAN_AUTHORITY).read_bytes() == authority
    assert {oct(path.stat().st_mode & 0o777) for path in tmp_path.glob("*.key")} == {"0o600"}
    made = x509.load_pem_x509_certificate(cert.read_bytes())
    assert made.not_valid_after_utc - datetime.now(UTC) < timedelta(days=398)
    ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(cert, key)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProcess]:
    home = tmp_path_factory.mktemp("pair") / "home"
    with HostProcess(home, "--public-url", "https://box.example") as host:
        yield host


def test_a_phone_is_paired_through_its_page(served: HostProcess) -> None:
    printed = inside(served.home, "pair", "--scopes", "read,approve").stdout
    assert "https://box.example/pair" in printed
    code = printed.split()[-1]
    base = f"http://127.0.0.1:{served.port}"
    with httpx.Client(base_url=base) as phone:
        form = {"code": code, "device": "Phone"}
        wrong = phone.post("/pair", data={**form, "code": "BBBB-BBBB"})
        assert (wrong.status_code, wrong.headers["location"]) == (303, "/pair?error=1")
        done = phone.post("/pair", data=form)
        where = urlsplit(done.headers["location"])
        assert (done.status_code, where.path, where.fragment[:4]) == (303, "/app/inbox", "key=")
        key = {"x-portico-key": where.fragment[4:]}
        assert phone.get("/v1/sessions", headers=key).status_code == 200
        assert phone.post("/v1/sessions", json={}, headers=key).status_code == 403
        assert phone.get("/pair/authority.crt").status_code == 404
    owner = {"Authorization": f"Bearer {Home(served.home).token()}"}
    listed = httpx.get(f"{base}/v1/tokens", headers=owner).json()["tokens"]
    assert [(each["device"], each["scopes"]) for each in listed] == [("Phone", ["read", "approve"])]


@pytest.mark.parametrize("host", ["box.example", "127.0.0.1"])
@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://box.example", 303),
        ("https://BOX.example", 303),
        ("http://box.example.evil", 403),
        ("https://box.example:444", 403),
        ("https://evil.example", 403),
        ("null", 403),
    ],
)
def test_a_browser_behind_a_proxy_that_ends_tls(served: HostProcess, host: str, origin: str, status: int) -> None:
    """It sends the public origin, but the host sees plain HTTP: pairing was refused with 403."""
    base = f"http://127.0.0.1:{served.port}"
    headers = {"Host": host, "Origin": origin, "Sec-Fetch-Site": "same-origin"}
    answer = httpx.post(f"{base}/pair", data={"code": "BBBB-BBBB", "device": "Phone"}, headers=headers)
    assert answer.status_code == status


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("", ""),
        ("https://box.example", "https://box.example"),
        ("https://Box.example:443/base/", "https://box.example"),
        ("http://box.example:80", "http://box.example"),
        ("https://box.example:8443", "https://box.example:8443"),
        ("http://[::1]:8000/", "http://[::1]:8000"),
    ],
)
def test_the_origin_of_an_address(url: str, origin: str) -> None:
    assert origin_of(url) == origin


def test_a_device_that_trusts_the_authority_trusts_the_host(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    cert, key = certificate(home, "127.0.0.1")
    with HostProcess(home, "--tls-cert", str(cert), "--tls-key", str(key)) as host:
        trust = ssl.create_default_context(cafile=str(home / LAN_AUTHORITY))
        page = httpx.get(f"https://127.0.0.1:{host.port}/pair/authority.crt", verify=trust)
        assert page.content == (home / LAN_AUTHORITY).read_bytes()
        refused = inside(home, "pair")
        assert (refused.returncode, "portico serve --lan" in refused.stderr) == (75, True), refused.stderr


@pytest.mark.parametrize(("address", "words"), [("203.0.113.9", "is public"), ("192.168.1.20", "")])
def test_only_a_private_address_is_served(monkeypatch: pytest.MonkeyPatch, address: str, words: str) -> None:
    """The address is the one that the system would send from."""

    class Probe(socket.socket):
        def connect(self, address: Any) -> None:
            pass

        def getsockname(self) -> Any:
            return (address, 1)

    monkeypatch.setattr("portico.server.lan.socket.socket", Probe)
    if not words:
        assert private_address() == address
        return
    with pytest.raises(BadRequest, match=words):
        private_address()
