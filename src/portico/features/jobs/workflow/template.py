"""Templates: Jinja2 in a sandbox, strict about unknown names. It is imported only for texts that contain one.

The attacks: a value that an agent, a payload or a file provides must never be read as a template, as a shell command or
as an instruction. Values are inserted once and never rendered again. In a shell line a value is a reference to an
environment variable, so the shell never parses it. A value from a payload is inserted into a prompt as quoted JSON.
"""

import json
import re
from collections.abc import Mapping
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Literal

from portico.features.jobs.workflow.quote import Payload, quote
from portico.kernel.errors import BadRequest

if TYPE_CHECKING:
    from jinja2 import Environment

Context = Mapping[str, Any]
Use = Literal["text", "prompt", "shell"]

_ACTIVE = re.compile(r"\{\{|\{%")
_SINGLE = re.compile(r"\s*\{\{(?P<inner>(?:(?!\{\{|\}\}).)*)\}\}\s*", re.DOTALL)
_SINK = "\0sink"
_MARK = re.compile("\0(\\d+)\0")
VALUE_BYTES = 100_000
"""Of one value in a command: the system refuses longer environment variables. `stdin` takes more."""


class TemplateError(BadRequest):
    """A template that cannot be parsed or whose values are missing."""


def is_template(text: str) -> bool:
    return _ACTIVE.search(text) is not None


