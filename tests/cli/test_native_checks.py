"""`agents test`: whether a session is listed and loaded by the agent's own program, and continues there."""

import os
from pathlib import Path

import pytest

from portico.cli.native_checks import Found, NativeCheck
from portico.kernel.events import Message
from tests.native.programs import native_host
from tests.native.test_adopt import as_codex

KEEPS = 'echo "$6" >> "$STORE/$5"\n'
"""`codex exec --skip-git-repo-check resume ID TEXT` of a program that keeps the message."""


async def checked(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str | None) -> Found:
    """`script`: what the agent's own program does; None: it is not installed."""
    if script is not None:
        (folder / "bin").mkdir()
        own = folder / "bin" / "codex"
        own.write_text(f"#!/bin/sh\nSTORE={folder / 'store'}\nset -- codex $*\n{script}")
        own.chmod(0o755)
        monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    async with native_host(folder) as host:
        agent = as_codex(host, folder)
        session = await host.start(by="test", agent=agent.id, cwd=str(folder / "work"))
        await session.wait(await session.send(Message("hello"), by="test"))
        return await NativeCheck(session, agent, lambda word: word).run()


@pytest.mark.parametrize(
    ("script", "answer", "detail"),
    [
        (KEEPS, True, ""),
        ("exit 0\n", False, "its message is not in the history"),
        ("echo already has an active writer; exit 1\n", False, "codex ended with 1: already has an active writer"),
        (None, None, ""),
    ],
)
async def test_the_way_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, answer: bool | None, detail: str
) -> None:
    found = await checked(tmp_path, monkeypatch, script)
    assert found == {"list": (True, ""), "load": (True, ""), "return": (answer, detail)}


async def test_a_program_that_lists_nothing(tmp_path: Path) -> None:
    async with native_host(tmp_path, FAKE_CAPS='{"loadSession": true}') as host:
        agent = as_codex(host, tmp_path)
        session = await host.start(by="test", agent=agent.id, cwd=str(tmp_path / "work"))
        await session.wait(await session.send(Message("hello"), by="test"))
        (tmp_path / "store" / str(session.state.vendor)).unlink()
        found = await NativeCheck(session, agent, lambda word: word).run()
    assert found["list"] == (False, "it does not list the session")
    assert found["load"][0] is False
    assert "no such session" in found["load"][1]
    assert found["return"] == (False, "its history cannot be loaded")
