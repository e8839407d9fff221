"""The agreement between the loop and a model: one JSON step after another, or the same through native tool calls.

A step that is not final holds at least one action: `{"actions": [...], "commentary": "...", "done": false}`. The
final one is `{"finalSummary": "...", "done": true}`. Errors are reported to the model, with the schema.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

import portico.agents.loop.written_calls as written_calls
from portico.agents.loop.arguments import NoArguments, canonical, parse
from portico.agents.loop.extract import documents
from portico.agents.loop.other_names import FINISH
from portico.agents.loop.reply import NativeCall
from portico.kernel.events import Json, ToolSpec
from portico.surrogates import repair

QUOTE = 400
"""Characters of an offending answer that the diagnosis shows."""
ACTIONS_MAX = 50
"""Actions in one step: more is a model that repeats itself."""
NOT_FINAL = f"Not finished: other calls came with it. Read their results, then call {FINISH!r} alone."


class Invalid(Exception):
    """What a model wrote is no step. The message goes back to the model."""


class ModelAction(Struct, frozen=True, omit_defaults=True):
    tool: str
    arguments: Json
    id: str | None = None
    """The model's own id of the call, with native tool calls."""
    problem: str = ""
    """Why it cannot run: its arguments are not valid. The model gets this as the result."""


class ModelStep(Struct, frozen=True, omit_defaults=True):
    actions: list[ModelAction] = []
    commentary: str = ""
    summary: str = ""
    done: bool = False


def read_text(text: str) -> ModelStep:
    """The step that a text means."""
    if not text.strip():
        raise Invalid("Your answer was empty.")
    problem = "There is no JSON object in your answer."
    complained = False
    for document in documents(text):
        try:
            return _step(document.value, document.loose)
        except Invalid as error:
            if not complained:
                problem, complained = str(error), True
    raise Invalid(problem)


CUT = "Your answer was cut at the limit of tokens, so this call did not run. Write less at a time: several short edits."


def read_calls(calls: Sequence[NativeCall], text: str, tools: Sequence[str] = (), is_cut: bool = False) -> ModelStep:
    """The step that native tool calls mean; the text beside them is the commentary. A `finish` beside other calls
    is not final: the model has not seen their results yet. A call that is not valid does not stop the others. `is_cut`:
    the answer ended at the limit of tokens."""
    offered = (*tools, FINISH)
    actions = [_native_action(call, index, offered) for index, call in enumerate(calls)]
    if is_cut and (actions[-1].problem or not calls[-1].arguments.strip()):
        actions[-1] = replace(actions[-1], arguments={}, problem=CUT)
    return of_actions(actions, text)


def read_thought(thought: str, tools: Sequence[str]) -> ModelStep | None:
    """The calls inside reasoning that does not end: the model has forgotten the closing tag."""
    found = written_calls.find_marked(thought, (*tools, FINISH)) if "<" in thought or "[" in thought else None
    return of_actions([_written(*each) for each in found.calls], "") if found is not None else None


def _native_action(call: NativeCall, index: int, offered: tuple[str, ...]) -> ModelAction:
    name = canonical(call.name, offered)
    if not name:
        return ModelAction("unnamed", {}, call.id, "The call has no name of a tool.")
    if index >= ACTIONS_MAX:
        return ModelAction(name, {}, call.id, f"A step has at most {ACTIONS_MAX} actions: call it again.")
    try:
        return ModelAction(name, parse(call.arguments), call.id)
    except NoArguments as error:
        return ModelAction(name, {}, call.id, f"The arguments of {name!r} are {error}.")


def read_answer(text: str, tools: Sequence[str], is_cut: bool = False) -> ModelStep:
    """The step that a text without native calls means: the answer, unless it has calls, or is a step. Where an endpoint
    has no parser for its model, the calls arrive as text."""
    if not text.strip():
        raise Invalid("Your answer was empty.")
    offered = (*tools, FINISH)
    written = written_calls.find(text, offered)
    if written is not None:
        actions = [_written(tool, arguments) for tool, arguments in written.calls]
        if is_cut:
            actions[-1] = replace(actions[-1], arguments={}, problem=CUT)
        return of_actions(actions, written.text)
    if is_cut and written_calls.MARKED.search(text) is not None:
        raise Invalid(CUT)
    fenced = _FENCED.fullmatch(text.strip())
    try:
        value = json.loads(repair(fenced[1] if fenced else text), strict=False)
    except (ValueError, RecursionError):
        return ModelStep(summary=text, done=True)
    if isinstance(value, dict) and ("actions" in value or "finalSummary" in value):
        return _step(value, False)
    return ModelStep(summary=text, done=True)


_FENCED = re.compile(r"```[a-z]*\s*(.*?)\s*```", re.DOTALL)


def _written(tool: str, arguments: Json | str) -> ModelAction:
    if isinstance(arguments, str):
        return ModelAction(tool, {}, problem=arguments)
    return ModelAction(tool, arguments)


def of_actions(actions: list[ModelAction], said: str) -> ModelStep:
    if all(action.tool == FINISH and not action.problem for action in actions):
        return ModelStep(summary=_text(actions[0].arguments.get("finalSummary")) or said, done=True)
    return ModelStep(actions, commentary=said)


