"""``dlprof explain``: a rule's page is one screen."""

import pytest

from dlprof.reports.terminal import render_page
from dlprof.rules import RULES
from dlprof.rules.pages import page

MOST_LINES = 40


@pytest.mark.parametrize("rule", [rule.id for rule in RULES])
def test_a_page_is_one_screen_of_the_terminal_with_all_its_parts(rule):
    lines = render_page(page(rule), 100).splitlines()
    assert len(lines) <= MOST_LINES
    assert all(len(line) <= 100 or "https://" in line for line in lines)
    parts = ["Why it matters", "Example", "What to do", "How dlprof proves it", "Sources"]
    assert [line for line in lines if line in parts] == parts


def test_code_and_tables_keep_their_lines_and_a_link_its_address():
    text = "# T\n\nOne\ntwo [a](https://b.c/d) and [o/r#1](https://github.com/o/r/issues/1).\n\n"
    text += (
        "```python\nx = 1\n\ny = 2\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n- *an* item\n- more\n"
    )
    assert render_page(text).splitlines() == [
        "T",
        "  One two a (https://b.c/d) and o/r#1.",
        "    x = 1",
        "",
        "    y = 2",
        "  a  b",
        "  1  2",
        "  - an item",
        "  - more",
    ]
