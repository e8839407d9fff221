"""`portico pair` on a loopback host: Tailscale forwards an address of the user's own network to it."""

import re
import socket
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx
import pytest

from portico.kernel.errors import Conflict
from portico.server import tailscale
from portico.server.home import Home
from portico.server.phone_address import phone_address
from portico.server.settings import ServerSettings
from portico.server.settings_load import load
from tests.pairing.fake_tailscale import NAME, FakeTailscale
from tests.process import HostProcess, inside

TARGET = "http://127.0.0.1:8888"


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeTailscale:
    made = FakeTailscale(tmp_path / "tailscale")
    monkeypatch.setenv("PATH", f"{made.bin}:/usr/bin:/bin")
    return made


def site(port: int, target: str, path: str = "/") -> dict[str, Any]:
    return {"TCP": {str(port): {"HTTPS": True}}, "Web": {f"{NAME}:{port}": {"Handlers": {path: {"Proxy": target}}}}}


OTHER = "http://127.0.0.1:3000"
# What is served before, the address that is used, and whether something was changed.
SERVED = [
    ({}, f"https://{NAME}", True),
    (site(443, TARGET), f"https://{NAME}", False),
    (site(443, f"{TARGET}/"), f"https://{NAME}", False),
    (site(8443, TARGET), f"https://{NAME}:8443", False),
    (site(443, OTHER), f"https://{NAME}:8443", True),
    (site(443, OTHER, "/app"), f"https://{NAME}:8443", True),
    ({"TCP": {"443": {"TCPForward": "127.0.0.1:22"}}}, f"https://{NAME}:8443", True),
    ({**site(443, TARGET), "AllowFunnel": {f"{NAME}:443": True}}, f"https://{NAME}:8443", True),
    ({**site(443, TARGET), "AllowFunnel": {f"{NAME}:443": False}}, f"https://{NAME}", False),
    ({"AllowFunnel": {f"{NAME}:443": True}}, f"https://{NAME}:8443", True),
    ({"Foreground": {"s1": site(443, OTHER)}}, f"https://{NAME}:8443", True),
    (
        {"Foreground": {"s1": {**site(443, OTHER), "AllowFunnel": {f"{NAME}:8443": True}}}},
        f"https://{NAME}:10000",
        True,
    ),
    (
        {
            "TCP": {"443": {"HTTPS": True}, "8443": {"HTTPS": True}},
            "Web": {
                f"{NAME}:443": {"Handlers": {"/": {"Path": "/srv/www"}}},
                f"{NAME}:8443": {"Handlers": {"/": {"Proxy": TARGET}, "/docs": {"Proxy": OTHER}}},
            },
        },
        f"https://{NAME}:10000",
        True,
    ),
]


@pytest.mark.parametrize(("served", "url", "changed"), SERVED)
async def test_what_the_user_serves_stays(fake: FakeTailscale, served: Any, url: str, changed: bool) -> None:
    fake.state(serve=served)
    before = fake.served
    forwarded = await tailscale.forward(TARGET)
    assert forwarded.url == url
    assert [each[:2] for each in fake.changes] == ([["serve", "--bg"]] if changed else [])
    after = fake.served
    for name, kept in before.get("Web", {}).items():
        assert after["Web"][name] == kept
    assert after.get("AllowFunnel") == before.get("AllowFunnel")
    assert after["Web"][f"{NAME}:{forwarded.port}"]["Handlers"]["/"]["Proxy"].rstrip("/") == TARGET
    assert await tailscale.forward(TARGET) == forwarded, "a second time changes nothing"
    assert len(fake.changes) == changed


FULL = {"TCP": {str(port): {"HTTPS": True} for port in (443, 8443, 10000)}}
OPERATOR = "Access denied: serve config denied. Use 'sudo tailscale set --operator=$USER' once."
ENABLE = "Serve is not enabled on your tailnet. To enable, visit: https://login.tailscale.com/f/serve?node=n1"
REFUSED = [
    ({"status": {"BackendState": "NeedsLogin"}}, "not logged in: run `tailscale up`"),
    ({"status": {"BackendState": "Stopped"}}, "not logged in: run `tailscale up`"),
    ({"status": {"CertDomains": None}}, "no HTTPS certificates"),
    ({"status": {"CertDomains": ["other.tail1234.ts.net"]}}, "no HTTPS certificates"),
    ({"status": {"Self": {"DNSName": ""}}}, "no HTTPS certificates"),
    ({"status": "not JSON"}, "cannot be read"),
    ({"status": "[]"}, "cannot be read"),
    ({"serve": FULL}, "443, 8443, 10000"),
    ({"refuses": OPERATOR}, "sudo tailscale set --operator"),
    ({"refuses": f"\x1b[31m{ENABLE}\x1b[0m", "waits": True}, f"waits:.*{re.escape(ENABLE)}"),
]


