"""The server: faults, counters, records, start and stop, over real connections."""

import json
import subprocess
import sys
import time
from typing import Any

import anyio
import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from portico.kernel.errors import BadRequest, NotFound
from portico.testing.model import Error, First, ModelRule, ModelServer, Script, Step
from tests.testing.wire import WIRES, Wire, events

each_wire = pytest.mark.parametrize("wire", WIRES, ids=lambda wire: wire.name)
CHAT = WIRES[0]


def prompt(**step: Any) -> str:
    return json.dumps([step])


def contents(text: str) -> str:
    chunks = [event for event in events(text) if event != "[DONE]"]
    return "".join(choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"])


@each_wire
async def test_a_cut_stream_breaks_the_connection(wire: Wire, server: ModelServer, client: httpx.AsyncClient) -> None:
    path, body = wire.call(wire.ask(prompt(say=["one", "two", "three"], cut=2)), stream=True)
    got = ""

    async def read() -> None:
        nonlocal got
        async with client.stream("POST", path, json=body) as response:
            async for piece in response.aiter_text():
                got += piece

    with pytest.raises(httpx.RemoteProtocolError):
        await read()
    assert "two" in got
    assert "three" not in got
    assert (await server.received(1)).outcome == "cut"


@each_wire
async def test_a_cut_answer_breaks_the_connection(wire: Wire, client: httpx.AsyncClient) -> None:
    with pytest.raises(httpx.RemoteProtocolError):
        await wire.post(client, wire.ask(prompt(say="hello", cut=0)))


async def test_garbage_is_sent_in_the_middle(client: httpx.AsyncClient) -> None:
    stream = await CHAT.post(client, CHAT.ask(prompt(say="a b", garbage=1)), stream=True)
    whole = await CHAT.post(client, CHAT.ask(prompt(say="a b", garbage=0)))

    frames = [line for line in stream.text.splitlines() if line.startswith("data: {") and not line.endswith("}")]
    assert len(frames) == 1
    assert stream.text.endswith("data: [DONE]\n\n")
    with pytest.raises(json.JSONDecodeError):
        whole.json()


@pytest.mark.parametrize("hang", [True, 1])
async def test_a_client_that_leaves_a_hanging_answer_is_noticed(
    hang: bool | int, server: ModelServer, client: httpx.AsyncClient
) -> None:
    path, body = CHAT.call(CHAT.ask(prompt(say="a b", hang=hang)), stream=True)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(lambda: client.post(path, json=body))
        received = await server.received(1)
        assert not received.ended.is_set()
        tasks.cancel_scope.cancel()

    with anyio.fail_after(30):
        await received.ended.wait()
    assert received.outcome == "gone"


async def test_closing_the_server_ends_hanging_answers() -> None:
    statuses = []

    async def ask(client: httpx.AsyncClient) -> None:
        statuses.append((await CHAT.post(client, CHAT.ask(prompt(hang=True)))).status_code)

    with anyio.fail_after(30):
        async with httpx.AsyncClient() as client, anyio.create_task_group() as tasks, ModelServer() as server:
            client.base_url = httpx.URL(server.url)
            tasks.start_soon(ask, client)
            await server.received(1)

    assert statuses == [503]


async def test_delay_and_gap_take_their_time(client: httpx.AsyncClient) -> None:
    start = time.monotonic()
    stamps = []
    path, body = CHAT.call(CHAT.ask(prompt(say="{{now}} ", repeat=3, delay=40, gap=20)), stream=True)
    async with client.stream("POST", path, json=body) as response:
        started = time.monotonic() - start
        stamps = [int(word) for word in contents((await response.aread()).decode()).split()]

    assert started >= 0.04
    assert len(stamps) == 3
    assert stamps[2] - stamps[0] >= 35


async def test_thousands_of_deltas(client: httpx.AsyncClient) -> None:
    response = await CHAT.post(client, CHAT.ask(prompt(say="tick ", repeat=5000)), stream=True)

    assert contents(response.text) == "tick " * 5000


async def test_the_first_times_are_different() -> None:
    flaky = First(key="flaky", times=2, step=Step(error=Error(status=429, message="slow down")))

    script = Script.of(Step(say="fine", first=flaky))
    async with ModelServer(script) as server, httpx.AsyncClient(base_url=server.url) as client:
        statuses = [(await wire.post(client, wire.ask("go"))).status_code for wire in WIRES]

    assert statuses == [429, 429, 200, 200]
    assert server.counts == {"flaky": 4}


async def test_rules_come_before_the_prompt_and_the_default_after() -> None:
    script = Script(
        rules=[
            ModelRule(tools=False, steps=[Step(say="A title")]),
            ModelRule(match="(?i)deploy", steps=[Step(error=500)]),
        ],
        default=[Step(say="default")],
    )

    async with ModelServer(script) as server, httpx.AsyncClient(base_url=server.url) as client:
        assert (await CHAT.say(client, "hello")).text == "A title"
        assert (await CHAT.post(client, CHAT.ask("Deploy it", ["bash"]))).status_code == 500
        assert (await CHAT.say(client, prompt(say="from the prompt"), ["bash"])).text == "from the prompt"
        assert (await CHAT.say(client, "hello", ["bash"])).text == "default"


async def test_a_call_that_no_tool_fits_is_explained(client: httpx.AsyncClient) -> None:
    said = await CHAT.say(client, prompt(calls=[{"kind": "execute"}]), ["browse"])

    assert said.text == '\nNo declared tool fits {"kind":"execute"}; there are: browse.'


async def test_a_wrong_script_is_explained(client: httpx.AsyncClient) -> None:
    said = await CHAT.say(client, prompt(say="x", sya="y"))

    assert said.text.startswith("The script in this prompt is not valid: Object contains unknown field `sya`")


async def test_requests_are_recorded_up_to_a_bound() -> None:
    async with ModelServer(keep=2) as server:
        async with httpx.AsyncClient(base_url=server.url, headers={"authorization": "Bearer k"}) as client:
            for number in range(3):
                await CHAT.say(client, f"prompt {number}", ["bash"])
        last = await server.received(3)

        assert [received.request.prompt for received in server.requests] == ["prompt 1", "prompt 2"]
        assert (last.request.format, last.request.model, [tool.name for tool in last.request.tools]) == (
            "openai-chat",
            "m",
            ["bash"],
        )
        assert last.body["messages"] == [{"role": "user", "content": "prompt 2"}]
        assert last.headers["authorization"] == "Bearer k"
        assert last.outcome == "answered"
        with pytest.raises(NotFound):
            await server.received(1)


async def test_models_are_listed_for_every_kind_of_client() -> None:
    async with ModelServer(Script(models=["a", "b"])) as server, httpx.AsyncClient(base_url=server.url) as client:
        listed = (await client.get("/v1/models")).json()
        gemini = (await client.get("/v1beta/models")).json()

        assert [(model["id"], model["display_name"]) for model in listed["data"]] == [("a", "a"), ("b", "b")]
        assert [model["name"] for model in gemini["models"]] == ["models/a", "models/b"]
        assert (await client.get("/v1/models/any/name")).json()["id"] == "any/name"
        assert (await client.head("/")).status_code == 200


async def test_a_body_over_the_limit_is_refused(client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portico.testing.model.server.MAX_BODY", 100)

    response = await client.post("/v1/messages", content=b"x" * 101)

    assert response.status_code == 413
    assert response.json()["error"]["type"] == "request_too_large"


async def test_a_taken_port_is_refused(server: ModelServer) -> None:
    with pytest.raises(BadRequest, match="Cannot listen"):
        async with ModelServer(port=server.port):
            raise AssertionError("two servers on one port")


def test_serve_runs_until_it_is_interrupted() -> None:
    code = "from portico.testing.model import serve; serve(announce=lambda url: print(url, flush=True))"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        url = process.stdout.readline().strip()
        assert httpx.get(f"{url}/v1/models").status_code == 200
        process.terminate()
        assert process.wait(60) == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@each_wire
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(args=st.dictionaries(st.text(max_size=5), JSON, max_size=3), junk=JSON, say=st.text())
async def test_the_server_answers_whatever_comes(
    wire: Wire, client: httpx.AsyncClient, args: dict[str, Any], junk: Any, say: str
) -> None:
    body = wire.ask(prompt(say=say, calls=[{"name": "bash", "args": args}]), ["bash"])
    for key in ("tools", "messages", "input", "contents"):
        response = await wire.post(client, {**body, key: junk})
        assert response.status_code in (200, 400)
    assert (await wire.post(client, body, stream=True)).status_code == 200
