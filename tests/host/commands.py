"""Commands of sessions that only tests give in Python; clients send them through doors."""

from portico.kernel import commands as c
from portico.kernel.events import Json, Message, ToolSpec
from portico.kernel.session import Session


async def join(session: Session, client: str, name: str, tools: list[ToolSpec]) -> None:
    await session.do(c.JoinSession(session=session.id, client=client, name=name, tools=tools), client)


async def leave(session: Session, client: str) -> None:
    await session.do(c.LeaveSession(session=session.id, client=client), "")


async def edit(session: Session, pending: str, message: Message, *, by: str) -> None:
    said = {field: getattr(message, field) for field in message.__struct_fields__}
    await session.do(c.EditQueued(session=session.id, pending=pending, **said), by)


async def reorder(session: Session, order: list[str], *, by: str) -> None:
    await session.do(c.ReorderQueue(session=session.id, order=order, lenient=True), by)


async def draft(session: Session, question: str, field: str, answer: Json | None, *, by: str) -> None:
    await session.do(c.DraftAnswer(question=question, field=field, answer=answer), by)
