"""`portico doctor --editor`: knocks as editors do, and says what to paste into them."""

import json
from pathlib import Path

import pytest

from portico.cli.editor_check import EditorAddress, find_address, settings
from portico.server.home import Home
from tests.process import HostProcess, inside


def test_a_host_that_editors_can_use(host: HostProcess, home: Path) -> None:
    done = inside(home, "doctor", "--editor", "--json")
    assert done.returncode == 0
    said = json.loads(done.stdout)
    assert {each["what"]: each["detail"] for each in said["findings"]} == {
        "editor": f"ws://127.0.0.1:{host.port}/ lets desktop VS Code in",
        "without a token": "is refused (403)",
        "a web page": "is refused (403)",
        "VS Code 1.139": "speaks 0.9.0",
        "Copilot CLI": "speaks 0.9.0",
        "protocol 1.0": "speaks 1.0.0",
        "protocol version 1": "speaks 1",
    }
    token = (home / "token").read_text().strip()
    desktop, browser, coder, copilot = said["settings"].values()
    assert json.loads(desktop)["chat.remoteAgentHosts"] == [
        {"name": "Portico", "address": f"ws://127.0.0.1:{host.port}", "connectionToken": token}
    ]
    assert f"--agent-host-bridge-port {host.port} --agent-host-bridge-connection-token {token}" in browser
    assert f"--vscode-option agent-host-bridge-connection-token={token}" in coder
    flag = "COPILOT_CLI_ENABLED_FEATURE_FLAGS=AHP_CLIENT"  # without it the CLI says that --ahp is not enabled
    assert copilot == f"{flag} copilot --ahp 'ws://127.0.0.1:{host.port}/?tkn={token}'"
    shown = inside(home, "doctor", "--editor")
    assert (shown.returncode, "settings.json:" in shown.stdout, copilot in shown.stdout) == (0, True, True)


def test_what_is_wrong_is_said(host: HostProcess, home: Path, tmp_path: Path) -> None:
    wrong = inside(home, "doctor", "--address", f"127.0.0.1:{host.port}?tkn=wrong")
    assert wrong.returncode == 1
    assert "answers 403: This token is not valid" in wrong.stdout
    assert "settings.json" not in wrong.stdout
    nobody = inside(home, "doctor", "--address", "ws://127.0.0.1:1/ahp?tkn=x")
    assert (nobody.returncode, "cannot be reached" in nobody.stdout) == (1, True)
    stopped = inside(tmp_path / "home", "doctor", "--editor")
    assert (stopped.returncode, "Start one with: portico serve" in stopped.stderr) == (66, True)


@pytest.mark.parametrize(
    ("given", "url", "token"),
    [
        ("127.0.0.1:8888?tkn=t", "ws://127.0.0.1:8888/", "t"),
        ("ws://box:1/ahp?tkn=a%2Bb", "ws://box:1/ahp", "a+b"),
        ("https://box.example", "wss://box.example/", ""),
    ],
)
def test_addresses(tmp_path: Path, given: str, url: str, token: str) -> None:
    assert find_address(Home(tmp_path), given) == EditorAddress(url, token)


def test_a_secure_address_has_its_own_port() -> None:
    assert "--agent-host-bridge-port 443" in list(settings(EditorAddress("wss://box.example/", "t")).values())[1]
