"""Two clients of a host that is killed: one runs jobs that ask people, one is a person with a budget and a browser."""

import asyncio
import base64
import os
from collections import Counter, defaultdict
from textwrap import dedent
from typing import Any

import httpx

from portico.features.people.people import add_person
from portico.server.home import Home
from portico.server.identity import new_token
from tests.crash.outside import GUARD, Outside, Service
from tests.doors.ahp.wire_client import Json

WORKFLOW = """
    inputs: {tag: {}}
    steps:
      - {id: list, run: "echo '[1, 2, 3]'", output: json}
      - id: items
        each: "{{ steps.list.output }}"
        parallel: 2
        steps:
          - {id: work, prompt: "[[say:did {{ item }}]]"}
      - {id: way, ask: "Way of {{ inputs.tag }}?", choices: [Left, Right]}
      - id: review
        prompt: "[[say:went {{ steps.way.answer }}]]"
        check: [{person: "Good, {{ inputs.tag }}?"}]
    result: {done: "{{ steps.items.output }}", way: "{{ steps.review.output }}"}
"""
RESULT = {"done": ["did 1", "did 2", "did 3"], "way": "went Left"}
PAUSE = 0.05
BUDGET = 2
"""Turns of the person's session before a question; each raise allows as many more."""


class Polling(Outside):
    async def attempt(self, method: str, path: str, **more: Any) -> int:
        """The status, or 0 if the host went away. An answer may come too late: somebody else's, or the host's end."""
        try:
            return (await self.http.request(method, self.service.url + path, **more)).status_code
        except httpx.TransportError:
            return 0

    async def inbox(self) -> Json:
        found: Json = await self.ask("GET", "/v1/inbox")
        return found


class JobRunner(Polling):
    """Starts jobs and answers their questions. A question keeps its id over every kill."""

    name = "jobs"

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        self.folder = service.home.parent
        (self.folder / ".portico/jobs").mkdir(parents=True)
        (self.folder / ".portico/jobs/kept.yaml").write_text(dedent(WORKFLOW))
        self.results: list[Json] = []
        self.questions: defaultdict[str, set[str]] = defaultdict(set)

    async def read(self) -> None:
        """It polls in `talk`."""

    async def talk(self) -> None:
        while not self.results or not self.service.done.is_set():
            tag = self.fresh()
            body = {"job": "kept", "cwd": str(self.folder), "inputs": {"tag": tag}}
            job = (await self.ask("POST", "/v1/jobs", tag, json=body))["job"]
            while not (found := await self.ask("GET", f"/v1/jobs/{job}")).get("ended"):
                await self._answer(tag)
                if found["status"] == "waiting" and found.get("waits_for", "person") == "person":
                    await self.attempt("POST", f"/v1/jobs/{job}/resume", json={})
                await asyncio.sleep(PAUSE)
            self.results.append(found)
            self.service.saw()

    async def _answer(self, tag: str) -> None:
        for item in (await self.inbox())["waiting"]:
            question = item.get("question") or {}
            text: str = question.get("text", "")
            if f"{tag}?" in text:
                self.questions[text].add(question["id"])
                answer = "Left" if text.startswith("Way") else "Yes"
                status = await self.attempt("POST", f"/v1/questions/{question['id']}", json={"text": answer})
                assert status in (0, 200, 404, 409), f"the answer to {text!r} returned {status}"

    def check(self) -> None:
        assert self.results, "no job has ended"
        for found in self.results:
            assert (found["status"], found.get("result")) == ("succeeded", RESULT), found
        changed = {text: ids for text, ids in self.questions.items() if len(ids) > 1}
        assert changed == {}, "a question that waited was asked again"


class Person(Polling):
    """Ann has her own token, a session with a budget, and a browser that gets notices. Bob sees nothing of hers."""

    name = "person"

    def __init__(self, service: Service) -> None:
        super().__init__(service)
        home = Home(service.home)
        scopes = ["read", "drive", "approve"]
        for name in ("ann", "bob"):
            add_person(home, name, scopes)
        self.http.headers["Authorization"] = f"Bearer {new_token(home, 'anns', scopes, person='ann')}"
        bob = f"Bearer {new_token(home, 'bobs', scopes, person='bob')}"
        self.bob = httpx.AsyncClient(headers={"Authorization": bob}, timeout=GUARD, trust_env=False)
        self.session = ""
        self.raises = 0
        self.push = ""

    async def read(self) -> None:
        """It polls in `talk`."""

    async def talk(self) -> None:
        body = {"agent": "scripted", "config": {"budget": {"turns": BUDGET}}}
        self.session = (await self.ask("POST", "/v1/sessions", self.fresh(), json=body))["id"]
        while not self.push:
            self.push = ((await self.ask("POST", "/v1/push", json=browser())) or {}).get("push", "")
        while not self.raises or not self.service.done.is_set():
            text = f"[[say:hello]] {self.fresh()}."
            await self.ask("POST", f"/v1/sessions/{self.session}/messages", text, json={"text": text})
            self.once.add(text)
            while not await self._is_idle():  # noqa: ASYNC110  # a person looks again
                await asyncio.sleep(PAUSE)
            self.service.saw()
        await self._look()

    async def _is_idle(self) -> bool:
        await self._raise()
        state = await self.ask("GET", f"/v1/sessions/{self.session}")
        turns, waiting = state.get("turns", []), bool(state.get("queue"))
        runs = bool(turns) and not turns[-1].get("outcome")
        if waiting and not runs:
            await self.attempt("POST", f"/v1/sessions/{self.session}/queue/release", json={})
        return not runs and not waiting

    async def _raise(self) -> None:
        """Raises the budget, whether a turn shows its question or the turn has ended."""
        inbox = await self.inbox()
        for budget in inbox.get("budgets", []):
            self.raises += 1
            await self.attempt("POST", "/v1/budgets/answer", json={"budget": budget["budget"], "answer": "raise"})
        for item in inbox["waiting"]:
            if question := item.get("question"):
                self.raises += 1
                await self.attempt("POST", f"/v1/questions/{question['id']}", json={"text": "raise"})

    async def _look(self) -> None:
        self.browsers = [each["push"] for each in (await self.ask("GET", "/v1/push"))["subscriptions"]]
        listed = (await self.bob.get(f"{self.service.url}/v1/sessions")).json()["sessions"]
        self.strange = [each["id"] for each in listed if each["id"] == self.session]
        self.closed = (await self.bob.get(f"{self.service.url}/v1/sessions/{self.session}")).status_code

    def check(self, turns: Counter[str]) -> None:
        assert self.raises > 0, "the budget was never exhausted"
        assert turns[self.session] <= BUDGET * (1 + self.raises), "a turn began while the budget was exhausted"
        assert self.browsers == [self.push], "an acknowledged browser is there once"
        assert (self.strange, self.closed) == ([], 404), "bob sees ann's session"

    async def close(self) -> None:
        await self.bob.aclose()
        await super().close()


def browser() -> Json:
    """The subscription of a browser, at an address that takes nothing."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    key = ec.generate_private_key(ec.SECP256R1()).public_key()
    point = key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return {"endpoint": "https://127.0.0.1:9/ann", "p256dh": _text(point), "auth": _text(os.urandom(16))}


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")
