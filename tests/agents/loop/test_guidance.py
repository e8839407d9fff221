"""What a project says to whoever works in it, edits by search and replace, and conversations that grow too long."""

import pytest

from portico.agents.loop.compaction import split
from portico.agents.loop.protocol import read_text
from portico.agents.loop.transcript import Entry, Exchange, UserText
from portico.testing.model import Error, ModelRule, Script, Step
from tests.agents.loop.conftest import Desk, acts, calls, ends, texts


def told(desk: Desk) -> str:
    return str(desk.server.requests[-1].body["messages"][0]["content"])


@pytest.mark.parametrize(("name", "heard"), [("AGENTS.md", True), ("CLAUDE.md", True), ("README.md", False)])
async def test_the_projects_own_instructions_are_read(desk: Desk, name: str, heard: bool) -> None:
    (desk.project / name).write_text("Always use tabs.\n")
    desk.says(ends())
    await desk.run()
    assert ("Always use tabs." in told(desk)) is heard


@pytest.mark.parametrize("folder", [".agents/skills", ".claude/skills", ".github/skills"])
async def test_skills_are_named_with_what_they_are_for(desk: Desk, folder: str) -> None:
    skill = desk.project / folder / "release"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: release\ndescription: How to make a release.\n---\nFirst, breathe.\n")
    desk.says(ends())
    await desk.run()
    assert f"- release ({folder}/release/SKILL.md): How to make a release." in told(desk)
    assert "First, breathe." not in told(desk)


async def test_a_link_that_leads_out_is_not_read(desk: Desk) -> None:
    (desk.project.parent / "secret").write_text("not yours")
    (desk.project / "AGENTS.md").symlink_to(desk.project.parent / "secret")
    desk.says(ends())
    await desk.run()
    assert "not yours" not in told(desk)


async def test_an_edit_by_search_and_replace(desk: Desk) -> None:
    (desk.project / "a.py").write_text("one = 1\ntwo = 1\n")
    edit = {"tool": "editFile", "path": "a.py"}
    desk.says(
        acts({"tool": "readFiles", "files": ["a.py"]}),
        acts({**edit, "search": "= 1", "replace": "= 2"}, {**edit, "search": "three", "replace": "x"}),
        acts({**edit, "search": "two = 1", "replace": "two = 2"}, {**edit, "search": "x"}, {**edit}),
        ends(),
    )
    turn = await desk.run()
    assert [(call.tool, call.ok) for call in calls(turn)][1:] == [
        ("editFile", False),
        ("editFile", False),
        ("editFile", True),
        ("editFile", False),
        ("editFile", False),
    ]
    assert (desk.project / "a.py").read_text() == "one = 1\ntwo = 2\n"
    heard = desk.server.requests[2].body["messages"][-1]["content"]
    assert "occurs 2 times (lines 1, 2)" in heard
    assert "does not occur in the file" in heard


async def test_a_conversation_that_grows_too_long_is_told_in_short_with_a_notice(desk: Desk) -> None:
    desk.settings('[agents.loop]\nretries = 0\nprotocol = "text"\ncontext_chars = 6000\ncompaction = "cut"\n')
    for number in range(4):
        desk.says(Step(say=["x" * 1500]))
        await desk.run(f"Question {number}?", meta={"mode": "chat"})
    desk.says(Step(say="Yes."))
    turn = await desk.run("And now?", meta={"mode": "chat"})
    assert "what is oldest is told to the model in short" in texts(turn, "notice")
    first = desk.server.requests[-1].body["messages"][1]["content"]
    assert first.startswith("[Earlier in this conversation")
    assert "- Question 0?" in first
    assert desk.server.requests[-1].body["messages"][-1]["content"] == "And now?"


SUMMARY = ModelRule(steps=[Step(say="They asked four questions about foxes.")], match="has to be shortened")


async def _long_talk(desk: Desk, *rules: ModelRule) -> None:
    desk.settings('[agents.loop]\nretries = 0\nprotocol = "text"\ncontext_chars = 6000\n')
    answers = ModelRule(steps=[Step(say=["x" * 1500])])
    desk.server.script = Script(rules=[*rules, answers])
    for number in range(4):
        await desk.run(f"Question {number}?", meta={"mode": "chat"})


async def test_the_model_tells_a_conversation_that_grows_too_long_in_short(desk: Desk) -> None:
    await _long_talk(desk, SUMMARY)
    turn = await desk.run("And now?", meta={"mode": "chat"})
    notice = texts(turn, "notice")
    assert notice.endswith("it goes on with this summary of its own:\n\nThey asked four questions about foxes.")
    asked, told = (each.body["messages"] for each in list(desk.server.requests)[-2:])
    assert "has to be shortened" in asked[-1]["content"]
    assert any(message["content"] == "Question 0?" for message in asked)
    assert told[1]["content"].endswith("They asked four questions about foxes.\n\nQuestion 3?")
    assert sum("Question" in message["content"] for message in told) == 1
    assert told[-1]["content"] == "And now?"
    assert turn.usage is not None


async def test_later_turns_begin_with_the_summary_also_after_a_restart(desk: Desk) -> None:
    await _long_talk(desk, SUMMARY)
    await desk.run("And now?", meta={"mode": "chat"})
    await desk.open()
    before = len(desk.server.requests)
    turn = await desk.run("And then?", meta={"mode": "chat"})
    assert texts(turn, "notice") == ""
    (request,) = list(desk.server.requests)[before:]
    said = [message["content"] for message in request.body["messages"][1:]]
    assert said[0].endswith("about foxes.\n\nQuestion 3?")
    assert (said[2], said[-1]) == ("And now?", "And then?")
    assert not any("Question 2" in each for each in said)


FULL = Error(status=400, message="maximum context length exceeded")


@pytest.mark.parametrize("failure", [Step(say=""), Step(error=FULL)])
async def test_where_the_model_cannot_the_oldest_is_left_out(desk: Desk, failure: Step) -> None:
    await _long_talk(desk, ModelRule(steps=[failure], match="has to be shortened"))
    turn = await desk.run("And now?", meta={"mode": "chat"})
    assert turn.outcome == "completed"
    assert "what is oldest is told to the model in short" in texts(turn, "notice")
    assert desk.server.requests[-1].body["messages"][-1]["content"] == "And now?"


def test_the_last_message_of_a_person_stays_word_for_word() -> None:
    step = read_text('{"actions": [{"tool": "search", "pattern": "x"}], "done": false}')
    entries: list[Entry] = [UserText("user", "The goal."), *(Exchange(step, [("search", "y" * 900)]) for _ in range(5))]
    older, newer = split(entries, 2500)
    assert (len(older), newer[0]) == (5, UserText("user", "The goal."))
    assert newer[1:] == entries[5:]
