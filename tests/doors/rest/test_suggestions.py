"""What a word in a message could mean: files, sessions, commands of the agent, lines that ran here."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.doors.standing import Standing, problem


async def suggest(shared: Standing, session: str, word: str) -> Any:
    return await shared.http.get(f"/v1/sessions/{session}/suggestions", params={"q": word})


async def texts(shared: Standing, session: str, word: str) -> list[str]:
    return [each["text"] for each in (await suggest(shared, session, word)).json()["items"]]


async def begun(shared: Standing, title: str, **more: Any) -> str:
    """A session in which something was said."""
    ident = await shared.start(title=title, **more)
    await shared.say(ident, "[[say:Pong]]")
    return ident


async def run(shared: Standing, session: str, line: str) -> None:
    command = {"command": "command.run", "arguments": {"session": session, "line": line}}
    turn = (await shared.http.post("/v1/commands", json=command)).json()["turn"]
    async with asyncio.timeout(30):
        await (await shared.server.host.get(session)).wait(turn)


async def test_files_and_commands(shared: Standing, tmp_path: Path) -> None:
    (tmp_path / "kept.txt").write_text("one")
    session = await shared.start(cwd=str(tmp_path))
    assert await texts(shared, session, "@kept") == ["@kept.txt"]
    assert await texts(shared, session, "/") == []
    problem(await suggest(shared, session, "kept"), 400, "bad_request", "q")


async def test_sessions_by_title_or_id(shared: Standing, tmp_path: Path) -> None:
    session = await begun(shared, "Own alpaca", cwd=str(tmp_path))
    other = await begun(shared, "Flaky Alpaca", cwd=str(tmp_path))
    await shared.start(title="Silent alpaca")
    assert await texts(shared, session, "@ALPACA") == ["@Flaky Alpaca"]  # not itself, and not one without a word
    assert "@Flaky Alpaca" in await texts(shared, session, f"@{other}")
    assert await texts(shared, session, "@no-such-title") == []
    await shared.http.patch(f"/v1/sessions/{other}", json={"archived": True})
    assert await texts(shared, session, "@alpaca") == []


async def test_some_files_stand_above_the_newest_sessions_and_the_rest_below(shared: Standing, tmp_path: Path) -> None:
    session = await shared.start(cwd=str(tmp_path))
    for number in range(12):
        (tmp_path / f"twelve-{number:02}.txt").write_text("")
    for number in range(7):
        await begun(shared, f"twelve {number}")
    found = (await suggest(shared, session, "@twelve")).json()["items"]
    assert "".join("s" if each.get("session") else "f" for each in found) == "f" * 8 + "s" * 5 + "f" * 4
    assert [each["text"][-1] for each in found if each.get("session")] == ["6", "5", "4", "3", "2"]


async def test_what_a_message_carries_of_another_session(shared: Standing, tmp_path: Path) -> None:
    other = await begun(shared, "Flaky test", cwd=str(tmp_path))
    attached = (await shared.http.get(f"/v1/sessions/{other}/reference")).json()
    assert attached == {
        "type": "chat",
        "resource": other,
        "label": f"The session 'Flaky test' ({other}, scripted in {tmp_path})",
        "modelRepresentation": "User: [[say:Pong]]\nYou: Pong",
    }
    session = await shared.start()
    sent = await shared.http.post(
        f"/v1/sessions/{session}/messages", json={"text": "[[echo]]", "attachments": [attached]}
    )
    state = await shared.server.host.get(session)
    async with asyncio.timeout(30):
        await state.wait(sent.json()["turn"])
    assert state.state.turns[0].message.attachments == [attached]


async def test_lines_that_ran_here(shared: Standing) -> None:
    session = await shared.start()
    for line in ("echo one", "echo two", "true", "echo one"):
        await run(shared, session, line)
    assert await texts(shared, session, "!") == ["!echo one", "!true", "!echo two"]
    assert await texts(shared, session, "!echo t") == ["!echo two"]
    assert await texts(shared, session, "!none") == []


@pytest.mark.parametrize(
    ("scopes", "word", "wanted"),
    [
        (["read"], "!", 403),  # who may not run a line is offered none
        (["read", "terminal"], "!", 200),
        (["read"], "@", 200),  # sessions, and no files
    ],
)
async def test_who_may_not_is_offered_nothing(shared: Standing, scopes: list[str], word: str, wanted: int) -> None:
    made = await shared.http.post("/v1/tokens", json={"name": "-".join([*scopes, str(ord(word))]), "scopes": scopes})
    session = await shared.start(cwd=str(Path(__file__).parent))
    client = shared.client(made.json()["token"])
    answer = await client.get(f"/v1/sessions/{session}/suggestions", params={"q": word})
    await client.aclose()
    assert answer.status_code == wanted, answer.text
    assert wanted != 200 or not [each for each in answer.json()["items"] if not each.get("session")]
