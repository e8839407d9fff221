"""The base of all structs that describe a job, and the numbers they use."""

from typing import Annotated

from msgspec import Meta, Struct

Count = Annotated[int, Meta(ge=0)]
Positive = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]


class Part(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True, rename="camel"):
    """Shared by all parts of a job: camelCase keys, no unknown keys, absent stays absent."""
