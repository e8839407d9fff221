"""What a model can read besides calling tools: transcripts and diffs as resources, recipes of jobs as prompts."""

import re
from functools import cache
from typing import Any

from portico.features.jobs.recipes import recipe, recipes
from portico.features.jobs.step import Flow
from portico.features.jobs.workflow.files import load_workflow
from portico.features.transcripts.document import markdown
from portico.kernel.errors import BadRequest, NotFound
from portico.kernel.events import Json
from portico.server.app import App
from portico.server.route import Caller

INSTRUCTIONS = " ".join(
    (
        "Portico runs coding agents on this machine.",
        "To give work to one: list_agents, start_session with an agent and a cwd, then send_message.",
        "send_message waits up to 50 seconds. While the status is running, call wait_session.",
        "When the status is waiting, needs lists approvals and questions: answer them if you have the tool answer,",
        "otherwise ask the user to answer in Portico.",
        "read_changes returns the files that the agent changed, with diff as a unified diff.",
        "cancel_turn stops the agent. A session keeps its conversation: send further messages to the same session",
        "instead of starting a new one.",
    )
)

_SESSIONS = 50
"""How many of the newest sessions are listed; others can be read by their address."""
_FORMS = {"transcript": ("transcript.md", "text/markdown"), "changes": ("changes.diff", "text/x-diff")}
_ADDRESS = re.compile(r"portico://sessions/([^/]+)/(transcript\.md|changes\.diff)")


class HostLibrary:
    instructions = INSTRUCTIONS

    def __init__(self, app: App, who: Caller) -> None:
        self._view = app.view(who)

    async def resources(self) -> list[Json]:
        if not self._view.may("sessions"):
            return []
        found = self._view.list(archived=False)[:_SESSIONS]
        return [_resource(each.id, each.title or each.id, form) for each in found for form in _FORMS]

    def templates(self) -> list[Json]:
        return [
            {"uriTemplate": _uri("{session}", form), "name": form, "title": title, "mimeType": _FORMS[form][1]}
            for form, title in (
                ("transcript", "Transcript of a session"),
                ("changes", "Changes of a session as a diff"),
            )
        ]

    async def read(self, uri: str) -> Json:
        match = _ADDRESS.fullmatch(uri)
        if match is None:
            raise NotFound("resource", uri, f"Addresses look like {_uri('SESSION', 'transcript')}.")
        self._view.require("sessions" if match[2] == _FORMS["transcript"][0] else "changes")
        session = await self._view.get(match[1])
        text = markdown(session.state) if match[2] == _FORMS["transcript"][0] else await session.diff()
        kind = next(media for name, media in _FORMS.values() if name == match[2])
        return {"uri": uri, "mimeType": kind, "text": text}

    def prompts(self) -> list[Json]:
        return [_prompt(name, flow) for name, (flow, _) in _flows().items()]

    def prompt(self, name: str, arguments: Json) -> Json:
        recipe(name)  # a name that does not exist gets a hint
        flow, text = _flows()[name]
        taken = {key: each for key, each in flow.inputs.items() if each.type != "secret"}
        missing = [key for key, each in taken.items() if each.needed and not arguments.get(key)]
        unknown = [key for key in arguments if key not in taken]
        if missing or unknown:
            wrong = f"misses {', '.join(missing)}" if missing else f"has no argument {unknown[0]!r}"
            raise BadRequest(f"The prompt {name!r} {wrong}.", field="arguments")
        return {"description": flow.about, "messages": [_message(_task(name, flow, text, arguments))]}


def _uri(session: str, form: str) -> str:
    return f"portico://sessions/{session}/{_FORMS[form][0]}"


def _resource(session: str, title: str, form: str) -> Json:
    name, media = _FORMS[form]
    return {"uri": _uri(session, form), "name": f"{session}/{name}", "title": f"{title}: {form}", "mimeType": media}


@cache
def _flows() -> dict[str, tuple[Flow, str]]:
    """The recipes by name: what they declare, and their text."""
    found: dict[str, tuple[Flow, str]] = {}
    for name, path in recipes().items():
        flow = load_workflow(path).jobs[name].flow
        assert flow is not None
        found[name] = flow, path.read_text()
    return found


def _prompt(name: str, flow: Flow) -> Json:
    arguments = [
        {"name": key, "description": _meaning(each), "required": each.needed}
        for key, each in flow.inputs.items()
        if each.type != "secret"  # agents never get one
    ]
    title = name.replace("-", " ").capitalize()
    return {"name": name, "title": title, "description": flow.about, "arguments": arguments}


def _meaning(given: Any) -> str:
    choices = f" One of: {', '.join(given.choices)}." if given.choices else ""
    default = "" if given.default is None else f" Default: {given.default}."
    return f"{given.about or given.type}{choices}{default}"


def _task(name: str, flow: Flow, text: str, arguments: Json) -> str:
    inputs = "\n".join(f"- {key}: {value}" for key, value in arguments.items()) or "- none"
    return (
        f"Run the Portico recipe `{name}` in the project: {flow.about}\n\n"
        f"Inputs:\n{inputs}\n\n"
        f"1. If the project has no `.portico/jobs/{name}.yaml`, write the workflow below to this file and adapt its"
        f" commands to the project.\n"
        f"2. Call run_job with job `{name}`, the project as cwd, and these inputs.\n"
        f"3. Call read_job until the status is no longer running, and report its result.\n\n"
        f"```yaml\n{text.rstrip()}\n```\n"
    )


def _message(text: str) -> Json:
    return {"role": "user", "content": {"type": "text", "text": text}}
