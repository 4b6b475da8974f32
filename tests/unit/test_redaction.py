"""What says who and where somebody is goes; what a maintainer needs stays."""

import pytest

from dlprof.evidence.redaction import Redactor

HERE = Redactor(
    homes=("/home/ada", "/srv/people/ada"),
    users=("ada",),
    hosts=("node17.example.org", "node17"),
    secrets=("correct-horse",),
)


def redacted(text):
    return HERE(text)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("File /home/ada/work/probe.py", "File <path>/probe.py"),
        ("/srv/people/ada", "~"),
        ('File "/mnt/My Project/of us/x.py", line 3', 'File "<path>/x.py", line 3'),
        ('File "/home/ada/My Project/of us/x.py"', 'File "<path>/x.py"'),
        ("in /home/somebody/else/x.py:3", "in <path>/x.py:3"),
        ("/Users/bob/a.py", "<path>/a.py"),
        ("/root/.cache/x", "<path>/x"),
        ("'/opt/company/secret/lib.so'", "'<path>/lib.so'"),
        ("file:///opt/company/lib.so", "<path>/lib.so"),
        (
            "/home/ada/v/lib/python3.11/site-packages/jax/_src/core.py",
            "<path>/site-packages/jax/_src/core.py",
        ),
        ("on node17.example.org and node17:", "on <host> and <host>:"),
        ("ada ran it", "<user> ran it"),
        ("mail ada@example.org", "mail <mail>"),
        ("https://ada:pw@example.org/x", "https://<login>@example.org/x"),
        ("password correct-horse!", "password <secret>!"),
        ("ghp_0123456789abcdefghij0123", "<secret>"),
        ("AKIAABCDEFGHIJKLMNOP", "<secret>"),
    ],
)
def test_what_is_private_goes(before, after):
    assert redacted(before) == after


@pytest.mark.parametrize(
    "text",
    [
        "with tf.device('/CPU:0'):",
        "/job:localhost/replica:0/task:0/device:GPU:0",
        "https://data-apis.org/array-api/latest/API_specification",
        "3.0 GB/s, 1/2, and/or, x // y, a /= b",
        'lines = Path("/proc/self/status").read_text()',
        "adamant, nadal, node170",
        "x = x.reshape((4, 4)) / 2",
        "numpy 2.4.6 on Linux-6.1-x86_64-with-glibc2.36",
        "import numpy, torch",
    ],
)
def test_what_a_reader_needs_stays(text):
    assert redacted(text) == text


def test_secret_variables_and_homes_come_from_the_environment():
    here = Redactor.of(
        {"HOME": "/home/zoe", "USER": "zoe", "MY_API_KEY": "abcdef1", "LANG": "C.UTF-8"}
    )
    assert "/home/zoe" in here.homes
    assert "zoe" in here.users
    assert here.secrets == ("abcdef1",)


@pytest.mark.parametrize("name", ["root", "numpy", "test", "a", "max", "Import", "sys"])
def test_names_that_are_words_or_needed_by_scripts_are_not_taken_out(name):
    assert name not in Redactor.of({"USER": name}).users


@pytest.mark.parametrize(
    "text", ["/" * 500_000 + "a/" * 250_000, "eyJ-" * 250_000, "a@" * 500_000, "://" * 300_000]
)
def test_a_megabyte_is_redacted_at_once(text):
    assert isinstance(redacted(text), str)
