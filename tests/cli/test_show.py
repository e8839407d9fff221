"""Events as a person reads them: streamed text, a line for each call, and nothing that commands the terminal."""

import msgspec
import pytest

from portico.cli.output import dollars, plain
from portico.cli.show import Printer
from portico.client import RemoteRecord
from portico.kernel import events as e
from portico.kernel.events import ErrorInfo, Event, Message, encode


def record(event: Event) -> RemoteRecord:
    return RemoteRecord(1, "session/s", 1, 0, msgspec.Raw(encode(event)))


def printed(capsys: pytest.CaptureFixture[str], *events: Event, prompts: bool = True) -> str:
    printer = Printer(prompts=prompts)
    for event in events:
        printer.show(record(event))
    printer.done()
    return capsys.readouterr().out


START = e.PartStarted(turn="t1", part="p1", kind="text")
CALL = e.ToolStarted(turn="t1", call="c1", tool="edit", title="Edit x")
SHOWN: dict[str, tuple[list[Event], str]] = {
    "a message": ([e.TurnStarted(turn="t1", message=Message("do it"), by="")], "> do it\n"),
    "an answer": (
        [START, e.PartDelta(turn="t1", part="p1", text="Hel"), e.PartDelta(turn="t1", part="p1", text="lo")],
        "Hello\n",
    ),
    "an answer that ends its line itself": ([START, e.PartDelta(turn="t1", part="p1", text="Hello\n")], "Hello\n"),
    "the rest of an answer": (
        [START, e.PartDelta(turn="t1", part="p1", text="Hel"), e.PartEnded(turn="t1", part="p1", text="Hello")],
        "Hello\n",
    ),
    "an answer all at once": ([START, e.PartEnded(turn="t1", part="p1", text="Hello")], "Hello\n"),
    "a correction": (
        [
            START,
            e.PartDelta(turn="t1", part="p1", text="Hxllo"),
            e.PartEnded(turn="t1", part="p1", text="Hello", replaces=5),
        ],
        "Hxllo\n[corrected]\nHello\n",
    ),
    "what is taken back": (
        [START, e.PartDelta(turn="t1", part="p1", text="Oops"), e.PartEnded(turn="t1", part="p1", text="", replaces=4)],
        "Oops\n[taken back]\n",
    ),
    "a call": ([CALL, e.ToolReady(turn="t1", call="c1", input='{"a": 1}')], '[Edit x] {"a": 1}\n'),
    "a call with a better title": (
        [CALL, e.ToolReady(turn="t1", call="c1", input="", title="Edit y")],
        "[Edit y]\n",
    ),
    "a call that nobody saw begin": ([e.ToolReady(turn="t1", call="c9", input="x")], "[c9] x\n"),
    "a long input": ([CALL, e.ToolReady(turn="t1", call="c1", input="x" * 300)], f"[Edit x] {'x' * 200}\n"),
    "a call without a title": (
        [e.ToolStarted(turn="t1", call="c1", tool="edit"), e.ToolEnded(turn="t1", call="c1", ok=True)],
        "[edit] ok\n",
    ),
    "a failed call": (
        [CALL, e.ToolEnded(turn="t1", call="c1", ok=False, error=ErrorInfo("x", "broke"))],
        "[Edit x] broke\n",
    ),
    "a cancelled call": (
        [CALL, e.ToolEnded(turn="t1", call="c1", ok=False, outcome="cancelled")],
        "[Edit x] cancelled\n",
    ),
    "a good end": ([e.TurnEnded(turn="t1", outcome="completed")], ""),
    "a bad end": (
        [e.TurnEnded(turn="t1", outcome="failed", error=ErrorInfo("x", "It broke."))],
        "-- failed: It broke.\n",
    ),
    "a cancelled turn": ([e.TurnEnded(turn="t1", outcome="cancelled")], "-- cancelled\n"),
    "text, then a call": (
        [START, e.PartDelta(turn="t1", part="p1", text="So"), CALL, e.ToolEnded(turn="t1", call="c1", ok=True)],
        "So\n[Edit x] ok\n",
    ),
}


@pytest.mark.parametrize(("events", "text"), SHOWN.values(), ids=SHOWN)
def test_what_a_person_sees(capsys: pytest.CaptureFixture[str], events: list[Event], text: str) -> None:
    assert printed(capsys, *events) == text


def test_who_has_just_typed_it_does_not_see_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, e.TurnStarted(turn="t1", message=Message("do it"), by=""), prompts=False) == ""


def test_programs_get_each_event_as_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    Printer(as_json=True).show(record(e.TurnEnded(turn="t1", outcome="completed")))
    assert '"type":"turn.ended"' in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("\x1b[31mred", "[31mred"),
        ("\x1b]0;title\x07", "]0;title"),
        ("a\rb", "ab"),
        ("a\x00b\x7fc\x85d\x9be", "abcde"),
        ("ä€😀", "ä€😀"),
    ],
    ids=repr,
)
def test_no_text_commands_the_terminal(text: str, shown: str) -> None:
    assert plain(text) == shown


@pytest.mark.parametrize("text", ["\u202egnp.exe", "a\u2066b", "zero\u200bwidth"], ids=ascii)
def test_no_text_looks_like_another(text: str) -> None:
    """Signs that turn the direction of writing, or show nothing, are spelled out."""
    assert not {"\u202e", "\u2066", "\u200b"} & set(plain(text))


@pytest.mark.parametrize(("text", "amount"), [("0.5", 0.5), ("1", 1.0), ("1e2", 100.0), (" 2 ", 2.0)])
def test_an_amount_of_dollars(text: str, amount: float) -> None:
    assert dollars(text) == amount


@pytest.mark.parametrize("text", ["0", "-1", "nan", "inf", "-inf", "much", "", "1,5"])
def test_what_is_no_amount(text: str) -> None:
    """JSON has no `nan` and no `inf`: as budgets they would be none at all."""
    with pytest.raises(Exception, match="is no amount of dollars"):
        dollars(text)
