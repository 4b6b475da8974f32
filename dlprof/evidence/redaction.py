"""Make text public: without what says who and where its author is.

Home folders, absolute paths, user and host names, mail addresses, values of secret environment
variables, and what looks like a token are taken out. Names that a text about arrays needs
(``numpy``, ``root`` in prose) are never taken for those of a user.
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

SECRET = re.compile(
    r"TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL|API_?KEY|ACCESS_?KEY|PRIVATE", re.IGNORECASE
)
PACKAGES = re.compile(r"(?:site|dist)-packages/(?P<rest>\S*)")
PART = r"[^\s/\\'\"`<>|:;,()\[\]{}]"
PATH = re.compile(rf"(?:(?<![\w/.~>-])|(?<=-[LI]))(?:file://)?/(?:{PART}+/)+{PART}*")
IN_TRACEBACK = re.compile(r'(?<=File ")(?:file://)?/[^"\n]*/[^"/\n]*(?=")')
"""A path between quotes may have blanks."""
HOME = re.compile(rf"(?:/home|/Users|/export/home)/{PART}+|/root(?=/|\b)")
BELOW_HOME = re.compile(rf"~(?:/{PART}*)+")
MAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+")
LOGIN = re.compile(r"(?<=://)[^\s/@]{1,256}@")
TOKEN = re.compile(
    r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_\w{20,}|sk-[\w-]{16,}"
    r"|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{12,}|(?<![\w-])eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)


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
        secrets = [value for name, value in variables.items() if SECRET.search(name)]
        return cls(
            _longest_first(homes),
            _longest_first(filter(_tells, users)),
            _longest_first(filter(_tells, hosts)),
            _longest_first(value for value in secrets if len(value) >= LEAST_SECRET),
        )

    def __call__(self, text: str) -> str:
        """``text`` without what is private; what is whole goes before a part of it would."""
        for secret in self.secrets:
            text = text.replace(secret, "<secret>")
        text = TOKEN.sub("<secret>", text)
        text = LOGIN.sub("<login>@", text)
        text = MAIL.sub("<mail>", text)
        text = IN_TRACEBACK.sub(_shortened, text)
        for home in self.homes:
            text = re.sub(rf"{re.escape(home)}(?![\w-]|\.\w)", "~", text)
        text = HOME.sub("~", text)
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


def _shortened(match: re.Match[str]) -> str:
    """What of a path helps a reader: its end within installed packages, else its last part."""
    path = match[0].removeprefix("file://").rstrip("/")
    if path.startswith(("/proc/", "/dev/", "/sys/")):  # the same everywhere
        return match[0]
    inside = PACKAGES.search(path)
    if inside is not None:
        return f"<path>/site-packages/{inside['rest']}"
    return f"<path>/{path.rpartition('/')[2]}"
