"""`portico jobs draft`: an agent writes a workflow from a description. Nothing is started."""

import os
import re
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Annotated

import typer

from portico.cli.ask import Asker
from portico.cli.output import HomeOption, JsonFlag, plain, print_json
from portico.cli.output import run as finish
from portico.cli.run import connect
from portico.client import RemoteSession
from portico.features.jobs.draft import ROUNDS, draft_prompt, mistakes_in, repair_prompt, workflow_in
from portico.features.jobs.preview import draw_plan, preview
from portico.features.jobs.workflow.files import FOLDER, find_workflow, load_workflow
from portico.kernel.errors import AgentError, AlreadyExists, BadRequest
from portico.kernel.state import TextPart

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def draft(
    description: Annotated[str, typer.Argument(help="What the job should do; '-' reads standard input.")],
    name: Annotated[str, typer.Option(help="The name of the job.")] = "draft",
    agent: Annotated[str | None, typer.Option(help="The agent that writes it. [the host's default]")] = None,
    cwd: Annotated[Path, typer.Option(help="The folder of the project.")] = Path(),
    as_json: JsonFlag = False,
    home: HomeOption = None,
) -> None:
    """Let an agent write a workflow from a description, check it, and show its plan. It is never started.

    Mistakes go back to the agent, a few times at most.

    Example: portico jobs draft "Every night, update the translations and ask me before the push" --name translations
    """
    if not _NAME.fullmatch(name):
        raise BadRequest(f"{name!r} is no name of a job: use lower case letters, digits, - and _.", field="--name")
    folder = Path(os.path.abspath(cwd))
    if (taken := find_workflow(folder, name)) is not None:
        raise AlreadyExists(f"There is a file {str(taken)!r} already. Choose another name with --name.", field="--name")
    text = finish(_written(folder, sys.stdin.read() if description == "-" else description, name, agent, home))
    path = folder / FOLDER / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    _show(path, name, text, as_json)


def _show(path: Path, name: str, text: str, as_json: bool) -> None:
    entry = load_workflow(path)
    flow = entry.jobs[name].flow
    assert flow is not None
    plan = preview(entry, name, {key: each.default for key, each in flow.inputs.items() if each.default is not None})
    if as_json:
        print_json({"file": str(path), "workflow": text, "plan": plan})
        return
    print(plain(f"{text}\n{draw_plan(plan)}"))
    typer.echo(f"Wrote {path}. Read it, then start it with: portico run {name}", err=True)


async def _written(folder: Path, description: str, name: str, agent: str | None, home: Path | None) -> str:
    """The valid text of the workflow."""
    if not description.strip():
        raise BadRequest("Describe what the job should do.", field="description")
    async with connect(home, [agent] if agent else [], False) as client:
        session = await client.start(agent=agent, cwd=str(folder), title=f"Draft of {name}")
        asker = Asker(client, "deny")  # it reads and answers; it has nothing to change
        try:
            prompt = draft_prompt(description)
            for _ in range(ROUNDS):
                text = workflow_in(await _answer(session, prompt, asker))
                mistakes = mistakes_in(text, name)
                if not mistakes:
                    return text
                typer.echo(f"{len(mistakes)} mistakes go back to the agent.", err=True)
                prompt = repair_prompt(mistakes)
        finally:
            await asker.close()
    listed = "\n".join(mistakes)
    raise BadRequest(f"The draft is still not valid after {ROUNDS} attempts; nothing was written:\n{listed}")


async def _answer(session: RemoteSession, prompt: str, asker: Asker) -> str:
    async with aclosing(session.send(prompt)) as records:
        async for record in records:
            asker.see(record.event)
    turn = (await session.state()).turns[-1]
    if turn.outcome != "completed":
        why = turn.error.message if turn.error is not None else turn.outcome
        raise AgentError(f"The agent did not answer: {why}")
    return "".join(part.text for part in turn.parts if isinstance(part, TextPart) and part.kind == "text")
