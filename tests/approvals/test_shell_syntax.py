"""Which commands a line starts, and which lines say that they cannot be known."""

import pytest

from portico.features.approvals.shell_syntax import (
    DYNAMIC,
    LINE_MAX,
    commands,
    is_shell,
    pieces,
    started,
    texts,
    written,
)

FOUND = [
    ("ls", ["ls"]),
    ("ls -la src", ["ls -la src"]),
    ("ls; pwd", ["ls", "pwd"]),
    ("ls && pwd || id", ["ls", "pwd", "id"]),
    ("ls | wc -l", ["ls", "wc -l"]),
    ("ls & pwd", ["ls", "pwd"]),
    ("ls\\npwd", ["lsnpwd"]),
    ("# only a comment", []),
    ("ls # rm x", ["ls"]),
    ("ls#x", ["ls#x"]),
    ("A=1 ls", ["export A=1", "ls"]),
    ("A=1", ["export A=1"]),
    ("A=1 B=2", ["export A=1 B=2"]),
    ("if ls; then pwd; else id; fi", ["ls", "pwd", "id"]),
    ("while true; do ls; done", ["true", "ls"]),
    ("for f in a b; do cat $f; done", ["f in a b", "cat …"]),
    ("case x in a) ls;; esac", ["x in a", "ls"]),
    ("f() { ls; }", ["f", "ls"]),
    ("! ls", ["ls"]),
    ("time -p ls", ["ls"]),
    ("{ ls; }", ["ls"]),
    ("(ls)", ["ls"]),
    ("[ -f a ] && ls", ["[ -f a ]", "ls"]),
    ("[[ -f a ]] && ls", ["a ]]", "ls"]),
    ("echo $(pwd)", ["pwd", "echo …"]),
    ("echo `pwd`", ["pwd", "echo …"]),
    ('echo "$(pwd)"', ["pwd", "echo …"]),
    ("echo '$(pwd)'", ["echo $(pwd)"]),
    ("echo ${A:-$(pwd)}", ["pwd", "echo …"]),
    ("echo ${A:-`pwd`}", ["pwd", "echo …"]),
    ("echo $((1+2))", ["1+2", "echo …"]),
    ("diff <(ls a) <(ls b)", ["ls a", "ls b", "diff /dev/fd/63 /dev/fd/63"]),
    ("tee >(wc -l)", ["wc -l", "tee /dev/fd/63"]),
    ("cat < in", ["cat"]),
    ("cat > out", ["> out", "cat"]),
    ("cat >> out", ["> out", "cat"]),
    ("cat > out arg", ["> out", "cat arg"]),
    ("2> err ls", ["> err", "ls"]),
    ("ls 2>&1", ["> 1", "ls"]),
    ("ls >&2", ["> 2", "ls"]),
    ("ls 2>&-", ["ls"]),
    ("cat <<E\\nrm\\nE", ["cat"]),
    ("cat <<-E\\nrm\\nE", ["cat"]),
    ("cat <<< word", ["<<< word", "cat"]),
    ("cat <<<'two words'", ["<<< two words", "cat"]),
    ("l's'", ["ls"]),
    ('l"s"', ["ls"]),
    ("ls a\\\\ b", ["ls a\\ b"]),
    ("ls 'a b' \"c d\"", ["ls a b c d"]),
    ("ls *.py", ["ls ….py"]),
    ("ls a?b", ["ls a…b"]),
    ("ls a[0-9]", ["ls a…0-9]"]),
    ("ls {a,b}", ["ls …a,b}"]),
    ("ls {1..3}", ["ls …1..3}"]),
    ("ls {}", ["ls {}"]),
    ("ls $X", ["ls …"]),
    ("ls ${X}", ["ls …"]),
    ('ls "$X"', ["ls …"]),
    ("ls $'a'", ["ls …"]),
    ("ls $1 $@ $?", ["ls … … …"]),
    ("ls a$", ["ls a$"]),
    ('ls "a$"', ["ls a$"]),
    ("sh -c ls", ["sh -c ls", "ls"]),
    ("bash -lc 'ls; pwd'", ["bash -lc ls; pwd", "ls", "pwd"]),
    ("sh -c 'sh -c \"sh -c id\"'", ['sh -c sh -c "sh -c id"', "sh -c sh -c id", "sh -c id", "id"]),
    ("bash -o pipefail -c 'ls | wc'", ["bash -o pipefail -c ls | wc", "ls", "wc"]),
    ("eval ls", ["eval ls", "ls"]),
    ("eval 'ls; pwd'", ["eval ls; pwd", "ls", "pwd"]),
    ("eval", ["eval"]),
    ("env -i sh -c ls", ["env -i sh -c ls", "ls"]),
    ("nice sh -c ls", ["nice sh -c ls", "ls"]),
    ("sh script.sh", ["sh script.sh"]),
    ("bash ./run --flag", ["bash ./run --flag"]),
    ("source env.sh", ["source env.sh"]),
    (". ./env.sh", [". ./env.sh"]),
    ("busybox ls", ["busybox ls"]),
    ("busybox sh -c ls", ["busybox sh -c ls", "ls"]),
    ("find . -name x", ["find . -name x"]),
    ("find . -exec ls {} +", ["find . -exec ls {} +"]),
    ("xargs ls", ["xargs ls"]),
    ("xargs -n 1 ls", ["xargs -n 1 ls"]),
    ("xargs -I% cp % x", ["xargs -I% cp % x"]),
    ("parallel ls ::: a", ["parallel ls ::: a"]),
    ("python3 a.py", ["python3 a.py"]),
    ("python3 -c 'print(1)'", ["python3 -c print(1)"]),
    ("python3 --version", ["python3 --version"]),
    ("node -v", ["node -v"]),
    ("awk '{print $1}' f", ["awk {print $1} f"]),
    ("sed s/a/b/ f", ["sed s/a/b/ f"]),
    ("jq .a f", ["jq .a f"]),
    ("trap 'ls' EXIT", ["trap ls EXIT"]),
    ("git commit -m 'a; b'", ["git commit -m a; b"]),
    ("ssh host ls", ["ssh host ls"]),
    ("env -u A ls", ["env -u A ls"]),
    ("env A=1 ls", ["env A=1 ls"]),
    ("timeout 5 ls", ["timeout 5 ls"]),
    ("chroot /x ls", ["chroot /x ls"]),
    ("flock f ls", ["flock f ls"]),
    ("echo a >b c", ["> b", "echo a c"]),
    ("ls;;pwd", ["ls", "pwd"]),
    ("ls\\r\\npwd", ["lsrnpwd"]),
    ("coproc ls", ["ls"]),
    ("exec ls", ["exec ls"]),
    ("nohup ls &", ["nohup ls"]),
]
"""A line, and its commands in the order in which they are found: `…` is known only when it runs, `>` a file that the
line writes, `<<<` what a program gets to read."""


