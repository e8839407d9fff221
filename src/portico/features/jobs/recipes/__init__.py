"""Workflows to start from, with their cases in `tests`. `portico jobs new NAME` copies both into a project."""

from pathlib import Path

from portico.features.jobs.workflow.files import FOLDER
from portico.kernel.errors import AlreadyExists, NotFound, nearest

_FOLDER = Path(__file__).parent


def recipes() -> dict[str, Path]:
    """The files by name."""
    return {path.stem: path for path in sorted(_FOLDER.glob("*.yaml"))}


def recipe(name: str) -> Path:
    known = recipes()
    if name not in known:
        near = nearest(name, list(known))
        hint = f"Did you mean {near!r}?" if near else f"There are: {', '.join(known)}."
        raise NotFound("recipe", name, hint)
    return known[name]


def copy_recipe(name: str, project: Path, new_name: str = "") -> list[Path]:
    """Write the workflow and its cases into a project and return the new files. Nothing is overwritten."""
    source = recipe(name)
    target = project / FOLDER / f"{new_name or name}.yaml"
    cases = target.parent / "tests" / target.name
    taken = next((path for path in (target, cases) if path.exists()), None)
    if taken is not None:
        raise AlreadyExists(f"There is a file {str(taken)!r} already. Choose another name with --name.", field="name")
    cases.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(source.read_text())
    cases.write_text((source.parent / "tests" / source.name).read_text())
    return [target, cases]
