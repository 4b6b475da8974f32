"""Text that tries to be markup, a command or a control sequence."""

from hypothesis import strategies as st

BITES = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "\x1b[31mred\x1b]8;;http://evil\x07",
    "\u202egnp.exe",
    "]]>&lt;&#x0;\x00",
    "datum.value; fetch('//evil')",
    "אבג ﷽",
    "```\n# not a heading\n```",
)
NASTY = (
    *BITES,
    "`` `code` ``",
    "a|b\\|c\\\\|d",
    "two\nlines\r\nthree\u2028four",
    "=HYPERLINK(1)",
    '"quoted", and a comma',
    "@somebody #1 www.example.org https://example.org [a](b) ![c](d)",
    "**bold** _x_ ~~gone~~ $x$ &amp; &lt;",
    "::error::no\n::set-output name=a::b",
    "##[error]x",
    "100%0A,a:b",
    "",
    " ",
    "x" * 5000,
)
texts = st.one_of(st.sampled_from(NASTY), st.text(max_size=40))
