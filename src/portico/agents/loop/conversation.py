"""One conversation with the built-in agent: what a message asks for, and the run that answers it."""

from collections.abc import Sequence
from functools import partial

from portico.agents import attachment
from portico.agents.agent import AgentUnavailable, Message, Opening, Turn
from portico.agents.loop.agent import LoopAgent
from portico.agents.loop.background import BackgroundCommands
from portico.agents.loop.command import execute
from portico.agents.loop.guidance import Guidance, guidance
from portico.agents.loop.model_call import ModelCaller
from portico.agents.loop.prompt import describe_place, is_small
from portico.agents.loop.prompt_files import expand
from portico.agents.loop.record import StepHistory
from portico.agents.loop.roots import Roots
from portico.agents.loop.run import LoopRun
from portico.agents.loop.servers import ServerTools, tool_name
from portico.agents.loop.settings import Current
from portico.agents.loop.skills import named
from portico.agents.loop.subagents import SubAgents
from portico.agents.loop.tools import LoopToolbox
from portico.agents.loop.toolset.choice import Toolset, choose
from portico.agents.loop.toolset.tool import ToolContext
from portico.agents.loop.transcript import Entry, UserText
from portico.agents.servers import McpServer, with_brought
from portico.agents.supervisor import agent_environment
from portico.features.sandboxes.agent import AgentProcess
from portico.features.sandboxes.feature import confine, egress_of
from portico.features.sandboxes.host_requests import recording
from portico.kernel.context import to_agent
from portico.kernel.events import Json
from portico.models.catalogue import is_toy
from portico.sandbox.policy import Confinement

STEPS_MAX = 1000
"""As the setting's own ceiling."""
TOY_CHATS = "is a toy: it chats and gets no tools. `portico agents list` shows who can do this."


