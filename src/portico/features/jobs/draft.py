"""A workflow from a description: the prompt for the agent, the file in its answer, and the mistakes it is told."""

import re
from typing import Any

import msgspec

from portico.features.jobs.recipes import recipe
from portico.features.jobs.workflow.file import KINDS, SettingKeys, StepKeys, Workflow
from portico.features.jobs.workflow.files import load_text
from portico.features.jobs.workflow.problem import WorkflowError

ROUNDS = 5
"""Answers of the agent: the first draft and four corrections. An agent that needs more does not get there."""
_EXAMPLES = ("fix-until-green", "dependencies", "triage")
_FENCED = re.compile(r"```(?:ya?ml)?[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)

_PROMPT = """\
Write a workflow file for Portico, the host that you run on. Read the project to find its commands and folders, and
change no files. Answer with the whole file in one fenced block (```yaml). The user sees it before it is ever started.

What it should do:
{description}

Rules:
- Agents propose, steps act: a prompt never pushes, deploys or posts. `run` and `http` steps do that, after checks
  and, where it matters, after an `ask` step.
- Use `run` for everything that a command can do, and `check` for everything that a command can verify.
- Give every step an `id` and a `name`, every input an `about`, and the file an `about` and a `result`.
- Set a `budget`. Use `folder: worktree` if files change.
- Texts are Jinja2 templates. In `run`, a value is quoted as one argument; write it without quotes.
- Values: `steps.ID.output`, `.outcome`, `.reason`, `.answer`, `.failed`, `.items`; `inputs.NAME`; `run.id`, `run.date`,
  `run.payload`.

Keys of the file: {file}
Keys of every step: {step}
Kinds of steps:
{kinds}

Examples:
{examples}"""

_REPAIR = """\
`portico check` finds these mistakes in your file. Correct them and answer with the whole file again.

{mistakes}"""


def draft_prompt(description: str) -> str:
    common = {*_keys(StepKeys)}
    kinds = [f"- `{key}`: {_sentence(kind)} Keys: {_list(set(_keys(kind)) - common)}" for key, kind in KINDS.items()]
    examples = [f"```yaml\n{recipe(name).read_text()}```" for name in _EXAMPLES]
    return _PROMPT.format(
        description=description.strip(),
        file=_list(_keys(Workflow)),
        step=_list(common - {*_keys(SettingKeys)}) + f"; also {_list(_keys(SettingKeys))}",
        kinds="\n".join(kinds),
        examples="\n\n".join(examples),
    )


def is_draft_prompt(text: str) -> bool:
    """Whether a message asks for a draft."""
    return text.startswith(_PROMPT.partition(",")[0])


def repair_prompt(mistakes: list[str]) -> str:
    return _REPAIR.format(mistakes="\n".join(mistakes))


def workflow_in(answer: str) -> str:
    """The last fenced block; the whole answer, if it has none."""
    found = _FENCED.findall(answer)
    return (found[-1] if found else answer).strip() + "\n"


def mistakes_in(text: str, name: str) -> list[str]:
    """All mistakes of a draft, with their lines; empty: it is valid."""
    try:
        load_text(text, f"<{name}>", name)
    except WorkflowError as error:
        return error.message.splitlines()
    return []


def _keys(kind: type[Any]) -> list[str]:
    return [each.encode_name for each in msgspec.structs.fields(kind)]


def _list(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _sentence(kind: type[Any]) -> str:
    return (kind.__doc__ or "").strip().partition("\n")[0]
