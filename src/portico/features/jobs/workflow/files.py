"""Where workflows are, and how one is loaded. A file is read when it is used, never at the start of the host."""

import re
from pathlib import Path

from portico.features.jobs.entry import Entry
from portico.features.jobs.workflow.file import MarkdownKeys, PromptKeys, Workflow
from portico.features.jobs.workflow.problem import FileProblem, Problems, WorkflowError, did_you_mean
from portico.features.jobs.workflow.read import front_matter, read_yaml
from portico.features.jobs.workflow.shape import convert
from portico.features.jobs.workflow.translate import translate
from portico.kernel.errors import NotFound

FOLDER = ".portico/jobs"
SUFFIXES = (".yaml", ".yml", ".md")
FILE_BYTES = 1024 * 1024
"""Of one workflow: far more than a person writes."""
_NAME = re.compile(r"[\w][\w.-]*")


def workflows(folder: Path) -> dict[str, Path]:
    """The workflow files of a project by name."""
    try:
        found = sorted((folder / FOLDER).iterdir())
    except OSError:
        return {}
    return {path.stem: path for path in found if path.suffix in SUFFIXES and path.is_file()}


def find_workflow(folder: Path, name: str) -> Path | None:
    if not _NAME.fullmatch(name):
        return None
    paths = (folder / FOLDER / f"{name}{suffix}" for suffix in SUFFIXES)
    return next((path for path in paths if path.is_file()), None)


def is_workflow(path: Path) -> bool:
    """Whether a file is a workflow and not an entry: by its folder, its suffix, or its keys."""
    if path.suffix == ".md" or path.parent.name == "jobs":
        return True
    if path.suffix not in SUFFIXES:
        return False
    try:
        return re.search(r"^steps:", path.read_text(), re.MULTILINE) is not None
    except (OSError, ValueError):
        return False


def load_workflow(path: Path) -> Entry:
    """The job of a workflow file, ready to run. Its name is the only one in `jobs`."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NotFound("workflow", str(path), error.strerror or str(error)) from None
    if len(data) > FILE_BYTES:
        raise WorkflowError(str(path), [FileProblem(1, 1, "", f"The file has more than {FILE_BYTES} bytes.")])
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data[: error.start].count(b"\n") + 1
        raise WorkflowError(str(path), [FileProblem(line, 1, "", "The file is not UTF-8.")]) from None
    return load_text(text, str(path), path.stem)


def load_text(text: str, file: str, name: str) -> Entry:
    """The job of the text of a workflow. `file`: its path, for messages and for the syntax."""
    workflow, problems = _markdown(text, file) if file.endswith(".md") else _yaml(text, file)
    if workflow.job and workflow.job != name and not file.startswith("<"):
        problems.add(("job",), f"The file is named {name!r}. Rename one of them.{did_you_mean(workflow.job, [name])}")
    return translate(workflow, workflow.job or name, file, text, problems)


def _yaml(text: str, file: str) -> tuple[Workflow, Problems]:
    data, marks = read_yaml(text, file)
    problems = Problems(file, marks)
    if not isinstance(data, dict):
        problems.add((), "A workflow is a mapping with the key 'steps'.")
        problems.check()
    return convert(data, Workflow, problems), problems


def _markdown(text: str, file: str) -> tuple[Workflow, Problems]:
    front, body, line = front_matter(text)
    data, marks = read_yaml(front, file, first_line=1)
    problems = Problems(file, marks)
    marks[("steps", 0, "prompt")] = (line, 0)
    if data is not None and not isinstance(data, dict):
        problems.add((), "The front matter is a mapping.")
        problems.check()
    document = convert(data or {}, MarkdownKeys, problems)
    if not body.strip():
        problems.add(("steps", 0, "prompt"), "The prompt is empty: write it below the front matter.")
    step = PromptKeys(
        id="work", prompt=body.strip(), check=document.check, retry=document.retry, output=document.output
    )
    for key in ("check", "retry", "output"):
        marks.update({("steps", 0, *path): mark for path, mark in list(marks.items()) if path[:1] == (key,)})
    result = "{{ steps.work.output }}" if document.result is None else document.result
    shared = ("job", "about", "inputs", "on", "folder", "branch", "artifacts")
    settings = ("agent", "model", "timeout", "budget", "env", "label", "sandbox")
    same = {name: getattr(document, name) for name in (*shared, *settings)}
    return Workflow(**same, steps=[step], result=result), problems
