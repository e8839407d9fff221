"""Models that fail, hang, lie or are not there; and where they are found."""

import asyncio
import json

import pytest
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from portico.agents.agent import AgentContext, Message
from portico.agents.loop import LoopAgent
from portico.agents.loop.model_call import WAITS
from portico.kernel.events import Json
from portico.testing.model import Error, First, ModelRule, ModelServer, Script, ScriptedUsage, Step
from tests.agents.loop.conftest import Desk, acts, ends, questions, texts


async def test_schema_output_is_asked_for(desk: Desk) -> None:
    desk.settings('[agents.loop]\nprotocol = "schema"\n')
    desk.says(acts({"tool": "listFiles"}), ends())
    assert (await desk.run()).outcome == "completed"
    assert desk.server.requests[0].body["response_format"]["type"] == "json_schema"


async def test_an_endpoint_without_tools_or_schema_gets_the_text_protocol(desk: Desk) -> None:
    desk.settings("[agents.loop]\nretries = 0\n")
    no_tools = Step(error=Error(status=400, message="this model does not support tools"))
    no_schema = Step(error=Error(status=400, message="unknown field response_format"), first=None)
    desk.says(
        Step(
            say=ends("Fine.").say,
            first=First(key="t", times=1, step=no_tools),
        )
    )
    desk.server.script = Script(
        rules=[
            ModelRule(tools=True, steps=[no_tools]),
            ModelRule(steps=[Step(say=ends("Fine.").say, first=First(key="s", times=1, step=no_schema))]),
        ],
        models=["alpha"],
    )
    turn = await desk.run()
    assert turn.outcome == "completed", turn.error
    bodies = [received.body for received in desk.server.requests]
    assert ["tools" in body for body in bodies] == [True, False, False]
    assert ["response_format" in body for body in bodies] == [False, True, False]


@pytest.mark.parametrize(("answer", "requests"), [("stop", 3), ("continue", 6)])
async def test_at_the_limit_of_steps_a_person_is_asked(desk: Desk, answer: str, requests: int) -> None:
    """Reported: after 12 steps the run failed."""
    desk.says(*[acts({"tool": "listFiles", "glob": str(number)}) for number in range(5)], ends())
    turn = await desk.run(meta={"maxSteps": 3}, answer=answer)
    assert (turn.outcome, desk.server.total) == ("completed", requests)
    (question,) = questions(turn)
    assert question.text == "The agent has made 3 steps and is not done. Continue?"


async def test_what_a_person_writes_at_the_limit_steers_the_run(desk: Desk) -> None:
    working = ModelRule(steps=[acts({"tool": "listFiles"})])
    desk.server.script = Script(rules=[ModelRule(steps=[ends("Docs.")], match="Only list docs"), working])
    turn = await desk.run(meta={"maxSteps": 1}, answer="Only list docs.")
    assert (turn.outcome, texts(turn)) == ("completed", "Docs.")


async def test_the_token_budget_ends_a_run(desk: Desk) -> None:
    desk.settings('[agents.loop]\nprotocol = "text"\nbudget_tokens = 100\n')
    desk.says(*[Step(say=acts({"tool": "listFiles"}).say, usage=ScriptedUsage(input=60, output=5))] * 5)
    turn = await desk.run()
    assert turn.error is not None
    assert "budget of 100 tokens" in turn.error.message
    assert desk.server.total == 2


@pytest.mark.parametrize("status", [429, 500, 503])
async def test_errors_that_pass_are_retried(desk: Desk, status: int) -> None:
    desk.settings('[agents.loop]\nprotocol = "text"\nretries = 2\n')
    failing = Step(error=Error(status=status, retry_after=0.01))
    desk.says(Step(say=ends("Made it.").say, first=First(key="k", times=2, step=failing)))
    turn = await desk.run()
    assert (turn.outcome, texts(turn)) == ("completed", "Made it.")
    assert texts(turn, "notice").count(f" answered {status}: scripted error. Trying again.") == 2


