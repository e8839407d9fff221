"""A session as a document: everything that was said, and nothing in it that becomes something else."""

from typing import Any

import pytest

from portico.doors.rest.export import _page
from portico.features.transcripts.document import markdown
from portico.kernel.events import ErrorInfo, Message
from portico.kernel.state import CallPart, QuestionPart, SessionState, TextPart, TurnState
from portico.markdown import escape_line


def document(*parts: Any, title: str = "Title", **fields: Any) -> str:
    turn = TurnState("t1", Message("do it"), "me", 0, 1, list(parts), **{"outcome": "completed", **fields})
    return markdown(SessionState("session-1", agent="loop", model="m", title=title, turns=[turn], created=0))


HEAD = "# Title\n\nloop · m · 1970-01-01 00:00 UTC\n\n## User\n\ndo it\n\n## Agent\n\n"

PARTS: dict[str, tuple[Any, str]] = {
    "text": (TextPart("p", "text", "An *answer*."), "An *answer*.\n"),
    "reasoning": (TextPart("p", "reasoning", "hm\nwell"), "> hm\n> well\n"),
    "a call": (
        CallPart("c", "look", "Look at x", input='{"a": 1}', output="out"),
        '**Look at x**\n\n```\n{"a": 1}\n```\n\n```\nout\n```\n',
    ),
    "a call without a title": (CallPart("c", "look"), "**look**\n\n```\n\n```\n\n```\n\n```\n"),
    "a failed call": (
        CallPart("c", "look", error=ErrorInfo("x", "broke")),
        "**look**\n\n```\n\n```\n\n```\nbroke\n```\n",
    ),
    "output with a fence": (
        CallPart("c", "look", output="```\n# not a heading\n```"),
        "**look**\n\n```\n\n```\n\n````\n```\n# not a heading\n```\n````\n",
    ),
    "an open question": (QuestionPart("q", "Which?"), "> Which\\?\n\n> open\n"),
    "an answered question": (
        QuestionPart("q", "Which?", response="decline"),
        "> Which\\?\n\n> decline\n",
    ),
}


@pytest.mark.parametrize(("part", "text"), PARTS.values(), ids=PARTS)
def test_each_part_of_an_answer(part: Any, text: str) -> None:
    assert document(part) == HEAD + text


@pytest.mark.parametrize(
    ("outcome", "error", "last"),
    [
        ("completed", None, ""),
        (None, None, ""),
        ("cancelled", None, "*cancelled*\n"),
        ("failed", ErrorInfo("x", "It broke."), "*failed*: It broke\\.\n"),
    ],
)
def test_how_a_turn_ended(outcome: Any, error: ErrorInfo | None, last: str) -> None:
    assert document(outcome=outcome, error=error) == HEAD.removesuffix("\n" if not last else "") + last


@pytest.mark.parametrize("title", ["# Big\n## Bigger", "[x](javascript:alert(1))", "<script>", "*"])
def test_a_title_stays_one_line_of_plain_text(title: str) -> None:
    first, second, *_ = document(title=title).splitlines()
    assert (first, second) == (f"# {escape_line(title)}", "")
    assert not first.startswith(("# #", "# [", "# <", "# *"))


def test_a_session_without_a_title_has_its_id() -> None:
    assert document(title="").splitlines()[0] == f"# {escape_line('session-1')}"


def test_a_page_is_as_harmless_as_plain_text() -> None:
    page = _page("<b>", "<script>alert(1)</script> & more")
    assert "<script>" not in page
    assert "<title>&lt;b&gt;</title>" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in page
