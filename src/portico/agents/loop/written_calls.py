"""Tool calls that a model writes into its text, in the forms of the families of models.

An endpoint without a parser for its model passes them on as text. A form is recognised only where it is marked as a
call: by its tags, or as JSON that is the whole text, a fence at the end, or the last lines.
"""

import ast
import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from portico.agents.loop.arguments import NoArguments, canonical, is_flat, parse
from portico.agents.loop.other_names import own_name
from portico.kernel.events import Json
from portico.surrogates import repair


class WrittenCalls(NamedTuple):
    """The text beside the calls, and the calls: names with arguments, or with what is wrong."""

    text: str
    calls: list[tuple[str, Json | str]]


Found = list[tuple[str, Json | str]]
_TAGGED = re.compile(r"<(tool_call|tool_use|function_call|tool)>\s*(.*?)\s*(?:</\1>|\Z)", re.DOTALL)
_FUNCTION = re.compile(r"<function(?:=|\s+name=)\"?([\w.:-]+)\"?>\s*(.*?)\s*(?:</function>|\Z)", re.DOTALL)
_PARAMETER = re.compile(r"<parameter(?:=|\s+name=)\"?([\w.-]+)\"?[^>]*>\n?(.*?)\n?</parameter>", re.DOTALL)
_INVOKE = re.compile(r"<(?:\w+:)?invoke name=\"([\w.:-]+)\">\s*(.*?)\s*</(?:\w+:)?invoke>", re.DOTALL)
_WRAPPER = re.compile(r"</?(?:\w+:)?(?:tool_calls?|function_calls)>")
_GLM = re.compile(r"([\w.:-]+)\s*((?:<arg_key>.*?</arg_key>\s*<arg_value>.*?</arg_value>\s*)*)", re.DOTALL)
_GLM_PAIR = re.compile(r"<arg_key>(.*?)</arg_key>\s*<arg_value>(.*?)</arg_value>", re.DOTALL)
_KIMI = re.compile(
    r"<\|tool_call_begin\|>\s*([\w.:-]+)\s*<\|tool_call_argument_begin\|>\s*(.*?)\s*<\|tool_call_end\|>", re.DOTALL
)
_DEEPSEEK = re.compile(
    r"<｜tool▁call▁begin｜>(?:function<｜tool▁sep｜>)?([\w.:-]+)(?:<｜tool▁sep｜>|\s)\s*(.*?)\s*<｜tool▁call▁end｜>",
    re.DOTALL,
)
_MISTRAL = re.compile(r"\[TOOL_CALLS\]\s*(?:([\w.:-]+)\s*\[ARGS\]\s*)?(.*)", re.DOTALL)
_LLAMA = re.compile(r"<\|python_tag\|>\s*(.*?)\s*(?:<\|eo[tm]_id\|>|\Z)", re.DOTALL)
_SPECIAL = re.compile(r"<\|[\w]+\|>|<｜[\w▁]+｜>")
_FENCED = re.compile(r"(?:\A|\n)```([a-z_]*)[ \t]*\n(.*?)\n?```\s*\Z", re.DOTALL)
_PYTHONIC = re.compile(r"\[[\w.]+\(.*\)\]", re.DOTALL)


MARKED = re.compile(
    r"<(?:tool_call|tool_use|function_call)>|<function(?:=|\s+name=)|<(?:\w+:)?invoke name=|\[TOOL_CALLS\]"
    r"|<\|tool_call_begin|<｜tool▁call▁begin"
)
"""The beginning of a call that is marked as one."""


def find_marked(text: str, tools: tuple[str, ...]) -> WrittenCalls | None:
    """The calls in a text that are marked as calls and have their ends."""
    begun = MARKED.search(text)
    closed = re.search(r"</[\w:]+>\s*\Z|(?:\|>|｜>|\])\s*\Z", text)
    return find(text[begun.start() :], tools) if begun is not None and closed is not None else None


def find(text: str, tools: tuple[str, ...]) -> WrittenCalls | None:
    """The calls in a text; None: it is prose."""
    for form in (_kimi, _deepseek, _mistral, _llama, _invokes, _functions, _tagged, _alone):
        found = form(text, tools)
        if found is not None and found.calls:
            return WrittenCalls(_SPECIAL.sub("", found.text).strip(), found.calls)
    return None


def _pieces(text: str, pattern: re.Pattern[str], read: Callable[[re.Match[str]], Found]) -> WrittenCalls:
    calls: Found = []
    rest, at = "", 0
    for match in pattern.finditer(text):
        made = read(match)
        if made:
            calls += made
            rest += text[at : match.start()]
            at = match.end()
    return WrittenCalls(rest + text[at:], calls)


def _known(name: str, arguments: str | Json, tools: tuple[str, ...]) -> Found:
    """A call of an offered tool, also under the name that another agent gives it; else nothing: examples in prose have
    other names."""
    tool = canonical(name, tools)
    if tool not in tools and (not arguments or not own_name(name, tools)):
        return []
    if isinstance(arguments, dict):
        return [(tool, arguments)]
    try:
        return [(tool, parse(arguments))]
    except NoArguments as error:
        return [(tool, f"The arguments of {tool!r} are {error}.")]


