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


async def files(session: Session, word: str, caller: Caller) -> list[Suggestion]:
    """What is not in the session's own folder is called by its whole path."""
    caller.require(READS["files"])
    found: list[Suggestion] = []
    for folder in session.folders.reach():
        jail = Jail([folder])
        names = (await search.find(jail, word, MOST - len(found))).paths
        inside = folder == session.summary.cwd
        found += [Suggestion(f"@{name if inside else jail.root / name}") for name in names]
        if len(found) >= MOST:
            break
    return found


async def commands(session: Session, word: str) -> list[Suggestion]:
    agent = session.host.agent(session.summary.agent)
    offered = await agent.complete("/", word) if isinstance(agent, Completes) else []
    own = [(name, about) for name, (about, _) in prompts(session.state.client_data).items()]
    named = [(str(each.get("value", "")), str(each.get("description", ""))) for each in offered]
    return [Suggestion(f"/{name}", about) for name, about in [*named, *own] if name.startswith(word)][:MOST]
