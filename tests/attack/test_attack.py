"""Hostile files, texts and surroundings are never executed, and the answer is a sentence.

``make attack`` runs thousands, with a new seed each time; ``make test`` runs two hundred. A
failing case, made small by Hypothesis, stays in ``corpus/`` and runs each time from then on.
"""

import inspect
import json
import re
import sys
from pathlib import Path

import pytest
from builders import make_session
from command_line import PROBE_FILES, dlprof, process
from comparison_builders import suite
from hostile import NASTY
from hostility import CASES, CORPUS, PAYLOADS, Hostile, attack, check, packed, search
from hypothesis import strategies as st
from recordings import NUMPY_TORCH, THERE_AND_BACK
from spoiled_sessions import SESSIONS, spoiled

from dlprof.cli import VERBS, verb_named

PARTS = 4 if CASES > 1000 else 1

strings = st.one_of(
    st.sampled_from((*NASTY, *PAYLOADS)),
    st.text(max_size=30),
    st.text(st.characters(categories=["Cc", "Cf", "Zl", "Zp", "Co"]), max_size=8),
    st.integers().map(str),
    st.sampled_from(
        (
            "-",
            "--",
            "/dev/null",
            ".",
            "/",
            "~x",
            "x" * 5000,
            "-1",
            "1e400",
            "LAST",
            "nan",
        )
    ),
).map(lambda text: text.replace("\0", ""))  # no argument can hold a zero


def commands():
    """Yield each verb, and the verbs below it."""
    for name in VERBS:
        verb = verb_named(name)
        callbacks = getattr(verb, "registered_commands", None)
        if callbacks is None:
            yield [name], verb
        else:
            yield from (([name, one.callback.__name__], one.callback) for one in callbacks)


def options_of(verb):
    found = []
    for parameter in inspect.signature(verb).parameters.values():
        declared = getattr(parameter.annotation, "__metadata__", ())
        found += [flag for one in declared for flag in getattr(one, "param_decls", None) or ()]
    return [flag.partition("/")[0] for flag in found]


COMMANDS = [(words, options_of(verb)) for words, verb in commands()]
WHOLE = make_session(*suite(), created="2026-01-01 base").model_dump_json(by_alias=True)
LINES = NUMPY_TORCH.read_text()
FILES = {
    "session.json": WHOLE.encode(),
    "lines.json": LINES.encode(),
    "scenario.toml": b'title = "t"\nquestion = "q"\npairs = ["numpy -> torch"]\nshape = 64\nexpect = ["view"]\n',
}
READERS = (
    ["report", "{}"], ["report", "{}", "--full"], ["report", "{}", "--csv", "-"], ["report", "{}", "--junit", "-"],
    ["report", "{}", "--markdown", "-"], ["report", "{}", "--github"], ["report", "{}", "--html", "page.html"],
    ["compare", "{}", "base.json"], ["compare", "base.json", "{}", "--full"], ["compare", "{}", "{}"],
    ["ticket", "{}"], ["ticket", "{}", "1", "--script"], ["ticket", "{}", "1"],
    ["explain", "{}"],
    ["run", "{}", "--dry-run"], ["run", "{}"], ["gate", "{}", "base.json"],
)  # fmt: skip


WIDTHS = ("x", "1", "9" * 5000)
VARIABLES = ({}, {"GITHUB_ACTIONS": "true"}, *({"COLUMNS": width} for width in WIDTHS))


@st.composite
def words(draw):
    command, options = draw(st.sampled_from(COMMANDS))
    found = [*command, *draw(st.lists(strings, max_size=3))]
    for flag in draw(st.lists(st.sampled_from(options or ["--help"]), max_size=3)):
        found += [flag, draw(strings)]
    variables = draw(st.sampled_from(VARIABLES))
    return Hostile(found, {"session.json": WHOLE}, variables)


