"""What an editor is shown when it is asked: exactly what would run, whatever stands in it."""

import pytest

from portico.client.acp.update import asked_call, permission_options
from portico.kernel.events import ApprovalAsked, Option
from portico.markdown import escape, is_disguised, visible
from tests.test_markdown import INVISIBLE, PAYLOADS


def asked(command: str | None = None, diff: str | None = None) -> ApprovalAsked:
    return ApprovalAsked(
        turn="t",
        approval="a",
        call="c",
        tool="x",
        title="X",
        kind="shell",
        input="{}",
        expires=0,
        options=[],
        command=command,
        diff=diff,
    )


@pytest.mark.parametrize(
    ("more", "shown"),
    [
        ({"command": "make"}, "```sh\nmake\n```"),
        ({"command": "echo ```\nrm -rf ~"}, "````sh\necho ```\nrm -rf ~\n````"),
        ({"diff": "+`````\n+# Nothing to see\n"}, "``````diff\n+`````\n+# Nothing to see\n``````"),
    ],
)
def test_nothing_ends_the_fence(more: dict[str, str], shown: str) -> None:
    content = asked_call(asked(**more)).content
    assert content is not None
    assert content[0].content.text == shown


@pytest.mark.parametrize("text", [*PAYLOADS.values(), *INVISIBLE.values()], ids=[*PAYLOADS, *INVISIBLE])
def test_a_command_and_a_change_are_shown_as_they_are(text: str) -> None:
    """Invisible characters and a tail behind blanks hid a part of what an editor asked about."""
    command, diff = asked_call(asked(command=text)).content, asked_call(asked(diff=f"+{text}")).content
    assert command is not None
    assert diff is not None
    if is_disguised(text):
        assert command[0].content.text == escape(text)
    else:
        assert text.rstrip() in command[0].content.text
    assert visible(text).rstrip() in diff[0].content.text


def test_the_kinds_of_options() -> None:
    options = [Option("1", "", True), Option("2", "", True, "session"), Option("3", "", False)]
    assert [each.kind for each in permission_options(options)] == ["allow_once", "allow_always", "reject_once"]
