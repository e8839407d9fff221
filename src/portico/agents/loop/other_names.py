"""Names that other agents give to tools like ours. Models are trained with them."""

import re
from collections.abc import Collection

FINISH = "finish"
"""The native tool that ends a run; in the text protocol that is `done`."""
_NAMES = {
    "runCommand": "bash shell sh zsh cmd powershell terminal exec execute execcommand executecommand localshell "
    "runshellcommand runterminalcmd runterminalcommand runinterminal runbash executebash bashcommand",
    "readFiles": "read cat view open openfile viewfile fsread readmanyfiles getfile filereader readtextfile",
    "listFiles": "ls list listdir listdirectory glob findfiles filesearch directorytree listfilesrecursive",
    "search": "grep rg ripgrep searchfiles grepsearch codebasesearch searchfilecontent findinfiles searchcode",
    "createFile": "create write writefile writetofile savefile newfile fswrite addfile filewrite",
    "editFile": "edit strreplace replace searchreplace searchandreplace multiedit replaceinfile replacestringinfile "
    "applydiff fsedit updatefile modifyfile fileedit applypatch patch",
    "plan": "todowrite updateplan writetodos todo setplan updatetodos managetodolist",
    "webFetch": "fetch fetchurl webfetchtool readurl fetchwebpage browse openurl",
    "askUser": "askuserquestion askfollowupquestion question askhuman requestuserinput",
    "delegate": "task agent subagent dispatchagent newtask spawnagent",
    "viewImage": "readimage openimage showimage",
    FINISH: "attemptcompletion taskcomplete finalanswer submit done complete endtask",
}
OURS = {name: ours for ours, names in _NAMES.items() for name in names.split()}
EDITORS = frozenset({"strreplaceeditor", "strreplacebasededittool", "texteditor", "editor", "fileeditor"})
EDITOR = "editor"


def own_name(name: str, offered: Collection[str]) -> str:
    """Our tool that is meant, if it is offered; `editor` for an editor of many commands; empty: none."""
    short = re.sub(r"[^a-z]", "", re.split(r"[.:/]|__", name)[-1].lower())
    for form in (short, short.removesuffix("tool")):
        if form in EDITORS:
            return EDITOR
        if (ours := OURS.get(form, "")) in offered or ours == FINISH:
            return ours
    return ""
