"""`portico jobs draft`: the file in an answer, mistakes that go back, and nothing that starts."""

import json
from pathlib import Path

import pytest

from portico.features.jobs.draft import ROUNDS, draft_prompt, mistakes_in, repair_prompt, workflow_in
from portico.features.jobs.workflow.file import KINDS
from tests.process import HostProcess, portico

GOOD = "about: Say hello.\nsteps:\n  - {id: hello, run: echo hello}\nresult: '{{ steps.hello.output }}'\n"
BAD = "steps:\n  - {id: hello, runn: echo hello}\n"


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (f"Here it is:\n```yaml\n{GOOD}```\nEnjoy.", GOOD),
        (f"```yml\n{BAD}```\nNo, better:\n```\n{GOOD}```", GOOD),
        (GOOD, GOOD),
    ],
)
def test_the_file_is_the_last_block_of_the_answer(answer: str, text: str) -> None:
    assert workflow_in(answer) == text


def test_the_mistakes_of_a_draft_have_their_lines() -> None:
    assert mistakes_in(GOOD, "hello") == []
    (mistake,) = mistakes_in(BAD, "hello")
    assert mistake.startswith("<hello>:2:")
    assert mistake in repair_prompt([mistake])
    assert mistakes_in("not: [a workflow", "hello") != []


def test_the_prompt_names_every_kind_of_step_and_the_description() -> None:
    prompt = draft_prompt("Build {braces} of 100 %.")
    assert "Build {braces} of 100 %." in prompt
    assert [key for key in KINDS if f"- `{key}`: " not in prompt] == []
    assert prompt.count("```yaml") == 4


def script(tmp_path: Path, *answers: str) -> Path:
    """The first answer follows the request for a draft, the others the mistakes, in turn."""
    first, second = (*answers, answers[-1])[:2]
    rules = [
        {"match": "portico check", "steps": [{"do": "say", "text": f"```yaml\n{second}```"}]},
        {"match": "Write a workflow", "steps": [{"do": "say", "text": f"```yaml\n{first}```"}]},
    ]
    path = tmp_path / "script.json"
    path.write_text(json.dumps({"rules": rules}))
    return path


def test_a_draft_is_corrected_written_shown_and_not_started(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with HostProcess(tmp_path / "home", "--script", str(script(tmp_path, BAD, GOOD))) as host:
        words = ("jobs", "draft", "Say hello", "--name", "hello", "--cwd", str(project), "--agent", "scripted")
        done = portico(host.home, *words, "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert (found["workflow"], found["plan"]["job"]) == (GOOD, "hello")
        assert (project / ".portico/jobs/hello.yaml").read_text() == GOOD
        assert "1 mistakes go back" in done.stderr
        assert portico(host.home, "jobs", "list", "--json").stdout.strip() == "[]"
        again = portico(host.home, *words)
        assert (again.returncode, "--name" in again.stderr) == (73, True)


def test_an_agent_that_never_gets_there_is_stopped(tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    with HostProcess(tmp_path / "home", "--script", str(script(tmp_path, BAD))) as host:
        done = portico(host.home, "jobs", "draft", "x", "--cwd", str(project), "--agent", "scripted")
        assert (done.returncode, f"after {ROUNDS} attempts" in done.stderr) == (64, True)
        assert not (project / ".portico").exists()