@pytest.mark.parametrize(("state", "words"), REFUSED)
async def test_the_reason_and_the_other_ways(
    fake: FakeTailscale, monkeypatch: pytest.MonkeyPatch, state: Any, words: str
) -> None:
    monkeypatch.setattr(tailscale, "_SERVE_SECONDS", 1.0)
    fake.state(**state)

    async def publish(url: str) -> ServerSettings:
        raise AssertionError(url)

    with pytest.raises(Conflict, match=f"(?s){words}.*cloudflared tunnel.*portico serve --lan") as refused:
        await phone_address(ServerSettings(), 8888, "", publish)
    assert "\x1b" not in refused.value.message


@pytest.mark.parametrize(
    ("settings", "target"),
    [
        (ServerSettings(), TARGET),
        (ServerSettings(host="::1"), "http://localhost:8888"),
        (ServerSettings(host="localhost"), "http://localhost:8888"),
        (ServerSettings(tls_cert="c"), "https+insecure://127.0.0.1:8888"),
    ],
)
async def test_the_target(fake: FakeTailscale, settings: ServerSettings, target: str) -> None:
    async def publish(url: str) -> ServerSettings:
        return ServerSettings(public_url=url)

    made = await phone_address(settings, 8888, "/base", publish)
    assert (made.url, "tailscale serve --https=443 off" in made.note) == (f"https://{NAME}/base", True)
    assert fake.served["Web"][f"{NAME}:443"]["Handlers"]["/"]["Proxy"] == target


# Settings of the host, and why Tailscale is not asked.
NOT_TRIED = [
    (ServerSettings(public_url="https://box.example"), ""),
    (ServerSettings(host="192.168.1.20", tls_cert="c"), ""),
    (ServerSettings(host="192.168.1.20"), "127.0.0.1"),
    (ServerSettings(host="0.0.0.0", tls_cert="c"), "127.0.0.1"),
    (ServerSettings(unix_socket="/run/portico"), "127.0.0.1"),
    (ServerSettings(port=0), "set server.port"),
]


@pytest.mark.parametrize(("settings", "words"), NOT_TRIED)
async def test_where_tailscale_is_not_used(fake: FakeTailscale, settings: ServerSettings, words: str) -> None:
    async def publish(url: str) -> ServerSettings:
        raise AssertionError(url)

    if words:
        with pytest.raises(Conflict, match=words):
            await phone_address(settings, 8888, "", publish)
    else:
        await phone_address(settings, 8888, "", publish)
    assert fake.changes == []


async def test_a_host_without_tokens_is_not_offered_to_the_network(fake: FakeTailscale) -> None:
    with pytest.raises(Conflict, match="--without-token"):
        await phone_address(ServerSettings(), 8888, "")
    assert fake.changes == []


def test_the_first_other_way_that_is_available(fake: FakeTailscale) -> None:
    fake.state(status={"BackendState": "Stopped"})
    home = fake.folder / "home"
    port = free_port()
    with HostProcess(home, port=port, PATH=f"{fake.bin}:/usr/bin:/bin"):
        assert "available here is `portico serve --lan`" in " ".join(inside(home, "pair").stderr.split())
    (fake.bin / "cloudflared").write_text("#!/bin/sh\n")
    (fake.bin / "cloudflared").chmod(0o755)
    with HostProcess(home, port=port, PATH=f"{fake.bin}:/usr/bin:/bin"):
        printed = " ".join(inside(home, "pair").stderr.split())
        assert f"available here is `cloudflared tunnel --url http://127.0.0.1:{port}`" in printed


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        found: int = probe.getsockname()[1]
        return found


def test_a_phone_is_paired_over_tailscale_and_survives_a_kill(fake: FakeTailscale) -> None:
    """As Tailscale forwards: the Host header is the public one, the connection is plain HTTP from 127.0.0.1."""
    home, port = fake.folder / "home", free_port()
    phone = httpx.Client(base_url=f"http://127.0.0.1:{port}", headers={"Host": NAME, "Origin": f"https://{NAME}"})
    with phone:
        with HostProcess(home, port=port, PATH=f"{fake.bin}:/usr/bin:/bin") as host:
            done = inside(home, "pair")
            assert f"https://{NAME}/pair" in done.stdout, done.stderr
            assert "tailscale serve --https=443 off" in done.stderr
            assert fake.changes == [["serve", "--bg", "--https=443", f"http://127.0.0.1:{port}"]]
            assert load(home / "settings.toml").settings.server.public_url == f"https://{NAME}"
            answer = phone.post("/pair", data={"code": done.stdout.split()[-1], "device": "Phone"})
            assert answer.status_code == 303, answer.text
            [(name, cookie)] = SimpleCookie(answer.headers["set-cookie"]).items()
            assert (name[:7], bool(cookie["secure"])) == ("__Host-", True)
            sent = {"Cookie": f"{name}={cookie.value}", "X-Portico-Key": answer.headers["location"][-64:]}
            assert phone.get("/v1/sessions", headers=sent).status_code == 200
            host.kill()
        with HostProcess(home, port=port, PATH=f"{fake.bin}:/usr/bin:/bin"):
            assert phone.get("/v1/sessions", headers=sent).status_code == 200
            assert f"https://{NAME}/pair" in inside(home, "pair").stdout
            assert len(fake.changes) == 1
        assert Home(home).settings_path.stat().st_mode & 0o077 == 0
