"""Find secrets in text: the tokens of some two hundred services, keys, and what is called a secret.

The patterns of services are those of gitleaks (``tokens.json``), in the syntax of Python.
"""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from importlib.resources import files
from math import log2

NAME = re.compile(
    r"TOKEN|SECRET|PASSW(?:OR)?D|PASSPHRASE|PWD|_PW\b|CREDENTIAL|(?:API|ACCESS|ACCOUNT|SIGNING|AUTH"
    r"|ENCRYPTION)[_-]?KEY|PRIVATE|COOKIE|SESSION_?ID|WEBHOOK",
    re.IGNORECASE,
)
"""What the name of a secret has in it."""
FOLDERS = ("PWD", "OLDPWD")
"""What a shell calls its folder: a path, and no password."""
WORD = (
    r"(?:token|secret|passw(?:or)?d|passphrase|passwd|pwd|credentials?|(?:api|access|account|signing"
    r"|auth|encryption|secret|private)[_-]?key|sharedaccesskey|signature|sig|cookie|webhook|client[_-]?id|[_-]pass(?![a-z])|licen[cs]e[_-]?key|(?:nr|device|api|app)key)"
)
KEY = re.compile(
    r"-----BEGIN[ A-Z0-9_-]{0,100}(?:PRIVATE KEY|PGP|CERTIFICATE)[ A-Z]{0,20}-----"
    r"(?:(?!-----).){0,20000}(?:-----END[ A-Z0-9_-]{0,100}-----)?"
    r"|(?<=Private-Lines: )\d+\s+(?:[\w+/=]{16,}\s+)+",
    re.DOTALL,
)
"""A cut text may be without its end."""
HEADER = re.compile(
    r"(?i)\b((?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?(?:(?:basic|bearer|token|digest|apikey)\s+)?"
    r"|(?:set-)?cookie[\"']?\s*:\s*[\"']?|\bbearer\s+(?=\S{0,200}\d)|x-[\w-]{0,30}(?:key|token)[\"']?\s*:\s*[\"']?)"
    r"([^\s\"',]{6,}(?:;\s?[\w-]+=[^\s;\"']+)*)"
)
COOKIES = re.compile(
    r"(?i)((?:set-)?cookie[\"']?\s*:\s*)((?:[\w.-]+=(?:\\*\"[^\"\n]*\"|[^\s\"';,\\]+)(?:;\s?)?)+)"
)
"""Some values stand in quotes."""
NETRC = re.compile(r"((?:\bmachine\s+\S+|\bdefault|\blogin\s+\S+)\s+password\s+)(\S+)")
PGPASS = re.compile(r"((?<!\S)[\w.*-]+:(?:54\d\d|6432|\*):[\w.*-]+:[\w.*-]+:)(\S{4,})")
OPTION = re.compile(rf"(?i)((?<!\w)--?[\w-]{{0,30}}{WORD}[ =][\"']?)([^\s\"'-][^\s\"']{{3,}})")
ACCOUNT = re.compile(r"(?<!\w)((?:-u|--user)[ =][\"']?[^\s:\"']{1,64}:)([^\s\"']{3,})")
QUOTED = re.compile(
    rf"(?i)({WORD}[\w-]{{0,20}}[\"']?[\])]?\s{{0,20}}(?:=>|:=|[=!]?={{1,2}}|[:,(])\s{{0,20}}[rbuf]?)"
    r"([\"'])(?!<[^<>\n]{1,40}>\2)((?:(?!\2)[^\n\\]|\\.){4,400})\2"
)
"""A tokenizer's ``pad_token='<pad>'`` is none."""
VARIABLE = re.compile(
    r"(?<![\w.])([A-Z][A-Z0-9_]*(?:TOKEN|SECRET|PASSW(?:OR)?D|PASSPHRASE|PWD|_PW|CREDENTIALS?|_KEY|PRIVATE"
    r"|COOKIE|WEBHOOK|DSN|_PASS)[A-Z0-9_]*[ \t]{0,3}[=:][ \t]{0,3})([^\s\"',;]{4,})"
)
PLAIN = re.compile(
    rf"(?i)({WORD}[\w-]{{0,12}}\s{{0,20}}(?:=>|:=|[=:])\s{{0,20}})"
    r"(?=[^\s\"',;&(]*[\d!@#$%^*+/])([^\s\"',;&(){}\[\]]{6,})(?![\w(\[])"
)
"""Without quotes a value of letters alone may be a name of a program."""
AFTER_NAME = re.compile(
    rf"(?i)(\b\w{{0,30}}{WORD}[ \t]+)(?=[^\s\"']*\d)(?=[^\s\"']*[A-Za-z])([\w+/=.~-]{{20,}})"
)
"""As ``aws configure set`` has it."""
SAID = re.compile(
    r"(?i)(\b(?:password|passphrase|secret|token|api key)\b[^\n\"']{0,10}"
    r"(?:['\"][^\n'\"]{1,64}['\"] )?(?:is|was|:)\s+)"
    r"(?:[\"'`][^\n\"'`]{4,200}[\"'`]|[^\s\"'`]*[\d!@#$%^*][^\s\"'`]{3,})"
)
ELEMENT = re.compile(
    rf"(?i)(<[^<>]{{0,200}}\b(?:key|name)=[\"'][^\"'<>]{{0,60}}{WORD}[^\"'<>]{{0,20}}[\"']\s+value=[\"'])([^\"'<>]+)"
)
LOGIN_AND_PASSWORD = re.compile(
    r"(?i)((?<!\w)-u[ =]\S{1,64}\s+(?:-p|--password)[ =]|\bsshpass\s+-p\s?"
    r"|\bmysql\w*\s[^\n]{0,80}?(?<=\s)-p)(\S+)"
)
OF_A_BOT = re.compile(r"((?<=/)bot)(\d{6,12}:[\w-]{30,})")
AFTER_LOGIN = re.compile(r"(\blogin\b[^\n]{0,40}?\s)(?=\S*\d)([0-9a-f]{32,})(?![\w-])")
OF_A_KEY = re.compile(
    r"([\"'](?:key|pass|auth)[\"']\s{0,4}:\s{0,4}[\"'])(?=[^\"']*\d)([\w+/=-]{16,})(?=[\"'])"
)
IN_URL = re.compile(
    r"(https?://(?!(?:www\.)?git(?:hub|lab)\.com/)[^\s\"'<>]{0,200}?[/=])(?=[\w@-]*\d)(?=[\w@-]*[A-Za-z])([\w@-]{20,}(?:/[\w@-]{16,})*)"
)
"""A part of a URL without a meaning opens what it leads to, such as a webhook."""
PASSWORD = re.compile(
    r"(?im)((?:passw(?:or)?d|passphrase)[ \t]{0,10}[=:][ \t]{0,10})([^\s\"',;(){}\[\]]{4,})"
    r"(?=[\s,;]|$)"
)
PUBLIC_KEY = re.compile(r"\b(?:ssh-(?:rsa|ed25519|dss)|ecdsa-sha2-\w+) AAAA[\w+/=]{20,}(?: \S+)?")
PREFIXED = re.compile(
    r"\b(?:gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|hf_\w{20,}|sk-[\w-]{16,}"
    r"|xox[abprs]-[\w-]{10,}|AKIA[0-9A-Z]{12,}|(?<![\w-])eyJ[\w-]{10,}\.[\w-]{10,}\.[\w-]*)"
)
"""Of another length than the service gives today, such as a token that was cut."""
CAPITALS = re.compile(r"(?<![\w-])[A-Z]{2,6}-(?=[A-Za-z]*\d)[A-Za-z0-9]{20,}(?![\w-])")
HEXADECIMAL = re.compile(
    r"(?<![\w-])(?!sha|md5|git|blake)[a-z]{2,8}[-_](?=[0-9a-f]*\d)[0-9a-f]{32,}(?![\w-])"
)
LONG = re.compile(
    r"(?<![\w/+=-])(?=[\w+-]*\d)(?=[\w+-]*[a-z])(?=[\w+-]*[A-Z])[\w+-]{24,200}={0,2}(?![\w/.(+-])"
)
LEAST_BITS = 4.0
"""Of entropy for each character. Names of functions have less."""
MANGLED = re.compile(
    r"_Z|_R|__|PyInit|lib|cuda|cu[A-Z]|nvjet_|(?:GPU|MIG)-[0-9a-f]{8}-|k(?:[A-Z0-9]+_)+[A-Z0-9]+$"
    r"|[A-Za-z_]{0,60}(?:[A-Z][a-z]{2,20}){3}"
)
"""Names of functions, of kernels, of a compiler's constants, and of devices."""
WITH_VALUE = (
    COOKIES,
    HEADER,
    NETRC,
    PGPASS,
    ACCOUNT,
    LOGIN_AND_PASSWORD,
    OPTION,
    VARIABLE,
    PLAIN,
    PASSWORD,
    AFTER_NAME,
    SAID,
    ELEMENT,
    OF_A_BOT,
    AFTER_LOGIN,
    OF_A_KEY,
    IN_URL,
)