@st.composite
def bytes_of_files(draw):
    """A file with some of its bytes replaced, inserted, cut or doubled."""
    name = draw(st.sampled_from(sorted(FILES)))
    data = FILES[name]
    for _ in range(draw(st.integers(1, 4))):
        values = [found.end() for found in re.finditer(rb'":', data)]
        at = draw(st.one_of(st.integers(0, len(data)), st.sampled_from(values or [0])))
        new = draw(
            st.one_of(
                st.binary(max_size=12),
                st.sampled_from([b"\x00", b"\xff\xfe", b"[" * 3000, b"1e999", b"\n"]),
            )
        )
        how = draw(st.sampled_from(["replace", "insert", "cut", "double"]))
        end = at if how == "insert" else at + len(new)
        data = {"cut": data[:at], "double": data + data[:at]}.get(how, data[:at] + new + data[end:])
    return read_by(draw, name, packed(data))


@st.composite
def values_of_sessions(draw):
    return read_by(draw, "session.json", draw(spoiled()))


OTHER_LINES = [
    *THERE_AND_BACK.read_text().splitlines(),
    *(
        '{"end": {"complete": true, "rounds": 3}}',
        '{"end": {"answers": -1}}',
        '{"end": 5}',
        "{}",
        "",
        "[]",
    ),
    *('{"of": 0, "round": 0}', '{"of": -1, "round": 0, "answer": {"status": "ok", "parts": {}}}'),
    *('{"of": 1e400, "round": [], "answer": {"status": {}}}', "\x1b[31m", "$(touch canary)"),
]


@st.composite
def lines_of_sessions(draw):
    """A session whose lines are lost, repeated, moved, torn, or mixed with those of another."""
    lines = [
        *LINES.splitlines(),
        json.dumps({"end": {"complete": True, "rounds": 3, "answers": 40}}),
    ]
    for _ in range(draw(st.integers(1, 4))):
        place, target = draw(st.tuples(*[st.integers(0, len(lines) - 1)] * 2))
        how = draw(st.sampled_from(["lose", "repeat", "move", "tear", "mix"]))
        line = draw(st.sampled_from(OTHER_LINES)) if how == "mix" else lines[place]
        if how in ("lose", "move") and len(lines) > 1:
            del lines[place]
        if how == "tear":
            lines[place] = line[: draw(st.integers(0, len(line)))]
        elif how != "lose":
            lines.insert(target, line)
    return read_by(draw, "lines.json", "\n".join(lines) + draw(st.sampled_from(["", "\n"])))


TEXTS = ("code", "export", "import", "setup", "python", "executable", "file", "reason", "name", "interpreter",
         "create", "convert", "command", "probe_files", "producer", "consumer", "layout", "dtype")  # fmt: skip


@st.composite
def payloads(draw):
    """A session in which some texts do harm if they are executed."""
    kinds = draw(st.sets(st.sampled_from(TEXTS), min_size=1, max_size=4))
    payload = draw(st.sampled_from(PAYLOADS))

    def spoil(content, kind=""):
        if isinstance(content, dict):
            return {key: spoil(value, key) for key, value in content.items()}
        if isinstance(content, list):
            return [spoil(value, kind) for value in content]
        return payload if isinstance(content, str) and kind in kinds else content

    if draw(st.booleans()):
        lines = [json.dumps(spoil(json.loads(line))) for line in LINES.splitlines()]
        return read_by(draw, "lines.json", "\n".join(lines) + "\n")
    return read_by(draw, "session.json", json.dumps(spoil(draw(st.sampled_from(SESSIONS)))))


def read_by(draw, name, text):
    reader = draw(st.sampled_from(READERS))
    github = draw(st.sampled_from(({}, {"GITHUB_ACTIONS": "true"})))
    return Hostile([word.format(name) for word in reader], {name: text, "base.json": WHOLE}, github)


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize(
    ("strategy", "share"),
    [
        (words(), 0.3),
        (bytes_of_files(), 0.2),
        (values_of_sessions(), 0.2),
        (payloads(), 0.15),
        (lines_of_sessions(), 0.15),
    ],
    ids=["words", "bytes", "values", "payloads", "lines"],
)
def test_hostile_input_executes_nothing_and_is_answered_in_words(strategy, share, part):
    search(strategy, share, part, PARTS)


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.json")), ids=lambda path: path.stem)
def test_a_case_of_the_corpus_passes(path):
    attack(Hostile(**json.loads(path.read_text())))


# Real processes


RUN = ("run", "fake", "fake", "--probe", PROBE_FILES / "fake.py", "--quick", "--shape", "16")
SHADOWS = ("numpy", "json", "typing", "torch", "dlprof", "sitecustomize", "ctypes", "subprocess")


