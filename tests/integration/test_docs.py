"""The documents match the tool."""

import contextlib
import io
import json
import re
import shlex
from pathlib import Path

import pytest
import typer.main
from command_line import RUN_RECORDED, dlprof, replay

from dlprof import cli, errors

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
EXIT_CODES = ROOT / "docs" / "exit-codes.md"
PROBES = ROOT / "docs" / "probes.md"
DOCUMENTS = [
    README,
    *(ROOT / name for name in ("CONTRIBUTING.md", "SKILL.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]

LINKED = dict.fromkeys(
    [*DOCUMENTS, *(ROOT / "docs").rglob("*.md"), *(ROOT / "dlprof/judge/pages").glob("*.md")]
)
"""Documents that people read on a code host."""

every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)


@pytest.fixture(scope="module")
def verbs():
    """Return the commands of dlprof by name."""
    return typer.main.get_command(cli.command_line()).commands


def with_subcommands(commands):
    """Yield the commands and their subcommands."""
    for command in commands:
        yield command
        yield from with_subcommands(getattr(command, "commands", {}).values())


@pytest.fixture(scope="module")
def probe_file(tmp_path_factory):
    """Return the example of docs/probes.md as a file."""
    blocks = re.findall(r"```python\n(.*?)```", PROBES.read_text(encoding="utf-8"), re.DOTALL)
    (example,) = [block for block in blocks if "(Probe):" in block]
    path = tmp_path_factory.mktemp("probes") / "memoryview_probe.py"
    path.write_text(example, encoding="utf-8")
    return path


def measured(*arguments, probe_file):
    """Return status and verdicts of a quick run, as sets by code."""
    done = dlprof("run", *arguments, "--probe", probe_file, "--quick", "--json", "-")
    assert done.code == 0, done.err
    found = {}
    for result in json.loads(done.out)["results"]:
        found.setdefault(result["case"]["code"], set()).add(verdicts(result))
    return found


def verdicts(result):
    measures = result["ownership"], result["values"]
    return result["status"], *(measure and measure["verdict"] for measure in measures)


def code_of(text):
    """Return the text of code blocks and between backticks."""
    fence = re.compile(r"```console\n(.*?)```", re.DOTALL)
    lines = [
        line.removeprefix("$ ") for block in fence.findall(text) for line in block.splitlines()
    ]
    captured = re.findall(r"<!-- captured: COLUMNS=80 (.*?) -->", text)
    return lines + captured + re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)


def option_names(verbs):
    options = [option for verb in with_subcommands(verbs.values()) for option in verb.params]
    return {name for option in options for name in (*option.opts, *option.secondary_opts)}


def table_codes(text):
    """Return the exit codes of a table."""
    return {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}


def test_the_probe_of_the_documents_takes_arrays_in(probe_file):
    assert measured("numpy", "memoryview", "--shape", "3x4", probe_file=probe_file) == {
        "memoryview(x)": {("ok", "view", "ok")},
        "memoryview(bytes(x))": {("ok", "copy", "wrong")},
    }


@pytest.fixture(scope="module")
def _earlier_sessions():
    """Measure sessions for ``LAST`` and the numbers in the documents."""
    for _ in range(3):
        assert replay(*RUN_RECORDED).code == 0


@every_document
@pytest.mark.usefixtures("_earlier_sessions")
def test_every_command_line_of_the_documents_can_be_parsed(document, verbs):
    lines = code_of(document.read_text(encoding="utf-8"))
    for line in (line for line in lines if line.startswith("dlprof ")):
        _, verb, *words = shlex.split(line.partition(" > ")[0])
        if words:
            command = verbs[verb]
            while words and words[0] in getattr(command, "commands", {}):
                command, words = command.commands[words[0]], words[1:]
            if words:
                command.make_context(verb, words)
        else:  # a mention of the command
            assert verb in verbs or verb in ("--version", "--help"), line


@every_document
def test_every_option_that_the_documents_mention_exists(document, verbs):
    others = {"--version", "--help"}  # of dlprof itself
    for code in code_of(document.read_text(encoding="utf-8")):
        if code.startswith("--"):
            assert re.match(r"--[a-z-]+", code)[0] in option_names(verbs) | others, code


def test_the_exit_codes_of_the_contract_are_documented():
    contract = errors.__doc__.partition("Exit codes are a contract")[2]
    promised = {int(code) for code in re.findall(r"\b(\d+) [a-z]", contract)}
    raised = {0, errors.DlprofError.exit_code} | {
        error.exit_code
        for error in vars(errors).values()
        if isinstance(error, type) and issubclass(error, errors.DlprofError)
    }
    assert table_codes(EXIT_CODES.read_text(encoding="utf-8")) == promised
    assert raised <= promised


def without_code(path):
    blocks = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
    return blocks.sub("", path.read_text(encoding="utf-8"))


def anchors(path):
    """Return the anchors that GitHub gives to the headings of a document."""
    headings = re.findall(r"^#+ (.*)$", without_code(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", LINKED, ids=lambda path: path.name)
def test_each_link_has_words_and_leads_somewhere(document):
    prose = re.sub(r"`[^`\n]+`", "code", without_code(document))
    for words, target in re.findall(r"\[([^\]]*)\]\(([^)\s]*)", prose):
        assert words.strip(), target
        assert target, words
        name, _, anchor = target.partition("#")
        file = document.parent / name if name else document
        if "://" not in target:
            assert file.exists(), target
            assert not anchor or file.suffix != ".md" or anchor in anchors(file), target


PYTHON_API = ROOT / "docs" / "python-api.md"
EXAMPLES = re.findall(r"```python\n(.*?)```", PYTHON_API.read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("example", EXAMPLES, ids=range(len(EXAMPLES)))
def test_the_examples_of_the_python_api_run(example):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(example, {})
    assert out.getvalue().strip()
