"""Workflows before they run: lists, plans, files and drafts from a description, over REST."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from portico.features.drafts.plan import plan_text, recipe_list
from portico.features.jobs.draft import ROUNDS
from portico.features.jobs.recipes import recipes
from tests.doors.standing import Standing, problem, standing
from tests.jobs.workflow.test_draft import BAD, GOOD, script

FLOW = """
about: Ship it.
inputs:
  name: {about: Whose, required: true}
  level: {type: choice, choices: [low, high], default: low}
  many: {type: list, default: [a, b]}
  fast: {type: boolean, default: false}
steps:
  - {id: work, each: "{{ inputs.many }}", steps: [{id: one, prompt: "Do {{ item }} for {{ inputs.name }}."}]}
  - {id: asked, ask: Ship it?}
"""


def project(folder: Path, **files: str) -> str:
    jobs = folder / "project/.portico/jobs"
    jobs.mkdir(parents=True)
    for name, text in files.items():
        (jobs / f"{name}.yaml").write_text(text)
    return str(folder / "project")


async def test_the_workflows_of_a_folder_are_listed_with_inputs_and_mistakes(tmp_path: Path) -> None:
    cwd = project(tmp_path, ship=FLOW, broken=BAD)
    async with standing(tmp_path) as here:
        answer = await here.http.get("/v1/workflows", params={"cwd": cwd})
        broken, ship = answer.json()["workflows"]
        assert (ship["name"], ship["about"], ship["steps"], list(ship["inputs"])) == (
            "ship",
            "Ship it.",
            2,
            ["name", "level", "many", "fast"],
        )
        assert broken["name"] == "broken"
        assert "broken.yaml:2:" in broken["mistake"]
        assert (await here.http.get("/v1/workflows", params={"cwd": str(tmp_path)})).json() == {"workflows": []}
        for wrong in ("", "relative", str(tmp_path / "nowhere"), "\0"):
            problem(await here.http.get("/v1/workflows", params={"cwd": wrong}), 400, "bad_request", "cwd")


async def test_a_caller_sees_the_workflows_of_workspaces_only(tmp_path: Path) -> None:
    """A token without the scope terminal must not read files of other folders."""
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    cwd = project(outside, ship=FLOW)
    async with standing(inside, flags={"workspaces": [str(inside)]}) as here:
        made = await here.http.post("/v1/tokens", json={"name": "r", "scopes": ["read", "files", "drive"]})
        async with here.client(made.json()["token"]) as other:
            problem(await other.get("/v1/workflows", params={"cwd": cwd}), 403, "forbidden", "cwd")
            plan = await other.post("/v1/workflows/plan", json={"cwd": cwd, "name": "ship"})
            problem(plan, 403, "forbidden", "cwd")
            saved = await other.post("/v1/workflows", json={"cwd": cwd, "name": "x", "text": GOOD})
            problem(saved, 403, "forbidden", "cwd")
        assert (await here.http.get("/v1/workflows", params={"cwd": cwd})).status_code == 200


async def test_a_plan_shows_the_inputs_and_names_what_is_missing(tmp_path: Path) -> None:
    cwd = project(tmp_path, ship=FLOW, broken=BAD)
    async with standing(tmp_path) as here:

        async def plan(**body: Any) -> dict[str, Any]:
            answer = await here.http.post("/v1/workflows/plan", json=body)
            assert answer.status_code == 200, answer.text
            found: dict[str, Any] = answer.json()
            return found

        first = await plan(cwd=cwd, name="ship")
        assert "'name' is missing" in first["missing"]
        assert first["plan"]["inputs"] == {"level": "low", "many": ["a", "b"], "fast": False}
        assert first["inputs"]["level"]["choices"] == ["low", "high"]
        full = await plan(cwd=cwd, name="ship", inputs={"name": "me", "many": "x, y", "fast": True})
        assert "missing" not in full
        assert full["plan"]["inputs"] == {"name": "me", "level": "low", "many": ["x", "y"], "fast": True}
        assert [(each["kind"], each.get("asks", False)) for each in full["plan"]["steps"]] == [
            ("prompt", False),
            ("ask", True),
        ]
        assert full["plan"]["steps"][0]["text"] == "Do {{ item }} for me."
        assert full["chart"]["nodes"]
        assert full["text"] == FLOW
        broken = await plan(cwd=cwd, name="broken")
        assert (broken["text"], [each["line"] for each in broken["mistakes"]]) == (BAD, [2])
        assert (await plan(name="x", text=BAD))["mistakes"][0]["line"] == 2
        missing = await here.http.post("/v1/workflows/plan", json={"cwd": cwd, "name": "shp"})
        assert "'ship'" in problem(missing, 404, "not_found")
        assert (await here.http.get("/v1/jobs")).json() == {"jobs": []}


@pytest.mark.parametrize("text", ["", "x" * 2_000_000, "steps: [", "\ud800", "a: &a [*a]"])
def test_any_text_has_a_plan_or_mistakes(text: str) -> None:
    found = plan_text(text, "x", {})
    assert found.mistakes
    assert all(each.line >= 1 for each in found.mistakes)


def test_every_recipe_is_in_the_gallery_with_a_chart() -> None:
    found = recipe_list()
    assert [each.name for each in found] == list(recipes())
    for each in found:
        planned = plan_text(each.text, each.name, {})
        assert planned.mistakes == []
        assert each.about
        assert planned.chart is not None
        msgspec.json.encode(planned)


async def test_a_workflow_is_saved_once_and_only_if_it_is_valid(tmp_path: Path) -> None:
    cwd = project(tmp_path)
    async with standing(tmp_path) as here:

        async def save(**body: Any) -> Any:
            return await here.http.post("/v1/workflows", json={"cwd": cwd, "name": "hello", "text": GOOD, **body})

        for name in ("", "Hello", "../hello", "a/b", "x" * 65):
            problem(await save(name=name), 400, "bad_request", "name")
        problem(await save(text=BAD), 400, "bad_request", "steps[0]")
        answer = await save()
        path = Path(answer.json()["file"])
        assert (answer.status_code, read(path)) == (201, GOOD.encode())
        assert path == Path(cwd) / ".portico/jobs/hello.yaml"
        problem(await save(text=GOOD + "# again\n"), 409, "already_exists", "name")
        assert read(path) == GOOD.encode()
        changed = await save(text=GOOD + "# again\n", replace=True)
        assert (changed.status_code, read(path)) == (201, f"{GOOD}# again\n".encode())


def read(path: Path) -> bytes:
    return path.read_bytes()


async def wait(here: Standing, session: str) -> dict[str, Any]:
    found = await here.server.host.get(session)
    if found.state.active is not None:
        await found.wait(found.state.active.id)
    answer: dict[str, Any] = (await here.http.get(f"/v1/workflows/draft/{session}")).json()
    return answer


async def test_a_draft_is_corrected_by_the_agent_and_never_starts(tmp_path: Path) -> None:
    cwd = project(tmp_path)
    async with standing(tmp_path, script=script(tmp_path, BAD, GOOD)) as here:
        wanted = {"description": "Say hello", "cwd": cwd, "agent": "scripted"}
        problem(
            await here.http.post("/v1/workflows/draft", json={**wanted, "description": " "}),
            400,
            "bad_request",
            "description",
        )
        answer = await here.http.post("/v1/workflows/draft", json=wanted)
        assert answer.status_code == 201, answer.text
        session = answer.json()["session"]
        first = await wait(here, session)
        assert (first["running"], first["answers"], first["found"]["text"]) == (False, 1, BAD)
        assert first["found"]["mistakes"][0]["line"] == 2
        await here.say(session, first["next"])
        second = await wait(here, session)
        assert (second["answers"], second.get("next", "")) == (2, "")
        assert (second["found"]["text"], second["found"]["plan"]["about"]) == (GOOD, "Say hello.")
        state = (await here.http.get(f"/v1/sessions/{session}")).json()
        assert state["config"]["approvals"] == "deny"
        assert (await here.http.get("/v1/jobs")).json() == {"jobs": []}
        assert list((Path(cwd) / ".portico/jobs").iterdir()) == []


async def test_an_agent_that_never_writes_a_valid_file_gets_no_further_message(tmp_path: Path) -> None:
    cwd = project(tmp_path)
    async with standing(tmp_path, script=script(tmp_path, BAD)) as here:
        answer = await here.http.post("/v1/workflows/draft", json={"description": "x", "cwd": cwd, "agent": "scripted"})
        session, messages = answer.json()["session"], 1
        while text := (await wait(here, session)).get("next"):
            await here.say(session, text)
            messages += 1
        assert messages == ROUNDS
        other = await here.start(cwd=cwd)
        problem(await here.http.get(f"/v1/workflows/draft/{other}"), 404, "not_found")
