"""Sentences stay short: 20 words in findings and errors, 28 in the documents, no unclear words."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "dlprof" / "judge" / "pages").glob("*.md")),
]
SAID, WRITTEN = 20, 28
"""The limits of words in a sentence: in the program, and in a document."""
UNCLEAR = re.compile(
    r"\b(whoever|whatever|nobody|of which|of whom|that of|those of|is said|is told|he)\b",
    re.IGNORECASE,
)


def sentences(text, ends):
    """Remove code, because a list of names is no long sentence."""
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)|\*+", r"\1", text)
    text = re.sub(r"`[^`\n]*`|[\w.]+\([^ ]*(?: [^ ]*=[^ ]*)*\)", "…", text)
    return re.split(rf"(?<=[{ends}])\s+", text)


def faults(text, most, ends=".!?:;"):
    """Return the sentences that are too long or unclear."""
    for sentence in sentences(text, ends):
        if len(re.findall(r"\S*\w\S*", sentence)) > most or UNCLEAR.search(sentence):
            yield sentence


def blocks(page):
    """Return the paragraphs, list items and table cells of a page, without code and headings."""
    page = re.sub(r"```.*?```|<!--.*?-->|^#[^\n]*$", "", page, flags=re.DOTALL | re.MULTILINE)
    page = re.sub(r"^\s*(?:[-*]|\d+\.)\s", "\n\n", page, flags=re.MULTILINE)
    page = re.sub(
        r"^\|.*$", lambda row: "\n\n" + row[0].replace("|", "\n\n"), page, flags=re.MULTILINE
    )
    return [" ".join(block.split()) for block in page.split("\n\n") if block.strip()]


def raised():
    """Return the messages of errors, by source location; a value counts as one word."""
    for path in sorted((ROOT / "dlprof").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call) and node.exc.args:
                yield f"{path.relative_to(ROOT)}:{node.lineno}", words_of(node.exc.args[0])


def words_of(node):
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(words_of(part) for part in node.values)
    if isinstance(node, ast.BinOp):
        return words_of(node.left) + words_of(node.right)
    return "VALUE"


def test_errors_are_short_and_clear():
    found = [(where, fault) for where, text in raised() for fault in faults(text, SAID)]
    assert not found


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.name)
def test_documents_are_short_and_clear(path):
    text = path.read_text(encoding="utf-8")
    assert not [fault for block in blocks(text) for fault in faults(block, WRITTEN, ".!?")]


@pytest.mark.parametrize(
    "text",
    ["word " * 29 + ".", "This is the path of which a copy was made.", "Whoever asks waits."],
)
def test_a_long_or_unclear_sentence_is_found(text):
    assert [*faults(text, WRITTEN)]
