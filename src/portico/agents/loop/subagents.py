"""Sub-agents of a run: the same loop in the turn of a child session, with an empty conversation."""

import asyncio
from collections.abc import Collection, Sequence
from functools import partial

from portico.agents.agent import Turn
from portico.agents.loop.agent import LoopAgent
from portico.agents.loop.background import BackgroundCommands
from portico.agents.loop.guidance import guidance
from portico.agents.loop.model_call import ModelCaller
from portico.agents.loop.roots import Roots
from portico.agents.loop.run import LoopRun
from portico.agents.loop.settings import Current
from portico.agents.loop.tools import LoopToolbox
from portico.agents.loop.toolset.ask import ASK
from portico.agents.loop.toolset.choice import LOOKING, Toolset
from portico.agents.loop.toolset.delegate import DELEGATE, run_in_child
from portico.agents.loop.toolset.tool import Delegation, ToolContext
from portico.agents.loop.transcript import UserText
from portico.features.sandboxes.feature import confine, egress_of
from portico.kernel.call import Call

AT_ONCE = 4
"""Sub-agents of one run that work at the same time: endpoints limit requests by the minute."""
REPORT = (
    "\n\n<notice>\nYou work for another agent, which sees only your last answer. End with a report: all facts that it "
    "needs, with paths and lines, and what you could not find out.\n</notice>"
)


class SubAgents:
    def __init__(
        self,
        agent: LoopAgent,
        commands: BackgroundCommands,
        current: Current,
        models: Sequence[str],
        place: str,
        names: Collection[str],
    ) -> None:
        """`names`: the tools that the run itself has."""
        self._agent = agent
        self._commands = commands
        self._current = current
        self._models = models
        self._place = place
        self._names = set(names)
        self._free = asyncio.Semaphore(AT_ONCE)

    async def delegate(self, call: Call, wanted: Delegation) -> str:
        async def work(child: Turn) -> str:
            return await self._run(child, wanted)

        async with self._free:
            return await run_in_child(call, wanted, work)

    async def _run(self, child: Turn, wanted: Delegation) -> str:
        agent, current, state = self._agent, self._current, child.session.state
        roots = Roots(state.cwd, current.agent.allowed_roots, child.session.folders.reach())
        names = self._names & LOOKING if wanted.readOnly else self._names - {ASK.name, DELEGATE.name}
        told = await guidance(roots, agent.home)
        toolset = Toolset(
            names,
            LoopToolbox(roots, lambda: confine(child.session)),
            ToolContext(roots, self._commands, skills=told.skills, egress=partial(egress_of, child.session)),
        )
        asker = ModelCaller(agent.directory, current, self._models, agent.lacking, child.notice, waits=child.waits)
        run = LoopRun(child, asker, current, [], [UserText("user", wanted.task + REPORT)], self._place)
        return await run.pursue(toolset, told, current.agent.max_steps)
