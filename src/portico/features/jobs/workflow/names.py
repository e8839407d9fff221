"""Which names a template may use, at each place of a workflow. An unknown name is a mistake of the file."""

from msgspec import Struct

from portico.features.jobs.workflow.problem import Path, Problems, did_you_mean
from portico.features.jobs.workflow.template import chains, is_template

RESULT = ("output", "outcome", "reason", "checks", "answer", "changes", "failed", "commit", "items", "name")
"""What `steps.ID` has."""
RUN = ("id", "name", "date", "scheduled_at", "payload", "attempt", "folder")
_GLOBALS = ("range", "dict", "namespace", "joiner", "cycler")


class Scope(Struct, frozen=True):
    """The names at one place."""

    inputs: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    """The names of the items of the `each` steps around it."""
    ids: frozenset[str] = frozenset()
    """Steps that have run, or may have."""
    env: frozenset[str] = frozenset()
    secrets: tuple[str, ...] = ()
    more: tuple[str, ...] = ()
    secret_inputs: frozenset[str] = frozenset()
    """Inputs of the type `secret`."""
    acts: bool = False
    """It is a part of a `run` or `http` step, which can use secret inputs."""


class Names:
    """`lanes`: the `each` step around each step that is inside of one. `known`: all ids of the file."""

    def __init__(self, problems: Problems) -> None:
        self._problems = problems
        self.known: list[str] = []
        self.lanes: dict[str, str] = {}

    def check(self, value: object, path: Path, scope: Scope) -> None:
        """Check the templates of a text, or of the texts in a list or mapping."""
        if isinstance(value, str) and is_template(value):
            found, error, line = chains(value)
            if error:
                self._problems.add(path, f"The template cannot be parsed: {error}.", line)
            for chain, line in dict.fromkeys(found):
                if wrong := self._wrong(chain, scope):
                    self._problems.add(path, wrong, line)
        elif isinstance(value, list):
            for index, each in enumerate(value):
                self.check(each, (*path, index), scope)
        elif isinstance(value, dict):
            for key, each in value.items():
                self.check(each, (*path, key), scope)

    def secret_inputs(self, value: object, scope: Scope) -> set[str]:
        """The secret inputs that the templates of a value name."""
        match value:
            case str() if scope.secret_inputs and is_template(value):
                found = {chain[1] for chain, _ in chains(value)[0] if chain[0] == "inputs" and len(chain) > 1}
                return found & scope.secret_inputs
            case list():
                return set().union(*(self.secret_inputs(each, scope) for each in value))
            case dict():
                return set().union(*(self.secret_inputs(each, scope) for each in value.values()))
        return set()

    def _wrong(self, chain: tuple[str, ...], scope: Scope) -> str:
        root, rest = chain[0], chain[1:]
        roots = ["steps", "inputs", "run", "env", *scope.items, *scope.more, *(["secrets"] if scope.secrets else [])]
        if root not in (*roots, *_GLOBALS):
            if root == "secrets":
                return "Only 'http' steps that list it in 'secrets' use {{ secrets.NAME }}. In a command it is $NAME."
            return f"Unknown name {root!r}.{did_you_mean(root, roots)}"
        match root:
            case "steps" if rest:
                return self._step(rest, scope)
            case "inputs" if rest and rest[0] not in scope.inputs:
                return f"There is no input {rest[0]!r}.{did_you_mean(rest[0], list(scope.inputs))}"
            case "inputs" if not rest and scope.secret_inputs:
                return f"Name the input, such as inputs.{min(scope.inputs)}: some of them are secrets."
            case "inputs" if rest and rest[0] in scope.secret_inputs and not scope.acts:
                only = "only 'run' and 'http' steps use it, and 'call' passes it on as"
                return f"The input {rest[0]!r} is a secret: {only} {{{{ inputs.{rest[0]} }}}} without other text."
            case "run" if rest and rest[0] not in RUN:
                return f"'run' has no {rest[0]!r}.{did_you_mean(rest[0], list(RUN))}"
            case "env" if rest and rest[0] not in scope.env:
                return f"'env' has no {rest[0]!r}.{did_you_mean(rest[0], sorted(scope.env))}"
            case "secrets" if rest and rest[0] not in scope.secrets:
                return f"The step does not list the secret {rest[0]!r}.{did_you_mean(rest[0], list(scope.secrets))}"
        return ""

    def _step(self, rest: tuple[str, ...], scope: Scope) -> str:
        ident = rest[0]
        if ident in scope.ids:
            if len(rest) > 1 and rest[1] not in RESULT:
                return f"A step has no {rest[1]!r}.{did_you_mean(rest[1], list(RESULT))}"
            return ""
        if ident in self.lanes:
            around = self.lanes[ident]
            return f"The step {ident!r} runs once for each item: use steps.{around}.items or steps.{around}.output."
        if ident in self.known:
            return f"The step {ident!r} runs later, or at the same time."
        return f"There is no step {ident!r}.{did_you_mean(ident, self.known)}"
