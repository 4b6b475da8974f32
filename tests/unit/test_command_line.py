"""The command line, in this process: help, and one-sentence errors for invalid input."""

import re
from functools import partial
from pathlib import Path

import pytest
import typer.main
from builders import make_result, make_session
from command_line import dlprof as run

from dlprof import cli
from dlprof.runner.session_file import document

DOCS = Path(__file__).parents[2] / "docs"


@pytest.fixture
def dlprof(monkeypatch, tmp_path):
    """Run a command line in an empty folder."""
    monkeypatch.chdir(tmp_path)
    return partial(run, XDG_STATE_HOME=tmp_path / "state", COLUMNS=80, TERMINAL_WIDTH=80)


def leaves():
    """Every verb, with its command."""
    commands = typer.main.get_command(cli.command_line()).commands
    for name, command in commands.items():
        inner = getattr(command, "commands", None)
        yield from ((f"{name} {one}", inner[one]) for one in inner) if inner else [(name, command)]


@pytest.mark.parametrize("verb", ["", *(name for name, _ in leaves())])
def test_the_help_of_a_verb_fits_80_columns(dlprof, verb):
    ended = dlprof(*verb.split(), "--help")
    assert ended.code == 0
    lines = ended.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "[[" not in ended.out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("run", "numpy"), "dlprof run torch numpy"),
        (("run", "a", "b", "--rounds", "9" * 5000), "1 to 1,000"),
        (("run", "a", "b", "--shape", "8,8"), "write 8x8 for one array of 2 dimensions"),
        (("run", "a", "b", "--shape", "8,9"), "or --shape 8 --shape 9"),
        (("run", "a", "b", "--probe", "~nobody/x.py"), "~nobody/x.py: "),
        (("run", "a", "b", "--no-such-option"), "no such option: --no-such-option"),
        (("run", "a", "b", "--shape"), "requires an argument"),
        (("report", ""), "Is a directory"),
        (("gate", "torch", "numpy"), "two interpreters"),
        (("gate", __file__, __file__, "-o", "n"), "leave --output out"),
        (("trace",), "missing argument"),
        (("trace", "nowhere.py"), "nowhere.py"),
        (("trace", "--device", "cuda", __file__), "--device cuda: expected simulated"),
        (("trace", "--fail-on", "read", __file__), "copy, wait, device"),
        (("gate", "a", "b", "--unsure", "maybe"), "pass or fail"),
        (("list", "paths", "torch"), "dlprof list paths torch jax"),
        (("report", "7"), "dlprof list sessions"),
        (("explain", "DLP999"), "there is no rule"),
        (("matrx",), "no such command 'matrx'"),
        (("torch", "jax"), "write dlprof run torch jax"),
        (("run", "a", "b", "--dtype", "fp16"), "did you mean 'float16'?"),
        (("run", "a", "b", "--device", "gpu"), "did you mean 'cuda'?"),
        (("run", "a", "b", "--device", "cuda:0"), "did you mean 'cuda'?"),
        (("run", "a", "b", "--python", "/bin/ls"), "/bin/ls is no Python interpreter"),
        (("trace", "python", "train.py"), "leave out python: dlprof trace train.py"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else None,
)
def test_invalid_input_is_reported_in_one_sentence(dlprof, words, sentence):
    ended = dlprof(*words)
    assert (ended.code, ended.out) == (2, "")
    assert sentence in ended.sentence()
    assert ended.err.startswith("dlprof: ")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--csv", "s.json"), "s.json: a session"),
        (("--csv", "-", "--html", "-"), "--html, --csv"),
        (("--github", "--csv", "-"), "--csv, --github"),
        (("--html", "none/x"), "none/x: No such file"),
        (("--fail-on", "DLP0012"), "did you mean 'DLP012'"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_outputs_that_contradict_each_other_are_refused(dlprof, tmp_path, words, sentence):
    session = make_session(make_result())
    (tmp_path / "s.json").write_text(document(session))
    before = (tmp_path / "s.json").read_bytes()
    ended = dlprof("report", "s.json", *words)
    assert (ended.code, (tmp_path / "s.json").read_bytes()) == (2, before)
    assert sentence in ended.err


@pytest.mark.parametrize(
    ("word", "rules"), [("wait", {"DLP001", "DLP002"}), ("copy", {"DLP004", "DLP018", "DLP020"})]
)
def test_explain_finds_the_rules_about_a_word(dlprof, word, rules):
    assert rules <= {line.partition(" ")[0] for line in dlprof("explain", word).out.splitlines()}


def test_a_kept_session_is_named_by_its_number(dlprof, tmp_path):
    folder = tmp_path / "state" / "dlprof"
    folder.mkdir(parents=True)
    for name, index in (("20250101-run.json", 0), ("20250102-run.json", 1)):
        session = make_session(*[make_result()] * index, command=["run", name])
        (folder / name).write_text(document(session))
    listed = dlprof("list", "sessions").out
    assert listed.index("20250102") < listed.index("20250101")
    assert "numpy.from_dlpack(x)" in dlprof("report", "1").out
    assert "numpy.from_dlpack(x)" not in dlprof("report", "2").out


def interrupted(*_, **__):
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    "command_line",
    [interrupted, lambda *_: interrupted],
    ids=["while verbs are imported", "typer lets it through"],
)
def test_an_interrupt_is_reported(dlprof, monkeypatch, command_line):
    monkeypatch.setattr(cli, "command_line", command_line)
    ended = dlprof("run")
    assert (ended.code, ended.err) == (130, "dlprof: interrupted\n")


@pytest.mark.parametrize("verb", ["run", "gate", "time", "trace", "report"])
def test_the_help_shows_no_type_of_python_and_ends_with_what_few_need(dlprof, verb):
    shown = dlprof(verb, "--help").out
    assert not re.search(r"<(bool|str|list|Any|Path)|[{][A-Z]+[|]", shown)
    if verb == "run":
        assert max(map(shown.index, ("--json", "--rounds"))) < shown.index("Advanced")
        assert shown.index("Advanced") < shown.index("--sample-ms")
