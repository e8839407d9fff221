"""Context windows: where they are read from, and what happens at their end."""

import json
from pathlib import Path
from typing import Any

import pytest

from portico.agents.loop.windows import Windows, listed, of_llama_cpp, of_ollama, of_price_list
from portico.kernel.events import Json
from tests.agents.loop.conftest import Desk, calls, texts
from tests.agents.loop.vendor import SETTINGS, call, stream, vendor

LISTED: dict[str, tuple[Json, int | None]] = {
    "vLLM": ({"id": "m", "max_model_len": 8192}, 8192),
    "OpenRouter": ({"id": "m", "context_length": 200000, "top_provider": {"context_length": 128000}}, 200000),
    "Groq": ({"id": "m", "context_window": 131072}, 131072),
    "LM Studio": ({"id": "m", "max_context_length": 32768, "loaded_context_length": 4096}, 4096),
    "Mistral": ({"id": "m", "max_context_length": 32768}, 32768),
    "llama.cpp": ({"id": "m", "meta": {"n_ctx_train": 40960}}, 40960),
    "OpenAI": ({"id": "m", "object": "model"}, None),
    "nonsense": ({"id": "m", "context_length": "big", "meta": None}, None),
}


@pytest.mark.parametrize(("entry", "tokens"), LISTED.values(), ids=LISTED)
def test_a_window_in_the_list_of_models(entry: Json, tokens: int | None) -> None:
    assert listed(entry) == tokens


@pytest.mark.parametrize(
    ("props", "tokens"),
    [({"default_generation_settings": {"n_ctx": 4096}}, 4096), ({}, None), (None, None), ([], None)],
)
def test_the_window_of_a_llama_cpp_server(props: Any, tokens: int | None) -> None:
    assert of_llama_cpp(props) == tokens


@pytest.mark.parametrize(
    ("shown", "tokens"),
    [
        ({"model_info": {"qwen3.context_length": 40960, "qwen3.block_count": 1}}, 40960),
        ({"parameters": "stop x\nnum_ctx    8192", "model_info": {"qwen3.context_length": 40960}}, 8192),
        ({}, None),
        (None, None),
    ],
)
def test_the_window_of_an_ollama_model(shown: Any, tokens: int | None) -> None:
    assert of_ollama(shown) == tokens


def test_what_an_error_named_is_kept_and_a_guess_is_not(tmp_path: Path) -> None:
    windows = Windows(tmp_path)
    windows.learn("m", 8192, named=True)
    windows.learn("n", 4096, named=False)
    assert (windows.tokens("m", 100_000), windows.tokens("m", 4000), windows.tokens("n", None)) == (8192, 4000, 4096)
    again = Windows(tmp_path)
    assert (again.tokens("m", None), again.tokens("n", None)) == (8192, None)


@pytest.mark.parametrize("content", [b"", b"[]", b"{"])
def test_a_file_that_cannot_be_read_counts_as_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "agents/loop").mkdir(parents=True)
    (tmp_path / "agents/loop/windows.json").write_bytes(content)
    assert Windows(tmp_path).tokens("m", None) is None


def test_tokens_are_counted_by_what_the_endpoint_reports(tmp_path: Path) -> None:
    windows = Windows(tmp_path)
    before = windows.chars("m", 10_000)
    windows.count("m", 40_000, 10_000)
    assert before is not None
    assert windows.chars("m", 10_000) == int(before / 3 * 4)
    windows.count("m", 40_000, 3)  # too few to calculate with
    assert windows.ratio("m") == 4.0


BIG = "line of text\n" * 2000
READ = stream(call("readFiles", json.dumps({"files": ["big.txt"]})))
SHORT = stream({"content": "Goal: look. Files: big.txt."})


def asks_to_summarise(body: Json) -> bool:
    return "has to be shortened" in str(body["messages"][-1]["content"])


ERRORS: dict[str, tuple[int, Any]] = {
    "OpenAI": (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 8000 tokens.",
                "code": "context_length_exceeded",
            }
        },
    ),
    "Anthropic": (400, {"error": {"message": "prompt is too long: 9000 tokens > 8000 maximum"}}),
    "llama.cpp": (
        400,
        {"error": {"message": "exceeds the available context size", "type": "exceed_context_size_error"}},
    ),
    "a proxy": (413, {"error": "Request Entity Too Large"}),
}


@pytest.mark.parametrize(("status", "body"), ERRORS.values(), ids=ERRORS)
async def test_too_long_is_summarised_and_the_turn_continues(desk: Desk, status: int, body: Any) -> None:
    (desk.project / "big.txt").write_text(BIG)
    answers: list[Any] = [READ, READ, (status, body, {}), SHORT, stream({"content": "Done."})]
    async with vendor(desk, *answers) as endpoint:
        turn = await desk.run("Look.")
        assert (turn.outcome, texts(turn), len(calls(turn))) == ("completed", "Done.", 2), turn.error
        assert "The conversation is shortened." in texts(turn, "notice")
        assert [asks_to_summarise(each) for each in endpoint.bodies] == [False, False, False, True, False]
        last = json.dumps(endpoint.bodies[-1]["messages"])
        assert "Goal: look. Files: big.txt." in last
        assert len(last) < len(json.dumps(endpoint.bodies[2]["messages"]))
        again = await desk.run("And now?")
    assert (again.outcome, again.error) == ("completed", None)


async def test_near_the_window_the_conversation_is_summarised_before_an_error(desk: Desk) -> None:
    (desk.project / "big.txt").write_text(BIG)
    models = {"data": [{"id": "m", "max_model_len": 16_000}]}
    async with vendor(desk, READ, READ, SHORT, stream({"content": "Done."}), models=models) as endpoint:
        turn = await desk.run("Look.")
    assert (turn.outcome, texts(turn)) == ("completed", "Done."), turn.error
    assert [asks_to_summarise(each) for each in endpoint.bodies] == [False, False, True, False]


@pytest.mark.parametrize("by", ["setting", "list"])
async def test_a_large_window_is_used(desk: Desk, by: str) -> None:
    """It was 200,000 characters for every model."""
    (desk.project / "big.txt").write_text("line of text\n" * 4600)
    models = {"data": [{"id": "m", **({"context_length": 200_000} if by == "list" else {})}]}
    settings = SETTINGS + ("context_tokens = 200000\n" if by == "setting" else "")
    async with vendor(desk, *[READ] * 2, *[READ] * 3, settings=settings, models=models) as endpoint:
        turn = await desk.run("Look.")
    assert turn.outcome == "completed", turn.error
    assert len(json.dumps(endpoint.bodies[-1]["messages"])) > 250_000
    assert not any(asks_to_summarise(each) for each in endpoint.bodies)


@pytest.mark.parametrize(("model", "window"), [("gpt-4o", 128_000), ("openai/gpt-4o", 128_000), ("nobody-9", None)])
def test_the_price_list_knows_windows(model: str, window: int | None) -> None:
    assert of_price_list(model) == window
