"""The room's share in the host: commands about files. Each is in the audit record once it is done."""

import asyncio
import base64
import os
from pathlib import Path
from typing import TYPE_CHECKING

from portico.features.files.commands import CopyFile, DeleteFile, MakeFolder, MoveFile, WriteFile
from portico.features.files.jail import jail_of
from portico.kernel import commands as c
from portico.kernel.errors import BadRequest, Forbidden
from portico.kernel.feature import Feature, guard, handle
from portico.workspace.files import Files
from portico.workspace.jail import is_closed

if TYPE_CHECKING:
    from portico.kernel.host import Host


def _names_a_folder(kind: type[c.Command]) -> bool:
    named = {"cwd", "folder", "replacement", "folders"}
    return kind.scope != "terminal" and not named.isdisjoint(kind.__struct_fields__)


class WorkspaceFiles(Feature):
    name = "files"
    commands = (WriteFile, CopyFile, MoveFile, DeleteFile, MakeFolder)

    def __init__(self, host: "Host") -> None:
        super().__init__(host)
        self._host = host

    @guard(_names_a_folder)
    def _refuse_home(self, command: c.Command, caller: c.Caller) -> None:
        """No session and no job works in the host's own folder: its agent would read tokens and write the log. A
        terminal is a shell and can go anywhere."""
        named = [getattr(command, field, None) for field in ("cwd", "folder", "replacement")]
        for folder in [*named, *getattr(command, "folders", ())]:
            if isinstance(folder, str) and "\0" not in folder:
                real = Path(os.path.realpath(folder))
                if is_closed(real, real):
                    words = f"{folder!r} is the host's own folder, with its tokens and its log. Choose a project."
                    raise BadRequest(words, field="cwd")

    def files(self, caller: c.Caller) -> Files:
        """Those of the workspaces and of the folders of sessions that the caller may drive, as they are now."""
        return Files(jail_of(self._host, caller=caller))

    async def _check_git(self, caller: c.Caller, *paths: str, follow: bool = False) -> None:
        """Require the scope `terminal` to write in `.git`: files there name programs (filters, hooks) that git runs."""
        for path in () if caller.may("terminal") else paths:
            whole = await asyncio.to_thread(self.files(caller).jail.resolve, path, follow=follow)
            if any(part.lower() == ".git" for part in whole.parts):
                words = f"{path!r} tells git what to run: that needs the scope 'terminal' too."
                raise Forbidden(words, field="path")

    @handle
    async def _write(self, command: WriteFile, caller: c.Caller) -> c.Done:
        await self._check_git(caller, command.path, follow=True)
        await self.files(caller).write(
            command.path,
            _bytes(command),
            mode=command.mode,
            position=command.position,
            if_match=command.if_match,
            create_only=command.create_only,
        )
        await self._host.audit("file.written", caller.by, path=command.path)
        return c.Done()

    @handle
    async def _copy(self, command: CopyFile, caller: c.Caller) -> c.Done:
        await self._check_git(caller, command.destination)
        await self.files(caller).copy(command.source, command.destination, fail_if_exists=command.fail_if_exists)
        await self._host.audit("file.copied", caller.by, path=command.destination, source=command.source)
        return c.Done()

    @handle
    async def _move(self, command: MoveFile, caller: c.Caller) -> c.Done:
        await self._check_git(caller, command.source, command.destination)
        await self.files(caller).move(command.source, command.destination, fail_if_exists=command.fail_if_exists)
        await self._host.audit("file.moved", caller.by, path=command.destination, source=command.source)
        return c.Done()

    @handle
    async def _delete(self, command: DeleteFile, caller: c.Caller) -> c.Done:
        await self._check_git(caller, command.path)
        await self.files(caller).delete(command.path, recursive=command.recursive)
        await self._host.audit("file.deleted", caller.by, path=command.path)
        return c.Done()

    @handle
    async def _make_folder(self, command: MakeFolder, caller: c.Caller) -> c.Done:
        await self._check_git(caller, command.path)
        await self.files(caller).mkdir(command.path)
        await self._host.audit("folder.made", caller.by, path=command.path)
        return c.Done()


def _bytes(command: WriteFile) -> bytes:
    if command.encoding == "utf-8":
        return command.data.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(command.data, validate=True)
    except ValueError as error:  # also for what is not ASCII
        raise BadRequest("'data' is not base64.", field="data") from error
