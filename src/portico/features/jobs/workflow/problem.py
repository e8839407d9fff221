"""Mistakes in a workflow file. All of them are reported in one run, each with its line and column."""

from difflib import get_close_matches

from msgspec import Struct

from portico.kernel.errors import BadRequest

Path = tuple[str | int, ...]
"""Keys and indexes from the top of the file."""


class FileProblem(Struct, frozen=True):
    line: int
    column: int
    place: str
    """Such as `steps[2].retry.times`."""
    message: str

    def shown(self, file: str) -> str:
        place = f"{self.place}: " if self.place else ""
        return f"{file}:{self.line}:{self.column}: {place}{self.message}"


class WorkflowError(BadRequest):
    """A workflow file with mistakes."""

    def __init__(self, file: str, problems: list[FileProblem]) -> None:
        super().__init__("\n".join(each.shown(file) for each in problems), field=problems[0].place or file)
        self.file = file
        self.problems = problems


class Problems:
    """Collects mistakes. `marks` are the positions of all values, counted from 0."""

    def __init__(self, file: str, marks: dict[Path, tuple[int, int]]) -> None:
        self.file = file
        self._marks = marks
        self.found: list[FileProblem] = []

    def add(self, path: Path, message: str, lines: int = 0) -> None:
        """`lines`: how far below the beginning of the value."""
        line, column = self._position(path)
        self.found.append(FileProblem(line + 1 + lines, column + 1, place_of(path), message))

    def _position(self, path: Path) -> tuple[int, int]:
        """The position of a value, or of the nearest one around it."""
        while path not in self._marks and path:
            path = path[:-1]
        return self._marks.get(path, (0, 0))

    def check(self) -> None:
        """Raise if there is any."""
        if self.found:
            unique = dict.fromkeys(self.found)
            raise WorkflowError(self.file, sorted(unique, key=lambda each: (each.line, each.column)))


def place_of(path: Path) -> str:
    words = "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in path if each != "")
    return words.removeprefix(".")


def did_you_mean(word: str, known: list[str]) -> str:
    """A sentence with the nearest known word, or with all of them."""
    near = get_close_matches(word, known, 1)
    if near:
        return f" Did you mean {near[0]!r}?"
    return f" Known: {', '.join(known)}." if known else ""