def without(text: str) -> str:
    """``text`` with ``<secret>`` in the place of each secret."""
    text = KEY.sub("<secret>", text)
    text = PUBLIC_KEY.sub("<secret>", text)
    lower = text.lower()
    for keywords, service in _services():
        if any(word in lower for word in keywords):
            text = re.sub(service, _without_group, text)
    text = QUOTED.sub(r"\1\2<secret>\2", text)
    for pattern in WITH_VALUE:
        text = pattern.sub(r"\1<secret>", text)
    text = PREFIXED.sub("<secret>", text)
    text = CAPITALS.sub("<secret>", text)
    text = HEXADECIMAL.sub("<secret>", text)
    return LONG.sub(_unless_a_name, text)


@functools.cache
def _services() -> list[tuple[list[str], str]]:
    """The words of which one is in each text that a pattern matches, and the pattern."""
    rules = json.loads(files(__package__).joinpath("tokens.json").read_text(encoding="utf-8"))
    return [(keywords, pattern) for _, keywords, pattern in rules["rules"]]


def _without_group(match: re.Match[str]) -> str:
    """The match without its first group, or without all of it."""
    secret = next(filter(None, match.groups()), match[0])
    return match[0].replace(secret, "<secret>")


def _unless_a_name(match: re.Match[str]) -> str:
    word = match[0]
    bits = -sum(n / len(word) * log2(n / len(word)) for n in Counter(word).values())
    return word if bits < LEAST_BITS or MANGLED.match(word) else "<secret>"
