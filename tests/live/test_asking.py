"""Real agents with every request denied: nothing happens that they asked for, and nothing without a request."""

import http.server
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from portico.agents.acp import acp
from portico.agents.acp.agent import AcpAgent
from portico.agents.acp.program import PRESETS
from portico.agents.agent import AgentContext
from portico.testing.model import ModelServer
from tests.live.host import hosting, play, script
from tests.live.programs import LIVE
from tests.live.test_acp import called
from tests.live.test_mcp import SERVER, agent_with

pytestmark = pytest.mark.live
OPENCODE = next(each for each in LIVE if each.name == "opencode")


class Listener:
    """A web server that counts its requests."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.requests.append(self.path)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"page")

            def log_message(self, format: str, *args: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@pytest.fixture
def listener() -> Iterator[Listener]:
    listener = Listener()
    thread = threading.Thread(target=listener.server.serve_forever)
    thread.start()
    yield listener
    listener.server.shutdown()
    listener.server.server_close()
    thread.join()


async def test_an_agent_derived_from_a_known_one_is_found_not_to_ask(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kilo is derived from opencode and wrote a file with every request denied: it gets no settings of ours."""
    call = {"kind": "write", "args": {"path": "FILE", "content": "WORD"}}
    text = script({"calls": [call]}, {"say": "done"}).replace("{", "{{").replace("}", "}}")
    monkeypatch.setattr("portico.agents.acp.asking.PROMPT", text.replace("FILE", "{file}").replace("WORD", "{word}"))
    (program := tmp_path / "kilo").symlink_to(OPENCODE.program)
    async with ModelServer() as model:
        table = OPENCODE.table(tmp_path / "vendor", model.url)
        table["command"][0] = str(program)
        found: list[bool | None] = []
        for env in ({}, {"OPENCODE_PERMISSION": PRESETS["opencode"].env["OPENCODE_PERMISSION"]}):
            settings = {"acp": {"kilo": {**table, "env": {**table["env"], **env}}}}
            kilo = next(each for each in acp(AgentContext(tmp_path / "home", settings)) if each.id == "acp:kilo")
            assert isinstance(kilo, AcpAgent)
            found.append(await kilo.probe_asking())
            await kilo.close()
    assert found == [False, True]


async def test_opencode_asks_for_everything_but_reads_in_the_folder(tmp_path: Path, listener: Listener) -> None:
    """0.2 configured `edit` and `bash` only: MCP tools and `webfetch` ran with every request denied."""
    (work := tmp_path / "work").mkdir()
    (work / "a.txt").write_text("inside")
    (outside := tmp_path / "secret.txt").write_text("outside")
    servers = {"tickets": {"command": [sys.executable, str(SERVER)], "env": {"TICKETS": "t1"}}}
    asked: dict[str, tuple[int, bool]] = {}
    async with ModelServer() as model, hosting(tmp_path, agent_with(tmp_path, OPENCODE, model.url, servers)) as host:
        session = await host.start(by="test", cwd=str(work))
        for name, call in {
            "webfetch": {"match": "webfetch", "args": {"url": listener.url, "format": "text"}},
            "mcp": {"match": ".*add", "args": {"a": 2, "b": 3}},
            "outside": {"match": "read", "args": {"filePath": str(outside)}},
            "write": {"match": "write", "args": {"filePath": str(work / "b.txt"), "content": "x"}},
            "bash": {"match": "bash", "args": {"command": "touch c.txt", "description": "d"}},
            "task": {"match": "task", "args": {"description": "d", "prompt": "p", "subagent_type": "general"}},
            "read": {"match": "read", "args": {"filePath": str(work / "a.txt")}},
            "glob": {"match": "glob", "args": {"pattern": "*"}},
        }.items():
            turn = await play(session, {"calls": [call]}, {"say": "{{result}}"}, allow=False)
            found = called(turn)
            asked[name] = (sum(len(each.approvals) for each in found), any(e.outcome == "completed" for e in found))
    denied, free = (1, False), (0, True)
    assert asked == {
        **dict.fromkeys(("webfetch", "mcp", "outside", "write", "bash", "task"), denied),
        **dict.fromkeys(("read", "glob"), free),
    }
    assert listener.requests == []
    assert sorted(each.name for each in work.iterdir()) == ["a.txt"]
