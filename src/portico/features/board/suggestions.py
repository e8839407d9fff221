"""What could be meant by a word in a message: `@` files of the session's folders and other sessions, `/` commands of
its agent, `!` command lines that were run here before."""

from typing import Literal

from msgspec import Struct, field

from portico.features.board.activity import argument
from portico.features.people.view import View
from portico.kernel.agent import Completes
from portico.kernel.command_turn import command_line
from portico.kernel.commands import READS, Caller, RunCommand
from portico.kernel.context import transcript
from portico.kernel.customization import prompts
from portico.kernel.session import Session
from portico.kernel.state import CallPart, Summary
from portico.workspace.jail import Jail

MOST = 50
"""Maximum number of suggestions: more than a person scrolls through."""
SESSIONS = 5
FILES_FIRST = 8
"""`@` means a file more often than a session: this many files are listed above the sessions."""


class Suggestion(Struct, omit_defaults=True):
    text: str
    """What takes the place of the word."""
    about: str = ""
    session: str = ""
    """It means this session: `reference` is what the message carries."""


class FoundPath(Struct):
    shown: str
    """Below the session's own folder, else its whole path. A folder's ends with a slash."""
    path: str

    @property
    def is_folder(self) -> bool:
        return self.shown.endswith("/")


async def paths(session: Session, word: str) -> list[FoundPath]:
    """Files and folders that could be meant, in all folders of the session."""
    from portico.workspace import search  # late: it is for this only

    found: list[FoundPath] = []
    for folder in session.folders.reach():
        jail = Jail([folder])
        for name in await search.closest(jail, word, MOST):
            whole = str(jail.root / name)
            inside = folder == session.summary.cwd
            found.append(FoundPath(name if inside else whole + "/" * name.endswith("/"), whole))
    return found[:MOST]


async def suggest(session: Session, word: str, view: View) -> list[Suggestion] | None:
    """By the sign that the word begins with; None for a sign that nothing is known of."""
    match word[:1]:
        case "@":
            found = await files(session, word[1:], view.caller) if view.may("files") else []
            return [*found[:FILES_FIRST], *sessions(session, word[1:], view), *found[FILES_FIRST:]]
        case "/":
            return await commands(session, word[1:])
        case "!":
            view.require(RunCommand)
            return lines(session, word[1:])
    return None


def sessions(session: Session, word: str, view: View) -> list[Suggestion]:
    """Other sessions by title or id, newest first. Sub-agents are part of what they help with."""
    found = [each for each in view.list(archived=False) if each.turns and each.id != session.id and _means(each, word)]
    return [Suggestion(f"@{each.title}", f"Session · {each.id}", each.id) for each in found[:SESSIONS]]


def _means(of: Summary, word: str) -> bool:
    helper = of.origin is not None and of.origin.kind == "agent"
    return not helper and bool(of.title) and (word.lower() in of.title.lower() or of.id.startswith(word))


class SessionReference(Struct):
    """A session as an attachment of a message in another one."""

    resource: str
    """Its id."""
    label: str
    words: str = field(name="modelRepresentation")
    """The conversation as text for the agent."""
    type: Literal["chat"] = "chat"


def reference(session: Session) -> SessionReference:
    of = session.summary
    turns = [turn for turn in session.state.turns if turn.outcome is not None]
    label = f"The session {of.title!r} ({of.id}, {of.agent} in {of.cwd})"
    return SessionReference(of.id, label, transcript(turns))


def lines(session: Session, word: str) -> list[Suggestion]:
    """What people ran here, newest first, then what the agent ran."""
    ran: dict[str, str] = {}
    for turn in reversed(session.state.turns):
        if (line := command_line(turn.message)) is not None:
            ran.setdefault(line, "")
    for turn in reversed(session.state.turns):
        for part in reversed(turn.parts):
            if isinstance(part, CallPart) and part.kind == "execute" and (line := argument(part)):
                ran.setdefault(line, "run by the agent")
    return [Suggestion(f"!{line}", by) for line, by in ran.items() if line.startswith(word) and "\n" not in line][:MOST]


async def files(session: Session, word: str, caller: Caller) -> list[Suggestion]:
    caller.require(READS["files"])
    return [Suggestion(f"@{each.shown}") for each in await paths(session, word) if not each.is_folder]


async def commands(session: Session, word: str) -> list[Suggestion]:
    """Commands of the agent, those it reported to this session, and the prompts of client plugins."""
    agent = session.host.agent(session.summary.agent)
    offered = await agent.complete("/", word) if isinstance(agent, Completes) else []
    found = {str(each["value"]): str(each.get("description") or each.get("label") or "") for each in offered}
    found |= {each["name"]: each.get("description", "") for each in session.state.config.get("commands", [])}
    found |= {name: about for name, (about, _) in prompts(session.state.client_data).items()}
    return [Suggestion(f"/{name}", about) for name, about in found.items() if name.startswith(word)][:MOST]
