"""SECURITY 22: vendors' logins are the vendors' programs' own. No agent of ours looks at them."""

import os
import stat
import subprocess
import sys
from pathlib import Path

from portico.agents.acp.program import PRESETS

STORES = (
    *(".claude/.credentials.json", ".codex/auth.json", ".copilot/config.json", ".gemini/oauth_creds.json", ".netrc"),
    *(".config/gh/hosts.yml", ".config/github-copilot/apps.json", ".local/share/opencode/auth.json"),
)

# Every agent that can be found is described and asked something; whatever is opened meanwhile is written down.
WATCHED = """
import asyncio, os, sys
from pathlib import Path
from portico.agents.agent import AgentContext
from portico.agents.registry import discover
from portico.kernel.events import Message
from portico.kernel.host import Host
from portico.kernel.log.sqlite import SqliteLog
from portico.server.compose import build_host

async def main(home, opened):
    sys.addaudithook(lambda name, given: opened.append((name, str(given[0]))) if name in EVENTS and given else None)
    host = await build_host(await SqliteLog.open(home / "log.db"), discover(AgentContext(home, {})))
    for info in await host.describe():
        session = await host.start(by="test", agent=info.id, cwd=str(home))
        turn = await session.wait(await session.send(Message("hello"), by="test"))
        print(info.id, turn.outcome)
    await host.close()

EVENTS = ("open", "os.listdir", "os.scandir")
seen = []
asyncio.run(main(Path(sys.argv[1]), seen))
assert any(sys.argv[1] in path for _, path in seen)
print("LOOKED", [path for _, path in seen if path.startswith(os.environ["HOME"])])
"""


def test_no_agent_opens_what_a_vendor_keeps(tmp_path: Path) -> None:
    programs, person, home = (tmp_path / name for name in ("programs", "person", "home"))
    for folder in (programs, home, *((person / store).parent for store in STORES)):
        folder.mkdir(parents=True, exist_ok=True)
    for store in STORES:
        (person / store).write_text("{}")
    for name in {preset.command[0] for preset in PRESETS.values()}:
        (programs / name).write_text("#!/bin/sh\nexit 4\n")
        (programs / name).chmod(stat.S_IRWXU)
    env = {"PATH": f"{programs}:/usr/bin:/bin", "HOME": str(person), "OLLAMA_HOST": "127.0.0.1:1"}
    env["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    done = subprocess.run(
        [sys.executable, "-c", WATCHED, str(home)], env=env, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode == 0, done.stderr
    *asked, looked = done.stdout.splitlines()
    names = {line.split()[0] for line in asked}
    assert {"acp:claude", "acp:codex", "acp:opencode", "copilot", "loop"} <= names
    assert looked == "LOOKED []"