@pytest.mark.parametrize(("line", "expected"), FOUND)
def test_every_command_of_a_line_is_found(line: str, expected: list[str]) -> None:
    found = commands(line)
    assert found is not None
    assert [" ".join(words).replace(DYNAMIC, "…") for words in found] == expected


UNKNOWN = [
    ("$X id", "ls $X"),
    ("$(printf su) id", "echo $(printf su)"),
    ("`which ls`", "echo `which ls`"),
    ("a$X", "a"),
    ("*", "ls *"),
    ("{ls,-l}", "ls {a,b}"),
    ("'ls", "'ls'"),
    ('"ls', '"ls"'),
    ("echo `ls", "echo `ls`"),
    ("echo $(ls", "echo $(ls)"),
    ("echo ${A", "echo ${A}"),
    ("echo $'a", "echo $'a'"),
    ("ls \\", "ls \\a"),
    ("echo a | sh", "echo a | sh a.sh"),
    ("sh -s", "sh -x a.sh"),
    ("bash", "bash a.sh"),
    ("sh /dev/stdin", "sh ./stdin"),
    ("sh -", "sh a"),
    ("sh $X", "sh a $X"),
    ("sh -c $X", "sh -c 'ls $X'"),
    ("sh -c", "sh -c ls"),
    ("bash --rcfile x", "bash --rcfile x a.sh"),
    ("bash -x -s a", "bash -x a"),
    ("eval $X", "eval ls"),
    ("source /dev/stdin", "source env"),
    (". $X", ". env"),
    ("source /proc/self/fd/0", "source /proc/x"),
    ("env eval $X", "env eval ls"),
    ("at now", "cat now"),
    ("crontab -", "man crontab"),
    ("batch", "nohup ls"),
    ("echo a | python3", "python3 a.py"),
    ("python3 -i", "python3 -h"),
    ("perl", "perl a.pl"),
    ("node /dev/stdin", "node stdin"),
    ("ruby -n", "ruby a.rb"),
    ("xargs -I% %", "xargs -I% ls %"),
    ("xargs -I % %", "xargs -I % ls %"),
    ("xargs -I{} {}", "xargs ls {}"),
    ("xargs sh", "xargs ls"),
    ("xargs env", "xargs -0 ls"),
    ("xargs python3 -c", "xargs python3 a.py"),
    ("parallel", "parallel ls"),
    ("xargs -d , -n 1 sh -c", "xargs -d , -n 1 ls"),
    ("find . -exec {} \\;", "find . -exec ls {} \\;"),
    ("find . -exec $X \\;", "find $X -name a"),
    ("find . -exec env ls \\;", "find . -name env"),
    ("fd -x {}", "fd -x ls"),
    ("fd --exec $X", "fd --exec ls"),
    ("fd -X nice", "fd -X ls"),
    ("env $X", "env A=$X ls"),
    ("nice $X", "nice ls $X"),
    ("timeout 5 $X", "timeout 5 ls $X"),
    ("nohup $X", "nohup ls $X"),
    ("ssh $X", "ssh host ls"),
    ("flock f env $X", "flock f env ls"),
    ("nice nice $X", "nice nice ls"),
    ("nice -n 5 $X", "nice -n 5 ls $X"),
    ("env -- $X", "env -- ls"),
    ("trap $X EXIT", "trap ls EXIT"),
    ("alias a=$X", "alias a=ls"),
    ("hash -p $X ls", "hash -r"),
    ("mapfile -C $X a", "mapfile a"),
    ("git -c alias.x=$X x", "git log $X"),
    ("tar --to-command=$X", "tar -xf $X"),
    ("make SHELL=$X", "make A=$X"),
    ("rsync -e $X", "rsync $X a"),
    ("PAGER=$X git log", "A=$X git log"),
    ("export EDITOR=$X", "export A=$X"),
    ("env GIT_PAGER=$X git log", "env A=$X git log"),
    ("BASH_ENV=<(ls) true", "A=<(ls) true"),
    ("A='${B}c' ls", "A='b c' ls"),
    ("PS1=$X ls", "PS=$X ls"),
    ("awk 'BEGIN{system(\"ls\")}'", "awk '{print}'"),
    ("awk '{print | \"sh\"}'", "awk '{print $1}'"),
    ("perl -e 'exec ls'", "perl -e 'print 1'"),
    ("python3 -c 'import subprocess'", "python3 -c 'import sys'"),
    ("sed 's/a/ls/e'", "sed 's/a/ls/g'"),
    ("sed '1e ls'", "sed 1d"),
    ("node -e 'require(\"child_process\")'", "node -e 'require(\"fs\")'"),
    ("watch 's\"u\"do id'", "watch ls"),
    ("printf -v A '$(ls)'", "printf '$(ls)'"),
    ("strace 'a$(b)'", "grep 'a$(b)'"),
    ("git config alias.x 's\"u\"do'", "git commit -m 's\"u\"do'"),
    ("git commit --amend -x '`ls`'", "git commit -am '`ls`'"),
]
"""A line that starts something under a name that is made at run time, and its neighbour that does not."""


