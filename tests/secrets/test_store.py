"""Where secrets are kept: names, values, files, credentials."""

import os
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from portico.features.secrets.store import LONGEST, Secret, SecretStore
from portico.kernel.errors import BadRequest, Conflict, NotFound
from portico.server.home import Home

VALUE = "c4nary-value"


@pytest.fixture
def store(tmp_path: Path) -> SecretStore:
    return SecretStore(Home(tmp_path / "home"), {})


def test_a_secret_is_set_listed_replaced_and_removed(store: SecretStore) -> None:
    made = store.set("GH_TOKEN", VALUE)
    assert store.list() == [Secret("GH_TOKEN", "file", made.changed)]
    assert store.resolve(["GH_TOKEN"]) == {"GH_TOKEN": VALUE}
    store.set("GH_TOKEN", "another-value")
    assert store.resolve(["GH_TOKEN"]) == {"GH_TOKEN": "another-value"}
    store.remove("GH_TOKEN")
    assert store.list() == []


def test_only_the_owner_can_read_the_file(store: SecretStore, tmp_path: Path) -> None:
    store.set("A", VALUE)
    assert {path.name: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "home").glob("secrets*")} == {
        "secrets.json": 0o600,
        "secrets.lock": 0o600,
    }


@pytest.mark.parametrize(
    "name",
    ["", "lower", "A-B", "1A", "A" * 65, "A\n", "../A", "PATH", "HOME", "LD_PRELOAD", "PORTICO_TOKEN", "GIT_DIR", "ÄB"],
)
def test_a_wrong_name_is_refused(store: SecretStore, name: str) -> None:
    with pytest.raises(BadRequest) as refused:
        store.set(name, VALUE)
    assert (refused.value.field, VALUE in refused.value.message) == ("name", False)


@pytest.mark.parametrize("value", ["", "abc", " ab ", "nul\0value", "x" * (LONGEST + 1), "half \udc80 value"])
def test_a_wrong_value_is_refused_without_showing_it(store: SecretStore, value: str) -> None:
    with pytest.raises(BadRequest) as refused:
        store.set("A", value)
    assert refused.value.field == "value"
    assert not value or value not in refused.value.message


def test_a_missing_secret_names_the_command_that_sets_it(store: SecretStore) -> None:
    store.set("A", VALUE)
    with pytest.raises(NotFound, match=r"There is no secret 'B'\. Set it with: portico secrets set B"):
        store.resolve(["A", "B"])
    with pytest.raises(NotFound, match="portico secrets list"):
        store.remove("B")


def test_secrets_set_at_once_are_all_kept(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: SecretStore(Home(tmp_path / "home"), {}).set(f"S{n}", VALUE), range(16)))
    assert len(SecretStore(Home(tmp_path / "home"), {}).list()) == 16


def test_a_damaged_file_is_reported_without_its_content(store: SecretStore, tmp_path: Path) -> None:
    store.set("A", VALUE)
    (tmp_path / "home/secrets.json").write_text(f'{{"A": "{VALUE}"')
    with pytest.raises(BadRequest, match="cannot be read") as refused:
        store.list()
    assert (VALUE in repr(refused.value), refused.value.__cause__) == (False, None)


def test_credentials_of_the_service_come_first_and_are_not_changed_here(tmp_path: Path) -> None:
    folder = tmp_path / "credentials"
    folder.mkdir()
    (folder / "GH_TOKEN").write_text(f"{VALUE}\n")
    (folder / "not-a-name").write_text("x")
    (folder / "BINARY").write_bytes(b"\xff\xfe\xfd\xfc")
    store = SecretStore(Home(tmp_path / "home"), {"CREDENTIALS_DIRECTORY": str(folder)})
    assert [(each.name, each.place) for each in store.list()] == [("BINARY", "credential"), ("GH_TOKEN", "credential")]
    assert store.resolve(["GH_TOKEN"]) == {"GH_TOKEN": VALUE} == store.values()
    with pytest.raises(BadRequest, match="it is no text"):
        store.resolve(["BINARY"])
    for change in (lambda: store.set("GH_TOKEN", "other-value"), lambda: store.remove("GH_TOKEN")):
        with pytest.raises(Conflict, match="LoadCredential"):
            change()


def test_without_the_extra_the_keyring_names_it(store: SecretStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.sys.modules, "keyring", None)  # type: ignore[attr-defined]
    with pytest.raises(BadRequest, match=r"pip install 'portico\[keyring\]'"):
        store.set("A", VALUE, keyring=True)
    assert store.list() == []


def test_a_value_can_be_in_the_keyring(store: SecretStore, tmp_path: Path) -> None:
    keyring = pytest.importorskip("keyring")

    backend: Any = keyring.backend.KeyringBackend

    class Memory(backend):  # type: ignore[misc]
        """Of the real package; where tests run there is no keyring of a system."""

        priority = 1
        values: dict[tuple[str, str], str] = {}

        def get_password(self, service: str, username: str) -> str | None:
            return self.values.get((service, username))

        def set_password(self, service: str, username: str, password: str) -> None:
            if password == "locked-value":
                raise OSError(password)
            self.values[service, username] = password

        def delete_password(self, service: str, username: str) -> None:
            del self.values[service, username]

    keyring.set_keyring(Memory())
    store.set("A", VALUE, keyring=True)
    assert ([each.place for each in store.list()], store.resolve(["A"])) == (["keyring"], {"A": VALUE})
    assert VALUE not in (tmp_path / "home/secrets.json").read_text()
    with pytest.raises(Conflict, match=r"failed \(OSError\)") as refused:
        store.set("B", "locked-value", keyring=True)
    assert ("locked" in refused.value.message.replace("unlocked", ""), refused.value.__cause__) == (False, None)
    store.set("A", "moved-to-the-file")
    assert Memory.values == {}
    store.set("A", VALUE, keyring=True)
    store.remove("A")
    assert (Memory.values, store.list()) == ({}, [])
