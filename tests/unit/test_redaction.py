"""What says who and where somebody is goes; what a maintainer needs stays."""

import argparse
import asyncio
import decimal
import inspect
import statistics
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from secret_texts import TEXTS

from dlprof.ticket.redaction import Redactor

HERE = Redactor(
    homes=("/home/ada", "/srv/people/ada"),
    users=("ada",),
    hosts=("node17.example.org", "node17"),
    secrets=("correct-horse",),
)


@pytest.mark.parametrize(
    ("text", "secret"), [one[1:] for one in TEXTS], ids=[one[0] for one in TEXTS]
)
def test_no_eight_characters_of_a_secret_stay_and_what_stands_around_it_does(text, secret):
    after = HERE(f"It fails here:\n{text}\nand here.")
    parts = {secret[at : at + 8] for at in range(len(secret) - 7)} or {secret}
    assert not [part for part in parts if part in after], after
    assert after.startswith("It fails here:\n")
    assert after.endswith("\nand here.")


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
    ],
)
def test_what_is_private_goes(before, after):
    assert HERE(before) == after


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
    assert HERE(text) == text


def test_secret_variables_and_homes_come_from_the_environment():
    here = Redactor.of(
        {"HOME": "/home/zoe", "USER": "zoe", "MY_API_KEY": "abcdef1", "LANG": "C.UTF-8"}
    )
    assert "/home/zoe" in here.homes
    assert "zoe" in here.users
    assert here.secrets == ("abcdef1",)


def test_the_folder_of_a_shell_is_a_path_and_no_secret():
    folder = "/mnt/experiments/probes"
    here = Redactor.of({"PWD": folder, "OLDPWD": folder, "DB_PWD": "/correct-horse"})
    assert here(f"{folder}/mine.py says /correct-horse") == "<path>/mine.py says <secret>"


@pytest.mark.parametrize("name", ["root", "numpy", "test", "a", "max", "Import", "sys"])
def test_names_that_are_words_or_needed_by_scripts_are_not_taken_out(name):
    assert name not in Redactor.of({"USER": name}).users


@pytest.mark.parametrize(
    "text", ["/" * 100_000 + "a/" * 50_000, "eyJ-" * 50_000, "a@" * 100_000, "://" * 60_000]
)
def test_a_long_text_of_what_secrets_begin_with_is_redacted(text):
    assert isinstance(HERE(text), str)


def test_of_harmless_words_less_than_one_in_a_hundred_is_taken_out():
    texts = [inspect.getdoc(one) or "" for module in (subprocess, statistics, decimal, asyncio, argparse)
             for one in vars(module).values() if inspect.isclass(one) or inspect.isfunction(one)]  # fmt: skip
    texts += [path.read_text() for path in sorted(Path(__file__).parents[2].glob("docs/*.md"))[:12]]
    taken = kept = 0
    for text in texts:
        shown = Counter(HERE(text).split())
        taken += (Counter(text.split()) - shown).total()
        kept += shown.total()
    assert kept > 10_000
    assert taken < 0.01 * kept
