"""The agent of seed 003 with the seed's own steps: its templates, its typical patterns, and what its stream shows.

Other sentences of the seed are proved elsewhere: settings and approval in test_door.py and test_stream.py, chats of
editors in test_editors.py, extraction and diagnostics in tests/agents/loop, unsaved buffers in
tests/doors/ahp/test_documents.py, limits and cancellation in test_door.py.
"""

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from portico.testing.model import Step
from tests.doors.anywhere.bridge import Bridge, bridge

Events = list[tuple[str, dict[str, Any]]]

READ = '{"actions":[{"tool":"readFiles","files":["src/extension.ts"]}],"commentary":"Inspect entry point","done":false}'
EDIT = (
    '{"actions":[{"tool":"editFile","path":"src/extension.ts","content":"<full new content>"}],'
    '"commentary":"Refactor tools","done":false}'
)
FINAL = '{"finalSummary":"Refactored agent tools for clarity","done":true}'


def action(fields: str, commentary: str = "Short reason") -> str:
    return f'{{"actions":[{fields}],"commentary":"{commentary}","done":false}}'


LIST = action('{"tool":"listFiles","glob":"ext","max":50}')
CREATE = action('{"tool":"createFile","path":"docs/new.md","content":"text"}')


def free(folder: Path, *lines: str) -> AbstractAsyncContextManager[Bridge]:
    """A host whose built-in agent needs no approval."""
    home = folder / "home"
    home.mkdir(mode=0o700)
    agent = "\n".join(['require_approval = "none"', *lines])
    (home / "settings.toml").write_text(f'[agent]\n{agent}\n[agents.loop]\nprotocol = "text"\nretries = 0\n')
    return bridge(folder)


async def run(here: Bridge, *steps: str, **more: Any) -> Events:
    (here.project / "src").mkdir(exist_ok=True)
    (here.project / "src/extension.ts").write_text("export {}\n")
    (here.project / "src/file.ts").write_text("const a = 1\n")
    here.says(*(Step(say=[each]) for each in steps))
    async with here.events() as stream:
        sent = await here.send("agent: do it", **more)
        events = await stream.until("done", id=sent["id"])
    assert {data["id"] for _, data in events} == {sent["id"]}
    assert {data["sessionId"] for _, data in events} == {await here.project_id()}
    return events


def tools(events: Events) -> list[tuple[str, int]]:
    """The calls that ended well, with the number of their step."""
    return [(data["tool"], data["step"]) for name, data in events if name == "action" and data.get("ok")]


def text(events: Events) -> str:
    return "".join(data["fragment"] for name, data in events if name == "fragment")


# Goal -> suggested sequence, with the files that exist afterwards.
PATTERNS: dict[str, tuple[list[str], list[str]]] = {
    "explore code": ([LIST, READ], ["listFiles", "readFiles"]),
    "add documentation": ([READ, CREATE], ["readFiles", "createFile"]),
    "modify a single file": ([READ, EDIT], ["readFiles", "editFile"]),
    "multi-file refactor": (
        [
            LIST,
            READ,
            action('{"tool":"readFiles","files":["src/file.ts"]}'),
            EDIT,
            action('{"tool":"editFile","path":"src/file.ts","content":"const a = 2\\n"}'),
        ],
        ["listFiles", "readFiles", "readFiles", "editFile", "editFile"],
    ),
}


@pytest.mark.parametrize("goal", PATTERNS)
async def test_the_typical_patterns(tmp_path: Path, goal: str) -> None:
    """Commentary, actions, results and step numbers are streamed; the run ends with the summary and one `done`."""
    steps, expected = PATTERNS[goal]
    async with free(tmp_path) as here:
        events = await run(here, *steps, FINAL)
        assert tools(events) == [(tool, number) for number, tool in enumerate(expected, 1)]
        shown = text(events)
        assert "Short reason" in shown or "Inspect entry point" in shown
        assert shown.rstrip().endswith("Refactored agent tools for clarity")
        assert [name for name, _ in events].count("done") == 1
        assert events[-1][1]["outcome"] == "completed"
        edited = (here.project / "src/extension.ts").read_text()
        assert edited == ("<full new content>" if "editFile" in expected else "export {}\n")
        assert (here.project / "docs/new.md").exists() is ("createFile" in expected)
        stored = (await here.http.get(f"/sessions/{await here.project_id()}")).json()["messages"]
        assert {"inbound", "outbound", "action", "done"} >= {each["type"] for each in stored}
        assert [each["tool"] for each in stored if each["type"] == "action"] == expected


