"""Ten tasks of 30 to 60 steps: the same kind of change in many files, of which some are different."""

from collections.abc import Callable, Iterator

from portico.testing.tasks.task import BenchTask

Texts = dict[str, str]


def long_tasks() -> Iterator[BenchTask]:
    yield _task("header", 20, "Add the line '# License: MIT' as the first line of every .py file in src/.", _header)
    yield _task("rename-everywhere", 22, "Rename the function old_name to new_name in all files of src/.", _renamed)
    yield _task("off-by-one", 18, "Each module in src/ has a function last(n) that must return n, not n - 1.", _last)
    yield _task("prints", 20, "Replace print(...) by log(...) in every module of src/.", _logged)
    yield _task("constants", 24, "In each module of src/, change LIMIT from 10 to 20.", _limit)
    yield _task("types", 16, "Annotate the parameter of f in each module of src/: f(x) becomes f(x: int).", _typed)
    yield _task("docstrings", 18, 'Give f in each module of src/ the docstring """Return x.""".', _documented)
    yield _task("returns", 20, "Let f in each module of src/ return x + 1 instead of x.", _returned)
    yield _task(
        "asserts", 15, "Add 'assert x is not None' as the first statement of f in each module of src/.", _asserted
    )
    yield _task(
        "create-many", 32, "Create src/new_00.py to src/new_31.py, each with the line 'NUMBER = ' and its number.", None
    )


Change = Callable[[str], str]
HEAD = "LIMIT = 10\n\n\ndef log(x):\n    return x\n\n\n"
TAIL = "    return x\n\n\ndef last(n):\n    return n - 1\n\n\ndef old_name():\n    return {}\n"


def _module(number: int) -> str:
    call = f"    print({number})\n" if number % 2 else "    print(x)\n"
    return f"{HEAD}def f(x):\n{call}{TAIL.format(number)}"


def _task(name: str, count: int, prompt: str, change: Change | None) -> BenchTask:
    files = {f"src/m{number:02}.py": _module(number) for number in range(count)} if change is not None else {}
    solution = {path: change(text) for path, text in files.items()} if change is not None else _new(count)
    lines = ["from pathlib import Path", f"wanted = {solution!r}"]
    lines += ["wrong = [name for name, text in wanted.items() if Path(name).read_text().strip() != text.strip()]"]
    lines += ["assert not wrong, f'wrong: {wrong[:3]}'"]
    return BenchTask(f"long-{name}", "long", prompt, files, "\n".join(lines), solution=solution)


def _new(count: int) -> Texts:
    return {f"src/new_{number:02}.py": f"NUMBER = {number}\n" for number in range(count)}


def _header(text: str) -> str:
    return f"# License: MIT\n{text}"


def _renamed(text: str) -> str:
    return text.replace("old_name", "new_name")


def _last(text: str) -> str:
    return text.replace("return n - 1", "return n")


def _logged(text: str) -> str:
    return text.replace("print(", "log(")


def _limit(text: str) -> str:
    return text.replace("LIMIT = 10", "LIMIT = 20")


def _typed(text: str) -> str:
    return text.replace("def f(x):", "def f(x: int):")


def _documented(text: str) -> str:
    return text.replace("def f(x):\n", 'def f(x):\n    """Return x."""\n')


def _returned(text: str) -> str:
    return text.replace("    return x\n\n\ndef last", "    return x + 1\n\n\ndef last")


def _asserted(text: str) -> str:
    return text.replace("def f(x):\n", "def f(x):\n    assert x is not None\n")
