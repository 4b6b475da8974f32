"""Text that nobody should have to trust, for every report."""

from __future__ import annotations

from hypothesis import strategies as st

NASTY = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "`` `code` ``",
    "```\nfence",
    "a|b\\|c\\\\|d",
    "two\nlines\r\nthree\u2028four",
    "\x1b[31mred\x1b[0m\x00",
    "\u202etxt.exe",
    "=HYPERLINK(1)",
    '"quoted", and a comma',
    "@somebody #1 www.example.org https://example.org [a](b) ![c](d)",
    "**bold** _x_ ~~gone~~ $x$ &amp; &lt;",
    "",
    " ",
    "x" * 5000,
)
texts = st.one_of(st.sampled_from(NASTY), st.text(max_size=40))