# What a model answers first, and a word of the message that corrects it.
WRONG = {
    "no actions": ('{"actions":[],"commentary":"Nothing","done":false}', "actions"),
    "prose": ("I will look at the files now.", "JSON"),
    "a broken object": ('{"actions":[{"tool":"listFiles"', "JSON"),
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_an_invalid_step_is_corrected_with_the_schema(tmp_path: Path, wrong: str) -> None:
    """Seed: retry with a corrective message, empty action rejection, a clarifying message with a schema example."""
    said, word = WRONG[wrong]
    async with free(tmp_path) as here:
        events = await run(here, said, LIST, FINAL)
        assert (events[-1][1]["outcome"], [tool for tool, _ in tools(events)]) == ("completed", ["listFiles"])
        bodies = [str(request.body["messages"][-1]) for request in here.model.requests]
        [corrective] = [each for each in bodies if "finalSummary" in each and each != bodies[0]][:1]
        assert word in corrective
        assert '"tool"' in corrective.replace("\\", "")


# Answers of which the seed says that they are read: fences, prose around, several objects, braces in strings.
SHAPES = {
    "a fence": f"```json\n{LIST}\n```",
    "prose around it": f"First I look.\n{LIST}\nThen I go on.",
    "two objects, the later one counts": f'{{"note": 1}}\n{LIST}',
    "braces in a string": action('{"tool":"listFiles","glob":"ext"}', "why } and { stay"),
}


@pytest.mark.parametrize("shape", SHAPES)
async def test_a_step_is_found_in_the_text(tmp_path: Path, shape: str) -> None:
    async with free(tmp_path) as here:
        events = await run(here, SHAPES[shape], FINAL)
        assert tools(events) == [("listFiles", 1)]


@pytest.mark.parametrize("max_steps", [1, 2])
async def test_the_run_ends_at_the_maximum_of_steps(tmp_path: Path, max_steps: int) -> None:
    async with free(tmp_path) as here:
        here.says(*[Step(say=[LIST])] * 5)
        async with here.events() as stream:
            await here.send("look", mode="agent", maxSteps=max_steps)
            events = await stream.until("questionRequest")
        assert [step for _, step in tools(events)] == [*range(1, max_steps + 1)]


async def test_a_file_outside_of_the_allowed_roots_is_not_edited(tmp_path: Path) -> None:
    """Seed: safe relative roots. The model gets the reason, so it can choose another path."""
    async with free(tmp_path, 'allowed_roots = ["docs"]') as here:
        (here.project / "docs").mkdir()
        events = await run(here, READ, CREATE, FINAL)
        calls = [(data["tool"], data["ok"]) for name, data in events if name == "action" and "ok" in data]
        assert calls == [("readFiles", False), ("createFile", True)]
        answered = [str(request.body["messages"][-1]) for request in here.model.requests]
        assert any("outside of what agent.allowed_roots allows" in each for each in answered)


async def test_a_message_without_a_session_belongs_to_the_first_folder(tmp_path: Path) -> None:
    """And a project is known by its id, which is no path, and by its absolute path."""
    other = tmp_path / "other"
    other.mkdir()
    async with bridge(tmp_path) as here:
        await here.http.post("/sessions", json={"path": str(other)})
        first, second = (await here.http.get("/sessions")).json()
        assert [first["name"], second["name"]] == ["project", "other"]
        assert not any("/" in each["id"] for each in (first, second))
        here.says(*[Step(say=["Hello."])] * 2)
        async with here.events(f"?session={other}") as stream:
            assert (await here.send("hi"))["sessionId"] == first["id"]
            sent = await here.send("hi", sessionId=str(other))
            assert sent["sessionId"] == second["id"]
            events = await stream.until("done")
        assert {data["id"] for _, data in events} == {sent["id"]}, "the filter shows one project"
