"""A program `tailscale` for tests: it reads its state from a file, and writes down how it was called.

The real program needs an account and a network device. The JSON has the form of `tailscale status --json` and of
`tailscale serve status --json`, which is the stored configuration (ipn.ServeConfig)."""

import json
import sys
from pathlib import Path
from typing import Any

NAME = "box.tail1234.ts.net"
PROGRAM = """#!{python}
import json, pathlib, sys, time
folder = pathlib.Path({folder!r})
state = json.loads((folder / "state.json").read_text())
arguments = sys.argv[1:]
with (folder / "calls.jsonl").open("a") as calls:
    calls.write(json.dumps(arguments) + "\\n")
print("Warning: client version does not match the tailscaled server version", file=sys.stderr)
if arguments == ["status", "--json"]:
    print(state["status"] if isinstance(state["status"], str) else json.dumps(state["status"]))
elif arguments == ["serve", "status", "--json"]:
    print(json.dumps(state["serve"]))
elif arguments[:2] == ["serve", "--bg"] and len(arguments) == 4:
    if state.get("refuses"):
        print(state["refuses"], file=sys.stderr)
        if state.get("waits"):
            sys.stdin.read(), sys.stdout.flush(), sys.stderr.flush()
            import signal
            signal.pause()
        sys.exit(1)
    port = arguments[2].removeprefix("--https=")
    served = state["serve"]
    served.setdefault("TCP", {{}})[port] = {{"HTTPS": True}}
    site = served.setdefault("Web", {{}}).setdefault("{name}:" + port, {{"Handlers": {{}}}})
    site["Handlers"]["/"] = {{"Proxy": arguments[3]}}
    (folder / "state.json").write_text(json.dumps(state))
    print("Available within your tailnet:")
else:
    print("unknown command", arguments, file=sys.stderr)
    sys.exit(2)
"""


class FakeTailscale:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        program = self.bin / "tailscale"
        program.write_text(PROGRAM.format(python=sys.executable, folder=str(folder), name=NAME))
        program.chmod(0o755)
        self.state()

    def state(self, **given: Any) -> None:
        status = {
            "Version": "1.96.4",
            "BackendState": "Running",
            "Self": {"HostName": "box", "DNSName": f"{NAME}.", "Online": True},
            "MagicDNSSuffix": "tail1234.ts.net",
            "CertDomains": [NAME],
        }
        status |= given.pop("status", {}) if isinstance(given.get("status"), dict) else {}
        (self.folder / "state.json").write_text(json.dumps({"status": status, "serve": {}, **given}))

    @property
    def served(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "state.json").read_text())["serve"]
        return found

    @property
    def changes(self) -> list[list[str]]:
        """The calls that change something."""
        path = self.folder / "calls.jsonl"
        calls = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        return [each for each in calls if each[-1] != "--json"]
