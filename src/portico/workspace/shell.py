r"""Shell integration: bash and zsh report where a command starts and ends, its exit code and its folder.

The user's startup files are sourced and never modified: the shell is started with our startup file, in a private
folder that is deleted after it has been read. It sends OSC 633 sequences, which editors also use:
A prompt starts, B prompt ends, E;LINE the command line, C it runs, D;CODE it ended, P;Cwd=PATH the folder.

The attack: a program (or a file printed with `cat`) sends these sequences and forges commands that never ran.
So each sequence ends with a secret that only this shell's variables contain; sequences without it are dropped.
"""

import secrets
import shutil
import tempfile
from pathlib import Path
from typing import NamedTuple

# Backslash, semicolon and control characters would end or bend the sequence: they travel as \\ and \xHH.
BASH = r"""
[ -r ~/.bashrc ] && . ~/.bashrc
__portico_secret='SECRET'
__portico_ran=0
__portico_send() { builtin printf '\e]633;%s;%s\a' "$1" "$__portico_secret"; }
__portico_escape() {
  local LC_ALL=C text=${1//\\/\\\\} index char code
  text=${text//;/\\x3b}
  __portico_escaped=$text
  case $text in *[$'\x01'-$'\x1f'$'\x7f']*) ;; *) return ;; esac
  __portico_escaped=
  for ((index = 0; index < ${#text}; index++)); do
    char=${text:index:1}
    case $char in
      [$'\x01'-$'\x1f'$'\x7f']) builtin printf -v code '\\x%02x' "'$char"; __portico_escaped+=$code ;;
      *) __portico_escaped+=$char ;;
    esac
  done
}
__portico_history() { HISTTIMEFORMAT= builtin history 1; }
__portico_before() {
  local entry; entry=$(__portico_history)
  # The same entry as at the prompt: this line was kept out of the history, so it is not known here.
  if [ "$entry" != "$__portico_entry" ] && [[ $entry =~ ^[[:space:]]*[0-9]+[*[:space:]]*[[:space:]](.*)$ ]]; then
    __portico_escape "${BASH_REMATCH[1]}"
    __portico_send "E;$__portico_escaped"
  fi
  __portico_send C
}
__portico_status() { return "$1"; }
__portico_prompt() {
  local code=$? part
  if [ "$__portico_ran" = 1 ]; then __portico_send "D;$code"; fi
  __portico_ran=0
  for part in "${__portico_user_prompt[@]}"; do __portico_status "$code"; builtin eval "$part"; done
  __portico_entry=$(__portico_history)
  __portico_escape "$PWD"; __portico_send "P;Cwd=$__portico_escaped"
  case $PS1 in
    *"$__portico_secret"*) ;;
    *) PS1='\[\e]633;A;SECRET\a\]'$PS1'\[\e]633;B;SECRET\a\]' ;;
  esac
  __portico_status "$code"
}
__portico_user_prompt=("${PROMPT_COMMAND[@]}")
unset PROMPT_COMMAND
PROMPT_COMMAND=__portico_prompt
PS0=${PS0-}'${__portico_secret:$((__portico_ran = 1, 0)):0}$(__portico_before)'
"""

ZSH_ENV = r"""
ZDOTDIR=${PORTICO_ZDOTDIR:-$HOME}
[[ -r $ZDOTDIR/.zshenv ]] && . $ZDOTDIR/.zshenv
PORTICO_ZDOTDIR=$ZDOTDIR
ZDOTDIR='FOLDER'
"""

ZSH = r"""
ZDOTDIR=$PORTICO_ZDOTDIR
unset PORTICO_ZDOTDIR
[[ -r $ZDOTDIR/.zshrc ]] && . $ZDOTDIR/.zshrc
typeset -g __portico_secret='SECRET' __portico_ran=0
__portico_send() { builtin printf '\e]633;%s;%s\a' "$1" "$__portico_secret" }
__portico_escape() {
  emulate -L zsh
  local LC_ALL=C text=$1 index char
  REPLY=
  for ((index = 1; index <= $#text; index++)); do
    char=$text[index]
    case $char in
      '\') REPLY+='\\' ;;
      ';') REPLY+='\x3b' ;;
      [[:cntrl:]]) REPLY+=$(builtin printf '\\x%02x' "'$char") ;;
      *) REPLY+=$char ;;
    esac
  done
}
__portico_before() {
  __portico_ran=1
  local REPLY; __portico_escape "$1"; __portico_send "E;$REPLY"
  __portico_send C
}
__portico_prompt() {
  local code=$? REPLY
  (( __portico_ran )) && __portico_send "D;$code"
  __portico_ran=0
  __portico_escape "$PWD"; __portico_send "P;Cwd=$REPLY"
  [[ $PS1 == *SECRET* ]] || PS1=$'%{\e]633;A;SECRET\a%}'$PS1$'%{\e]633;B;SECRET\a%}'
  return $code
}
autoload -Uz add-zsh-hook
add-zsh-hook preexec __portico_before
# The last hook of all, because others rewrite the prompt; the exit code is the same for each of them.
precmd_functions+=(__portico_prompt)
"""


class Integration(NamedTuple):
    """How to start a shell so that it reports. `secret` is empty when it is left as it is."""

    command: list[str]
    env: dict[str, str]
    secret: str = ""
    folder: Path | None = None

    def forget(self) -> None:
        """Deletes the start-up files; they are not needed once the shell has shown a prompt."""
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)


def integrate(command: list[str], env: dict[str, str]) -> Integration:
    """Shells we know, started plainly, report; everything else runs as it was asked for."""
    name = Path(command[0]).name
    if len(command) > 1 or name not in ("bash", "zsh"):
        return Integration(command, env)
    secret = secrets.token_hex(16)
    folder = Path(tempfile.mkdtemp(prefix="portico-shell-"))  # made with 0700
    if name == "bash":
        start = folder / "bashrc"
        start.write_text(BASH.replace("SECRET", secret))
        return Integration([command[0], "--rcfile", str(start), "-i"], env, secret, folder)
    (folder / ".zshenv").write_text(ZSH_ENV.replace("FOLDER", str(folder)))
    (folder / ".zshrc").write_text(ZSH.replace("SECRET", secret))
    home = {"ZDOTDIR": str(folder), "PORTICO_ZDOTDIR": env.get("ZDOTDIR", "")}
    return Integration([command[0], "-i"], {**env, **home}, secret, folder)


def unescape(text: str) -> str:
    r"""Undoes `__portico_escape`: `\\` and `\xHH`."""
    pieces = text.split("\\\\")
    return "\\".join(_hex(piece) for piece in pieces)


def _hex(text: str) -> str:
    head, *rest = text.split("\\x")
    return head + "".join(_character(piece) for piece in rest)


def _character(piece: str) -> str:
    try:
        return chr(int(piece[:2], 16)) + piece[2:]
    except ValueError:
        return "\\x" + piece
