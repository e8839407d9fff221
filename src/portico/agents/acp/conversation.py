"""One conversation with an ACP agent: opened, resumed after a death of either side, prompted, cancelled.

The end of a turn is our own state: `_ended` completes with the reply to the prompt (ACP 1), or when an agent reports
that it is idle (as the draft of version 2 does, where that reply is a mere acknowledgement).
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import msgspec

from portico.agents.acp.action import permission_action
from portico.agents.acp.autonomy import asking, kind_of
from portico.agents.acp.call_processes import CallProcesses
from portico.agents.acp.choice import OptionChoice, choices
from portico.agents.acp.link import AgentLink
from portico.agents.acp.own_tools import OwnTools
from portico.agents.acp.prompt import Texts, blocks
from portico.agents.acp.replay import HistoryReplay, ping
from portico.agents.acp.service import Cancelled, Service, choose
from portico.agents.acp.update import Track, Updates
from portico.agents.agent import Autonomy, Json, Message, Opening, Turn
from portico.agents.elicitation import elicit
from portico.agents.supervisor import Supervisor
from portico.agents.transcript import NOTE, retold
from portico.kernel.errors import AgentDied, AgentError, AgentUnavailable, Conflict
from portico.kernel.events import SessionConfigured, ToolSpec
from portico.kernel.tool import ToolResult

if TYPE_CHECKING:
    from portico.agents.acp.agent import AcpAgent

logger = logging.getLogger("portico.agents.acp")

_STOPS = {
    "max_tokens": "The answer ended at the model's limit of tokens.",
    "max_turn_requests": "The agent stopped at its limit of steps.",
}


class AcpConversation:
    def __init__(self, agent: "AcpAgent", opening: Opening, supervisor: Supervisor[AgentLink], mode: str = "") -> None:
        """`mode`: for a session that names none."""
        self._agent = agent
        self._mode = mode
        self._supervisor = supervisor
        self._opening = opening
        self._vendor = opening.vendor
        self._service = Service(opening.cwd, opening.folders or ())
        self._link: AgentLink | None = None
        self._servers = agent.servers(opening)
        self._turn: Turn | None = None
        self._updates: Updates | None = None
        self._own_tools = OwnTools(())
        self._prelude = ""
        self._notes: list[str] = []
        self._commands: list[Json] | None = None
        self._choices: list[OptionChoice] = []
        self._chosen: dict[str, str] = {}
        """The session's value of each option when it was last checked: changes by the agent since then are kept."""
        self._ended: asyncio.Future[Json] | None = None
        self._stopping = False
        """We have sent a cancel."""
        self._processes = CallProcesses(0)
        self._done: list[Track] = []
        """Calls that had ended when the turn was cancelled: what they left running stays."""
        # Updates arrive as separate tasks; a fair lock keeps them in wire order.
        self._order = asyncio.Lock()

    # -- opening -----------------------------------------------------------------------------------------------

    async def begin(self) -> AgentLink:
        """Connect to a running process and resume the conversation there, by its id or by sending the history."""
        await self._leave()
        link = await self._supervisor.get(self._opening.tell)
        with self._supervisor.opening(link), self._agent.signing_in(link):
            return await self._join(link)

    async def _join(self, link: AgentLink) -> AgentLink:
        base: Json = {"cwd": self._opening.cwd, "mcpServers": await self._mcp_servers(link)}
        more = [each for each in self._opening.folders or () if each != self._opening.cwd]
        if more and link.several_folders:
            base["additionalDirectories"] = more
        answer = await self._resume(link, base) if self._vendor else await self._fork(link, base)
        if answer is None:
            answer = await self._new(link, base)
        assert self._vendor is not None
        self._link = link
        link.join(self._vendor, self)
        self._opening.known_as(self._vendor)
        self._agent.learn(link, answer)
        if self._agent.never_asks:
            self._note("This agent does not ask: it changes files and runs commands without approval.")
        self._choices = list(choices(answer)) or self._choices
        self._chosen = {choice.category: choice.current for choice in self._choices}
        await self._configure(link, self._opening.config)
        return link

    async def _resume(self, link: AgentLink, base: Json) -> Json | None:
        """None: the agent cannot, or has forgotten it."""
        if link.capability("sessionCapabilities", "resume"):
            method = "session/resume"
        elif link.capability("loadSession"):
            method = "session/load"
        else:
            return None
        vendor, replay = str(self._vendor), HistoryReplay(self)
        link.join(vendor, replay)
        try:
            answer = await link.request(method, {**base, "sessionId": vendor})
            if method == "session/load":
                await replay.over(link, vendor)
            return answer
        except (AgentUnavailable, AgentDied):
            raise
        except AgentError as error:
            logger.warning("%s does not take up %s: %s", self._agent.id, self._opening.session, error.message)
            return None
        finally:
            link.part(vendor, replay)

    async def _fork(self, link: AgentLink, base: Json) -> Json | None:
        """None: it is no fork, or the agent cannot."""
        source = self._opening.fork_of
        if source is None or not link.capability("sessionCapabilities", "fork"):
            return None
        try:
            answer = await link.request("session/fork", {**base, "sessionId": source})
        except (AgentUnavailable, AgentDied):
            raise
        except AgentError as error:
            logger.warning("%s does not fork %s: %s", self._agent.id, source, error.message)
            return None
        self._vendor = str(answer.get("sessionId"))
        return answer

    async def _new(self, link: AgentLink, base: Json) -> Json:
        try:
            answer = await link.request("session/new", base)
        except AgentUnavailable:
            await self._agent.authenticate(link)
            answer = await link.request("session/new", base)
        self._vendor = str(answer.get("sessionId"))
        if self._opening.history:
            self._prelude = retold(self._opening.history)
            self._notes.append(NOTE)
        return answer

    async def _mcp_servers(self, link: AgentLink) -> list[Json]:
        program = self._agent.program
        if not program.mcp:
            return []
        return await self._servers.offer(
            self if self._opening.tools else None,
            http=link.capability("mcpCapabilities", "http"),
            stdio=program.mcp_stdio,
            serving=self._answer_server,
            note=self._note,
        )

    async def _answer_server(self, method: str, params: Json) -> Json:
        return {"action": "cancel"} if self._turn is None else await elicit(params, self._turn)

    async def _configure(self, link: AgentLink, config: Json) -> None:
        """Set the model, the mode and the other options of the session, where the agent has them."""
        own = {"model": self._opening.model, "mode": config.get("mode") or self._mode}
        for choice in self._choices:
            name, current = choice.category, self._chosen.get(choice.category)
            wanted = {**config, **own}.get(name) or asking(self._agent.program, name, current, choice.values)
            if not isinstance(wanted, str) or wanted in ("", current):
                continue
            self._chosen[name] = wanted
            if wanted in choice.values:
                answer = await link.request(choice.method, choice.params(str(self._vendor), wanted))
                self._choices = list(choices(answer)) or self._choices
            elif name != "model":
                self._note(f"The agent has no {name} {wanted!r}. It has: {', '.join(choice.values)}.")

    def _note(self, text: str) -> None:
        if self._turn is not None:
            self._turn.notice(text)
        else:
            self._notes.append(text)

    # -- a turn ------------------------------------------------------------------------------------------------

    async def send(self, message: Message, turn: Turn) -> None:
        link = self._link
        if link is None or not link.usable:
            self._opening.history, self._opening.tell = turn.earlier, turn.waits
            link = await self.begin()
        self._start(turn, link)
        try:
            with self._supervisor.busy(link), self._agent.signing_in(link):
                await self._configure(link, turn.session.state.config)
                reply = await self._prompt(link, message)
                async with self._order:
                    await self._finish(reply, turn)
                self._agent.works()
        finally:
            await self._end_processes()  # also those that started while it was cancelled
            self._turn = self._updates = self._ended = None

    def _start(self, turn: Turn, link: AgentLink) -> None:
        self._processes, self._done = CallProcesses(link.process.child.pid), []
        self._own_tools = OwnTools((spec.name for spec in self._opening.tools), self._servers.own_name)
        kind = kind_of(self._agent.program)
        self._turn, self._updates = turn, Updates(turn, self._own_tools, self._service.commands, kind)
        self._ended = asyncio.get_running_loop().create_future()
        self._stopping = False
        self._service.begin()
        for note in self._notes:
            turn.notice(note)
        self._notes.clear()
        self._tell_commands()

    async def _prompt(self, link: AgentLink, message: Message) -> Json:
        content = await blocks(
            message,
            self._service.files,
            images=link.capability("promptCapabilities", "image"),
            audio=link.capability("promptCapabilities", "audio"),
            texts=self._texts(link),
        )
        if self._prelude:
            content.insert(0, {"type": "text", "text": self._prelude})
        reply = await link.request("session/prompt", {"sessionId": self._vendor, "prompt": content})
        self._prelude = ""
        if reply.get("stopReason") is not None or self._ended is None:
            return reply
        return await link.process.alive(asyncio.shield(self._ended))

    def _texts(self, link: AgentLink) -> Texts:
        if not link.capability("promptCapabilities", "embeddedContext"):
            return "links"
        return "embedded" if self._agent.program.embeds else "words"

    async def _finish(self, reply: Json, turn: Turn) -> None:
        assert self._updates is not None  # there is a turn
        reason, name = reply.get("stopReason"), self._agent.program.name or self._agent.name
        uninvited = reason == "cancelled" and turn.cancelled_by is None and not self._stopping
        given_up = uninvited and (self._updates.spoke or not self._service.refused)
        if given_up:
            await self._service.commands.stop()  # the agent will not ask for them again
        self._updates.report_usage(reply)
        failed = self._updates.failure(name, reply)
        await self._updates.finish(reason)
        await self._service.finish()
        if given_up:
            self._abandon()
            raise AgentError(
                f"{name} ended the turn by itself, as if it were cancelled. "
                "The next message gets a new conversation with it, which is told what was said."
            )
        if uninvited:
            turn.notice("The agent stopped because a call was refused.")
        if failed is not None:
            raise failed
        turn.stop = str(reason) if reason in (*_STOPS, "refusal") else ""
        if reason == "refusal":
            raise AgentError("The model refused to answer.")
        if reason in _STOPS:
            turn.notice(_STOPS[str(reason)])

    def _abandon(self) -> None:
        """Discard the agent session: after this, some agents never answer again."""
        if self._link is not None and self._vendor is not None:
            self._link.part(self._vendor, self)
        self._link = self._vendor = self._opening.fork_of = None
        self._opening.known_as("")

    async def steer(self, message: Message) -> bool:
        return False  # a second prompt while one runs is refused by some agents and queued by others

    async def cancel(self) -> bool:
        link = self._link
        if link is None or self._turn is None:
            return False
        self._stopping = True
        self._done = [each for each in self._updates.calls() if each.call.done] if self._updates is not None else []
        await link.notify("session/cancel", {"sessionId": self._vendor})
        await self._service.commands.stop()
        await self._end_processes()
        return True

    async def _end_processes(self) -> None:
        if not self._stopping or self._updates is None:
            return
        cancelled = [each for each in self._updates.calls() if each not in self._done]
        actions = [permission_action(each, self._opening.cwd) for each in cancelled]
        await self._processes.end([action.text for action in actions if action.text])

    async def close(self) -> None:
        link = self._link
        try:
            await self._service.close()
            await self._leave()
            if link is not None and link.usable and link.capability("sessionCapabilities", "close"):
                await link.request("session/close", {"sessionId": self._vendor})
        finally:
            await self._agent.leave(self._supervisor)

    async def _leave(self) -> None:
        if self._link is not None and self._vendor is not None:
            self._link.part(self._vendor, self)
        self._link = None
        await self._servers.close()

    # -- updates and requests of the agent ---------------------------------------------------------------------

    async def update(self, update: Json) -> None:
        async with self._order:
            kind = update.get("sessionUpdate")
            if kind == "available_commands_update":
                self._commands = _commands(update.get("availableCommands"))
                self._tell_commands()
            elif kind in ("current_mode_update", "config_option_update"):
                self._take_choices(update)
            elif kind == "state_update":
                if update.get("state") == "idle" and self._ended is not None and not self._ended.done():
                    self._ended.set_result(update)
            elif self._updates is not None and self._turn is not None:
                await self._updates.apply(update)
                await self._turn.drained()

    def _take_choices(self, update: Json) -> None:
        """Store a mode or another option that the agent has changed itself as the session's value."""
        self._choices = list(choices(update)) or self._choices
        now = {choice.category: choice.current for choice in choices(update) if choice.category != "model"}
        if isinstance(mode := update.get("currentModeId"), str):
            now["mode"] = mode
        news = {name: value for name, value in now.items() if value != self._chosen.get(name)}
        for name in [name for name, value in news.items() if self._loosens(name, value)]:
            self._restore(name, news.pop(name))
        self._chosen.update(news)
        if news and self._turn is not None:
            self._turn.report(SessionConfigured(values=news, by="agent"))
            self._turn.notice("".join(f"The agent is now in {name} {value!r}." for name, value in news.items()))

    def _loosens(self, name: str, value: str) -> bool:
        """Whether the value is known to ask less than the current one, which no one has approved."""
        now, then = (self._agent.autonomy(name, each) for each in (value, self._chosen.get(name)))
        return then < now < Autonomy.UNKNOWN

    def _restore(self, name: str, value: str) -> None:
        """Switch back an agent that has switched itself to a mode in which it asks less."""
        choice = next((each for each in self._choices if each.category == name), None)
        before, link, turn = self._chosen.get(name), self._link, self._turn
        words = f"The agent switched itself to {name} {value!r}, which asks less"
        if choice is None or before is None or link is None:
            self._note(f"{words}.")
            return
        self._note(f"{words}; it was switched back to {before!r}.")
        if turn is not None:
            host, session = turn.session.host, turn.session.id
            back = link.request(choice.method, choice.params(str(self._vendor), before))
            host.own(back, f"agent {session} {name}")
            host.own(host.audit("approval.restored", "agent", session=session, setting=name, value=value), "audit")

    def _tell_commands(self) -> None:
        turn, commands = self._turn, self._commands
        if turn is not None and commands is not None and turn.session.state.config.get("commands") != commands:
            turn.report(SessionConfigured(values={"commands": commands}, by="agent"))
            self._commands = None

    async def serve(self, method: str, params: Json) -> Json:
        turn = self._turn
        if method == "session/request_permission" and turn is not None:
            return await self._permit(params, turn)
        return await self._service.serve(method, params, turn)

    async def _permit(self, params: Json, turn: Turn) -> Json:
        async with self._order:
            assert self._updates is not None  # there is a turn
            asked = params.get("toolCall")
            asked = asked if isinstance(asked, dict) else {}
            options = [each for each in params.get("options") or [] if isinstance(each, dict)]
            if self._own_tools.is_without_input(asked) and (allowed := choose(options, allow=True)) is not None:
                return {"outcome": {"outcome": "selected", "optionId": allowed}}
            track = self._updates.track(asked)
        try:
            return await self._service.permit(track, options, turn)
        except Cancelled:
            answer = "refuse" if track.refused else "allow it once"
            turn.notice(f"The agent offered no way to {answer}, so it was stopped.")
            await self.cancel()
            return {"outcome": {"outcome": "cancelled"}}

    # -- the session's tools, over MCP -------------------------------------------------------------------------

    def specs(self) -> list[ToolSpec]:
        return self._opening.tools

    def expects(self, tool: str, arguments: Json) -> bool:
        return self._turn is not None and self._own_tools.expects(tool, arguments)

    def _strays(self, name: str, arguments: Json) -> bool:
        """Whether the agent called the tool in another session but used the key of this one. The session of a call is
        the one in which the agent announced it."""
        link = self._link
        return link is not None and not self.expects(name, arguments) and link.expected_elsewhere(self, name, arguments)

    async def call(self, name: str, arguments: Json) -> ToolResult:
        if self._strays(name, arguments) and self._link is not None:
            await ping(self._link, str(self._vendor))  # its announcement may have arrived by then
        async with self._order:  # earlier updates about it are applied first; each call uses up one announcement
            if self._strays(name, arguments):
                where = f"[agents.acp.{self._agent.name}] process_per_session = true"
                raise Conflict(f"Called in another session. With {where} this cannot happen.")
            if self._turn is None:
                raise Conflict("Nothing runs in this session.")
            call = self._own_tools.arrived(name, arguments)
        call = call or self._turn.session_tool(name, msgspec.json.encode(arguments).decode())
        return await self._turn.perform(call)


def _commands(found: Any) -> list[Json]:
    return [
        {"name": str(each.get("name")), "description": str(each.get("description") or "")}
        for each in (found if isinstance(found, list) else [])
        if isinstance(each, dict)
    ]
