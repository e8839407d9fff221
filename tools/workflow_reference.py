"""Writes `docs/reference/workflow.md` from the structs of the workflow file: `python -m tools.workflow_reference`."""

import ast
import inspect
from pathlib import Path
from typing import Any

import msgspec
import msgspec.inspect as shape

from portico.features.jobs import step
from portico.features.jobs.workflow import file
from portico.kernel.events import Budget

TARGET = Path(__file__).parents[1] / "docs/reference/workflow.md"

_HEAD = """# Workflow files

Written by `python -m tools.workflow_reference`; do not edit. The [guide](../guide/workflows.md) explains the keys.

A workflow is the file `.portico/jobs/NAME.yaml` of a project. `portico check` validates it.
"""
_SECTIONS: tuple[tuple[str, type[msgspec.Struct]], ...] = (
    ("The file", file.Workflow),
    ("Inputs", step.JobInput),
    ("prompt", file.PromptKeys),
    ("run", file.RunKeys),
    ("http", file.HttpKeys),
    ("ask", file.AskKeys),
    ("wait", file.WaitKeys),
    ("call", file.CallKeys),
    ("each", file.EachKeys),
    ("parallel", file.ParallelKeys),
    ("loop", file.LoopKeys),
    ("steps", file.StepsKeys),
    ("Keys of every step", file.StepKeys),
    ("Keys of every step without steps of its own", file.LeafKeys),
    ("Settings", file.SettingKeys),
    ("Checks", file.CheckKeys),
    ("files", file.FilesKeys),
    ("schema", file.SchemaKeys),
    ("model", file.ModelKeys),
    ("person", file.PersonKeys),
    ("Retry", step.Retry),
    ("Loop ends", file.Repeat),
    ("Waits", file.WaitTime),
    ("Requests", file.HttpRequest),
    ("Output", file.OutputSchema),
    ("Budgets", Budget),
    ("Markdown files", file.MarkdownKeys),
)
_SHARED = {file.StepKeys, file.LeafKeys, file.SettingKeys}


def text() -> str:
    return "\n".join([_HEAD, *(_section(title, kind) for title, kind in _SECTIONS), _VALUES])


_VALUES = """## Values in templates

| name | what it is |
|---|---|
| `inputs.NAME` | an input |
| `steps.ID.output` | a text, or JSON with `output: json` or a schema; of `each` those of the items that succeeded |
| `steps.ID.outcome` | `succeeded`, `failed`, `stopped` or `skipped` |
| `steps.ID.reason` | why it failed |
| `steps.ID.checks` | a list with `passed`, `reason` and, in a worktree, the `commit` that it passed for |
| `steps.ID.answer` | the answer of an `ask` |
| `steps.ID.changes` | files that a prompt changed |
| `steps.ID.commit` | in a worktree: the commit of a prompt or of a merge |
| `steps.ID.items` | of `each` and `parallel`: all lanes, each with `name`, `item`, `outcome`, `output` and `reason` |
| `steps.ID.failed` | of `each` and `parallel`: those of them that failed |
| `item` | in an `each`: the item; `as` gives it another name |
| `run.id`, `run.name`, `run.date`, `run.attempt`, `run.folder` | this run |
| `run.scheduled_at`, `run.payload` | of the automation that started it |
| `env.NAME` | a variable of `env` |
| `secrets.NAME` | only in an `http` step that lists it |
"""


def _section(title: str, kind: type[msgspec.Struct]) -> str:
    inherited = {each for base in _SHARED if issubclass(kind, base) and kind is not base for each in _own(base)}
    docs, info = _field_docs(kind), shape.type_info(kind)
    assert isinstance(info, shape.StructType)
    rows = [
        f"| `{each.encode_name}` | {_type(each.type)} | {_default(each)} | {docs.get(each.name, '')} |"
        for each in info.fields
        if each.name not in inherited
    ]
    level = "##" if title[0].isupper() else "###"
    about = " ".join((kind.__doc__ or "").split())
    more = "Also the keys of every step." if issubclass(kind, file.StepKeys) and kind not in _SHARED else ""
    more = "Also the [settings](#settings)." if kind in (file.Workflow, file.MarkdownKeys, file.StepKeys) else more
    table = ["| key | type | default | meaning |", "|---|---|---|---|", *rows] if rows else []
    return "\n".join([f"{level} {title}", "", " ".join(filter(None, (about, more))), "", *table, ""])


def _own(kind: type[msgspec.Struct]) -> tuple[str, ...]:
    return kind.__struct_fields__


def _field_docs(kind: type[Any]) -> dict[str, str]:
    """The texts below the fields, also of base classes."""
    found: dict[str, str] = {}
    for each in reversed(kind.__mro__):
        if each.__module__.startswith("portico"):
            (tree,) = ast.parse(inspect.getsource(each)).body
            assert isinstance(tree, ast.ClassDef)
            for field, after in zip(tree.body, tree.body[1:], strict=False):
                if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr):
                    assert isinstance(field.target, ast.Name)
                    assert isinstance(after.value, ast.Constant)
                    found[field.target.id] = " ".join(str(after.value.value).split()).replace("|", "\\|")
    return found


def _default(field: shape.Field) -> str:
    if field.required:
        return "required"
    default = field.default_factory() if field.default_factory is not msgspec.NODEFAULT else field.default
    if default in (None, "", [], {}) or default is msgspec.NODEFAULT or isinstance(default, msgspec.Struct):
        return ""
    return f"`{msgspec.json.encode(default).decode()}`"


def _type(kind: shape.Type) -> str:
    match kind:
        case shape.UnionType():
            if len(kind.types) > 5:
                return "step"
            return " or ".join(_type(each) for each in kind.types if not isinstance(each, shape.NoneType))
        case shape.LiteralType():
            return ", ".join(f"`{each}`" for each in kind.values)
        case shape.ListType():
            return f"list of {_type(kind.item_type)}"
        case shape.DictType():
            return "mapping"
        case shape.StructType():
            return f"[{kind.cls.__name__}](#{_anchor(kind.cls)})"
        case shape.BoolType():
            return "true or false"
        case shape.IntType() | shape.FloatType():
            return "number"
        case shape.StrType():
            return "text"
    return "any"


def _anchor(kind: type[Any]) -> str:
    title = next((title for title, each in _SECTIONS if each is kind), "")
    return title.lower().replace(" ", "-")


if __name__ == "__main__":
    TARGET.write_text(text())