class LoopConversation:
    """Keeps no separate memory: the host's record of the session is the conversation, also after a restart."""

    def __init__(self, agent: LoopAgent, opening: Opening) -> None:
        self._agent = agent
        self._opening = opening
        self._run: LoopRun | None = None
        self._history = StepHistory()
        self._place: str | None = None
        self._seen: dict[str, str] = {}
        """Files that were read in earlier turns, in which state."""
        self._commands = BackgroundCommands()
        bearer = agent.bearer(opening.client)
        servers = with_brought(agent.servers, agent.brought(opening.session))
        self._servers = ServerTools(servers, agent.home, opening.cwd, opening.off, self._confine, bearer)

    async def _confine(self, server: McpServer) -> Confinement:
        process = AgentProcess(server.command, agent_environment((), server.env))
        return await self._agent.confinement(self._opening, process)

    async def send(self, message: Message, turn: Turn) -> None:
        with recording(turn.session):
            await self._send(message, turn)

    async def _send(self, message: Message, turn: Turn) -> None:
        current = self._agent.settings.current()
        meta = turn.message.meta
        if "command" in meta:
            await self._execute(str(meta["command"]), str(meta.get("argument", "")), turn, current)
            return
        if not current.agent.enabled:
            raise AgentUnavailable("The built-in agent is off. Set enabled = true in [agent] of the settings.")
        goal, wants_agent = self._goal(message.text, turn, current)
        models = await self._models(turn, current)
        if wants_agent:
            able = [model for model in models if not is_toy(model)]
            if not able:
                turn.notice(f"{models[0]} {TOY_CHATS}")
            models, wants_agent = able or models, bool(able)
        toolbox = self._toolbox(turn, current)
        told = await guidance(toolbox.roots, self._agent.home)
        said = await self._said(await _with_files(goal, turn, current, told), message, turn, toolbox)
        asker = ModelCaller(self._agent.directory, current, models, self._agent.lacking, turn.notice, waits=turn.waits)
        if self._place is None and wants_agent:
            self._place = describe_place(toolbox.roots, turn.session.state.created)
        before = await self._before(turn)
        run = LoopRun(turn, asker, current, before, [*_stopped(turn), said], self._place or "")
        if not wants_agent:
            await run.chat()
            return
        toolset = self._toolset(turn, toolbox, told, current, models)
        self._run = run
        try:
            await run.pursue(toolset, told, _steps(meta, current), self._opening.tools, self._servers)
        finally:
            self._run = None
            self._servers.rest()

    def _toolset(
        self, turn: Turn, toolbox: LoopToolbox, told: Guidance, current: Current, models: Sequence[str]
    ) -> Toolset:
        names = choose(current.loop.tools, current.loop.tools_off, is_small(models[0]))
        subagents = SubAgents(self._agent, self._commands, current, models, self._place or "", names)
        egress = partial(egress_of, turn.session)
        context = ToolContext(toolbox.roots, self._commands, subagents.delegate, told.skills, egress)
        return Toolset(names, toolbox, context)

    async def _execute(self, name: str, argument: str, turn: Turn, current: Current) -> None:
        directory, meta = self._agent.directory, turn.message.meta
        about: Json = {"projects": meta.get("projects", [])}
        if name == "diag":
            names = await directory.names(current)
            about |= {"models": names, "model": turn.model, "missing": await directory.missing(current)}
        await execute(name, argument, turn, self._toolbox(turn, current), current, about)

    def _toolbox(self, turn: Turn, current: Current) -> LoopToolbox:
        roots = Roots(turn.session.state.cwd, current.agent.allowed_roots, self._opening.folders)
        return LoopToolbox(roots, lambda: confine(turn.session), self._seen)

    async def _said(self, goal: str, message: Message, turn: Turn, toolbox: LoopToolbox) -> UserText:
        """Return the message with its attachments; a notice lists what was left out."""
        attached = [await attachment.read(each, toolbox.roots.files) for each in message.attachments]
        texts = [f"=== attached: {each.label}\n{each.text}" for each in attached if each.text is not None]
        pictures = [f"data:{each.media};base64,{each.data}" for each in attached if each.is_picture]
        for each in attached:
            if each.text is None and not each.is_picture:
                turn.notice(
                    f"The attachment {each.label!r} is left out: {each.problem or 'it is neither text nor a picture'}."
                )
        return UserText("user", "\n\n".join([goal, *texts]), pictures)

    def _goal(self, text: str, turn: Turn, current: Current) -> tuple[str, bool]:
        """The text without the prefix, and whether it is a goal to work on."""
        said = turn.message.text.strip()
        goal = goal_of(said, current.agent.prefix)
        if goal is not None:  # `text` may contain more than the message: that it is resumed, or the session's context
            return text.replace(said, goal, 1), True
        mode = turn.message.meta.get("mode") or turn.session.state.config.get("mode", "auto")
        if mode not in ("agent", "chat"):
            mode = "chat" if is_toy(turn.model) else "agent"
        return text, mode == "agent"

    async def _models(self, turn: Turn, current: Current) -> list[str]:
        """The session's model first, then the user's own order."""
        models = list(dict.fromkeys(model for model in (turn.model, *current.models) if model))
        if not models:
            models = (await self._agent.directory.names(current))[:1]
        if not models:
            missing = await self._agent.directory.missing(current)
            raise AgentUnavailable(missing or "No model is chosen, and the endpoint lists none. Set models = [...].")
        return models

    async def _before(self, turn: Turn) -> list[Entry]:
        """The conversation so far; of a turn that is resumed also what it has done."""
        turns = [each for each in to_agent(turn.session.state.turns) if each.id != turn.id or each.parts]
        return await self._history.entries(turns, turn.session.host.log.blob)

    async def steer(self, message: Message) -> bool:
        if self._run is None:
            return False
        self._run.steered.append(message.text)
        return True

    def tool_name(self, server: str, tool: str) -> str:
        return tool_name(server, tool)

    async def ask_server(self, server: str, operation: str, params: Json) -> Json:
        return await self._servers.ask(server, operation, params)

    async def cancel(self) -> bool:
        return False  # everything here can be cancelled where it waits

    async def close(self) -> None:
        await self._commands.close()
        await self._servers.close()


def _stopped(turn: Turn) -> list[UserText]:
    """The model learns how the turn before ended, where that was not its own end."""
    earlier = [each for each in to_agent(turn.session.state.turns) if each.id != turn.id]
    last = earlier[-1] if earlier else None
    resumed = turn.session.state.turn(turn.id)
    if last is None or not last.steps or last.outcome in (None, "completed") or (resumed and resumed.parts):
        return []
    why = f": {last.error.message}" if last.error is not None else ""
    return [UserText("user", f"<notice>\nThe turn before was {last.outcome}{why}\n</notice>")]


async def _with_files(text: str, turn: Turn, current: Current, told: Guidance) -> str:
    """The message with the text of the command that it names, and of the skills."""
    said = turn.message.text.strip()
    said = goal_of(said, current.agent.prefix) or said
    if (command := await expand(said, told.sources)) is not None:
        text = text.replace(said, command, 1)
    skills = [f'<skill name="{each.name}">\n{await each.text()}\n</skill>' for each in named(told.skills, said)]
    return "\n\n".join([text, *skills])


def goal_of(said: str, prefix: str) -> str | None:
    """Return the goal of a message that asks for work: `agent: GOAL` or `/agent GOAL`."""
    if prefix and said.startswith(prefix):
        return said.removeprefix(prefix).strip()
    command, *goal = said.split(maxsplit=1)
    return goal[0] if command == "/agent" and goal else None


def _steps(meta: Json, current: Current) -> int:
    wanted = meta.get("maxSteps")
    return min(wanted, STEPS_MAX) if isinstance(wanted, int) and wanted > 0 else current.agent.max_steps
