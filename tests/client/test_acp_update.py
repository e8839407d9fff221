"""What an editor is shown when it is asked: exactly what would run, whatever stands in it."""

import pytest

from portico.client.acp.update import asked_call, permission_options
from portico.events import ApprovalAsked, Option


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


def test_the_kinds_of_options() -> None:
    options = [Option("1", "", True), Option("2", "", True, "session"), Option("3", "", False)]
    assert [each.kind for each in permission_options(options)] == ["allow_once", "allow_always", "reject_once"]
