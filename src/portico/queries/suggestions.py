"""What could be meant by a word in a message: `@` files of the session's folders, `/` commands of its agent."""

from msgspec import Struct

from portico.commands import READS, Caller
from portico.host.agent import Completes
from portico.host.customization import prompts
from portico.host.session import Session
from portico.workspace import search
from portico.workspace.jail import Jail

MOST = 50
"""More than anybody scrolls through."""


class Suggestion(Struct, omit_defaults=True):
    text: str
    """What takes the place of the word."""
    about: str = ""


class FoundPath(Struct):
    shown: str
    """Below the session's own folder, else its whole path. A folder's ends with a slash."""
    path: str

    @property
    def is_folder(self) -> bool:
        return self.shown.endswith("/")


async def paths(session: Session, word: str) -> list[FoundPath]:
    """Files and folders that could be meant, in all folders of the session."""
    found: list[FoundPath] = []
    for folder in session.folders.reach():
        jail = Jail([folder])
        for name in await search.closest(jail, word, MOST):
            whole = str(jail.root / name)
            inside = folder == session.summary.cwd
            found.append(FoundPath(name if inside else whole + "/" * name.endswith("/"), whole))
    return found[:MOST]


async def files(session: Session, word: str, caller: Caller) -> list[Suggestion]:
    caller.require(READS["files"])
    return [Suggestion(f"@{each.shown}") for each in await paths(session, word) if not each.is_folder]


async def commands(session: Session, word: str) -> list[Suggestion]:
    """What the agent offers, what it has told this session, and the prompts of clients' plugins."""
    agent = session.host.agent(session.summary.agent)
    offered = await agent.complete("/", word) if isinstance(agent, Completes) else []
    found = {str(each["value"]): str(each.get("description") or each.get("label") or "") for each in offered}
    found |= {each["name"]: each.get("description", "") for each in session.state.config.get("commands", [])}
    found |= {name: about for name, (about, _) in prompts(session.state.client_data).items()}
    return [Suggestion(f"/{name}", about) for name, about in found.items() if name.startswith(word)][:MOST]
