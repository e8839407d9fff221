"""A session that is open in an editor: the editor receives all its events, and is asked for pending approvals."""

import asyncio
import contextlib
import logging
from collections.abc import Coroutine
from contextlib import aclosing
from typing import Any

import acp
import msgspec
from acp import RequestError
from acp.schema import (
    ConfigOptionUpdate,
    CurrentModeUpdate,
    PermissionOption,
    PromptResponse,
    ToolCallUpdate,
)
from pydantic import ValidationError

from portico.client import Client, RemoteSession
from portico.client.acp.content import children_of
from portico.client.acp.editor import Editor, FormAnswer
from portico.client.acp.options import SessionOptions
from portico.client.acp.question import answers_of, choices, chosen, form_of, link_of
from portico.client.acp.update import (
    KnownParts,
    asked_call,
    child_text,
    child_update,
    commands_of,
    ending,
    permission_options,
    replayed,
    updates,
    user_message,
    written,
)
from portico.client.acp.usage import UsageReport
from portico.client.client import RemoteError
from portico.kernel import commands as c
from portico.kernel import events as e
from portico.kernel.errors import PorticoError
from portico.kernel.events import Json, Outcome
from portico.kernel.state import CallPart, QuestionPart, SessionState, TextPart
from portico.tasks import end_tasks

logger = logging.getLogger("portico.acp")

_STOP_REASONS: dict[Outcome, str] = {"completed": "end_turn", "cancelled": "cancelled"}