@pytest.mark.parametrize(("hidden", "plain"), UNKNOWN)
def test_a_name_that_is_made_at_run_time_is_said_to_be_unknown(hidden: str, plain: str) -> None:
    assert commands(hidden) is None
    assert commands(plain) is not None


@pytest.mark.parametrize("known", [True, False])
def test_a_line_is_looked_through_up_to_a_length_and_a_depth(known: bool) -> None:
    line = "echo " + "a" * (LINE_MAX - 5 + (not known))
    assert (commands(line) is not None) is known
    nested = "id"
    for _ in range(20 + (not known)):
        nested = f"echo $({nested})"
    assert (commands(nested) is not None) is known


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["echo", "$X"], [["echo", "$X"]]),
        (["ls", "$X"], None),
        (["ls", "a;b"], [["ls", "a;b"]]),
        (["sh", "-c", "ls; id"], [["sh", "-c", "ls; id"], ["ls"], ["id"]]),
        (["/bin/bash", "-lc", "id"], [["/bin/bash", "-lc", "id"], ["id"]]),
        (["env", "sh", "-c", "id"], [["env", "sh", "-c", "id"], ["id"]]),
        (["busybox", "env", "sh", "-c", "id"], [["busybox", "env", "sh", "-c", "id"], ["id"]]),
        (["sh", "-c", "$X"], None),
        (["sh"], None),
        (["python3"], None),
        (["sh", "-c", "'open"], None),
        ([], None),
    ],
)
def test_a_program_without_a_shell_starts_what_its_words_say(argv: list[str], expected: list[list[str]] | None) -> None:
    """A `;` among its words is only a letter. A `$` may be part of a line for a shell, unless the program prints it."""
    assert started(argv) == expected


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("echo a > b", ["b"]),
        ("echo a >> b 2> c", ["b", "c"]),
        ("> b", ["b"]),
        ("echo a < b", []),
        ("tee a b", ["a", "b"]),
        ("tee -a b", ["b"]),
        ("/usr/bin/tee b", ["b"]),
        ("cp a b", ["a", "b"]),
        ("mv -f a b", ["a", "b"]),
        ("ln -s a b", ["a", "b"]),
        ("dd if=a of=b", ["if=a", "b"]),
        ("touch a", ["a"]),
        ("truncate -s 0 a", ["0", "a"]),
        ("sed -i s/a/b/ f", ["s/a/b/", "f"]),
        ("sed --in-place s/a/b/ f", ["s/a/b/", "f"]),
        ("sed s/a/b/ f", []),
        ("cat a | tee b", ["b"]),
        ("sh -c 'echo a > b'", ["b"]),
        ("cat a", []),
        ("grep -o b", []),
    ],
)
def test_the_files_that_a_line_writes_itself(line: str, files: list[str]) -> None:
    assert list(written(commands(line) or [])) == files


