"""What an approver sees of a call: the command verbatim, and nothing that Markdown could turn into something else."""

import json
from typing import Any

import pytest

from portico.doors.ahp.view import card, parts
from portico.doors.ahp.wire.versions import Dialect
from portico.kernel.decide.approval import OPTIONS
from portico.kernel.state import Approval, CallPart
from portico.markdown import escape, is_disguised
from tests.doors.ahp.conftest import Connect
from tests.doors.ahp.test_edits import begin
from tests.doors.ahp.wire_client import WireClient
from tests.test_markdown import INVISIBLE, PAYLOADS

TERMINAL = {"toolKind": "terminal", "language": "shellscript"}
MODERN = Dialect("0.9.0", lambda: 0)
V1 = Dialect("1", lambda: 0)


def asked(kind: str, input: str = "", **fields: Any) -> Approval:
    return Approval("a1", kind, fields.pop("title", "May I?"), input, 0, OPTIONS, **fields)


SHELL: dict[str, tuple[CallPart, str]] = {
    "built-in agent": (CallPart("c", "runCommand", "Run ls -l", "execute", input='{"command":"ls -l"}'), "ls -l"),
    "built-in agent, words": (
        CallPart("c", "runCommand", "Run", "execute", input='{"command":["echo","a b"]}'),
        "echo 'a b'",
    ),
    "Copilot": (CallPart("c", "bash", "List", "execute", input='{"command":"ls -l","description":"List"}'), "ls -l"),
    "Claude over ACP": (CallPart("c", "Bash", "`ls -l`", "execute", input='{"command":"ls -l"}'), "ls -l"),
    "Codex over ACP": (
        CallPart("c", "execute", "ls", "execute", input='{"command":["bash","-lc","ls -l"],"cwd":"/w"}'),
        "bash -lc 'ls -l'",
    ),
    "an ACP agent with a title only": (CallPart("c", "execute", "ls -l", "execute", input="{}"), "ls -l"),
    "an ACP agent's terminal": (CallPart("c", "terminal", "terminal ls -l", "execute"), "terminal ls -l"),
    "another field": (CallPart("c", "sh", "", "execute", input='{"cmd":"ls -l"}'), "ls -l"),
    "what was judged": (
        CallPart("c", "sh", "", "execute", input='{"x":1}', approvals=[asked("shell", '{"x":1}', command="ls -l")]),
        "ls -l",
    ),
    "no kind, but asked as a command": (
        CallPart("c", "tool", "", input="{}", approvals=[asked("shell", "{}", command="ls -l")]),
        "ls -l",
    ),
}


@pytest.mark.parametrize(("call", "command"), SHELL.values(), ids=SHELL)
def test_a_shell_call_is_a_terminal_with_its_plain_command(call: CallPart, command: str) -> None:
    call.ready = True
    shown = parts.call(call, MODERN)
    assert {key: shown["_meta"][key] for key in TERMINAL} == TERMINAL
    assert shown["toolInput"] == command
    assert parts.call(call, V1)["toolInput"] == command
    if call.kind == "execute":
        assert parts.call(call, V1)["_meta"] == TERMINAL


OTHERS: dict[str, tuple[CallPart, Any, str]] = {
    "read": (CallPart("c", "read", "Read a.py", "read", input='{"path":"a.py"}'), "read", r"Read a\.py"),
    "search": (CallPart("c", "Grep", "", "search", input='{"pattern":"a*"}'), "search", r"Grep\: a\*"),
    "fetch": (
        CallPart("c", "fetch", "Fetch", "fetch", input='{"url":"https://a.b"}'),
        None,
        r"Fetch\: https\:\/\/a\.b",
    ),
    "edit": (
        CallPart("c", "write", "", "edit", input="{}", approvals=[asked("write", "{}", path="/w/a_b")]),
        None,
        r"write\: \/w\/a\_b",
    ),
    "several files": (CallPart("c", "readFiles", "Read", "read", input='{"files":["a","b"]}'), "read", r"Read\: a\, b"),
    "other": (CallPart("c", "tool", "**bold** <b>", input="[1]"), None, r"\*\*bold\*\* \<b\>"),
    "only the approval says it": (
        CallPart("c", "apply", input="{}", approvals=[asked("write", "{}", title="Edit untitled:1 in the editor")]),
        None,
        r"apply\: Edit untitled\:1 in the editor",
    ),
}


