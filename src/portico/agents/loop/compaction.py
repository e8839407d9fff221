"""Summarize a conversation that outgrows its context window, using the model itself.

The summary is a notice in the turn: a person sees what the model still knows, and later turns start with it instead of
asking again, even after a restart.
"""

from collections.abc import Sequence

from portico.agents.loop.transcript import Entry, UserText, of_turns, size_of
from portico.kernel.state import TextPart, TurnState

MARK = "The conversation grew too long for the model; it goes on with this summary of its own:\n\n"
"""The prefix of the notice, by which a later turn finds it."""
HEAD = "[What was said and done so far, in short:]\n"
KEPT = 0.4
"""Share of the room that the newest entries keep word for word: the rest is for the summary and what comes."""
WORDS = 600
REQUEST = (
    "The conversation above has to be shortened. Write what is needed to continue it, under these headings: Goal (what "
    "was asked for, with all conditions), Decisions and findings, Plan (done, and still to do), Files (read, created, "
    "changed: each path and what matters in it), Open errors (exact messages), Next step. "
    f"Facts only, with names and paths exactly as they are, in at most {WORDS} words. Do not answer, call no tools."
)
SYSTEM = "You shorten conversations between a person and an agent that works in a folder of files."


def split(entries: Sequence[Entry], room: int) -> tuple[list[Entry], list[Entry]]:
    """Return what is summarized and what stays: the newest entries that fit, and always a person's last message."""
    kept, left = 1, room * KEPT - size_of(entries[-1])
    while kept < len(entries) and left >= (size := size_of(entries[-kept - 1])):
        kept, left = kept + 1, left - size
    older, newer = list(entries[:-kept]), list(entries[-kept:])
    if not any(_asks(each) for each in newer):
        newer[:0] = [each for each in older if _asks(each)][-1:]
    return older, newer


def _asks(entry: Entry) -> bool:
    return isinstance(entry, UserText) and entry.role == "user"


def summary(text: str) -> UserText:
    return UserText("user", HEAD + text)


def after_summary(turns: Sequence[TurnState]) -> list[Entry]:
    """Earlier turns, starting with the last one in which the model wrote a summary."""
    for index in range(len(turns) - 1, -1, -1):
        text = _written(turns[index])
        if text:
            return [summary(text), *of_turns(turns[index:])]
    return of_turns(turns)


def _written(turn: TurnState) -> str:
    found = [part.text for part in turn.parts if isinstance(part, TextPart) and part.kind == "notice"]
    return next((text.partition(MARK)[2].strip() for text in reversed(found) if MARK in text), "")
