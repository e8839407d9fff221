"""Clients that are generated from the OpenAPI document: each compiles and drives an agent on a real host."""

import json
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.clients.programs import MODULES, installed, run
from tests.doors.standing import Standing, standing

SCRIPT = """
rules:
  - match: ""
    steps: [{do: say, text: "You said {prompt}."}]
"""
PYTHON = """
import sys, time
from portico_client import AuthenticatedClient
from portico_client.api.v1 import (
    delete_v1_sessions_by_id, get_v1_agents, get_v1_sessions, get_v1_sessions_by_id, post_v1_sessions,
    post_v1_sessions_by_id_messages,
)
from portico_client.models import AgentsAnswer, SendMessageBody, SessionList, StartSessionBody, Summary, TurnBegun

client = AuthenticatedClient(base_url=sys.argv[1], token=sys.argv[2])
agents = get_v1_agents.sync(client=client)
assert isinstance(agents, AgentsAnswer)
print(agents.agents[0].id)
session = post_v1_sessions.sync(client=client, body=StartSessionBody(agent="scripted", title="Generated"))
assert isinstance(session, Summary)
sent = post_v1_sessions_by_id_messages.sync(session.id, client=client, body=SendMessageBody(text="hi"))
assert isinstance(sent, TurnBegun)
while not (state := get_v1_sessions_by_id.sync(session.id, client=client).to_dict())["turns"][0].get("outcome"):
    time.sleep(0.02)
print(state["turns"][0]["parts"][0]["text"])
listed = get_v1_sessions.sync(client=client)
assert isinstance(listed, SessionList)
print(listed.sessions[0].title)
print(delete_v1_sessions_by_id.sync_detailed(session.id, client=client).status_code)
"""
FETCH = """
import createClient from "openapi-fetch";
import type { paths } from "./portico";

async function main(): Promise<void> {
  const [url, token] = process.argv.slice(2);
  const client = createClient<paths>({ baseUrl: url, headers: { Authorization: `Bearer ${token}` } });
  const agents = await client.GET("/v1/agents");
  console.log(agents.data?.agents[0]?.id);
  const session = await client.POST("/v1/sessions", { body: { agent: "scripted", title: "Generated" } });
  const id = session.data!.id;
  await client.POST("/v1/sessions/{id}/messages", { params: { path: { id } }, body: { text: "hi" } });
  let state = await client.GET("/v1/sessions/{id}", { params: { path: { id } } });
  while (!state.data?.turns?.[0]?.outcome) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    state = await client.GET("/v1/sessions/{id}", { params: { path: { id } } });
  }
  const part = state.data.turns?.[0]?.parts?.[0];
  console.log(part && "text" in part ? part.text : part);
  const listed = await client.GET("/v1/sessions");
  console.log(listed.data?.sessions[0]?.title);
  const deleted = await client.DELETE("/v1/sessions/{id}", { params: { path: { id } } });
  console.log(deleted.response.status);
}
void main();
"""
HEY = """
import { deleteV1SessionsById, getV1Agents, getV1Sessions, getV1SessionsById } from "./portico";
import { postV1Sessions, postV1SessionsByIdMessages } from "./portico";
import { client } from "./portico/client.gen";

async function main(): Promise<void> {
  const [baseUrl, auth] = process.argv.slice(2);
  client.setConfig({ baseUrl, auth });
  console.log((await getV1Agents()).data?.agents[0]?.id);
  const session = await postV1Sessions({ body: { agent: "scripted", title: "Generated" } });
  const path = { id: session.data!.id };
  await postV1SessionsByIdMessages({ path, body: { text: "hi" } });
  let state = await getV1SessionsById({ path });
  while (!state.data?.turns?.[0]?.outcome) {
    await new Promise((resolve) => setTimeout(resolve, 20));
    state = await getV1SessionsById({ path });
  }
  const part = state.data.turns?.[0]?.parts?.[0];
  console.log(part && "text" in part ? part.text : part);
  console.log((await getV1Sessions()).data?.sessions[0]?.title);
  console.log((await deleteV1SessionsById({ path })).response?.status);
}
void main();
"""
TYPESCRIPT = {
    "compilerOptions": {
        "strict": True,
        "target": "ES2022",
        "module": "CommonJS",
        "moduleResolution": "Node10",
        "outDir": "out",
        "lib": ["ES2022", "DOM", "DOM.Iterable"],
        "types": [],
        "skipLibCheck": True,
        "noErrorTruncation": True,
    },
    "include": ["*.ts", "portico/**/*.ts"],
}
PRINTED = ["scripted", "You said hi.", "Generated", "204"]


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Standing]:
    (tmp_path / "script.yaml").write_text(SCRIPT)
    async with standing(tmp_path, agents=("scripted",), script=tmp_path / "script.yaml") as here:
        yield here


async def _document(here: Standing, folder: Path) -> None:
    _write(folder / "openapi.json", (await here.http.get("/openapi.json")).content)


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)


async def test_openapi_python_client(here: Standing, tmp_path: Path) -> None:
    await _document(here, folder := tmp_path / "made")
    generate = ("openapi_python_client", "generate", "--path", "openapi.json", "--output-path", "client")
    printed = await run(sys.executable, "-m", *generate, cwd=folder)
    assert "/v1" not in printed, "every route of /v1 is generated"
    (folder / "client" / "drive.py").write_text(PYTHON)
    await run(sys.executable, "-m", "mypy", "--cache-dir=/dev/null", "portico_client", cwd=folder / "client")
    assert await _drives(here, folder / "client", sys.executable, "drive.py") == PRINTED


@pytest.mark.parametrize(
    ("package", "generate", "script"),
    [
        ("openapi-typescript", ["openapi-typescript/bin/cli.js", "openapi.json", "-o", "portico.ts"], FETCH),
        ("@hey-api/openapi-ts", ["@hey-api/openapi-ts/bin/run.js", "-i", "openapi.json", "-o", "portico"], HEY),
    ],
)
async def test_a_typescript_client(
    here: Standing, tmp_path: Path, package: str, generate: list[str], script: str
) -> None:
    await _document(here, folder := tmp_path / "made")
    installed(package)
    (folder / "node_modules").symlink_to(MODULES)
    await run("node", str(MODULES / generate[0]), *generate[1:], cwd=folder)
    (folder / "drive.ts").write_text("declare const process: { argv: string[] };\n" + script)
    (folder / "tsconfig.json").write_text(json.dumps(TYPESCRIPT))
    await run("node", str(MODULES / "typescript/bin/tsc"), "-p", ".", cwd=folder)
    assert await _drives(here, folder, "node", "out/drive.js") == PRINTED


async def _drives(here: Standing, folder: Path, program: str, script: str) -> list[str]:
    printed = await run(program, script, here.url, here.home.token(), cwd=folder)
    return printed.split("\n")[:-1]
