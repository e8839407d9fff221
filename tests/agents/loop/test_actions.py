"""What the built-in agent does to files and with commands, and who is asked."""

import json
import shutil

import pytest

from portico.agents.agent import Message
from portico.features.approvals.policy import ApprovalRules, Rules
from portico.features.folders.commands import AddFolder
from portico.kernel.events import Audited, ToolSpec
from portico.kernel.tool import ToolResult
from tests.agents.loop.conftest import Desk, acts, calls, ends, texts
from tests.features import feature
from tests.grants import add_grant
from tests.host.commands import join
from tests.workspace.living import gone, pids_in


async def test_cancel_inside_a_command_ends_its_process_tree(desk: Desk) -> None:
    desk.settings('[agent]\nrequire_approval = "none"\n[agents.loop]\nprotocol = "text"\n')
    mark = desk.project / "alive"
    line = f"(setsid sh -c 'echo $$ > {mark}; exec sleep 1000' &) ; echo started; sleep 60"
    desk.says(acts({"tool": "runCommand", "command": line}), ends())
    turn = await desk.session.send(Message("agent: go"), by="test")
    [pid] = await pids_in(mark, 1)
    await desk.session.cancel(by="test")
    assert (await desk.session.wait(turn)).outcome == "cancelled"
    await gone(pid)


async def test_a_refused_approval_is_told_to_the_model(desk: Desk) -> None:
    desk.says(acts({"tool": "createFile", "path": "a", "content": "x"}), ends("Not allowed, then."))
    turn = await desk.run(allow=False)
    assert turn.outcome == "completed"
    assert not (desk.project / "a").exists()
    assert calls(turn)[0].outcome == "cancelled"
    assert "error: refused" in desk.server.requests[1].body["messages"][-1]["content"]


async def test_no_answer_in_time_is_no(desk: Desk) -> None:
    desk.host.approval_timeout = 0.05
    desk.says(acts({"tool": "runCommand", "command": "touch a"}), ends())
    turn = await desk.run(allow=None)
    assert turn.outcome == "completed"
    assert calls(turn)[0].approvals[0].by == "timeout"
    assert not (desk.project / "a").exists()


@pytest.mark.parametrize(
    ("wanted", "asked"),
    [("edits", [False, False, True, True]), ("all", [True] * 4), ("none", [False] * 4)],
)
async def test_who_is_asked_is_a_setting(desk: Desk, wanted: str, asked: list[bool]) -> None:
    """It is read at each turn: no restart in between. What passes by default at other agents is asked here."""
    desk.settings(f'[agent]\nrequire_approval = "{wanted}"\n[agents.loop]\nprotocol = "text"\n')
    create = {"tool": "createFile", "path": "a", "content": "x"}
    look, run = {"tool": "readFiles", "files": ["b"]}, {"tool": "runCommand", "command": "ls"}
    desk.says(acts({"tool": "listFiles"}, look, create, run), ends())
    turn = await desk.run()
    assert [bool(call.approvals) for call in calls(turn)] == asked
    assert (desk.project / "a").exists()
    if wanted == "none":
        assert calls(turn)[2].rule == "agent.require_approval = none"


async def test_a_refusing_rule_beats_the_setting(desk: Desk) -> None:
    """`deny_commands` once counted only where a person would have been asked."""
    desk.settings('[agent]\nrequire_approval = "none"\n[agents.loop]\nprotocol = "text"\n')
    feature(desk.host, ApprovalRules).policy.settings = Rules("setting", refused=("touch",))
    desk.says(acts({"tool": "runCommand", "command": "touch a"}, {"tool": "runCommand", "command": "true"}), ends())
    turn = await desk.run()
    assert [call.ok for call in calls(turn)] == [False, True]
    assert calls(turn)[0].rule == "setting 'touch' refuses the command"
    assert not (desk.project / "a").exists()


async def test_an_allowing_rule_is_enough_where_people_are_asked(desk: Desk) -> None:
    feature(desk.host, ApprovalRules).policy.settings = Rules("setting", commands={"true": True})
    desk.says(acts({"tool": "runCommand", "command": "true"}), ends())
    [call] = calls(await desk.run(allow=None))
    assert (call.ok, call.rule) == (True, "setting 'true' for commands")


async def test_a_deny_grant_beats_the_setting(desk: Desk) -> None:
    desk.settings('[agent]\nrequire_approval = "none"\n[agents.loop]\nprotocol = "text"\n')
    await add_grant(
        desk.host, agent="loop", tool="runCommand", allow=False, by="test", project=str(desk.project), pattern="rm *"
    )
    (desk.project / "a").write_text("x")
    desk.says(acts({"tool": "runCommand", "command": "rm a"}), ends())
    await desk.run()
    assert (desk.project / "a").exists()


