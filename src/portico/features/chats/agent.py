"""The rule of `session.agent`: another agent continues a session. It gets the history as after a fallback."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from portico.features.chats.commands import ChooseAgent
from portico.kernel import autonomy
from portico.kernel import events as e
from portico.kernel.decide.decision import Context, Outcome, set_column
from portico.kernel.errors import TurnInProgress
from portico.kernel.state import SessionState

if TYPE_CHECKING:
    from portico.kernel.session import Session


async def _model_of(session: "Session", command: ChooseAgent) -> tuple[Mapping[str, object], str]:
    """The agents of the host, and the model that the chosen one works with: the named one, else its first."""
    info = await session.host.described(command.agent)
    if command.model is not None:
        info.check_model(command.model)
    first = info.models[0].id if info.models else ""
    return session.host.agents, command.model or first


def choose(state: SessionState, command: ChooseAgent, context: Context) -> Outcome:
    agents, model = context.found
    if state.active is not None:
        raise TurnInProgress("A turn runs; choose another agent when it has ended.")
    before = autonomy.Answering(state.agent, state.config)
    after = autonomy.Answering(command.agent, state.config)
    loosened = autonomy.loosened(agents, before, after)
    if not context.caller.may("approve"):
        autonomy.check(loosened)
    if (command.agent, model) == (state.agent, state.model):
        return Outcome()
    events: list[e.Event] = [e.SessionModel(agent=command.agent, model=model, by=context.by)]
    if command.agent != state.agent:
        events.append(e.SessionVendor(id=""))  # the conversation of the agent before is not one of this agent
    return Outcome(events, host_events=autonomy.audited(state.id, loosened, context.by))


set_column("ask", _model_of)
set_column("decide", choose)
