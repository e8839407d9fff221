"""Full-text search over what was said."""

import asyncio

from portico.features.search.search import Search
from tests.doors.standing import Standing, problem


async def test_finds_what_people_and_agents_said_and_names_the_turn(shared: Standing) -> None:
    one = await shared.start(title="A")
    await shared.say(one, "Tell me about Wombats [[say:They are marsupials from Tasmania.]]")
    two = await shared.start(title="B")
    await shared.say(two, "nothing of the kind")

    async def search(text: str) -> list[tuple[str, str | None]]:
        body = (await shared.http.get("/v1/search", params={"q": text})).json()
        assert body["complete"]
        assert all(text.casefold() in hit["excerpt"].casefold() for hit in body["hits"])
        return [(hit["session"], hit.get("turn")) for hit in body["hits"]]

    assert await search("wombats") == [(one, "t1")]
    assert await search("MARSUPIALS") == [(one, "t1")]
    assert await search("platypus") == []


async def test_a_fork_is_found_by_the_history_it_began_with(shared: Standing) -> None:
    parent = await shared.start()
    await shared.say(parent, "the quokka question")
    child = (await shared.http.post(f"/v1/sessions/{parent}/fork", json={})).json()["id"]
    hits = (await shared.http.get("/v1/search", params={"q": "quokka question"})).json()["hits"]
    assert {hit["session"] for hit in hits} == {parent, child}


async def test_a_limit_says_that_there_may_be_more(shared: Standing) -> None:
    session = await shared.start()
    for _ in range(2):
        await shared.say(session, "the numbat again")
    body = (await shared.http.get("/v1/search", params={"q": "numbat", "limit": "1"})).json()
    assert (len(body["hits"]), body["complete"]) == (1, False)


async def test_a_query_is_neither_empty_nor_endless(shared: Standing) -> None:
    answers = await asyncio.gather(*(shared.http.get("/v1/search", params={"q": q}) for q in ("", "x", "x" * 201)))
    for answer in answers:
        problem(answer, 400, "bad_request", "q")


async def test_when_the_time_is_up_the_answer_says_so(shared: Standing) -> None:
    await shared.say(await shared.start(), "the bilby")
    assert await Search(shared.server.host).find("bilby", 10, seconds=0) == ([], False)
