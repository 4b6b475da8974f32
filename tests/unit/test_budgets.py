"""Line budgets: each folder of dlprof keeps within the one in docs/architecture.md."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TABLE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8").partition("## Budgets")[2]
BUDGETS = {name: int(lines) for name, lines in re.findall(r"\| `([\w/]+)` \| (\d+) \|", TABLE)}


def lines_in(folder: str) -> int:
    files = (ROOT / folder).glob("*.py") if folder == "dlprof" else (ROOT / folder).rglob("*.py")
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)


@pytest.mark.parametrize("folder", BUDGETS)
def test_a_folder_keeps_within_its_budget(folder):
    assert lines_in(folder) <= BUDGETS[folder], "delete before you add: docs/architecture.md"


def test_every_folder_has_a_budget():
    folders = {f"dlprof/{path.name}" for path in (ROOT / "dlprof").iterdir() if path.is_dir()}
    folders = {name for name in folders if "__pycache__" not in name}
    assert folders | {"dlprof", "tests"} == set(BUDGETS)


def test_all_budgets_together_are_at_most_39_740_lines():
    assert sum(BUDGETS.values()) - BUDGETS["tests"] <= 39_740


def test_the_documents_have_at_most_37_000_words():
    pages = [*(ROOT / "docs").rglob("*.md"), *(ROOT / "dlprof" / "judge" / "pages").glob("*.md")]
    texts = [page.read_text(encoding="utf-8") for page in pages if "_build" not in page.parts]
    assert sum(len(text.split()) for text in texts) <= 37_000
