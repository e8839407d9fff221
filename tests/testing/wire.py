"""A prompt in each wire format, and reading back what the model said: the smallest client of each."""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import httpx

Body = dict[str, Any]


class Said(NamedTuple):
    text: str = ""
    reason: str = ""
    calls: Sequence[tuple[str, Any]] = ()
    usage: tuple[int, int] = (0, 0)


class Wire(NamedTuple):
    name: str
    path: str
    stream_path: str

    def ask(self, prompt: str, tools: Sequence[str] = ()) -> Body:
        return _ASK[self.name](prompt, tools)

    def call(self, body: Body, stream: bool = False) -> tuple[str, Body]:
        """Where to post what: Gemini says in the path whether it streams, the others in the body."""
        if self.name == "gemini":
            return (self.stream_path if stream else self.path), body
        return self.path, {**body, "stream": stream}

    async def post(self, client: httpx.AsyncClient, body: Body, stream: bool = False) -> httpx.Response:
        path, body = self.call(body, stream)
        return await client.post(path, json=body)

    async def say(self, client: httpx.AsyncClient, prompt: str, tools: Sequence[str] = ()) -> Said:
        return self.read(await self.post(client, self.ask(prompt, tools)))

    def read(self, response: httpx.Response) -> Said:
        return _READ[self.name](response.json())


def events(text: str) -> list[Any]:
    """The JSON of every SSE frame; `[DONE]` stays a string."""
    data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [item if item == "[DONE]" else json.loads(item) for item in data]


def _chat_ask(prompt: str, tools: Sequence[str]) -> Body:
    declared = [{"type": "function", "function": {"name": name, "parameters": {}}} for name in tools]
    return {"model": "m", "messages": [{"role": "user", "content": prompt}], "tools": declared}


def _responses_ask(prompt: str, tools: Sequence[str]) -> Body:
    content = [{"type": "input_text", "text": prompt}]
    declared = [{"type": "function", "name": name, "parameters": {}} for name in tools]
    return {"model": "m", "input": [{"type": "message", "role": "user", "content": content}], "tools": declared}


def _anthropic_ask(prompt: str, tools: Sequence[str]) -> Body:
    declared = [{"name": name, "input_schema": {"type": "object"}} for name in tools]
    return {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": prompt}], "tools": declared}


def _gemini_ask(prompt: str, tools: Sequence[str]) -> Body:
    declared = [{"functionDeclarations": [{"name": name} for name in tools]}] if tools else []
    return {"contents": [{"role": "user", "parts": [{"text": prompt}]}], "tools": declared}


def _chat_read(body: Body) -> Said:
    message = body["choices"][0]["message"]
    calls = [
        (call["function"]["name"], json.loads(call["function"]["arguments"])) for call in message.get("tool_calls", ())
    ]
    usage = (body["usage"]["prompt_tokens"], body["usage"]["completion_tokens"])
    return Said(message["content"] or "", message.get("reasoning_content", ""), calls, usage)


def _responses_read(body: Body) -> Said:
    items: dict[str, list[Body]] = {"message": [], "reasoning": [], "function_call": []}
    for item in body["output"]:
        items[item["type"]].append(item)
    text = "".join(part["text"] for item in items["message"] for part in item["content"])
    reason = "".join(part["text"] for item in items["reasoning"] for part in item["summary"])
    calls = [(call["name"], json.loads(call["arguments"])) for call in items["function_call"]]
    return Said(text, reason, calls, (body["usage"]["input_tokens"], body["usage"]["output_tokens"]))


def _anthropic_read(body: Body) -> Said:
    blocks = body["content"]
    text = "".join(block["text"] for block in blocks if block["type"] == "text")
    reason = "".join(block["thinking"] for block in blocks if block["type"] == "thinking")
    calls = [(block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
    return Said(text, reason, calls, (body["usage"]["input_tokens"], body["usage"]["output_tokens"]))


def _gemini_read(body: Body) -> Said:
    parts = body["candidates"][0]["content"]["parts"]
    text = "".join(part.get("text", "") for part in parts if not part.get("thought"))
    reason = "".join(part["text"] for part in parts if part.get("thought"))
    calls = [(part["functionCall"]["name"], part["functionCall"]["args"]) for part in parts if "functionCall" in part]
    usage = body["usageMetadata"]
    return Said(text, reason, calls, (usage["promptTokenCount"], usage["totalTokenCount"] - usage["promptTokenCount"]))


_ASK = {"chat": _chat_ask, "responses": _responses_ask, "anthropic": _anthropic_ask, "gemini": _gemini_ask}
_READ = {"chat": _chat_read, "responses": _responses_read, "anthropic": _anthropic_read, "gemini": _gemini_read}

WIRES = [
    Wire("chat", "/v1/chat/completions", "/v1/chat/completions"),
    Wire("responses", "/v1/responses", "/v1/responses"),
    Wire("anthropic", "/v1/messages", "/v1/messages"),
    Wire("gemini", "/v1beta/models/m:generateContent", "/v1beta/models/m:streamGenerateContent?alt=sse"),
]