@pytest.mark.parametrize(
    "broken",
    [
        Step(say="one two three", cut=1),
        Step(say="one two three", garbage=1),
        Step(say="one two three", hang=1),
        Step(hang=True),
        Step(say="one two three", error=Error(status=529, message="overloaded", after=1)),
    ],
)
async def test_half_streams_and_hangs_are_retried(desk: Desk, broken: Step) -> None:
    desk.settings('[agents.loop]\nprotocol = "text"\nretries = 1\ntimeout = 0.3\n')
    desk.says(Step(say=ends("Made it.").say, first=First(key="k", times=1, step=broken)))
    turn = await desk.run()
    assert turn.outcome == "completed", turn.error
    assert texts(turn).endswith("Made it.")


async def test_the_next_model_goes_on_with_the_same_run(desk: Desk) -> None:
    desk.settings('models = ["alpha", "beta"]\n[agents.loop]\nprotocol = "text"\nretries = 0\n')
    desk.server.script = Script(
        rules=[
            ModelRule(model="alpha", steps=[acts({"tool": "listFiles"}), Step(error=503)]),
            ModelRule(model="beta", steps=[acts({"tool": "listFiles"}), ends("By beta.")]),
        ],
        models=["alpha", "beta"],
    )
    turn = await desk.run()
    assert (turn.outcome, texts(turn)) == ("completed", "By beta.")
    assert "Going on with beta" in texts(turn, "notice")
    assert turn.usage is not None
    assert turn.usage.model == "beta"
    assert [(each.step, each.model) for each in turn.steps] == [(1, "alpha"), (2, "beta")]
    roles = [message["role"] for message in desk.server.requests[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "user"]


async def test_without_another_model_the_run_fails_and_says_why(desk: Desk) -> None:
    desk.says(Step(error=Error(status=401, message="bad key")))
    turn = await desk.run()
    assert turn.outcome == "failed"
    assert turn.error is not None
    assert "does not accept the key" in turn.error.message
    assert "canary-key" not in turn.error.message


async def test_a_refused_key_is_remembered_until_it_is_taken(desk: Desk) -> None:
    """One code for all agents, and lists say it too: the endpoint lists its models whoever asks."""
    desk.says(Step(error=Error(status=401, message="bad key")))
    turn = await desk.run()
    assert turn.error is not None
    assert turn.error.code == "sign_in_required"
    info = await desk.host.described("loop")
    assert "does not accept the key (401): bad key" in (info.missing or "")
    desk.says(ends("Here."))
    turn = await desk.run()
    assert turn.outcome == "completed", turn.error
    assert (await desk.host.agents["loop"].describe()).missing is None


async def test_cancel_inside_a_model_request(desk: Desk) -> None:
    desk.says(Step(say="one two", hang=1))
    turn = await desk.session.send(Message("agent: go"), by="test")
    received = await desk.server.received(1)
    await desk.session.cancel(by="test")
    assert (await desk.session.wait(turn)).outcome == "cancelled"
    async with asyncio.timeout(30):
        await received.ended.wait()
    assert received.outcome == "gone"


async def test_a_broken_edit_of_the_settings_keeps_the_old_ones(desk: Desk) -> None:
    desk.settings('[agent]\nmax_steps = 2\n[agents.loop]\nprotocol = "text"\n')
    agent = desk.host.agents["loop"]
    assert isinstance(agent, LoopAgent)
    assert agent.settings.current().agent.max_steps == 2
    desk.settings("[agent\n")
    assert agent.settings.current().agent.max_steps == 2


async def test_without_a_model_it_says_what_is_missing(desk: Desk) -> None:
    agent = LoopAgent(AgentContext(desk.home, {}), {"OLLAMA_HOST": "127.0.0.1:1"})
    info = await agent.describe()
    assert info.missing is not None
    assert "OPENAI_BASE_URL" in info.missing
    assert "portico model offer --yes" in info.missing
    await agent.close()


async def test_an_ollama_server_is_found_by_itself(desk: Desk) -> None:
    agent = LoopAgent(AgentContext(desk.home, {}), {"OLLAMA_HOST": desk.server.url})
    info = await agent.describe()
    assert (info.missing, [model.id for model in info.models]) == (None, ["alpha", "beta"])
    await agent.close()


async def test_switched_off_it_says_so(desk: Desk) -> None:
    desk.settings("[agent]\nenabled = false\n")
    info = await desk.host.agents["loop"].describe()
    assert info.missing is not None
    assert "off" in info.missing
    assert (await desk.run()).outcome == "failed"


async def test_an_endless_answer_is_cut_off(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portico.agents.loop.reply.ANSWER_MAX", 10_000)
    desk.says(Step(say=["word "], repeat=100_000))
    turn = await desk.run("Talk", meta={"mode": "chat"})
    assert turn.error is not None
    assert "does not stop" in turn.error.message


async def test_a_conversation_that_is_too_long_is_shortened(desk: Desk) -> None:
    desk.settings('[agents.loop]\nprotocol = "text"\ncontext_chars = 20000\ncompaction = "cut"\n')
    (desk.project / "long.txt").write_text("line of text\n" * 3_000)
    read = acts({"tool": "readFiles", "files": ["long.txt"]})
    desk.says(read, read, read, ends())
    assert (await desk.run()).outcome == "completed"
    for received in desk.server.requests:
        assert len(json.dumps(received.body)) < 60_000
    assert "left out" in json.dumps(desk.server.requests[-1].body)
    full = Error(status=400, message="maximum context length exceeded")
    desk.says(Step(say="Short.", first=First(key="full", times=1, step=Step(error=full))))
    turn = await desk.run("And now?", meta={"mode": "chat"})
    assert (turn.outcome, texts(turn)) == ("completed", "Short.")


async def test_the_key_is_nowhere_in_the_log(desk: Desk) -> None:
    desk.says(Step(error=Error(status=401, message="bad key")))
    await desk.run()
    await desk.opener.close()
    files = [path for path in desk.opener.folder.rglob("log.db*") if path.is_file()]
    assert files
    assert not any(b"canary-key" in path.read_bytes() for path in files)


async def test_waits_between_attempts_grow() -> None:
    assert list(WAITS) == sorted(WAITS)


async def test_a_llama_cpp_server_is_found_and_asked_with_a_schema(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("portico.agents.loop.discovery.LLAMA_CPP", f"{desk.server.url}/v1")
    desk.settings("")
    desk.environ = {"OLLAMA_HOST": "127.0.0.1:1"}
    await desk.open()
    desk.says(ends("By schema."))
    turn = await desk.run()
    assert (turn.outcome, texts(turn)) == ("completed", "By schema.")
    assert "response_format" in desk.server.requests[-1].body


async def test_new_settings_do_not_disturb_a_running_request(desk: Desk) -> None:
    desk.says(Step(say="one two three", gap=100))
    turn = await desk.session.send(Message("Talk", meta={"mode": "chat"}), by="test")
    await desk.server.received(1)
    desk.settings('[agents.loop]\nprotocol = "tools"\n')
    await desk.host.describe()
    ended = await desk.session.wait(turn)
    assert (ended.outcome, texts(ended)) == ("completed", "one two three")


async def test_wrong_settings_are_what_is_missing(desk: Desk) -> None:
    desk.settings("[agents.loop]\nbase_ur = 'x'\n")
    agent = LoopAgent(AgentContext(desk.home, {}), {})
    info = await agent.describe()
    assert info.missing is not None
    assert "base_ur" in info.missing
    await agent.close()


class Plain:
    """A server as people write them in a minute: no list of models, no streaming."""

    def __init__(self, message: dict[str, object]) -> None:
        self.message = message
        self.bodies: list[dict[str, object]] = []

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        if request.url.path != "/v1/chat/completions":
            await Response("no", 404)(scope, receive, send)
            return
        self.bodies.append(await request.json())
        choice = {"index": 0, "message": self.message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 3, "completion_tokens": 2}
        await JSONResponse({"choices": [choice], "usage": usage})(scope, receive, send)


async def test_a_server_without_list_or_stream_is_good_enough(desk: Desk) -> None:
    plain = Plain({"role": "assistant", "content": '{"finalSummary": "Plain.", "done": true}'})
    desk.settings("")
    server = ModelServer()
    server.app = plain
    async with server:
        desk.environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OLLAMA_HOST": "127.0.0.1:1"}
        await desk.open()
        assert [model.id for model in (await desk.host.describe())[0].models] == ["default"]
        desk.session = await desk.host.start(by="test", agent="loop", cwd=str(desk.project))
        turn = await desk.run()
        await desk.opener.close()
    assert (turn.outcome, texts(turn)) == ("completed", "Plain.")
    assert turn.usage is not None
    assert turn.usage.input == 3


async def test_a_broken_answer_does_not_spoil_the_next_one(desk: Desk) -> None:
    desk.settings('[agents.loop]\nprotocol = "text"\nretries = 1\n')
    half = Step(say=['{"finalSummary": "Half', " of", " it"], cut=2)
    desk.says(Step(say=['{"finalSummary": "Wh', 'ole.", "done": true}'], first=First(key="k", times=1, step=half)))
    turn = await desk.run()
    assert turn.outcome == "completed"
    assert texts(turn).endswith("Whole.")
    assert texts(turn).count("Whole") == 1


@pytest.mark.parametrize("way", ["ollama", "setting", "endpoint"])
async def test_a_key_goes_only_to_the_endpoint_it_is_for(desk: Desk, way: str) -> None:
    """OpenAI's is no business of a server that the settings name without a key, nor of a local one."""
    url = desk.server.url
    desk.environ = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "canary"}
    head = '[agents.loop]\nretries = 0\nprotocol = "text"\n'
    if way == "ollama":
        desk.environ["OLLAMA_HOST"] = url.removeprefix("http://")
    elif way == "setting":
        desk.settings(f'{head}base_url = "{url}/v1"\n')
    else:
        desk.settings(f'{head}[agents.loop.endpoints.mine]\nbase_url = "{url}/v1"\n')
    desk.says(ends("Fine."))
    await desk.open()
    turn = await desk.run()
    assert turn.outcome == "completed", turn.error
    assert "canary" not in str(desk.server.requests[-1].headers)


@pytest.mark.parametrize(
    ("text", "start", "meta"),
    [
        ("agent: list the files", {}, {}),
        ("/agent list the files", {}, {}),
        ("list the files", {"config": {"mode": "agent"}}, {}),
        ("list the files", {}, {"mode": "agent"}),
        ("list the files", {}, {}),
    ],
)
async def test_a_toy_never_gets_tools(desk: Desk, text: str, start: Json, meta: Json) -> None:
    """It called tools at random wherever somebody asked for an agent run, or a session had tools of its own."""
    desk.server.script = Script(rules=[ModelRule(steps=[Step(say="Hello.")])], models=["smollm2-135m"])
    await desk.open()
    desk.session = await desk.host.start(by="test", agent="loop", cwd=str(desk.project), **start)
    turn = await desk.run(text, meta=meta)
    assert (turn.outcome, texts(turn)) == ("completed", "Hello.")
    (request,) = desk.server.requests
    assert not {"tools", "response_format"} & request.body.keys()
    asked = text != "list the files" or bool(start or meta)
    assert ("smollm2-135m is a toy" in texts(turn, "notice")) is asked


async def test_a_toy_is_no_fallback_for_a_run_with_tools(desk: Desk) -> None:
    desk.settings('models = ["smollm2-135m", "alpha"]\n[agents.loop]\nretries = 0\nprotocol = "text"\n')
    rule = ModelRule(steps=[acts({"tool": "listFiles"}), ends()])
    desk.server.script = Script(rules=[rule], models=["smollm2-135m", "alpha"])
    await desk.open()
    desk.session = await desk.host.start(by="test", agent="loop", cwd=str(desk.project))
    assert desk.session.state.model == "smollm2-135m"
    assert (await desk.run()).outcome == "completed"
    assert {each.body["model"] for each in desk.server.requests} == {"alpha"}