@pytest.mark.parametrize(
    ("words", "looked_at"),
    [
        (["echo", "sudo id"], []),
        (["/usr/bin/printf", "sudo"], []),
        (["rg", "sudo"], []),
        (["make", "sudo"], ["make", "sudo"]),
        (["git", "commit", "-m", "sudo"], ["git", "commit", "-m"]),
        (["git", "commit", "-am", "sudo", "f"], ["git", "commit", "-am", "f"]),
        (["git", "commit", "--message", "sudo"], ["git", "commit", "--message"]),
        (["git", "commit", "-m", "-x"], ["git", "commit", "-m", "-x"]),
        (["hg", "commit", "-m", "sudo"], ["hg", "commit", "-m", "sudo"]),
    ],
)
def test_text_for_people_names_no_program(words: list[str], looked_at: list[str]) -> None:
    assert texts(words) == looked_at


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["env", "-S'sudo id'"], {"env", "-S", "sudo", "id"}),
        (["git", "-c", "alias.x=!sudo"], {"git", "-c", "alias.x", "sudo"}),
        (["watch", "sudo id; ls"], {"watch", "sudo", "id", "ls"}),
        (["-xsudo"], {"-xsudo", "sudo"}),
        (["--xsudo"], {"--xsudo"}),
        (["/usr/bin/sudo"], {"/usr/bin/sudo"}),
        (["a-b_c+d.e"], {"a-b_c+d.e"}),
    ],
)
def test_the_pieces_of_a_word_that_could_name_a_program(words: list[str], expected: set[str]) -> None:
    assert expected <= set(pieces(words))


@pytest.mark.parametrize(
    ("word", "shell"),
    [
        ("sh", True),
        ("/bin/bash", True),
        ("./zsh", True),
        ("busybox", True),
        ("bash2", False),
        ("sh/x", False),
        ("", False),
    ],
)
def test_a_shell_is_known_by_its_name(word: str, shell: bool) -> None:
    assert is_shell(word) is shell
