"""Make text public: without what says who and where its author is.

Home folders, absolute paths, user and host names, addresses, dumps of the environment, and what
looks like a secret (:mod:`dlprof.ticket.secrets`) are taken out. Names that a text about arrays
needs (``numpy``, ``root`` in prose) are never taken for those of a user.
"""

from __future__ import annotations

import builtins
import getpass
import keyword
import re
import socket
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from dlprof.ticket import secrets

LEAST_NAME, LEAST_SECRET = 3, 6
"""Characters of a name, and of a secret: shorter ones are parts of words."""
ORDINARY = frozenset(
    (
        *("root", "user", "users", "admin", "test", "tests", "dev", "guest", "nobody", "ubuntu"),
        *("debian", "runner", "build", "home", "local", "localhost", "host", "linux", "python"),
        *("numpy", "torch", "jax", "tensorflow", "cupy", "numba", "onnxruntime", "dlprof", "cuda"),
        *("cpu", "array", "float", "copy", "view", "main", "work", "none", "true", "false", "data"),
    )
)
"""Names of users and hosts that are words as well: they stay, they tell nothing."""
PYTHON = frozenset(
    name.lower() for name in (*keyword.kwlist, *dir(builtins), *sys.stdlib_module_names)
)
"""Without these a script is no longer one."""

