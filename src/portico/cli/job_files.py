"""`portico jobs new` and `portico jobs test`: files of workflows, before anything runs."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from portico.cli.output import JsonFlag, plain, print_json, print_table, run
from portico.features.jobs.recipes import copy_recipe, recipes
from portico.features.jobs.workflow.files import FOLDER, load_workflow
from portico.kernel.errors import BadRequest

CwdOption = Annotated[Path, typer.Option(help="The folder of the project.")]


def new(
    recipe: Annotated[str | None, typer.Argument(help="A recipe; without one, they are listed.")] = None,
    name: Annotated[str, typer.Option(help="The name of the new job. [that of the recipe]")] = "",
    cwd: CwdOption = Path(),
    as_json: JsonFlag = False,
) -> None:
    """Make a workflow from a recipe, with cases for `portico jobs test`. Without a recipe, list them.

    Example: portico jobs new fix-until-green --name green
    """
    if recipe is None:
        _list(as_json)
        return
    if name and not name.replace("-", "").replace("_", "").isalnum():
        raise BadRequest(f"{name!r} is no name of a job: use letters, digits, - and _.", field="--name")
    made = copy_recipe(recipe, cwd, name)
    if as_json:
        print_json({"job": made[0].stem, "files": [str(path) for path in made]})
        return
    for path in made:
        print(path)
    typer.echo(f"Edit it, then: portico check {made[0]}; portico run {made[0].stem} --help", err=True)


def _list(as_json: bool) -> None:
    found = {name: load_workflow(path).jobs[name].flow for name, path in recipes().items()}
    about = {name: flow.about if flow is not None else "" for name, flow in found.items()}
    if as_json:
        print_json([{"name": name, "about": text} for name, text in about.items()])
    else:
        print_table(["recipe", "about"], [[name, text] for name, text in about.items()], "There are no recipes.")


def run_cases(
    file: Annotated[list[Path] | None, typer.Argument(help=f"Files of cases. [all in {FOLDER}/tests]")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Run workflows against scripted answers and compare the outcome, the steps and the values. Needs no agent.

    Exit code 1 if a case fails.

    Example: portico jobs test .portico/jobs/tests/triage.yaml
    """
    from portico.testing.workflow_case import CaseResult, read_cases, run_case  # late: it brings a host

    files = file or sorted(Path(FOLDER, "tests").glob("*.y*ml"))
    if not files:
        raise BadRequest(f"There are no cases in {FOLDER}/tests. Name a file.", field="file")

    async def work() -> list[tuple[Path, CaseResult]]:
        cases = [(path, *read_cases(path)) for path in files]
        return [(path, await run_case(workflow, case)) for path, workflow, found in cases for case in found]

    done = run(work())
    if as_json:
        print_json([{"file": str(path), **msgspec.to_builtins(result)} for path, result in done])
    else:
        for path, result in done:
            print(plain(f"{'passed' if result.passed else 'FAILED'}  {path.stem}: {result.name}"))
            for line in result.wrong:
                print(plain(f"        {line}"))
    if not all(result.passed for _, result in done):
        raise typer.Exit(1)