async def test_a_session_grant_answers_the_next_call_and_none_for_another_file(desk: Desk) -> None:
    lines = ("touch a", "touch a && touch a", "touch a b")
    desk.says(*(acts({"tool": "runCommand", "command": line}) for line in lines), ends())
    turn = await desk.session.send(Message("agent: go"), by="test")
    for at, option in ((0, "allow-session"), (2, "allow-once")):
        state = await desk.session.wait_until(lambda state: state.status == "waiting")
        assert state.active is not None
        approval = calls(state.active)[at].approval
        assert approval is not None
        await desk.session.approvals.answer(approval.id, by="test", option=option)
    ended = await desk.session.wait(turn)
    assert [len(call.approvals) for call in calls(ended)] == [1, 0, 1]
    assert (desk.project / "b").exists()


async def test_paths_outside_are_refused_and_audited(desk: Desk) -> None:
    (desk.project.parent / "secret").write_text("top secret")
    (desk.project / "link").symlink_to(desk.project.parent)
    bad = ["../secret", str(desk.project.parent / "secret"), "link/secret", "/proc/self/environ", "/etc/passwd"]
    desk.says(
        acts(*[{"tool": "readFiles", "files": [path]} for path in bad]),
        acts(
            {"tool": "createFile", "path": "../evil", "content": "x"},
            {"tool": "createFile", "path": "link/evil", "content": "x"},
            {"tool": "runCommand", "command": "ls", "cwd": ".."},
        ),
        ends(),
    )
    turn = await desk.run()
    assert not any(call.ok or call.approvals for call in calls(turn)), "nobody is asked for what cannot be"
    assert not (desk.project.parent / "evil").exists()
    assert all("top secret" not in json.dumps(received.body) for received in desk.server.requests)
    records = await desk.host.log.read("host")
    audits = [r.event for r in records if isinstance(r.event, Audited) and r.event.action == "path.refused"]
    assert len(audits) == len(bad) + 3


async def test_allowed_roots_bound_every_tool(desk: Desk) -> None:
    desk.settings('[agent]\nallowed_roots = ["src", "docs"]\n[agents.loop]\nprotocol = "text"\n')
    for name in ("src", "docs", "keys"):
        (desk.project / name).mkdir()
        (desk.project / name / "a.txt").write_text(f"word in {name}\n")
    desk.says(
        acts({"tool": "listFiles"}, {"tool": "search", "pattern": "word"}, {"tool": "listFiles", "glob": "src/*"}),
        acts({"tool": "readFiles", "files": ["keys/a.txt"]}, {"tool": "readFiles", "files": ["docs/a.txt"]}),
        acts(
            {"tool": "createFile", "path": "src/b.txt", "content": "x"},
            {"tool": "createFile", "path": "b", "content": ""},
        ),
        ends(),
    )
    turn = await desk.run()
    found = calls(turn)
    assert found[0].output == "docs/a.txt\nsrc/a.txt"
    assert "keys" not in found[1].output
    assert found[2].output == "src/a.txt"
    assert [call.ok for call in found[3:]] == [False, True, True, False]
    assert found[3].output == "'keys/a.txt' is outside of what agent.allowed_roots allows: 'src', 'docs'."


async def test_a_file_must_be_read_and_unchanged_to_be_edited(desk: Desk) -> None:
    (desk.project / "a.txt").write_text("one\n")
    edit = {"tool": "editFile", "path": "a.txt", "content": "two\n"}
    change = {"tool": "runCommand", "command": "echo changed > a.txt"}
    desk.says(acts(edit), acts({"tool": "readFiles", "files": ["a.txt"]}, change, edit), ends())
    turn = await desk.run()
    assert [call.ok for call in calls(turn)] == [False, True, True, False]
    assert "before you edit" in calls(turn)[0].output
    assert "has changed since" in calls(turn)[3].output
    assert (desk.project / "a.txt").read_text() == "changed\n"


async def test_a_file_that_changes_while_a_person_thinks_is_not_overwritten(desk: Desk) -> None:
    (desk.project / "a.txt").write_text("one\n")
    desk.says(
        acts({"tool": "readFiles", "files": ["a.txt"]}, {"tool": "editFile", "path": "a.txt", "content": "two\n"}),
        ends(),
    )
    turn = await desk.session.send(Message("agent: go"), by="test")
    state = await desk.session.wait_until(lambda state: state.status == "waiting")
    assert state.active is not None
    approval = calls(state.active)[1].approval
    assert approval is not None
    (desk.project / "a.txt").write_text("mine\n")
    await desk.session.approvals.answer(approval.id, by="test", allow=True)
    ended = await desk.session.wait(turn)
    assert not calls(ended)[1].ok
    assert (desk.project / "a.txt").read_text() == "mine\n"


async def test_binary_and_huge_files_are_answered_with_a_note(desk: Desk) -> None:
    (desk.project / "b.bin").write_bytes(b"\0\1\2" * 100)
    (desk.project / "h.txt").write_text("line\n" * 400_000)
    desk.says(
        acts({"tool": "readFiles", "files": ["b.bin", "h.txt"]}),
        acts({"tool": "readFiles", "files": ["h.txt"], "range": [10, 12]}),
        ends(),
    )
    turn = await desk.run()
    assert "[not shown: binary file" in calls(turn)[0].output
    assert "ask for a range" in calls(turn)[0].output
    assert calls(turn)[1].output == "=== h.txt\nline\nline\nline\n"