def _kimi(text: str, tools: tuple[str, ...]) -> WrittenCalls:
    return _pieces(text, _KIMI, lambda match: _known(match[1], match[2], tools))


def _deepseek(text: str, tools: tuple[str, ...]) -> WrittenCalls:
    return _pieces(text, _DEEPSEEK, lambda match: _known(match[1], match[2], tools))


def _mistral(text: str, tools: tuple[str, ...]) -> WrittenCalls:
    def read(match: re.Match[str]) -> Found:
        return _known(match[1], match[2], tools) if match[1] else _objects(match[2], tools)

    return _pieces(text, _MISTRAL, read)


def _llama(text: str, tools: tuple[str, ...]) -> WrittenCalls:
    return _pieces(text, _LLAMA, lambda match: _objects(match[1], tools))


def _invokes(text: str, tools: tuple[str, ...]) -> WrittenCalls:
    found = _pieces(text, _INVOKE, lambda match: _known(match[1], _parameters(match[2]), tools))
    return WrittenCalls(_WRAPPER.sub("", found.text), found.calls)


def _functions(text: str, tools: tuple[str, ...]) -> WrittenCalls:
    def read(match: re.Match[str]) -> Found:
        return _known(match[1], _parameters(match[2]) if "<parameter" in match[2] else match[2], tools)

    found = _pieces(text, _FUNCTION, read)
    return WrittenCalls(_WRAPPER.sub("", found.text), found.calls)


def _parameters(text: str) -> Json:
    return {match[1]: _value(match[2]) for match in _PARAMETER.finditer(text)}


def _tagged(text: str, tools: tuple[str, ...]) -> WrittenCalls:
    def read(match: re.Match[str]) -> Found:
        inner = match[2]
        if inner.startswith(("{", "[")):
            return _objects(inner, tools)
        glm = _GLM.fullmatch(inner)
        if glm is None:
            return []
        return _known(glm[1], {key.strip(): _value(value) for key, value in _GLM_PAIR.findall(glm[2])}, tools)

    return _pieces(text, _TAGGED, read)


def _value(text: str) -> Any:
    """XML forms have no types: what is JSON of another type than a string is that."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text if isinstance(value, str) else value


def _objects(text: str, tools: tuple[str, ...]) -> Found:
    """`{"name", "arguments"}`, a list of them, or several after each other. All of them are calls, or none."""
    calls: Found = []
    for value in _values(text):
        for each in value if isinstance(value, list) else [value]:
            made = _object(each, tools)
            if not made:
                return []
            calls += made
    return calls


def _values(text: str) -> Iterator[Any]:
    decoder, at = json.JSONDecoder(strict=False), 0
    text = repair(text.strip())
    while at < len(text):
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            yield None
            return
        yield value
        while at < len(text) and text[at] in " \t\r\n;,":
            at += 1


def _object(value: Any, tools: tuple[str, ...]) -> Found:
    if not isinstance(value, dict):
        return []
    function = value.get("function")
    if isinstance(function, dict):  # OpenAI's own form, written as text
        value = function
    name = value.get("name", function)
    arguments: Any = next((value[key] for key in ("arguments", "parameters", "input", "args") if key in value), {})
    if not isinstance(name, str) or not isinstance(arguments, dict | str):
        return []
    return _known(name, arguments, tools)


def _alone(text: str, tools: tuple[str, ...]) -> WrittenCalls | None:
    """JSON that is the whole text, a fence at the end, or the last lines."""
    whole = text.strip()
    if _PYTHONIC.fullmatch(whole):
        return WrittenCalls("", _pythonic(whole, tools))
    fenced = _FENCED.search(text)
    if fenced is not None:
        return WrittenCalls(text[: fenced.start()], _objects(fenced[2], tools))
    starts = [0] if whole.startswith(("{", "[")) else [match.end() for match in re.finditer(r"\n(?=[{\[])", whole)]
    for start in starts[-5:]:
        calls = _objects(whole[start:], tools)
        if calls:
            return WrittenCalls(whole[:start], calls)
    return None


def _pythonic(text: str, tools: tuple[str, ...]) -> Found:
    """Llama's `[read(path="a")]`."""
    if not is_flat(text):
        return []
    try:
        tree = ast.parse(text, mode="eval").body
        assert isinstance(tree, ast.List)
        calls: Found = []
        for each in tree.elts:
            assert isinstance(each, ast.Call)
            arguments = {word.arg: ast.literal_eval(word.value) for word in each.keywords if word.arg}
            made = _known(ast.unparse(each.func), arguments, tools)
            if not made:
                return []
            calls += made
    except (SyntaxError, ValueError, AssertionError, RecursionError, MemoryError):
        return []
    return calls