@pytest.mark.parametrize(("call", "kind", "message"), OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("dialect", [V1, MODERN])
def test_any_other_call_says_what_it_is_about(call: CallPart, kind: Any, message: str, dialect: Dialect) -> None:
    call.ready = True
    shown = parts.call(call, dialect)
    assert shown["invocationMessage"] == {"markdown": message}
    assert shown["toolInput"] == call.input
    assert shown.get("_meta", {}).get("toolKind") == kind


@pytest.mark.parametrize(
    ("title", "input", "words"),
    [
        ("List", '{"command":"ls"}', "List"),
        ("`ls`", '{"command":"ls","description":"See what is there"}', "See what is there"),
        ("ls", '{"command":"ls","description":" "}', "ls"),
        ("ls", '{"command":"ls","description":["x"]}', "ls"),
        ("", '{"command":"ls","description":"a\u200bb"}', "a<U+200B>b"),
        ("", '{"command":"ls"}', None),
    ],
)
def test_a_command_says_what_it_is_for(title: str, input: str, words: str | None) -> None:
    """Agents that put the command itself into the title say its purpose in `description`, which was not shown."""
    call = CallPart("c", "bash", title, "execute", input=input, ready=True)
    assert parts.call(call, MODERN).get("intention") == words
    assert "intention" not in parts.call(call, V1)


TITLES = [
    ("shell", "execute", None, "Run in terminal?"),
    ("write", "edit", "--- a/x\n+++ b/x\n", "Write file?"),
    ("write", "edit", "--- /dev/null\n+++ b/x\n", "Create file?"),
    ("write", "delete", None, "Delete file?"),
    ("write", "move", None, "Move file?"),
    ("read", "read", None, "Read file?"),
    ("read", "search", None, "Search files?"),
    ("read", "fetch", None, "Fetch URL?"),
    ("other", "other", None, "Allow tool?"),
]


@pytest.mark.parametrize(("kind", "of", "diff", "title"), TITLES)
def test_a_title_says_what_kind_of_thing_is_asked(kind: str, of: str, diff: str | None, title: str) -> None:
    """Editors cut it after 100 characters and take Markdown out: it never has the command."""
    approval = asked(kind, title="rm -rf ~", diff=diff, command="rm -rf ~")
    assert card.confirmation_title(CallPart("c", "tool", kind=of), approval) == title


@pytest.mark.parametrize("command", [*PAYLOADS.values(), *INVISIBLE.values()], ids=[*PAYLOADS, *INVISIBLE])
def test_a_command_is_shown_as_it_is(command: str) -> None:
    """Markdown, HTML and invisible characters hid parts of a command from the person who approved it."""
    input = json.dumps({"command": command})
    call = CallPart("c", "bash", "Do it", "execute", input=input, ready=True)
    call.approvals = [asked("shell", input, command=command)]
    shown = parts.call(call, MODERN)
    assert (shown["status"], shown["toolInput"]) == ("pending-confirmation", command)
    assert shown["invocationMessage"] == {"markdown": escape(command)}
    assert (shown["confirmationTitle"], shown["intention"]) == ("Run in terminal?", "Do it")
    # A terminal view shows the command alone, verbatim; where that hides something it is a card with the message.
    assert shown["_meta"].get("toolKind") == (None if is_disguised(command) else "terminal")


async def test_both_dialects_get_the_kind_the_command_and_the_message(connect: Connect, version: str) -> None:
    client: WireClient = await connect(version)
    chat = await begin(client, "run touch x")
    prefix = "session" if client.seed else "chat"
    ready = await client.action(f"{prefix}/toolCallReady")
    start = client.actions(f"{prefix}/toolCallStart")[0]
    for action in (start, ready):
        assert {key: action["_meta"][key] for key in TERMINAL} == TERMINAL
    assert (ready["toolInput"], ready["invocationMessage"]) == ("touch x", {"markdown": "touch x"})
    assert ready["confirmationTitle"] == "Run in terminal?"
    which = {"turnId": "t-1", "toolCallId": ready["toolCallId"]}
    edited = {"editedToolInput": "touch y"}
    echo = await client.act(
        chat, f"{prefix}/toolCallConfirmed", **which, approved=True, confirmed="user-action", **edited
    )
    assert echo["action"]["editedToolInput"] == "touch y"
    await client.action(f"{prefix}/turnComplete")
    [turn] = client.states[chat]["turns"]
    call = turn["responseParts"][0]["toolCall"]
    assert (call["toolInput"], call["pastTenseMessage"]) == ("touch y", {"markdown": "touch y"})


async def test_an_edited_command_is_put_back_into_its_input(served: Any, connect: Connect) -> None:
    client: WireClient = await connect("0.9.0")
    chat = await begin(client, "run touch x")
    ready = await client.action("chat/toolCallReady")
    which = {"turnId": "t-1", "toolCallId": ready["toolCallId"]}
    edited = {"editedToolInput": "touch y"}
    await client.act(chat, "chat/toolCallConfirmed", **which, approved=True, confirmed="user-action", **edited)
    await client.action("chat/turnComplete")
    state = served.broker.state(served.host.list()[0].id)
    assert json.loads(state.turns[0].parts[0].input) == {"command": "touch y", "description": "List things"}


async def test_an_edited_command_is_shown_live_as_after_a_reload(connect: Connect, version: str) -> None:
    """Live clients showed the command as it was before the edit, those that connected later the edited one."""
    client: WireClient = await connect(version)
    watcher: WireClient = await connect(version, "watcher")
    chat = await begin(client, "run touch x")
    await watcher.subscribe(chat)
    ready = await client.action(client.verb("toolCallReady"))
    which = {"turnId": "t-1", "toolCallId": ready["toolCallId"]}
    fields = {"approved": True, "confirmed": "user-action", "editedToolInput": "touch y"}
    await client.act(chat, client.verb("toolCallConfirmed"), **which, **fields)
    await client.action(client.verb("turnComplete"))
    await watcher.wait(lambda: watcher.states[chat]["turns"])
    late: WireClient = await connect(version, "late")
    await late.subscribe(chat)

    def shown(of: WireClient) -> Any:
        return of.states[chat]["turns"][0]["responseParts"][0]["toolCall"]

    assert shown(client) == shown(watcher) == shown(late)
    assert shown(late)["toolInput"] == "touch y"
    if version != "1":  # version 1 cannot replace the message of a call that waits
        assert shown(late)["invocationMessage"] == {"markdown": "touch y"}
