"""Prompts and their variables: what is known beforehand is put in once, the rest anew for every prompt sent."""

import re
from collections.abc import Iterator, Mapping

from portico.features.jobs.entry import (
    ANSWER,
    ITEM,
    RUNTIME_VARIABLES,
    TOOL_FALSE,
    TOOL_TRUE,
    Ask,
    Each,
    Entry,
    EntryError,
    Prompt,
    Work,
    parts_of,
)

VARIABLE = re.compile(r"\$([a-zA-Z]+(?:-[a-zA-Z]+)*)")
MISSING = "<MISSING>"

# Variables that double each other reach any size in a few lines; no model reads a prompt of a million characters.
MAX_EXPANDED = 1_000_000


def variables_of(text: str) -> Iterator[str]:
    """The names of all variables in the text, without their `$`."""
    return (match[1] for match in VARIABLE.finditer(text))


def runtime_variables(entry: Entry) -> frozenset[str]:
    """What gets its value while a job runs: the names that every entry has, the outputs of tasks, and those of the
    works it uses. A prompt variable of the same name stays what it is."""
    names = {task.output.name for task in entry.tasks.values() if task.output is not None}
    for job in entry.jobs.values():
        names |= _of_works(job.work)
    return frozenset(RUNTIME_VARIABLES) | (names - entry.prompt_variables.keys())


def _of_works(work: Work) -> set[str]:
    own = {ANSWER} if isinstance(work, Ask) else {ITEM} if isinstance(work, Each) else set()
    return own.union(*(_of_works(child) for _, child in parts_of(work)))


def expand_prompt_static(entry: Entry, code_path: str, prompt: Prompt, requires_boolean_tool: bool = False) -> Prompt:
    """Join the lines and put in the entry's own variables; runtime variables stay for later."""
    runtime = runtime_variables(entry)
    text = _Expansion(entry.prompt_variables, code_path, runtime).expand(code_path, prompt, ())
    for name in variables_of(text):
        # Two adjacent expansions can form an unintended variable name, which a later expansion would replace.
        if name not in runtime:
            raise EntryError(code_path, f"Cannot find prompt variable: ${name}.")
    if requires_boolean_tool and TOOL_TRUE not in text and TOOL_FALSE not in text:
        raise EntryError(code_path, f"Boolean tool ({TOOL_TRUE} or {TOOL_FALSE}) must be mentioned.")
    return [text]


def expand_prompt_dynamic(prompt: Prompt, values: Mapping[str, str]) -> str:
    """The text to send: every variable replaced once, so that what an agent or a user wrote is never expanded."""
    if len(prompt) != 1:
        raise EntryError("expandPromptDynamic", f"Prompt must have exactly one item, got {len(prompt)}.")
    return VARIABLE.sub(lambda match: values.get(match[1], MISSING), prompt[0])


class _Expansion:
    """One static expansion; every variable is expanded once, however often it is used."""

    def __init__(self, variables: Mapping[str, Prompt], root: str, runtime: frozenset[str]) -> None:
        self.variables = variables
        self.root = root
        self.runtime = runtime
        self.done: dict[str, str] = {}

    def expand(self, code_path: str, prompt: Prompt, open_names: tuple[str, ...]) -> str:
        if not prompt:
            raise EntryError(code_path, "Prompt is empty.")
        text = "\n".join(prompt)
        pieces: list[str] = []
        length = position = 0
        for match in VARIABLE.finditer(text):
            value = self.value(code_path, match[1], open_names)
            pieces += (text[position : match.start()], value)
            position = match.end()
            length += len(pieces[-2]) + len(value)
            if length > MAX_EXPANDED:
                break
        pieces.append(text[position:])
        if length + len(pieces[-1]) > MAX_EXPANDED:
            raise EntryError(self.root, f"Prompt is too long: over {MAX_EXPANDED} characters when expanded.")
        return "".join(pieces)

    def value(self, code_path: str, name: str, open_names: tuple[str, ...]) -> str:
        if name in self.runtime:
            return f"${name}"
        if name in open_names:
            cycle = (*open_names[open_names.index(name) :], name)
            raise EntryError(self.root, f"Prompt variable cycle: {' -> '.join(f'${each}' for each in cycle)}.")
        if name not in self.variables:
            raise EntryError(code_path, f"Cannot find prompt variable: ${name}.")
        if name not in self.done:
            self.done[name] = self.expand(f"{code_path}/${name}", self.variables[name], (*open_names, name))
        return self.done[name]