PACKAGES = re.compile(r"(?:site|dist)-packages/(?P<rest>\S*)")
PART = r"[^\s/\\'\"`<>|:;,()\[\]{}]"
PATH = re.compile(rf"(?:(?<![\w/.~>-])|(?<=-[LI]))(?:file://)?/(?:{PART}+/)+{PART}*")
IN_TRACEBACK = re.compile(r'(?<=File ")(?:file://)?/[^"\n]*/[^"/\n]*(?=")')
"""A path between quotes may have blanks."""
HOME = re.compile(rf"(?:/home|/Users|/export/home)/{PART}+|/root(?=/|\b)")
BELOW_HOME = re.compile(rf"~(?:/{PART}*)+")
MAIL = re.compile(r"(?<![/\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
LOGIN = re.compile(r"(?<=://)(?:[^\s/@]{1,256}|[^\s/@:]{0,64}:[^\s@]{1,256})@")
OF_OTHERS = re.compile(
    rf"(?:(?<![\w~/.>-])/(?:scratch|work|users|homes|u|lustre|gpfs|nfs|net|mnt/home|data/home|data/users)/{PART}+)"
    rf"(?![/\w])|(?<![\w/])~(?!/){PART}+(?=/)|\b[A-Za-z]:\\+Users\\+[^\s\\'\"]+(?:\\[^\s'\"]*)*"
    r"|(?<![\w\\])\\\\[A-Za-z][\w.-]+\\[\w$.-]+(?:\\[^\s'\"]*)*"
)
"""A home folder that is not below ``/home``, is that of another user, or is one of Windows."""
PRIVATE_HOST = re.compile(
    r"(?<![\w.-])[A-Za-z][\w-]{0,62}(?:\.[\w-]{1,63}){0,6}\."
    r"(?:internal|corp|local|lan|intranet|localdomain|private|home|svc|int)\b"
    r"(?:-[\w-]{1,40}(?:\.[\w-]{1,63}){1,3})?(?![\w.-]*\()"
    r"|\bip(?:-\d{1,3}){4}\b|(?<![\w.-])(?:[\w-]{1,63}\.){1,8}(?:amazonaws\.com|cloudapp\.net)\b",
)
TOLD_HOST = re.compile(
    r"(?i:\b(?:host(?:[ _-]?name)?|node(?:[ _-]?name)?|server|machine|computer[ _-]?name)"
    r"(?:\s*[=:]\s*|\s+is\s+)[\"']?)(?P<name>(?=[\w.-]*[\d-])[A-Za-z][\w.-]{2,252})"
    r"|(?i:\b(?:on|from|to) (?:host|node|machine|server) )"
    r"(?P<other>(?=[\w.-]*[\d-])[A-Za-z][\w.-]{2,252})"
    r"|(?<![\w./])[a-z_][\w-]{0,31}@(?P<prompt>[A-Za-z][\w-]{1,63})(?=[:\s~\]]|$)"
)
"""The prompt of a shell has the user as well."""
ADDRESS = re.compile(
    r"(?<![\w.])(?:10(?:\.\d{1,3}){3}|192\.168(?:\.\d{1,3}){2}|172\.(?:1[6-9]|2\d|3[01])(?:\.\d{1,3}){2})"
    r"(?![\w.])|(?<=://)\d{1,3}(?:\.\d{1,3}){3}(?![\w.])|(?<![\w:])(?:[0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}(?![\w:])"
    r"|(?<![\w:])(?:[0-9a-fA-F]{1,4}:){7}[0-9a-fA-F]{1,4}(?![\w:])"
    r"|(?<![\w:])(?:fe80|f[cd][0-9a-fA-F]{2}|2[0-9a-fA-F]{3})(?::[0-9a-fA-F]{1,4}){0,6}::"
    r"(?:[0-9a-fA-F]{1,4}:){0,6}[0-9a-fA-F]{1,4}(?![\w:])"
)
"""Of private networks, of a URL, and of a network card. Versions have four numbers as well."""
DUMP = re.compile(r"(?m)(?:^[ \t]*(?:export |declare -x )?[A-Z_][A-Z0-9_]{2,}=.*(?:\n|\Z)){4,}")
VARIABLE = re.compile(r"(?m)^([ \t]*(?:export |declare -x )?([A-Z_][A-Z0-9_]*)=)(.*)$")
OF_A_PERSON = re.compile(
    r"\b((?:USER|LOGNAME|USERNAME|SUDO_USER|HOSTNAME|COMPUTERNAME|MAIL|EMAIL|SSH_\w+|\w+_PROXY"
    r"|GIT_(?:AUTHOR|COMMITTER)_\w+)[\"']?\s*[=:]\s*[\"']?)([^\s\"',;}]+)"
)
OF_CONVERSIONS = re.compile(
    r"(?:CUDA|NVIDIA|NCCL|OMP|MKL|OPENBLAS|KMP|TF|XLA|JAX|TORCH|PYTORCH|NUMBA|CUPY|ORT|DLPROF|MALLOC"
    r"|GLIBC|LC)_\w+|LANG|COLUMNS|TERM|PYTHON(?!PATH)\w+"
)
"""The variables of a dump that say how arrays are converted."""


@dataclass(frozen=True)
class Redactor:
    """Takes out what says who and where this process is, and what looks like a secret."""

    homes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    @classmethod
    def of(cls, variables: Mapping[str, str]) -> Redactor:
        """One that knows the user and the machine; ``variables`` are those of the environment.

        A session that was written elsewhere names other people: what looks like a home folder is
        redacted wherever it comes from.
        """
        homes = {variables.get("HOME", "").rstrip("/"), _or_empty(lambda: str(Path.home()))}
        homes -= {"", "/"}
        users = {variables.get("USER", ""), variables.get("LOGNAME", "")}
        users |= {_or_empty(getpass.getuser), *(Path(home).name for home in homes)}
        hosts = {_or_empty(socket.gethostname), variables.get("HOSTNAME", "")}
        hosts |= {host.partition(".")[0] for host in hosts}
        values = [
            value
            for name, value in variables.items()
            if secrets.NAME.search(name) and name not in secrets.FOLDERS
        ]
        return cls(
            _longest_first(homes),
            _longest_first(filter(_tells, users)),
            _longest_first(filter(_tells, hosts)),
            _longest_first(value for value in values if len(value) >= LEAST_SECRET),
        )

    def __call__(self, text: str) -> str:
        """``text`` without what is private; what is whole goes before a part of it would."""
        for secret in self.secrets:
            text = text.replace(secret, "<secret>")
        text = LOGIN.sub("<login>@", text)
        text = secrets.without(text)
        text = DUMP.sub(_without_values, text)
        text = OF_A_PERSON.sub(r"\1<private>", text)
        text = MAIL.sub("<mail>", text)
        text = TOLD_HOST.sub(_without_host, text)
        text = PRIVATE_HOST.sub("<host>", text)
        text = ADDRESS.sub("<address>", text)
        text = IN_TRACEBACK.sub(_shortened, text)
        for home in self.homes:
            text = re.sub(rf"{re.escape(home)}(?![\w-]|\.\w)", "~", text)
        text = HOME.sub("~", text)
        text = OF_OTHERS.sub("<path>", text)
        text = BELOW_HOME.sub(_shortened, text)
        text = PATH.sub(_shortened, text)
        for word, names in (("<host>", self.hosts), ("<user>", self.users)):
            for name in names:
                text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", word, text)
        return text


def _or_empty(answer: Callable[[], str]) -> str:
    try:
        return answer()
    except (OSError, KeyError, RuntimeError, ImportError):
        return ""


def _tells(name: str) -> bool:
    return len(name) >= LEAST_NAME and name.lower() not in ORDINARY | PYTHON


def _longest_first(words: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(words, key=len, reverse=True))


def _without_values(dump: re.Match[str]) -> str:
    return VARIABLE.sub(
        lambda line: line[0] if OF_CONVERSIONS.fullmatch(line[2]) else f"{line[1]}<private>",
        dump[0],
    )


def _without_host(match: re.Match[str]) -> str:
    if match["prompt"]:
        return "<user>@<host>"
    name = match["name"] or match["other"]
    return f"{match[0][: -len(name)]}<host>" if _tells(name) else match[0]


def _shortened(match: re.Match[str]) -> str:
    """What of a path helps a reader: its end within installed packages, else its last part."""
    path = match[0].removeprefix("file://").rstrip("/")
    if path.startswith(("/proc/", "/dev/", "/sys/")):  # the same everywhere
        return match[0]
    inside = PACKAGES.search(path)
    if inside is not None:
        return f"<path>/site-packages/{inside['rest']}"
    return f"<path>/{path.rpartition('/')[2]}"