def text_of(value: Any) -> str:
    """How a value is written into a text: texts unchanged, lists and mappings as JSON."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case str():
            return str(value)
        case list() | dict() | tuple():
            return json.dumps(value, ensure_ascii=False)
    return str(value)


def render(text: str, context: Context) -> str:
    """The text with its values."""
    return _rendered(_environment("text"), text, context) if is_template(text) else text


def render_public(text: str, context: Context) -> str:
    """The text for a message: with its values, and unchanged where a filter fails because a secret is hidden."""
    try:
        return render(text, context)
    except TemplateError:
        return text


def render_prompt(text: str, context: Context) -> str:
    """The text of a prompt: values from a payload are quoted."""
    return _rendered(_environment("prompt"), text, context) if is_template(text) else text


def evaluate(text: Any, context: Context) -> Any:
    """The value of a text that is one expression; otherwise the rendered text. Texts in lists and mappings, too."""
    match text:
        case list():
            return [evaluate(each, context) for each in text]
        case dict():
            return {key: evaluate(each, context) for key, each in text.items()}
        case str() if (single := _SINGLE.fullmatch(text)) is not None:
            return _value(single["inner"], context)
        case str():
            return render(text, context)
    return text


def holds(text: str, context: Context) -> bool:
    return bool(evaluate(text, context))


def shell(line: str, context: Context) -> tuple[str, dict[str, str]]:
    """A shell line in which each value is a reference to a variable, and those variables."""
    if not is_template(line):
        return line, {}
    sink: list[str] = []
    text = _rendered(_environment("shell"), line.replace("\0", ""), {**context, _SINK: sink})
    for value in sink:
        if len(value.encode()) > VALUE_BYTES:
            raise TemplateError(f"A value in the command has more than {VALUE_BYTES} bytes. Pass it as 'stdin'.")
    return _referenced(text), {f"PORTICO_VALUE_{index}": value for index, value in enumerate(sink)}


def _referenced(text: str) -> str:
    """Replace marks by references. Outside of quotes they are quoted, so that a value stays one word."""
    quotes, pieces, position = _Quotes(), list[str](), 0
    for match in _MARK.finditer(text):
        before = text[position : match.start()]
        quotes.read(before)
        reference = f"${{PORTICO_VALUE_{match[1]}}}"
        wrapped = {"": f'"{reference}"', '"': reference, "'": f"'\"{reference}\"'"}[quotes.open[-1]]
        pieces += (before, wrapped)
        position = match.end()
    return "".join((*pieces, text[position:]))


class _Quotes:
    """Follows the quotation marks of a shell line. A mistake here spoils a value, but never makes it code."""

    def __init__(self) -> None:
        self.open = [""]
        """The marks around the current position; a `$(…)` begins with none."""

    def read(self, text: str) -> None:
        before = ""
        for each in text:
            mark = self.open[-1]
            if before == "\\" and mark != "'":
                before = ""
                continue
            if each == mark:
                self.open[-1] = ""
            elif each in "'\"" and not mark:
                self.open[-1] = each
            elif each == "(" and mark != "'" and (before == "$" or not mark):
                self.open.append("")
            elif each == ")" and not mark and len(self.open) > 1:
                self.open.pop()
            before = each


def _rendered(environment: "Environment", text: str, context: Context) -> str:
    from jinja2 import TemplateError as Failed

    try:
        return str(_compiled(environment, text).render(context))
    except Failed as error:
        raise TemplateError(f"{error.message} (in {_short(text)!r})") from None
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise TemplateError(f"{error} (in {_short(text)!r})") from None


def _value(expression: str, context: Context) -> Any:
    from jinja2 import TemplateError as Failed
    from jinja2 import Undefined

    try:
        found = _expression(expression)(**context)
        if isinstance(found, Undefined):
            found._fail_with_undefined_error()
        return found
    except Failed as error:
        raise TemplateError(f"{error.message} (in {_short(expression)!r})") from None
    except (TypeError, ValueError, ArithmeticError, RecursionError) as error:
        raise TemplateError(f"{error} (in {_short(expression)!r})") from None


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= 80 else f"{words[:79]}…"


@lru_cache(512)
def _compiled(environment: "Environment", text: str) -> Any:
    return environment.from_string(text)


@lru_cache(512)
def _expression(text: str) -> Any:
    return _environment("text").compile_expression(text, undefined_to_none=False)


@cache
def _environment(use: Use) -> "Environment":
    from jinja2 import StrictUndefined, pass_context
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Templates(ImmutableSandboxedEnvironment):
        def getattr(self, obj: Any, attribute: str) -> Any:
            """Keys of mappings before methods: `package.items` is the key `items`."""
            if isinstance(obj, Mapping) and attribute in obj:
                return obj[attribute]
            return super().getattr(obj, attribute)

    @pass_context
    def text_value(context: Any, value: Any) -> Any:
        return text_of(value)

    @pass_context
    def prompt_value(context: Any, value: Any) -> Any:
        return quote(value) if isinstance(value, Payload) else text_of(value)

    @pass_context
    def shell_value(context: Any, value: Any) -> Any:
        sink: list[str] = context[_SINK]
        sink.append(text_of(value).replace("\0", ""))
        return f"\0{len(sink) - 1}\0"

    return Templates(
        undefined=StrictUndefined,
        finalize={"text": text_value, "prompt": prompt_value, "shell": shell_value}[use],
        keep_trailing_newline=True,
        autoescape=False,
        comment_start_string="{#!",  # `{#` is part of `${#list}` in a shell
        comment_end_string="!#}",
    )


def chains(text: str) -> tuple[list[tuple[tuple[str, ...], int]], str, int]:
    """The names that a template uses with their attributes and lines, or the syntax error and its line."""
    from jinja2 import TemplateSyntaxError, nodes

    environment = _environment("text")
    try:
        tree = environment.parse(text)
        environment.compile(text)
    except TemplateSyntaxError as error:
        return [], error.message or "it cannot be parsed", error.lineno - 1
    local = {each.name for each in tree.find_all(nodes.Name) if each.ctx in ("store", "param")} | {"loop"}
    inner: set[int] = set()
    found: list[tuple[tuple[str, ...], int]] = []
    for node in tree.find_all((nodes.Getattr, nodes.Getitem, nodes.Name)):
        if id(node) in inner:
            continue
        chain, used = _chain(node)
        inner |= used
        if chain and chain[0] not in local:
            found.append((chain, node.lineno - 1))
    return found, "", 0


def _chain(node: Any) -> tuple[tuple[str, ...], set[int]]:
    """`steps.plan.output` as its names; unknown parts end it."""
    from jinja2 import nodes

    names: list[str] = []
    used: set[int] = set()
    while True:
        used.add(id(node))
        if isinstance(node, nodes.Getattr):
            names.append(node.attr)
            node = node.node
        elif isinstance(node, nodes.Getitem):
            constant = node.arg.value if isinstance(node.arg, nodes.Const) else None
            names = [*names, constant] if isinstance(constant, str) else []
            node = node.node
        elif isinstance(node, nodes.Name):
            return ((node.name, *reversed(names)) if node.ctx == "load" else ()), used
        else:
            return (), used
