"""Fields and forms of single vendors: reasoning that has to come back, calls written as text, odd calls."""

import json
from typing import Any

from bench.difficult.case import HELLO, Asked, Case, Step, writes
from bench.difficult.wire import DONE, Answer, Json, calls, chunk, fragment, refuses, says, stream


def _needs(field: str, **said: Any) -> list[Step]:
    """The endpoint rejects the second step without a field of its first message."""

    def first(asked: Asked) -> Answer:
        return calls(fragment(*asked.write()), **said)

    def second(asked: Asked) -> Answer:
        if not asked.last_answer.get(field):
            return refuses(400, f"Missing `{field}` field in the assistant message of a thinking model.")
        return says("Done.")

    return [first, second]


DETAILS = [{"type": "reasoning.encrypted", "data": "abc", "format": "x", "index": 0}]
SIGNATURE = {"google": {"thought_signature": "sig=="}}


def _signed() -> list[Step]:
    def first(asked: Asked) -> Answer:
        return calls(fragment(*asked.write(), extra_content=SIGNATURE))

    def second(asked: Asked) -> Answer:
        sent = asked.last_answer.get("tool_calls") or [{}]
        if sent[0].get("extra_content") != SIGNATURE:
            return refuses(400, "Function call is missing a thought_signature.")
        return says("Done.")

    return [first, second]


def _text_call(form: str) -> Step:
    """The call as text, in a form of `NAME`, `ARGS` (JSON) and `PARAMS`."""

    def step(asked: Asked) -> Answer:
        name, args = asked.call("write", path="out.txt", content=HELLO)
        params = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in args.items())
        text = form.replace("NAME", name).replace("ARGS", json.dumps(args)).replace("PARAMS", params)
        return says(text)

    return step


def _fragments(*pieces: Json) -> Answer:
    return stream(*(chunk({"tool_calls": [piece]}) for piece in pieces), chunk(finish="tool_calls"), DONE)


def _without_index(asked: Asked) -> Answer:
    return calls(
        fragment(*asked.write("out.txt"), ident="a", index=None),
        fragment(*asked.write("two.txt"), ident="b", index=None),
    )


def _equal_index(asked: Asked) -> Answer:
    return _fragments(fragment(*asked.write("out.txt"), ident="a"), fragment(*asked.write("two.txt"), ident="b"))


def _same_ids(asked: Asked) -> Answer:
    return calls(fragment(*asked.write("out.txt"), ident="x"), fragment(*asked.write("two.txt"), ident="x", index=1))


def _interleaved(asked: Asked) -> Answer:
    (name, one), (_, two) = asked.write("out.txt"), asked.write("two.txt")
    half, other = len(one) // 2, len(two) // 3
    return _fragments(
        fragment(name, "", ident="a", index=0),
        fragment(name, "", ident="b", index=1),
        fragment(None, one[:half], ident=None, index=0),
        fragment(None, two[:other], ident=None, index=1),
        fragment(None, one[half:], ident=None, index=0),
        fragment(None, two[other:], ident=None, index=1),
    )


def _name_in_each(asked: Asked) -> Answer:
    name, args = asked.write()
    return _fragments(fragment(name, args[:5]), fragment(name, args[5:]))


def _object_arguments(asked: Asked) -> Answer:
    name, args = asked.call("write", path="out.txt", content=HELLO)
    return calls(fragment(name, args))


def _no_id(asked: Asked) -> Answer:
    return calls(fragment(*asked.write(), ident=None))


def _prefixed(asked: Asked) -> Answer:
    name, args = asked.write()
    return calls(fragment(f"functions.{name}", args))


def _content_parts(asked: Asked) -> Answer:
    parts = [{"type": "text", "text": "Done."}]
    return stream(chunk({"role": "assistant", "content": parts}), chunk(finish="stop"), DONE)


def _nulls(asked: Asked) -> Answer:
    name, args = asked.write()
    empty = {"content": None, "tool_calls": None, "function_call": None, "refusal": None, "audio": None}
    made = {**empty, "tool_calls": [fragment(name, args)]}
    return stream(chunk({"role": "assistant", **empty}), chunk(made), chunk(empty, "tool_calls", usage=None), DONE)


TWO = {"out.txt": HELLO.encode(), "two.txt": HELLO.encode()}
CASES = [
    Case("reasoning_content", _needs("reasoning_content", reasoning_content="I think.")),
    Case("reasoning_details", _needs("reasoning_details", reasoning="Hm.", reasoning_details=DETAILS)),
    Case("thought_signature", _signed()),
    Case("hermes-text", [_text_call('<tool_call>\n{"name": "NAME", "arguments": ARGS}\n</tool_call>')]),
    Case("qwen-text", [_text_call("<tool_call>\n<function=NAME>\nPARAMS</function>\n</tool_call>")]),
    Case("fenced-text", [_text_call('I write it.\n```json\n{"name": "NAME", "arguments": ARGS}\n```')]),
    Case("llama-text", [_text_call('<|python_tag|>{"name": "NAME", "parameters": ARGS}<|eom_id|>')]),
    Case("think-tags", [lambda asked: says("<think>\nsecret thoughts\n</think>\n\nDone.")], made={}, unsaid="secret"),
    Case("calls-without-index", [_without_index], made=TWO),
    Case("calls-with-equal-index", [_equal_index], made=TWO),
    Case("duplicate-ids", [_same_ids], made=TWO),
    Case(
        "same-id-in-two-steps",
        [lambda a: calls(fragment(*a.write("two.txt"))), lambda a: calls(fragment(*a.write()))],
        made=TWO,
    ),
    Case("interleaved-calls", [_interleaved], made=TWO),
    Case("name-in-each-fragment", [_name_in_each]),
    Case("arguments-as-object", [_object_arguments]),
    Case("call-without-id", [_no_id]),
    Case("prefixed-name", [_prefixed]),
    Case("finish-stop-with-calls", [lambda a: calls(fragment(*a.write()), finish="stop")]),
    Case("content-as-parts", [writes(), _content_parts]),
    Case("nulls", [_nulls]),
    Case(
        "refusal-field",
        [lambda a: stream(chunk({"refusal": "I refuse."}), chunk(finish="stop"), DONE)],
        made={},
        said="I refuse.",
    ),
]
