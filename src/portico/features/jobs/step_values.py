"""What a step works with: its templates, its folder, its environment and its secrets."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from portico.features.jobs.step import FlowStep
from portico.features.jobs.workflow import template
from portico.features.jobs.workflow.inputs import variable_of
from portico.features.jobs.workflow.template import text_of
from portico.features.secrets.mask import Mask
from portico.workspace.process import command_environment

_LONG = 2_000
"""Characters of an input that is also an environment variable; longer ones are only in templates."""


_SHOWN = 300
"""Characters of a command in a message."""


class StepValues(Struct, kw_only=True):
    context: dict[str, Any]
    public: dict[str, Any]
    """The context without secrets, for messages."""
    cwd: str
    commit: str = ""
    """At which the step works, in a folder of its own."""
    secrets: Mapping[str, str] = {}
    hidden: frozenset[str] = frozenset()
    """Secret inputs that the step does not name. They are not in its environment."""
    mask: Mask

    def text(self, text: str) -> str:
        return template.render(text, self.context)

    def prompt(self, text: str) -> str:
        """The text of a prompt, in which values from outside are quoted."""
        return template.render_prompt(text, self.context)

    def value(self, data: Any) -> Any:
        return template.evaluate(data, self.context)

    def shell(self, line: str) -> tuple[str, dict[str, str]]:
        """A shell line and the variables that it refers to."""
        return template.shell(line, self.context)

    def shown(self, line: str) -> str:
        """A command as messages show it: with its values, and not too long."""
        text = self.mask.text(template.render_public(line, self.public))
        return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"

    def environment(self, step: FlowStep, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The environment of a command: ours, that of the step, its secrets, and the values as PORTICO_ variables."""
        return {
            **command_environment(),
            **{name: self.text(value) for name, value in step.env.items()},
            **self._named(),
            **(more or {}),
            **self.secrets,
        }

    def _named(self) -> dict[str, str]:
        run = self.context["run"]
        inputs = {
            variable_of(name): text_of(each) for name, each in self.context["inputs"].items() if name not in self.hidden
        }
        items = {
            f"PORTICO_{_upper(name)}": text_of(each)
            for name, each in self.context.items()
            if name not in ("steps", "inputs", "run", "env", "secrets")
        }
        own = {"PORTICO_RUN_ID": run["id"], "PORTICO_RUN_DATE": run["date"], "PORTICO_JOB": run["name"]}
        return {name: value for name, value in {**inputs, **items, **own}.items() if len(value) <= _LONG}


def _upper(name: str) -> str:
    return name.upper().replace("-", "_")
