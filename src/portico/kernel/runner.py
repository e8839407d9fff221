"""Runs the turns of one session: opens the conversation, monitors it, ends it.

Each turn has one task, owned by the host. The turn gets exactly one end in every case: an answer, an error, a cancel,
an idle timeout, a full disk, or the stop of the host.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from portico.kernel import context, limits
from portico.kernel.agent import AsksServers, Authenticates, Conversation, Opening
from portico.kernel.command_turn import COMMAND_LINE, command_line
from portico.kernel.correlation import SESSION, TURN
from portico.kernel.customization import switched_off
from portico.kernel.errors import AgentDied, AgentError, Conflict, NotFound, PorticoError
from portico.kernel.events import ErrorInfo, Json, Message, Outcome, SessionModel, SessionVendor
from portico.kernel.fallback import following, split, untouched
from portico.kernel.silence import Silence
from portico.kernel.state import TurnState, client_of
from portico.kernel.turn import Turn

if TYPE_CHECKING:
    from portico.kernel.session import Session

RESUME_TEXT = "The last request was interrupted. Go on where you stopped. It was:\n"
T = TypeVar("T")


class Wanted(NamedTuple):
    """The parameters of an open conversation. A turn that needs other parameters opens a new one."""

    agent: str
    model: str
    tools: int
    client: str
    model_config: Json


class Runner:
    def __init__(self, session: "Session") -> None:
        self._session = session
        self._conversation: Conversation | None = None
        self._opened_with: Wanted | None = None
        self._task: asyncio.Task[None] | None = None
        self._playing: asyncio.Task[None] | None = None
        self._failure: PorticoError | None = None
        self._interrupted = False
        """The host stops and has asked the agent to end the turn."""
        self._tools = 0
        self._fallen: str | None = None

    # -- a turn ------------------------------------------------------------------------------------------------

    def start(self, turn: Turn, resumed: bool) -> None:
        self._failure, self._interrupted = None, False
        self._session.captures.begin(turn.id, resumed=resumed)
        own, name = self._session.host.own, f"{self._session.id}/{turn.id}"
        self._playing = own(self._play(turn, resumed), f"agent {name}")
        self._task = own(self._run(turn, self._playing), f"turn {name}")
        self._task.add_done_callback(self._forget)

    def _forget(self, task: "asyncio.Task[None]") -> None:
        """Drop the two finished tasks: they are a seventh of the memory of an idle session."""
        if self._task is task and self._session.running is None:
            self._task = self._playing = None

    async def _run(self, turn: Turn, playing: "asyncio.Task[None]") -> None:
        """End the turn after the task of the agent has ended in any way. This task is never cancelled."""
        await asyncio.wait({playing})
        session = self._session
        left = turn.held and session.host.stopping and turn.cancelled_by is None
        if left and await session.host.spending.held_at_start(session, turn.id) is not None:
            turn.live = False  # its agent has not started: it waits again after the host restarts
            session.forget(turn.id)
            return
        outcome, error, by = self._verdict(turn, playing)
        if error is not None and error.code in ("agent_died", "agent_unavailable"):
            await self.release()
        await self._session.captures.finish(turn.id, effects=turn.called)
        await self._session.end_turn(turn, outcome, error, by)
        if not self._session.host.stopping:
            await self._session.go_on()

    async def _play(self, turn: Turn, resumed: bool) -> None:
        SESSION.set(self._session.id)  # for log lines of this task and the tasks that it starts
        TURN.set(turn.id)
        if COMMAND_LINE in turn.message.meta:
            await self._session.host.run_command(turn, command_line(turn.message) or "")
            return
        turn.held = True
        await self._session.host.spending.start(turn, resumed=resumed)
        if turn.withdrawn:
            return
        turn.held = False
        message, news = context.to_send(turn.id, turn.message, self._session.state)
        if resumed:
            message = Message(RESUME_TEXT + message.text, message.attachments, message.model, message.origin)
        while True:
            try:
                await self._watch(self._converse(message, turn), turn)
                if news is not None:
                    await self._session.keep(context.RULES_SENT, news, by="host")
                return
            except (AgentError, NotFound) as error:
                if not await self._fall_back(turn, error):
                    raise

    async def _fall_back(self, turn: Turn, error: PorticoError) -> bool:
        """Switch to the next entry of the session's `fallback`, if any, while the turn has no output or calls yet."""
        session = self._session
        choice = following(session.state)
        if choice is None or turn.cancelled_by is not None:
            return False
        await session.host.log.flush()
        if not untouched(session.state.turn(turn.id)):
            return False
        await self.release()
        agent, model = split(choice)
        turn.notice(f"{session.state.agent!r} cannot answer: {error.message} {choice!r} takes over.")
        if not model and agent in session.host.agents:
            models = (await session.host.described(agent)).models
            model = models[0].id if models else ""
        taken = SessionModel(agent=agent, model=model, by="host", reason=f"fallback: {error.message}")
        await session.append(taken, SessionVendor(id=""))
        self._fallen = turn.id
        return True

    def _verdict(self, turn: Turn, playing: "asyncio.Task[None]") -> tuple[Outcome, ErrorInfo | None, str]:
        error = None if playing.cancelled() else playing.exception()
        if self._failure is not None:
            return "failed", ErrorInfo(self._failure.code, self._failure.message), "host"
        if turn.cancelled_by is not None:
            return "cancelled", None, turn.cancelled_by
        if playing.cancelled() or self._interrupted:  # an agent that obeys a cancel ends its turn without an error
            return "interrupted", ErrorInfo("interrupted", "The host was stopped."), "host"
        if error is None:
            return "completed", None, "agent"
        if isinstance(error, PorticoError):
            return "failed", ErrorInfo(error.code, error.message, error.retry_after), "agent"
        # An agent is a plugin: its bugs end its turn, never the host.
        self._session.host.logger.error("agent of %s failed", self._session.id, exc_info=error)
        return "failed", ErrorInfo("agent_failed", f"{type(error).__name__}: {error}"), "agent"

    async def _watch(self, work: Awaitable[T], turn: Turn) -> T:
        """Wait for the agent; the idle timeout counts as a crash. There is no timeout while a person is asked."""
        host = self._session.host
        sending = asyncio.ensure_future(work)
        try:
            await host.clock.wait(sending, min(host.turn_idle_timeout, limits.SILENCE_SECONDS[0]))
            if sending.done():  # the usual case needs no notices
                return await sending
            quiet = Silence(turn)
            while not sending.done():
                now = host.clock.awake()
                silence = now - turn.active_at
                if silence >= host.turn_idle_timeout and not turn.waiting:
                    raise AgentDied(f"The agent said nothing for {host.turn_idle_timeout:g} seconds.")
                if (words := quiet.notice(now)) is not None:
                    last_output = turn.active_at
                    turn.remark(words)
                    turn.active_at = last_output  # the notice is not output of the agent
                await host.clock.wait(sending, max(0.05, min(host.turn_idle_timeout - silence, quiet.due(now))))
            return await sending
        finally:
            sending.cancel()

    def _wanted(self, turn: Turn) -> Wanted:
        state = self._session.state
        model = state.model if self._fallen == turn.id else turn.model  # the model of a message is for the first agent
        agent = self._session.host.agent(state.agent)
        client = client_of(state, turn.id) if isinstance(agent, Authenticates) else ""
        chosen = turn.message.model_config or state.model_config
        return Wanted(state.agent, model, self._tools, client, chosen)

    async def _converse(self, message: Message, turn: Turn) -> None:
        wanted = self._wanted(turn)
        conversation = self._conversation if self._opened_with == wanted else None
        if conversation is None:
            conversation = await self._opened(wanted, turn.earlier, turn.waits)
            turn.activity = ""
        await conversation.send(message, turn)

    async def _opened(self, wanted: Wanted, history: list[TurnState], tell: Callable[[str], None]) -> Conversation:
        session = self._session
        state = session.state
        await self.release()
        opening = Opening(
            session=session.id,
            cwd=state.cwd,
            folders=session.folders.reach(),
            model=wanted.model,
            model_config=wanted.model_config,
            config=dict(state.config),
            tools=session.tools.specs(),
            known_as=lambda ident: session.post(SessionVendor(id=ident)) if ident != session.state.vendor else None,
            vendor=state.vendor or None,
            fork_of=await self._forked(),
            off=switched_off(state.client_data),
            history=history,
            tell=tell,
            client=wanted.client,
        )
        self._conversation = await session.host.agent(wanted.agent).open(opening)
        self._opened_with = wanted
        return self._conversation

    async def _forked(self) -> str | None:
        """Return the agent's id of the forked conversation, if that has not continued since the fork."""
        host, state = self._session.host, self._session.state
        origin = state.origin
        if state.vendor is not None or origin is None or origin.kind != "fork" or not host.has(origin.session):
            return None
        source = (await host.get(origin.session)).state
        last = source.turns[-1] if source.turns else None
        same = last is not None and last.id == origin.turn and last.outcome == "completed" and source.active is None
        return source.vendor if same and source.agent == state.agent else None

    # -- cancelling and steering -------------------------------------------------------------------------------

    async def cancel(self, by: str) -> None:
        turn, task = self._session.running, self._task
        if turn is None:
            return
        if turn.cancelled_by is None:
            turn.cancelled_by = by
            turn.withdraw()
            await self._stop()
        if task is not None:
            await asyncio.wait({task})
        else:
            await self._session.end_turn(turn, "cancelled", by=by)

    async def _stop(self) -> None:
        """Request the conversation to stop, and cancel its task if it does not."""
        playing = self._playing
        if playing is None or playing.done():
            return
        obeys, turn = False, self._session.running
        if turn is not None and turn.held:
            playing.cancel()
            return
        if self._conversation is not None and (turn is None or command_line(turn.message) is None):
            try:
                async with asyncio.timeout(limits.CANCEL_SECONDS):
                    obeys = await self._conversation.cancel()
            except (TimeoutError, AgentError) as error:
                self._session.host.logger.warning("cancelling the agent of %s: %r", self._session.id, error)
        if obeys:
            await asyncio.wait({playing}, timeout=limits.CANCEL_SECONDS)
        playing.cancel()

    def fail(self, error: PorticoError) -> None:
        """Fail the running turn because the log cannot write. The end is appended as soon as the log is available."""
        turn = self._session.running
        if turn is not None and self._failure is None:
            self._failure = turn.lost = error
            turn.plain = False
            if self._playing is not None:
                self._playing.cancel()
            else:
                self._session.host.own(
                    self._session.end_turn(turn, "failed", ErrorInfo(error.code, error.message), "host"),
                    f"fail {self._session.id}",
                )

    async def interrupt(self) -> None:
        """End the running turn as interrupted, because the host stops."""
        if self._task is not None and not self._task.done():
            self._interrupted |= self._playing is not None and not self._playing.done()
            await self._stop()
            # If the log is down, the end cannot be written now: the next start writes it.
            await asyncio.wait({self._task}, timeout=limits.STOP_SECONDS if self._session.host.log.down is None else 0)
        elif (turn := self._session.state.active) is not None and turn.question is not None:
            self._session.forget(turn.id)  # the question stays open for the next start

    async def steer(self, message: Message) -> bool:
        """Offer a message to the running agent. Waits only until a timeout or the end of the agent's turn."""
        conversation, playing = self._conversation, self._playing
        running = self._session.running
        if running is None or running.held or conversation is None or playing is None:
            return False
        offered = self._session.host.own(conversation.steer(message), f"agent steer {self._session.id}")
        try:
            await asyncio.wait({offered, playing}, timeout=limits.STEER_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            if offered.done():
                return offered.result()
        except AgentError as error:
            self._session.host.logger.warning("steering the agent of %s: %r", self._session.id, error)
        finally:
            offered.cancel()
        return False

    # -- the conversation --------------------------------------------------------------------------------------

    @property
    def opened(self) -> bool:
        return self._conversation is not None

    async def servers(self, client: str) -> AsksServers:
        """Return the conversation for requests to its MCP servers; open it if necessary. The caller holds the session's
        lock, so no turn starts. A conversation that uses the token of another client is not returned."""
        session, state, opened = self._session, self._session.state, self._opened_with
        whose = client if isinstance(session.host.agent(state.agent), Authenticates) else ""
        found = self._conversation
        if (
            found is None
            or opened is None
            or (opened.agent, opened.tools, opened.client) != (state.agent, self._tools, whose)
        ):
            if session.running is not None:
                raise Conflict("The agent works with other servers now. Ask again when its turn has ended.")
            wanted = Wanted(state.agent, state.model, self._tools, whose, state.model_config)
            found = await self._opened(wanted, state.turns, lambda text: None)
        if not isinstance(found, AsksServers):
            raise Conflict(f"The MCP servers of {state.agent!r} are its own: nobody else can ask them.")
        return found

    def refresh(self) -> None:
        """Reopen the conversation with the next turn, because the tools have changed."""
        self._tools += 1

    async def forget(self) -> None:
        """Release the conversation and its id, because the history was cut: the agent must not resume it."""
        await self.release()
        if self._session.state.vendor is not None:
            await self._session.append(SessionVendor(id=""))

    async def release(self) -> None:
        conversation, self._conversation = self._conversation, None
        if conversation is not None:
            try:
                # Not wait_for: up to Python 3.11 it loses a cancel that arrives when the future is done.
                async with asyncio.timeout(limits.CANCEL_SECONDS):
                    await conversation.close()
            except (TimeoutError, AgentError) as error:
                self._session.host.logger.warning("closing the agent of %s: %r", self._session.id, error)
