"""SECURITY 25 and 28: a planted secret turns up neither in logs nor in errors, exports or the database."""

import sqlite3
from pathlib import Path

import httpx

from portico.server.home import Home
from tests.process import HostProcess, inside, portico

CANARY = "canary-7f3a9c-do-not-leak"


def test_a_planted_secret_shows_up_nowhere(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    owner = f"{CANARY}-owner-{'0' * 32}"
    (home / "token").write_text(owner)
    (home / "settings.toml").write_text('[log]\nlevel = "debug"\nformat = "json"\n')
    shown: list[str] = []
    with HostProcess(home, SOME_API_KEY=f"{CANARY}-env", OPENAI_API_KEY=f"{CANARY}-env2") as host:
        named = inside(home, "token", "new", "phone", "--scope", "read").stdout.strip()
        sent = portico(home, "send", "[[say:hello]]", "--agent", "scripted")
        assert sent.returncode == 0
        assert inside(home, "send", "[[crash]]", "--agent", "scripted").returncode == 1
        session = sent.stderr.strip()
        for command in (
            ["sessions", "show", session, "--json"],
            ["sessions", "export", session, "--format", "jsonl"],
            ["sessions", "tail", session, "--no-follow", "--json"],
            ["token", "list", "--json"],
            ["config", "--json"],
            ["doctor", "--json"],
        ):
            done = inside(home, *command)
            shown += [done.stdout, done.stderr]
        shown += _ask(host, owner) + _ask(host, f"{CANARY}-wrong") + _ask(host, named)
        inside(home, "token", "revoke", "phone")
        assert host.stop() == 0
        log = "".join(line for line in host.log().splitlines() if not line.startswith("Log in with:"))
    everything = "\n".join([*shown, log, _database(home), (home / "tokens.json").read_text()])
    assert len(everything) > 5_000
    assert CANARY not in everything
    assert named not in everything
    assert "Traceback" not in everything


def _ask(host: HostProcess, token: str) -> list[str]:
    """Good and bad calls with this token: everything that is answered."""
    headers = {"Authorization": f"Bearer {token}"}
    with httpx.Client(base_url=host.url, headers=headers, trust_env=False) as http:
        answers = [
            http.get("/v1"),
            http.get("/metrics"),
            http.get("/v1/audit"),
            http.get("/v1/events"),
            http.get("/v1/sessions/nosuch"),
            http.post("/v1/sessions", content=b"{"),
            http.get("/login", params={"tkn": token}),
            http.get("/v1", headers={"Host": "evil.example"}),
            http.get("/v1", headers={"Origin": "https://evil.example"}),
        ]
    return [answer.text + str(answer.headers) for answer in answers]


def _database(home: Path) -> str:
    parts = []
    for path in sorted(home.glob("log.db*")):
        parts.append(path.read_bytes().decode("latin-1"))
    with sqlite3.connect(Home(home).log_path) as database:
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            parts += [str(row) for row in database.execute(f"SELECT * FROM {name}")]
    database.close()
    return "\n".join(parts)
