"""What has to be asked of the world before a decision: does the folder exist, is the model known. In one place, with an
answer that becomes an argument."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from portico.kernel import commands as c
from portico.kernel.decide.decision import set_column

if TYPE_CHECKING:
    from portico.kernel.session import Session


async def _model(session: "Session", command: c.SetModel | c.ChangeSession | c.SendMessage) -> Mapping[str, object]:
    if command.model is not None:
        (await session.host.described(session.state.agent)).check_model(command.model)
    return session.host.agents


async def _agents(
    session: "Session", command: c.ConfigureSession | c.QueueMessage | c.EditQueued
) -> Mapping[str, object]:
    return session.host.agents


async def _covers(session: "Session", command: c.AnswerApproval) -> list[str] | None:
    return session.approvals.covers(command.approval, command.covers)


set_column("ask", _model, _covers, _agents)
