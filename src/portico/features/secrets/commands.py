"""Commands about secrets. None of them gives a value back."""

from msgspec import Struct

from portico.kernel.commands import Command, Done, Http, register


class SecretNamed(Struct):
    name: str
    changed: int
    """Milliseconds since the epoch."""


class SetSecret(Command, frozen=True, tag="secret.set"):
    """Set a secret, or replace its value. Jobs pass it to the steps that name it; no one can read it."""

    scope = "admin"
    lock = "feature"
    gives = SecretNamed
    http = Http("PUT", "/v1/secrets/{name}")
    secret = True
    errors = ("conflict",)

    name: str
    """Capital letters, digits and `_`: it becomes a variable of the step's environment."""
    value: str

    def __repr__(self) -> str:
        return f"SetSecret(name={self.name!r})"


class RemoveSecret(Command, frozen=True, tag="secret.remove"):
    """Remove a secret. Steps that name it fail until it is set again."""

    scope = "admin"
    lock = "feature"
    gives = Done
    http = Http("DELETE", "/v1/secrets/{name}", 204)
    errors = ("conflict", "not_found")

    name: str


register(SetSecret, RemoveSecret)
