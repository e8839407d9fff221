"""`portico serve --lan` in a network of its own: run by test_lan.py below `unshare --net`. Writes what it has seen to
`seen.json`.

The loopback device gets a private address and a route, so `--lan` finds the address as on a machine in a network.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from portico.server.home import Home
from portico.server.lan import LAN_AUTHORITY
from tests.process import HostProcess, environment, inside

ADDRESS = "10.77.0.1"
OTHER_ADDRESS = "10.77.0.2"


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def join_network(address: str) -> None:
    ip("address", "add", f"{address}/24", "dev", "lo")
    ip("route", "replace", "192.0.2.0/24", "dev", "lo", "src", address)


def curl(*arguments: str) -> dict[str, Any]:
    command = ["curl", "--silent", "--max-time", "20", "--noproxy", "*", "--dump-header", "-", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment())
    head, _, body = done.stdout.replace("\r\n", "\n").partition("\n\n")
    return {"code": done.returncode, "head": head, "body": body}


def browse(home: Path, url: str) -> list[str]:
    """The page as Chromium shows it, and its log, with the certificates of a home folder."""
    command = [
        "chromium",
        "--headless",
        "--enable-logging=stderr",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--dump-dom",
        url,
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=90, check=False, env=environment(HOME=str(home))
    )
    return [done.stdout, done.stderr]


def trust(home: Path, authority: Path) -> None:
    database = home / ".pki" / "nssdb"
    database.mkdir(parents=True)
    subprocess.run(["certutil", "-N", "--empty-password", "-d", f"sql:{database}"], check=True)
    added = ["certutil", "-A", "-d", f"sql:{database}", "-n", "portico", "-t", "C,,", "-i", str(authority)]
    subprocess.run(added, check=True)


def walk(folder: Path, browser: bool) -> dict[str, Any]:
    ip("link", "set", "lo", "up")
    join_network(ADDRESS)
    home = folder / "home"
    seen: dict[str, Any] = {}
    with HostProcess(home, "--lan") as host:
        authority = home / LAN_AUTHORITY
        base = f"https://{ADDRESS}:{host.port}"
        known = ["--cacert", str(authority)]
        pair = inside(home, "pair")
        seen["pair"] = [pair.returncode, pair.stdout, pair.stderr]
        code = pair.stdout.split()[-1]
        token = Home(home).token()
        seen["endpoint"] = json.loads((home / "endpoint.json").read_text())["url"]
        seen["plain"] = curl(f"http://{ADDRESS}:{host.port}/login?tkn={token}")
        seen["loopback"] = curl("--insecure", f"https://127.0.0.1:{host.port}/pair/authority.crt")
        seen["stranger"] = curl(f"{base}/pair")
        seen["authority"] = curl("--insecure", f"{base}/pair/authority.crt")["body"] == authority.read_text()
        seen["other name"] = curl(*known, "--header", "Host: evil.example", f"{base}/pair/authority.crt")
        form = ["--data-urlencode", f"code={code}", "--data-urlencode", "device=Phone"]
        seen["paired"] = curl(*known, "--header", f"Origin: {base}", *form, f"{base}/pair")
        seen["again"] = curl(*known, "--header", f"Origin: {base}", *form, f"{base}/pair")
        if browser:
            (folder / "stranger").mkdir()
            trust(folder / "phone", authority)
            seen["page of a stranger"] = browse(folder / "stranger", f"{base}/pair")
            seen["page"] = browse(folder / "phone", f"{base}/pair")
    ip("address", "del", f"{ADDRESS}/24", "dev", "lo")
    join_network(OTHER_ADDRESS)
    with HostProcess(home, "--lan") as host:
        seen["moved"] = curl(*known, f"https://{OTHER_ADDRESS}:{host.port}/pair/authority.crt")
    ip("address", "add", "203.0.113.9/24", "dev", "lo")
    ip("route", "replace", "192.0.2.0/24", "dev", "lo", "src", "203.0.113.9")
    public = inside(home, "serve", "--lan", "--port", "0")
    seen["public"] = [public.returncode, public.stderr]
    return seen


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "seen.json").write_text(json.dumps(walk(folder, "browser" in sys.argv[2:])))