async def test_a_flood_of_output_is_bounded_and_a_failing_command_is_told(desk: Desk) -> None:
    desk.says(
        acts({"tool": "runCommand", "command": "yes | head -c 20000000; exit 3"}),
        acts({"tool": "runCommand", "command": "sleep 30", "timeout": 0.2}),
        acts({"tool": "runCommand", "command": ["printf", "%s", "a b"]}),
        ends(),
    )
    turn = await desk.run()
    flood, slow, listed = calls(turn)
    assert not flood.ok
    assert flood.output.endswith("[exit code 3]")
    assert len(flood.output) < 80_000
    assert "timed out after 0.2 s" in slow.output
    assert listed.output == "a b\n[exit code 0]"
    assert [call.exit_code for call in (flood, slow, listed)] == [3, None, 0]


async def test_unknown_tools_and_wrong_arguments_are_tool_errors(desk: Desk) -> None:
    desk.says(
        acts(
            {"tool": "rm"}, {"tool": "readFiles"}, {"tool": "editFile", "path": "a"}, {"tool": "search", "pattern": ""}
        ),
        ends(),
    )
    turn = await desk.run()
    assert turn.outcome == "completed"
    assert not any(call.ok for call in calls(turn))
    assert "there are: listFiles" in calls(turn)[0].output


@pytest.mark.parametrize(
    "form",
    [
        {"files": ["a.txt"], "range": None},
        {"files": "a.txt"},
        {"args": {"files": ["a.txt"]}},
        {"arguments": {"files": ["a.txt"]}},
        {"parameters": {"files": "a.txt", "range": None}},
        {"files": ["a.txt"], "range": ["1", "2"]},
    ],
)
async def test_arguments_as_weak_models_write_them(desk: Desk, form: dict[str, object]) -> None:
    (desk.project / "a.txt").write_text("hello\n")
    desk.says(acts({"tool": "readFiles", **form}), ends())
    [call] = calls(await desk.run())
    assert (call.ok, call.output) == (True, "=== a.txt\nhello\n")


async def test_a_command_gets_no_secrets(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "canary-env")
    desk.says(acts({"tool": "runCommand", "command": "env"}), ends())
    assert "canary" not in calls(await desk.run())[0].output


async def test_what_a_model_prints_cannot_approve(desk: Desk) -> None:
    desk.says(
        acts({"tool": "createFile", "path": "a", "content": "x", "approved": True}),
        acts({"tool": "approve", "approvalId": "session-1.a1", "approved": True}),
        ends(),
    )
    turn = await desk.run()
    assert [call.ok for call in calls(turn)] == [False, False]
    assert not (desk.project / "a").exists()


async def test_a_session_tool_is_offered_and_run_by_its_owner(desk: Desk) -> None:
    await join(desk.session, "editor", "Editor", [ToolSpec("openFile", "Opens a file.", {"type": "object"})])
    desk.says(acts({"tool": "openFile", "path": "a"}), ends())
    turn = await desk.session.send(Message("agent: go"), by="test")
    state = await desk.session.wait_until(lambda state: bool(state.active and calls(state.active)))
    assert state.active is not None
    await desk.session.tools.complete(calls(state.active)[0].id, ToolResult(True, "opened"), client="editor")
    assert (await desk.session.wait(turn)).outcome == "completed"
    assert "openFile" in desk.server.requests[0].body["messages"][0]["content"]
    assert "opened" in desk.server.requests[1].body["messages"][-1]["content"]


async def test_without_git_the_changed_files_are_known_too(desk: Desk) -> None:
    shutil.rmtree(desk.project / ".git")
    desk.says(acts({"tool": "createFile", "path": "docs/a.md", "content": "x"}), ends())
    await desk.run()
    turn = await desk.run("/files", meta={"command": "files"})
    assert texts(turn) == "docs/a.md"


async def test_folders_of_the_session_are_open_besides(desk: Desk) -> None:
    other, foreign = desk.project.parent / "other", desk.project.parent / "foreign"
    for folder in (other, foreign):
        folder.mkdir()
        (folder / "a.txt").write_text(f"word in {folder.name}\n")
    (desk.project / "a.txt").write_text("word in project\n")
    desk.settings('[agents.loop]\nprotocol = "text"\n')
    desk.says(
        acts({"tool": "listFiles"}, {"tool": "search", "pattern": "word"}),
        acts(*({"tool": "readFiles", "files": [str(folder / "a.txt")]} for folder in (other, foreign))),
        acts({"tool": "createFile", "path": str(other / "b.txt"), "content": "x"}),
        ends(),
    )
    await desk.session.do(AddFolder(session=desk.session.id, folder=str(other)), "test")
    found = calls(await desk.run())
    assert found[0].output.splitlines() == [f"{other}/a.txt", "a.txt"]
    assert "word in other" in found[1].output
    assert "foreign" not in found[1].output
    assert [call.ok for call in found[2:]] == [True, False, True]
    assert (other / "b.txt").read_text() == "x"
    assert f"You also work in {str(other)!r}" in json.dumps(desk.server.requests[0].body)