def _step(value: Any, loose: bool) -> ModelStep:
    if isinstance(value, list):
        return _acting({"actions": value})
    if not isinstance(value, dict):
        raise Invalid("A step is a JSON object.")
    if "tool" in value:  # one bare action: the wrapping was forgotten
        if loose:  # or it was cut off, and the actions before it are lost
            raise Invalid("Your JSON is not whole: a brace does not close.")
        return _acting({"actions": [value]})
    if not value.get("actions") and (value.get("done") is True or "finalSummary" in value):
        summary = _text(value.get("finalSummary")) or _text(value.get("commentary"))
        if not summary and value.get("done") is True and isinstance(value.get("finalSummary"), str):
            summary = "Done."  # it has the shape that was asked for; a weak model just has no words
        if not summary:
            raise Invalid("A final step needs 'finalSummary'.")
        return ModelStep(summary=summary, done=True)
    # With actions it is not final, regardless of `done`: the model has not seen their results yet.
    return _acting(value)


def _acting(value: Mapping[str, Any]) -> ModelStep:
    actions = value.get("actions")
    if isinstance(actions, dict):  # the only one, without its list
        actions = [actions]
    if not isinstance(actions, list) or not actions:
        raise Invalid("A step that is not final needs at least one action in 'actions'.")
    if len(actions) > ACTIONS_MAX:
        raise Invalid(f"A step has at most {ACTIONS_MAX} actions.")
    return of_actions([_action(each) for each in actions], _text(value.get("commentary")))


def _action(value: Any) -> ModelAction:
    if not isinstance(value, dict) or not isinstance(value.get("tool"), str) or not value["tool"]:
        raise Invalid("Each action is an object with the name of a tool in 'tool'.")
    return ModelAction(value["tool"], {name: each for name, each in value.items() if name != "tool"})


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


# -- prompts for the model -------------------------------------------------------------------------------------


def chat_instructions(cwd: str) -> str:
    return f"You are a helpful assistant in the project {cwd!r}. Answer in Markdown. You have no tools in this chat."


def text_rules(tools: Sequence[ToolSpec]) -> str:
    lines = "\n".join(_line(tool) for tool in tools)
    return (
        "Answer with one JSON object and nothing else.\n"
        'While you work: {"actions": [ACTION, ...], "commentary": "short reason", "done": false}\n'
        'At the end: {"finalSummary": "what you did", "done": true}\n'
        "An ACTION is one of:\n"
        f"{lines}\n"
        "The actions run in order; you get their results and then write the next step. "
        "Keep the commentary below 160 characters."
    )


def _line(tool: ToolSpec) -> str:
    properties: Mapping[str, Any] = tool.schema.get("properties", {})
    required = tool.schema.get("required", [])
    shown = ", ".join(f'"{name}{"" if name in required else "?"}": {_kind(each)}' for name, each in properties.items())
    return f'{{"tool": "{tool.name}"{", " if shown else ""}{shown}}}  {tool.description}'


def _kind(schema: Mapping[str, Any]) -> str:
    kind = schema.get("type", "value")
    if kind == "array":
        return f"[{_kind(schema.get('items', {}))}, ...]"
    return "|".join(kind) if isinstance(kind, list) else str(kind)


def correction(problem: str, tools: Sequence[ToolSpec], native: bool) -> str:
    """What follows an invalid answer. In tags: it is not the person who speaks."""
    rules = (
        f"Call one of the tools, or answer in words what you did and found, or call {FINISH!r} when you are done."
        if native
        else text_rules(tools)
    )
    return f"<correction>\n{problem}\n{rules}\n</correction>"


def feedback(results: Sequence[tuple[str, str]]) -> str:
    """The results of a step's actions, in the text protocol."""
    return "<results>\n" + "\n".join(f"[{name}]\n{text}" for name, text in results) + "\n</results>"


# -- what endpoints can be asked for ---------------------------------------------------------------------------


FINISH_TOOL = ToolSpec(
    FINISH,
    "Ends the run with a summary of what was done.",
    {"type": "object", "properties": {"finalSummary": {"type": "string"}}, "required": ["finalSummary"]},
)
"""Offered beside the others where an endpoint has native tools."""


def step_schema(tools: Sequence[ToolSpec], bound: int | None = None) -> Json:
    """The JSON schema of a step. `bound` limits the length of every text, for models that do not stop."""
    words: Json = {"type": "string"} if bound is None else {"type": "string", "maxLength": bound}
    acting = {
        "type": "object",
        "properties": {
            "commentary": words,
            "actions": {
                "type": "array",
                "items": {"anyOf": list(_actions(tools, bound))},
                "minItems": 1,
                "maxItems": ACTIONS_MAX if bound is None else 2,
            },
            "done": {"const": False},
        },
        "required": ["commentary", "actions", "done"],
        "additionalProperties": False,
    }
    final = {
        "type": "object",
        "properties": {"finalSummary": words, "done": {"const": True}},
        "required": ["finalSummary", "done"],
        "additionalProperties": False,
    }
    return {"anyOf": [acting, final]}


def _actions(tools: Sequence[ToolSpec], bound: int | None) -> Iterator[Json]:
    for tool in tools:
        properties: Mapping[str, Any] = tool.schema.get("properties", {})
        required = list(tool.schema.get("required", []))
        shown = properties if bound is None else {name: _bounded(properties[name], bound) for name in required}
        yield {
            "type": "object",
            "properties": {"tool": {"const": tool.name}, **shown},
            "required": ["tool", *required],
            "additionalProperties": False,
        }


def _bounded(schema: Mapping[str, Any], bound: int) -> Json:
    if schema.get("type") == "array":
        return {**schema, "items": _bounded(schema.get("items", {}), bound), "minItems": 1, "maxItems": 2}
    if schema.get("type") == "string":
        return {**schema, "maxLength": bound}
    if "type" not in schema or isinstance(schema["type"], list):
        return {"type": "string", "maxLength": bound}
    return dict(schema)
