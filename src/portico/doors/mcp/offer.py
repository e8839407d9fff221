"""The body of tools without arguments."""

from msgspec import Struct


class Nothing(Struct, forbid_unknown_fields=True):
    pass
