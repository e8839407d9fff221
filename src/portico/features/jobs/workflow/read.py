"""YAML with the position of every value. The rules for true and false are those of YAML 1.2: `on` and `yes` are texts.

The attack: a file that somebody else wrote. Anchors can unfold to gigabytes or contain themselves, so a file has at
most `MAX_VALUES` values after unfolding."""

import re
from typing import Any

from portico.features.jobs.load import MAX_DEPTH, MAX_VALUES
from portico.features.jobs.workflow.problem import FileProblem, Path, WorkflowError

Marks = dict[Path, tuple[int, int]]
FRONT = re.compile(r"\A---[ \t]*\r?\n(.*?)^---[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


def read_yaml(text: str, file: str, first_line: int = 0) -> tuple[Any, Marks]:
    """The data and the positions, counted from `first_line`."""
    import yaml  # late: it costs 15 ms, and most starts read no workflow

    try:
        root = yaml.compose(text, Loader=_loader())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line, column = (mark.line, mark.column) if mark is not None else (0, 0)
        message = f"Not valid YAML: {error.problem or error.context}."
        if "{{" in "".join(text.splitlines()[line : line + 1]):
            message += " Write texts that begin with {{, or that are inside of { }, in quotes."
        raise WorkflowError(file, [FileProblem(line + 1 + first_line, column + 1, "", message)]) from None
    except yaml.YAMLError as error:
        raise WorkflowError(file, [FileProblem(1, 1, "", f"Not valid YAML: {error}.")]) from None
    reader = _Reader(file, first_line)
    return reader.value(root, ()), reader.marks


def front_matter(text: str) -> tuple[str, str, int]:
    """The YAML and the body of a Markdown file, and the line on which the body begins."""
    found = FRONT.match(text)
    if found is None:
        return "", text, 0
    return found[1], text[found.end() :], text[: found.end()].count("\n")


def _loader() -> Any:
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return loader


_BOOLEAN = re.compile(r"true|True|TRUE|false|False|FALSE")


class _Reader:
    def __init__(self, file: str, first_line: int) -> None:
        self.marks: Marks = {}
        self._file = file
        self._first = first_line
        self._count = 0

    def value(self, node: Any, path: Path) -> Any:
        import yaml

        if node is None:
            return None
        line, column = node.start_mark.line + self._first, node.start_mark.column
        self.marks[path] = (line, column)
        self._count += 1
        if self._count > MAX_VALUES or len(path) > MAX_DEPTH:
            words = f"The file has more than {MAX_VALUES} values or {MAX_DEPTH} levels."
            raise WorkflowError(self._file, [FileProblem(line + 1, column + 1, "", words)])
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(each, (*path, index)) for index, each in enumerate(node.value)]
        return self._scalar(node, line, column)

    def _mapping(self, node: Any, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in node.value:
            name = str(key.value)
            if name in found:
                mark = key.start_mark
                problem = FileProblem(
                    mark.line + 1 + self._first, mark.column + 1, "", f"The key {name!r} appears twice."
                )
                raise WorkflowError(self._file, [problem])
            found[name] = self.value(value, (*path, name))
            if getattr(value, "style", None) in ("|", ">"):  # a block begins on the next line
                self.marks[(*path, name)] = (value.start_mark.line + 1 + self._first, key.start_mark.column + 2)
            elif found[name] is None:
                self.marks[(*path, name)] = (key.start_mark.line + self._first, key.start_mark.column)
            self.marks[(*path, name, "")] = (key.start_mark.line + self._first, key.start_mark.column)
        return found

    def _scalar(self, node: Any, line: int, column: int) -> Any:
        kind = node.tag.rpartition(":")[2]
        text: str = node.value
        try:
            match kind:
                case "bool" if _BOOLEAN.fullmatch(text):
                    return text.lower() == "true"
                case "int":
                    return int(text.replace("_", ""), 0) if not text.lstrip("+-").isdigit() else int(text)
                case "float":
                    return float(text.replace("_", ""))
                case "null":
                    return None
                case _:
                    return text
        except ValueError:
            return text
