"""The tables `[agents.mcp.NAME]`: which are taken, which are refused, and our own server's name beside them."""

from pathlib import Path

import pytest

from portico.agents.acp.own_tools import OwnTools
from portico.agents.agent import AgentContext
from portico.agents.registry import discover
from portico.agents.servers import mcp_servers, session_server
from portico.kernel.errors import BadRequest
from portico.kernel.events import Json


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"tickets": {}}, "either a command or a url"),
        ({"tickets": {"command": ["x"], "url": "http://x"}}, "either a command or a url"),
        ({"tickets": {"comand": ["x"]}}, "comand"),
        ({"tickets": {"command": "x"}}, "array"),
        ({"my tickets": {"command": ["x"]}}, "letters, digits"),
        ("tickets", "one table per server"),
    ],
)
def test_a_mistake_is_told_when_the_host_starts(tmp_path: Path, table: object, words: str) -> None:
    with pytest.raises(BadRequest, match=words):
        discover(AgentContext(tmp_path, {"mcp": table}), ["demo"])


def test_a_right_one_is_taken() -> None:
    servers = mcp_servers({"mcp": {"one": {"command": ["x", "y"]}, "two": {"url": "http://x"}}})
    assert (servers["one"].command, servers["two"].url) == (["x", "y"], "http://x")


@pytest.mark.parametrize(
    ("program", "path", "env", "there"),
    [
        ("server", "own", {}, True),
        ("server", "other", {}, False),
        ("server", "other", {"PATH": "own"}, True),
        ("server", "own", {"PATH": "other"}, False),
        ("./own/server", "other", {}, True),
        ("./other/server", "own", {}, False),
    ],
)
def test_a_program_is_looked_for_where_it_will_be_started(
    tmp_path: Path, program: str, path: str, env: dict[str, str], there: bool
) -> None:
    for name in ("own", "other"):
        (tmp_path / name).mkdir()
    (tmp_path / "own" / "server").touch(mode=0o755)
    (server,) = mcp_servers(
        {"mcp": {"one": {"command": [program], "env": {name: str(tmp_path / value) for name, value in env.items()}}}}
    ).values()
    assert server.installed(str(tmp_path), str(tmp_path / path)) is there


@pytest.mark.parametrize(
    ("taken", "name"),
    [
        ([], "portico"),
        (["tickets"], "portico"),
        (["portico"], "portico-session"),
        (["portico", "portico-session"], "portico-session-3"),
    ],
)
def test_our_own_server_has_a_name_that_nobody_else_has(taken: list[str], name: str) -> None:
    assert session_server(taken) == name


@pytest.mark.parametrize(
    ("server", "title", "ours"),
    [
        ("portico", "portico_report", True),
        ("portico", "mcp__portico__report", True),
        ("portico", "report (portico MCP Server)", True),
        ("portico-session", "mcp__portico-session__report", True),
        ("portico-session", "portico-session: report", False),
        ("portico-session", "portico_report", False),
        ("portico-session", "mcp__portico__report", False),
    ],
)
def test_a_tool_of_a_server_that_is_called_like_ours_is_not_ours(server: str, title: str, ours: bool) -> None:
    update: Json = {"toolCallId": "1", "title": title}
    assert OwnTools(["report"], server).name(update) == ("report" if ours else None)