class OpenSession:
    def __init__(self, editor: Editor, client: Client, session: str, options: SessionOptions) -> None:
        self.options = options
        self._editor = editor
        self._client = client
        self._session: RemoteSession = client.session(session)
        self._known = KnownParts(terminals=editor.shows_terminals)
        self._spending = UsageReport()
        self._own: set[str] = set()
        """Turns and queued messages of this editor, which already shows them."""
        self._waiting: dict[str, asyncio.Future[PromptResponse]] = {}
        self._asking: dict[str, asyncio.Task[None]] = {}
        self._watching: dict[str, asyncio.Task[None]] = {}
        """Sub-agents of running calls, by their session."""
        self._posting = asyncio.Lock()
        self._follower: asyncio.Task[None] | None = None
        self._left = False

    # -- life --------------------------------------------------------------------------------------------------

    async def replay(self, state: SessionState) -> None:
        """Send the whole history, before any new events."""
        known = KnownParts(cwd=state.cwd, terminals=self._editor.shows_terminals)
        for turn in state.turns:
            calls = [part for part in turn.parts if isinstance(part, CallPart)]
            texts = {call.id: await self._written(children_of(call.content)) for call in calls}
            for update in replayed(turn, known, texts):
                await self._tell(update)

    async def _written(self, children: list[str]) -> str:
        """What these sub-agents wrote. One that was deleted, or that is at a host that is away, wrote nothing."""
        found = ""
        for child in children:
            with contextlib.suppress(PorticoError):
                found += written(await self._client.session(child).state())
        return found

    def follow(self, state: SessionState) -> None:
        self._known.cwd = state.cwd
        self._known.join(state.active)
        self._spending = UsageReport(state)
        self._follower = asyncio.get_running_loop().create_task(self._follow(state.pos), name=f"follow {state.id}")
        self._ask_pending(state)
        for part in state.active.parts if state.active is not None else ():
            if isinstance(part, CallPart) and not part.done:
                self._watch(part.id, part.content)

    def _ask_pending(self, state: SessionState, call: str = "") -> None:
        """Ask what already waits for a person."""
        for part in state.active.parts if state.active is not None else ():
            if isinstance(part, CallPart) and (waiting := part.approval) is not None:
                self._ask(waiting.id, self._permission(_asked_again(state, part), call))
            elif isinstance(part, QuestionPart) and not part.done:
                self._ask(part.id, self._question(part.id, part.text, part.fields, part.url))

    @property
    def alive(self) -> bool:
        return self._follower is not None and not self._follower.done()

    async def leave(self) -> None:
        """Detach the editor. The session and its running turns stay."""
        self._left = True
        tasks = [*self._asking.values(), *self._watching.values(), *([self._follower] if self._follower else [])]
        await end_tasks(*tasks)

    async def discard_draft(self) -> None:
        """Delete a session in which nothing was written."""
        with contextlib.suppress(PorticoError):  # the host has stopped; it deletes drafts by their age
            if (await self._session.state()).draft:
                await self._client.delete_session(self._session.id)

    async def _follow(self, after: int) -> None:
        try:
            await self._tell_commands()
            async with aclosing(self._session.follow(after)) as records:
                async for record in records:
                    await self._take(record.event)
        except PorticoError as error:
            self._fail(error.message)

    def _fail(self, why: str) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(RequestError(-32603, why))
        self._waiting.clear()

    # -- what happens ------------------------------------------------------------------------------------------

    async def _take(self, event: e.Event) -> None:
        match event:
            case e.TurnStarted():
                await self._begun(event)
            case e.TurnEnded():
                await self._over(event)
            case e.QueueRemoved() if event.pending in self._own:
                reason = "end_turn" if event.reason == "steered" else "cancelled"
                self._settle(event.pending, PromptResponse(stop_reason=reason))  # type: ignore[arg-type]
            case e.SessionConfigured() | e.SessionModel():
                await self._configured(event)
            case e.UsageReported():
                self._spending.add(event)
                if (update := self._spending.update(self.options.window)) is not None:
                    await self._tell(update)
            case _:
                if self._asked(event):
                    return
                if isinstance(event, e.ToolContent):
                    self._watch(event.call, event.content)
                for update in updates(event, self._known):
                    await self._tell(update)

    def _asked(self, event: e.Event, call: str = "") -> bool:
        """Ask the editor, or withdraw what it was asked. `call`: of a sub-agent, the call that runs it."""
        match event:
            case e.ApprovalAsked():
                self._ask(event.approval, self._permission(event, call))
            case e.QuestionAsked():
                self._ask(event.question, self._question(event.question, event.text, event.fields, event.url))
            case e.ApprovalAnswered():
                self._answered(event.approval)
            case e.QuestionAnswered():
                self._answered(event.question)
            case _:
                return False
        return True

    # -- sub-agents --------------------------------------------------------------------------------------------

    def _watch(self, call: str, content: list[Json]) -> None:
        """Show what the sub-agents of a call write, and ask what they ask."""
        for child in children_of(content):
            if child not in self._watching:
                loop = asyncio.get_running_loop()
                self._watching[child] = loop.create_task(self._follow_child(child, call), name=f"watch {child}")

    async def _follow_child(self, child: str, call: str) -> None:
        session = self._client.session(child)
        try:
            state = await session.state()
            await self._wrote(call, written(state))
            self._ask_pending(state, call)
            kinds = {part.id: part.kind for turn in state.turns for part in turn.parts if isinstance(part, TextPart)}
            async with aclosing(session.follow(state.pos)) as records:
                async for record in records:
                    event = record.event
                    if isinstance(event, e.PartStarted):
                        kinds[event.part] = event.kind
                    elif isinstance(event, e.ToolContent):
                        self._watch(call, event.content)
                    if not self._asked(event, call) and kinds.get(getattr(event, "part", "")) != "reasoning":
                        await self._wrote(call, child_text(event))
                    if isinstance(event, e.TurnEnded):
                        return
        except PorticoError as error:
            logger.info("the sub-agent %s is not shown: %s", child, error.message)

    async def _wrote(self, call: str, text: str) -> None:
        if text:
            self._known.children[call] = self._known.children.get(call, "") + text
            await self._tell(child_update(call, self._known))

    # -- turns and settings ------------------------------------------------------------------------------------

    async def _begun(self, event: e.TurnStarted) -> None:
        async with self._posting:  # wait for the answer to our own message: it contains the id of this turn
            pass
        waiting = self._waiting.pop(event.pending or "", None)
        if waiting is not None:  # our message has left the queue
            self._own.add(event.turn)
            self._waiting[event.turn] = waiting
        if event.turn not in self._own:
            for update in user_message(event.message, event.turn):
                await self._tell(update)

    async def _over(self, event: e.TurnEnded) -> None:
        self._known.reset()
        usage, waiting = self._spending.end(event.turn), self._waiting.get(event.turn)
        if waiting is None:  # the turn of another client: this editor gets no answer that contains the reason
            for update in ending(event.turn, event.outcome, event.error):
                await self._tell(update)
        reason = "refusal" if event.stop == "refusal" else _STOP_REASONS.get(event.outcome)
        if reason is not None:
            reason = event.stop if reason == "end_turn" and event.stop else reason
            self._settle(event.turn, PromptResponse(stop_reason=reason, usage=usage))  # type: ignore[arg-type]
            return
        self._waiting.pop(event.turn, None)
        if waiting is not None and not waiting.done():
            why = event.error.message if event.error is not None else f"The turn was {event.outcome}."
            waiting.set_exception(RequestError(-32603, why, {"outcome": event.outcome}))

    def _settle(self, ident: str, response: PromptResponse) -> None:
        waiting = self._waiting.pop(ident, None)
        if waiting is not None and not waiting.done():
            waiting.set_result(response)

    async def _configured(self, event: e.SessionConfigured | e.SessionModel) -> None:
        if isinstance(event, e.SessionModel):
            self.options.model, self.options.agent = event.model, event.agent or self.options.agent
        else:
            self.options.config = {**({} if event.replace else self.options.config), **event.values}
        mode = self.options.modes().current_mode_id
        await self._tell(CurrentModeUpdate(session_update="current_mode_update", current_mode_id=mode))
        await self._tell(
            ConfigOptionUpdate(session_update="config_option_update", config_options=self.options.options())
        )

        if isinstance(event, e.SessionConfigured) and "commands" in event.values:
            await self._tell_commands()

    async def _tell_commands(self) -> None:
        try:
            offered = await self._session.suggestions("/")
        except RemoteError as error:
            logger.info("no commands are offered: %s", error.message)
        else:
            await self._tell(commands_of(offered))

    async def _tell(self, update: Any) -> None:
        await self._editor.update(self._session.id, update)

    # -- what the editor does ----------------------------------------------------------------------------------

    async def prompt(self, text: str, attachments: list[Json]) -> PromptResponse:
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[PromptResponse] = loop.create_future()
        posting = loop.create_task(self._post(text, attachments, waiting), name=f"post {self._session.id}")
        try:
            await asyncio.shield(posting)
            return await waiting
        except asyncio.CancelledError:
            if not self._left:  # the editor withdraws this prompt; a turn survives an editor that leaves
                await posting
                await self._cancel([each for each, other in self._waiting.items() if other is waiting])
            raise

    async def _post(self, text: str, attachments: list[Json], waiting: "asyncio.Future[PromptResponse]") -> None:
        async with self._posting:
            sent = await self._session.post(text, attachments=attachments)
            ident = str(sent.get("turn") or sent["pending"])
            self._own.add(ident)
            self._waiting[ident] = waiting

    async def cancel(self) -> None:
        """Cancel what this editor started: a running turn, or a message that is still queued."""
        async with self._posting:  # a message that is being sent is canceled as well
            began = list(self._waiting)
        await self._cancel(began)

    async def _cancel(self, began: list[str]) -> None:
        queued = [each.id for each in (await self._session.state()).queue if each.id in began]
        for pending in queued:  # first: one of them would start when the running turn ends
            with contextlib.suppress(RemoteError):  # it has just started
                await self._client.remove_queued(self._session.id, pending)
        for turn in [each for each in began if each not in queued]:
            with contextlib.suppress(RemoteError):  # it has just ended
                await self._client.cancel_turn(self._session.id, turn=turn)

    # -- what people are asked ---------------------------------------------------------------------------------

    def _ask(self, ident: str, asking: Coroutine[Any, Any, None]) -> None:
        self._asking[ident] = asyncio.get_running_loop().create_task(asking, name=f"ask {ident}")

    def _answered(self, ident: str) -> None:
        """Withdraw a question from the editor: it was answered here or elsewhere."""
        task = self._asking.pop(ident, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()

    async def _permission(self, event: e.ApprovalAsked, call: str = "") -> None:
        option = await self._choice(asked_call(event, call), permission_options(event.options))
        if option is not None:
            await self._answer(c.AnswerApproval(approval=event.approval, option=option))

    async def _question(self, ident: str, text: str, fields: list[Json], url: str | None) -> None:
        """Ask the editor: in a form, else by choices, else with a link to the page where it can be answered."""
        session = self._session.id
        if url and self._editor.has_links:
            await self._elicit(ident, fields, link_of(session, ident, text, url))
            return
        if not url and self._editor.has_forms:
            await self._elicit(ident, fields, form_of(session, text, fields))
            return
        await self._tell(acp.update_agent_message_text(f"\n{text}\n"))
        offered = choices(fields) if not url else None
        if offered is None:
            page = url or f"{self._client.url}/session.html?id={session}"
            await self._tell(acp.update_agent_message_text(f"\nThe agent waits for an answer: {page}\n"))
            return
        answers: Json = {}
        for field, options in offered:
            title = str(field.get("message") or text) if len(offered) > 1 else text
            option = await self._choice(ToolCallUpdate(tool_call_id=ident, title=title, kind="other"), options)
            if option is None:
                return
            answers[str(field["id"])] = chosen(field, option)
        await self._answer(c.AnswerQuestion(question=ident, answers=answers))

    async def _elicit(self, ident: str, fields: list[Json], params: Json) -> None:
        try:
            answer = msgspec.convert(await self._editor.elicit(params), FormAnswer)
        except (RequestError, msgspec.ValidationError) as error:
            logger.warning("the editor does not answer a form: %s; another client can", error)
            return
        answers = answers_of(fields, answer.content or {}) if answer.action == "accept" else {}
        await self._answer(c.AnswerQuestion(question=ident, response=answer.action, answers=answers))

    async def _choice(self, call: Any, options: list[PermissionOption]) -> str | None:
        try:
            return await self._editor.permission(self._session.id, call, options)
        except (RequestError, ValidationError) as error:
            logger.warning("the editor does not answer: %s; another client can", error)
            return None

    async def _answer(self, command: c.Command) -> None:
        try:
            await self._client.do(command)
        except PorticoError as error:
            logger.info("%s: %s", command.subject, error.message)  # already answered by another client


def _asked_again(state: SessionState, part: CallPart) -> e.ApprovalAsked:
    """Return the event of an approval that was already pending when this editor connected."""
    waiting, turn = part.approval, state.active
    assert waiting is not None
    assert turn is not None
    return e.ApprovalAsked(
        turn=turn.id,
        approval=waiting.id,
        call=part.id,
        tool=part.tool,
        title=waiting.title,
        kind=waiting.kind,
        input=waiting.input,
        expires=waiting.expires,
        options=waiting.options,
        path=waiting.path,
        command=waiting.command,
        files=waiting.files,
        diff=waiting.diff,
    )