ARRAY = "def __array__(self, dtype=None, copy=None):"
OBJECTS = {
    "lies": "__array_interface__ = {'typestr': '<f4', 'shape': (4,), 'data': (4096, False), 'version': 3}",
    "is huge": "__array_interface__ = {'typestr': '<f4', 'shape': (1 << 60,), 'data': (4096, False), 'version': 3}",
    "is negative": "__array_interface__ = {'typestr': '<f4', 'shape': (-4,), 'data': (4096, False), 'version': 3}",
    "is malformed": "__array_interface__ = {'typestr': 5, 'shape': 'abc', 'data': 'x'}",
    "is empty": "__array_interface__ = {}",
    "returns itself": f"{ARRAY} return self",
    "exports itself": "def __dlpack__(self, **_): return self\n    __dlpack_device__ = __dlpack__",
    "has everything": "def __getattr__(self, name): return self\n    def __call__(self, *_, **__): return self",
    "raises always": "def __getattribute__(self, name): raise KeyboardInterrupt(name)",
    "recurses": f"{ARRAY} return numpy.asarray(self)",
    "loops": f"{ARRAY}\n        while True: pass",
    "forks": f"{ARRAY}\n        os.fork()\n        return numpy.zeros(4)",
    "ends the process": f"{ARRAY} os._exit(0)",
    "closes all files": f"{ARRAY} os.closerange(0, 40)",
    "writes to all files": f"{ARRAY}\n        for fd in range(3, 40):\n            with suppress(OSError):"
    " os.write(fd, b'{}\\n')\n        return numpy.zeros(4)",
    "changes": f"n = 0\n    {ARRAY}\n        Evil.n += 1\n        return numpy.zeros(Evil.n % 7)",
    "has an evil name": f"{ARRAY} return numpy.zeros(4)\nEvil.__name__ = '\\x1b[31m\\n::error::'",
}  # fmt: skip


@pytest.mark.parametrize("kind", OBJECTS)
def test_an_object_that_poses_as_an_array_is_answered_in_words(tmp_path, kind):
    imports = "import numpy, os\nfrom contextlib import suppress"
    setup = f"{imports}\nclass Evil:\n    {OBJECTS[kind]}\nx = Evil()"
    options = ("--rounds", "1", "--sample-ms", "1", "--timeout", "5")
    words = ["time", "-s", setup, "numpy.asarray(x)", *options, "-o", str(tmp_path / "s.json")]
    done = dlprof(*words)
    check(Hostile(words), done)
    assert done.code in (0, 4), done.err


def test_a_module_in_the_current_folder_is_not_loaded(tmp_path):
    for name in SHADOWS:
        (tmp_path / f"{name}.py").write_text("import os; os.mkdir('canary-' + __name__)")
    (tmp_path / "session.json").write_text(WHOLE)
    done = process("report", "session.json", command=SCRIPT, cwd=tmp_path)
    assert done.code == 0, done.err
    assert not [*tmp_path.glob("canary-*")]


SCRIPT = (str(Path(sys.executable).with_name("dlprof")),)
"""The installed command: with ``-m``, Python itself looks into the current folder first."""


@pytest.mark.parametrize(
    "variables",
    [
        {"LC_ALL": "C", "LANG": None, "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"TERM": "dumb", "FORCE_COLOR": None},
        {"HOME": None, "XDG_STATE_HOME": None},
        {"HOME": "/nonexistent", "XDG_STATE_HOME": "/proc"},
        {"TZ": "Nowhere/At_All"},
        {"PYTHONWARNINGS": "error"},
    ],
    ids=" ".join,
)
def test_odd_surroundings_change_no_answer(tmp_path, variables):
    (tmp_path / "session.json").write_text(WHOLE)
    done = process("report", "session.json", "--full", command=SCRIPT, cwd=tmp_path, **variables)
    assert done.code == 0, done.err


@pytest.mark.parametrize("most", [6, 8, 12])
def test_too_few_open_files_are_refused_in_one_sentence(tmp_path, most):
    shell = ("sh", "-c", f'ulimit -n {most}; exec "$@"', "sh", *SCRIPT)
    done = process(*RUN, command=shell, cwd=tmp_path)
    assert done.code == 2, done.err
    assert "Too many open files" in done.sentence()
