"""Transcripts and diffs as resources, recipes as prompts, for those who may see them."""

from pathlib import Path

import pytest
from mcp import MCPError

from portico.features.jobs.recipes import recipes
from portico.features.people.people import add_person
from portico.server.identity import new_token
from tests.doors.mcp.test_mcp import connected, driving, use
from tests.doors.mcp.test_sets import git


async def test_a_transcript_and_a_diff_are_resources(tmp_path: Path) -> None:
    async with driving(tmp_path) as (_, client):
        await git(tmp_path, "init", "-q")
        session = (await use(client, "start_session", title="Mine"))["session"]
        sent = await use(client, "send_message", session=session, text="write")
        await use(client, "answer_approval", approval=sent["needs"][0]["approval"], allow=True)
        await use(client, "wait_session", session=session)
        listed = {each.uri: each.title for each in (await client.list_resources()).resources}
        transcript, diff = (f"portico://sessions/{session}/{name}" for name in ("transcript.md", "changes.diff"))
        assert listed == {transcript: "Mine: transcript", diff: "Mine: changes"}
        [read] = (await client.read_resource(transcript)).contents
        assert "## User\n\nwrite" in read.text  # type: ignore[union-attr]
        [changed] = (await client.read_resource(diff)).contents
        assert "+hello" in changed.text  # type: ignore[union-attr]
        templates = [each.uri_template for each in (await client.list_resource_templates()).resource_templates]
        assert templates == [each.replace(session, "{session}") for each in (transcript, diff)]


@pytest.mark.parametrize(
    "uri", ["portico://sessions/none/transcript.md", "portico://x", "file:///etc/passwd", "portico://sessions/../a"]
)
async def test_an_address_that_does_not_exist(tmp_path: Path, uri: str) -> None:
    async with driving(tmp_path) as (_, client):
        with pytest.raises(MCPError, match="There is no"):
            await client.read_resource(uri)


async def test_a_person_reads_no_session_of_another(tmp_path: Path) -> None:
    async with driving(tmp_path) as (here, _):
        for name in ("ann", "bob"):
            add_person(here.home, name, ["read", "drive"])
        tokens = {name: new_token(here.home, name, ["read", "drive"], person=name) for name in ("ann", "bob")}
        async with connected(here, tokens["ann"]) as ann, connected(here, tokens["bob"]) as bob:
            session = (await use(ann, "start_session"))["session"]
            await use(ann, "send_message", session=session, text="hi")
            uri = f"portico://sessions/{session}/transcript.md"
            assert uri in {each.uri for each in (await ann.list_resources()).resources}
            assert (await bob.list_resources()).resources == []
            with pytest.raises(MCPError, match="There is no session"):
                await bob.read_resource(uri)


async def test_every_recipe_is_a_prompt(tmp_path: Path) -> None:
    async with driving(tmp_path) as (_, client):
        prompts = {each.name: each for each in (await client.list_prompts()).prompts}
        assert prompts.keys() == recipes().keys()
        for name, prompt in prompts.items():
            arguments = {each.name: "1" for each in prompt.arguments or [] if each.required}
            got = await client.get_prompt(name, arguments)
            text = got.messages[0].content.text  # type: ignore[union-attr]
            assert recipes()[name].read_text().strip() in text
            assert all(f"- {key}: 1" in text for key in arguments)
        needs = {each.name: any(one.required for one in each.arguments or []) for each in prompts.values()}
        assert {*needs.values()} == {True, False}
        for name, given, words in (
            ("nope", {}, "There is no recipe 'nope'"),
            (next(name for name in needs if needs[name]), {}, "misses"),
            (next(name for name in needs if not needs[name]), {"wrong": "1"}, "has no argument 'wrong'"),
        ):
            with pytest.raises(MCPError, match=words):
                await client.get_prompt(name, given)


async def test_a_token_without_read_lists_nothing(tmp_path: Path) -> None:
    async with driving(tmp_path) as (here, _), here.client(new_token(here.home, "jobs", ["jobs"])) as http:
        body = {"jsonrpc": "2.0", "id": 1, "method": "resources/list"}
        assert (await http.post("/mcp", json=body)).status_code == 403
