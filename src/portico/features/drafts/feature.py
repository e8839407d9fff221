"""The feature: lists, plans and saves workflows, and drafts one from a description."""

import asyncio
import re
from pathlib import Path
from typing import Any

from portico.features.drafts.commands import DraftWorkflow, PlanWorkflow, SaveWorkflow
from portico.features.drafts.plan import listed, plan_file, plan_text, recipe_list
from portico.features.drafts.shapes import (
    DraftStarted,
    PlannedWorkflow,
    Recipes,
    SavedWorkflow,
    WorkflowDraft,
    Workflows,
)
from portico.features.files.commands import MakeFolder, WriteFile
from portico.features.jobs.draft import ROUNDS, draft_prompt, is_draft_prompt, repair_prompt, workflow_in
from portico.features.jobs.workflow.files import FOLDER, find_workflow, load_text
from portico.kernel import commands as c
from portico.kernel.commands import READS
from portico.kernel.errors import AlreadyExists, BadRequest, NotFound
from portico.kernel.events import Json
from portico.kernel.feature import Feature, Routing, handle
from portico.kernel.folder_access import check_reach
from portico.kernel.folders import check_folder
from portico.kernel.state import SessionState, TextPart, TurnState

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_TITLE_CHARS = 60
_FIRST = "draft"
"""The name of a draft whose text has none."""


class WorkflowDrafts(Feature):
    name = "drafts"
    commands = (PlanWorkflow, SaveWorkflow, DraftWorkflow)

    @handle
    async def plan(self, command: PlanWorkflow, caller: c.Caller) -> PlannedWorkflow:
        if command.text:
            return await asyncio.to_thread(plan_text, command.text, command.name, command.inputs)
        folder = self._folder(command.cwd, caller)
        return await asyncio.to_thread(plan_file, folder, command.name, command.inputs)

    @handle
    async def save(self, command: SaveWorkflow, caller: c.Caller) -> SavedWorkflow:
        if not _NAME.fullmatch(command.name):
            words = f"{command.name!r} is no name of a job: use lower-case letters, digits, - and _."
            raise BadRequest(words, field="name")
        folder = self._folder(command.cwd, caller)
        path = folder / FOLDER / f"{command.name}.yaml"
        await asyncio.to_thread(load_text, command.text, str(path), command.name)
        taken = await asyncio.to_thread(find_workflow, folder, command.name)
        if taken is not None and not (command.replace and taken == path):
            words = f"There is a file {taken.name!r} already. Choose another name."
            raise AlreadyExists(words, field="name")
        await self.host.do(MakeFolder(path=str(path.parent)), caller)
        await self.host.do(WriteFile(path=str(path), data=command.text, create_only=taken is None), caller)
        return SavedWorkflow(command.name, str(path))

    @handle
    async def draft(self, command: DraftWorkflow, caller: c.Caller) -> DraftStarted:
        words = " ".join(command.description.split())
        if not words:
            raise BadRequest("Describe what the job should do.", field="description")
        title = f"Draft: {words if len(words) <= _TITLE_CHARS else words[: _TITLE_CHARS - 1] + '…'}"
        # It reads and answers; it has nothing to change.
        only: Json = {"approvals": "deny"}
        start = c.StartSession(agent=command.agent, model=command.model, cwd=command.cwd, title=title, config=only)
        session: str = (await self.host.do(start, caller)).id
        await self.host.do(c.SendMessage(session=session, text=draft_prompt(command.description)), caller)
        return DraftStarted(session)

    def _folder(self, cwd: str, caller: c.Caller) -> Path:
        folder = check_folder(cwd)
        check_reach(self.host, caller, folder, "terminal")
        return Path(folder)

    def routes(self, route: Routing) -> None:
        @route("/v1/workflows", "read", "The workflows of a folder.", query={"cwd": "the folder, an absolute path"})
        async def workflows(request: Any) -> Workflows:
            caller = route.view(request).caller
            folder = self._folder(request.query_params.get("cwd", ""), caller)
            return Workflows(await asyncio.to_thread(listed, folder))

        @route("/v1/recipes", "read", "Workflows to start from, with their texts.")
        async def recipes(request: Any) -> Recipes:
            return Recipes(await asyncio.to_thread(recipe_list))

        summary = "The workflow that the agent of a draft has written, with its plan or its mistakes."

        @route("/v1/workflows/draft/{id}", READS["sessions"], summary, codes=["not_found"])
        async def draft(request: Any) -> WorkflowDraft:
            session = await route.view(request).get(request.path_params["id"])
            await session.load()
            return await asyncio.to_thread(draft_of, session.state)


def draft_of(state: SessionState) -> WorkflowDraft:
    """Raises NotFound for a session that writes no draft."""
    turns = [*state.turns, *([state.active] if state.active is not None else [])]
    if not turns or not is_draft_prompt(turns[0].message.text):
        raise NotFound("draft", state.id, "The session was not started with 'Describe the job'.")
    running = state.active is not None or bool(state.queue)
    ended = [turn for turn in state.turns if turn.outcome is not None]
    answered = [turn for turn in ended if turn.outcome == "completed"]
    error = "" if running or not ended or ended[-1].outcome == "completed" else _error(ended[-1])
    if not answered:
        return WorkflowDraft(running, error=error)
    found = plan_text(workflow_in(_text(answered[-1])), _FIRST, {})
    mistakes = [each.shown(f"<{_FIRST}>") for each in found.mistakes]
    again = mistakes and not running and len(answered) < ROUNDS
    return WorkflowDraft(running, len(answered), found, repair_prompt(mistakes) if again else "", error)


def _text(turn: TurnState) -> str:
    return "".join(part.text for part in turn.parts if isinstance(part, TextPart) and part.kind == "text")


def _error(turn: TurnState) -> str:
    return turn.error.message if turn.error is not None else f"The turn ended: {turn.outcome}."
