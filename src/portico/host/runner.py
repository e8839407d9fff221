"""Runs the turns of one session: opens the conversation, watches it, ends it.

One task per turn, owned by the host. Whatever happens to it (an answer, an error, a cancel, silence, a full disk, the
host's stop) the turn gets exactly one end.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from portico import limits
from portico.correlation import SESSION, TURN
from portico.errors import AgentDied, AgentError, Conflict, NotFound, PorticoError
from portico.events import ErrorInfo, Json, Message, Outcome, SessionModel, SessionVendor
from portico.host import context
from portico.host.agent import AsksServers, Authenticates, Conversation, Opening, client_of
from portico.host.command_turn import command_line
from portico.host.customization import switched_off
from portico.host.fallback import following, split, untouched
from portico.host.silence import Silence
from portico.host.state import TurnState
from portico.host.turn import Turn

if TYPE_CHECKING:
    from portico.host.session import Session

RESUME_TEXT = "The last request was interrupted. Go on where you stopped. It was:\n"
T = TypeVar("T")


class Wanted(NamedTuple):
    """What a conversation is opened with; another one takes its place where a turn wants something else."""

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
        self._tools = 0
        self._fallen: str | None = None

    # -- a turn ------------------------------------------------------------------------------------------------

    def start(self, turn: Turn, resumed: bool) -> None:
        self._failure = None
        self._session.captures.begin(turn.id, resumed=resumed)
        own, name = self._session.host.own, f"{self._session.id}/{turn.id}"
        self._playing = own(self._play(turn, resumed), f"agent {name}")
        self._task = own(self._run(turn, self._playing), f"turn {name}")
        self._task.add_done_callback(self._forget)

    def _forget(self, task: "asyncio.Task[None]") -> None:
        """Two tasks that are over are a seventh of an idle session's memory."""
        if self._task is task and self._session.running is None:
            self._task = self._playing = None

    async def _run(self, turn: Turn, playing: "asyncio.Task[None]") -> None:
        """Never cancelled itself: whatever becomes of the agent's part, the turn gets its end here."""
        await asyncio.wait({playing})
        session = self._session
        left = turn.held and session.host.stopping and turn.cancelled_by is None
        if left and await session.host.spending.held_at_start(session, turn.id) is not None:
            turn.live = False  # its agent has not started: the next start of the host lets it wait again
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
        SESSION.set(self._session.id)  # for the lines of the log; this task and what it starts are about this turn
        TURN.set(turn.id)
        if (line := command_line(turn.message)) is not None:
            await self._session.host.run_command(turn, line)
            return
        turn.held = True
        await self._session.host.spending.start(turn, resumed=resumed)
        if turn.withdrawn:
            return
        turn.held = False
        state = self._session.state
        news = context.news(state)
        first = next(context.to_agent(state.turns)).id == turn.id
        message = context.told(turn.message, state, first=first, later=news is not None)
        if resumed:
            message = Message(RESUME_TEXT + message.text, message.attachments, message.model, message.origin)
        quiet = Silence(turn)
        while True:
            try:
                await self._watch(self._converse(message, turn), turn, quiet)
                if news is not None:
                    await self._session.keep(context.RULES_SENT, news, by="host")
                return
            except (AgentError, NotFound) as error:
                if not await self._fall_back(turn, error):
                    raise

    async def _fall_back(self, turn: Turn, error: PorticoError) -> bool:
        """The next of the session's `fallback` takes over, if there is one and nothing was said or done yet."""
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
        if playing.cancelled():
            return "interrupted", ErrorInfo("interrupted", "The host was stopped."), "host"
        if error is None:
            return "completed", None, "agent"
        if isinstance(error, PorticoError):
            return "failed", ErrorInfo(error.code, error.message, error.retry_after), "agent"
        # An agent is a plugin: its bugs end its turn, never the host.
        self._session.host.logger.error("agent of %s failed", self._session.id, exc_info=error)
        return "failed", ErrorInfo("agent_failed", f"{type(error).__name__}: {error}"), "agent"

    async def _watch(self, work: Awaitable[T], turn: Turn, quiet: Silence) -> T:
        """Waits for the agent; silence beyond the limit counts as death. A person may take as long as they like."""
        host = self._session.host
        sending = asyncio.ensure_future(work)
        try:
            while not sending.done():
                now = host.clock.awake()
                silence = now - turn.active_at
                if silence >= host.turn_idle_timeout and not turn.waiting:
                    raise AgentDied(f"The agent said nothing for {host.turn_idle_timeout:g} seconds.")
                if (words := quiet.notice(now)) is not None:
                    heard = turn.active_at
                    turn.remark(words)
                    turn.active_at = heard  # it is no word of the agent
                await host.clock.wait(sending, max(0.05, min(host.turn_idle_timeout - silence, quiet.due(now))))
            return await sending
        finally:
            sending.cancel()

    def _wanted(self, turn: Turn) -> Wanted:
        state = self._session.state
        model = state.model if self._fallen == turn.id else turn.model  # a message names its model for the first agent
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
        """The agent's own id of what this is a fork of, as long as that has said nothing more since."""
        host, state = self._session.host, self._session.state
        origin = state.origin
        if state.vendor is not None or origin is None or origin.kind != "fork" or not host.has(origin.session):
            return None
        source = (await host.get(origin.session)).state
        last = source.turns[-1] if source.turns else None
        same = last is not None and last.id == origin.turn and last.outcome == "completed" and source.active is None
        return source.vendor if same and source.agent == state.agent else None

    # -- interfering -------------------------------------------------------------------------------------------

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
        """Asks the conversation to stop, and takes the turn away from one that does not."""
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
        """The log cannot write: the running turn ends as failed, as soon as the end can be written."""
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
        """The host stops: the running turn ends as interrupted."""
        if self._task is not None and not self._task.done():
            await self._stop()
            # With a dead disk the end cannot be written now: the next start writes it.
            await asyncio.wait({self._task}, timeout=limits.STOP_SECONDS if self._session.host.log.down is None else 0)
        elif (turn := self._session.state.active) is not None and turn.question is not None:
            self._session.forget(turn.id)  # the next start asks on

    async def steer(self, message: Message) -> bool:
        """The session's lock is held meanwhile: an agent that does not answer or whose turn ends is not waited for."""
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
        """The conversation, for whoever asks its MCP servers; opened where no turn has. The session's lock is held, so
        no turn begins meanwhile. One that another client's token is used in is not lent."""
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
        """The tools have changed: the next turn opens the conversation anew."""
        self._tools += 1

    async def forget(self) -> None:
        """The history was cut: the agent's own memory of it is not to be resumed."""
        await self.release()
        if self._session.state.vendor is not None:
            await self._session.append(SessionVendor(id=""))

    async def release(self) -> None:
        conversation, self._conversation = self._conversation, None
        if conversation is not None:
            try:
                # Not wait_for: up to Python 3.11 it forgets a cancel that comes in the moment in which it is done.
                async with asyncio.timeout(limits.CANCEL_SECONDS):
                    await conversation.close()
            except (TimeoutError, AgentError) as error:
                self._session.host.logger.warning("closing the agent of %s: %r", self._session.id, error)
