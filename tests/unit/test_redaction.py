"""What says who and where somebody is goes; what a maintainer needs stays."""

import argparse
import asyncio
import decimal
import inspect
import random
import statistics
import string
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from secret_texts import TEXTS

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
    ("kind", "text", "secret"), TEXTS, ids=[f"{at} {one[0]}" for at, one in enumerate(TEXTS)]
)
def test_no_eight_characters_of_a_secret_stay(kind, text, secret):
    after = redacted(text)
    parts = {secret[at : at + 8] for at in range(len(secret) - 7)} or {secret}
    assert not [part for part in parts if part in after], f"{kind}: {after}"


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


LETTERS, HEX = string.ascii_letters + string.digits, "0123456789abcdef"


CHANCE = random.Random(41)


def secret(size, letters=LETTERS):
    """No secret is in this file: scanners of repositories would find it."""
    return "".join(CHANCE.choices(letters, k=size))


def jwt():
    return f"eyJ{secret(20)}.eyJ{secret(40)}.{secret(43)}"


SECRETS = {
    # tokens of services
    "GitHub": (f"gh{'p'}_{secret(36)}", "remote: token {} is not valid"),
    "GitHub, fine-grained": (f"github_{'pat'}_{secret(22)}_{secret(59)}", "export X={}"),
    "GitLab": (f"glp{'at'}-{secret(20)}", "git clone failed with {}"),
    "Hugging Face": (f"hf_{secret(34, string.ascii_letters)}", "login(token={!r})"),
    "OpenAI": (f"sk-{'proj'}-{secret(74)}T3BlbkFJ{secret(74)}", "Incorrect API key provided: {}."),
    "Anthropic": (f"sk-{'ant'}-api03-{secret(93)}AA", "client = Client({!r})"),
    "Slack": (f"xox{'b'}-{secret(11, string.digits)}-{secret(12, string.digits)}-{secret(24)}", "with {} ok"),
    "Slack hook": (f"T{secret(10)}/B{secret(10)}/{secret(24)}", "https://hooks.slack.com/services/{}"),
    "PyPI": (f"pypi-{'AgEI'}cHlwaS5vcmc{secret(70)}", "twine upload -p {}"),
    "npm": (f"npm_{secret(36)}", "//registry.npmjs.org/:_authToken={}"),
    "Google": (f"AI{'za'}{secret(35)}", "https://maps.example.com/api?key={}"),
    "Stripe": (f"sk_{'live'}_{secret(24)}", "stripe.api_key = {!r}"),
    "SendGrid": (f"SG.{secret(22)}.{secret(43)}", "sg = {}"),
    "DigitalOcean": (f"dop_{'v1'}_{secret(64, HEX)}", "doctl auth init -t {}"),
    "Databricks": (f"dapi{secret(32, HEX)}", "DATABRICKS_TOKEN={}"),
    "Weights & Biases": (secret(40, HEX), "WANDB_API_KEY={}"),
    "JSON web token": (jwt(), "token {} has expired"),
    "Bearer": (secret(32), "Authorization: Bearer {}"),
    "Basic": (secret(28), "authorization: Basic {}=="),
    "Cookie": (secret(26), "Cookie: session={}; theme=dark"),
    # URLs
    "URL with login": (f"hunter{secret(6)}", "https://ada:{}@example.org/simple"),
    "database": (f"p/{secret(9)}", "postgresql://bob:{}@db.example.org:5432/x"),
    "redis": (secret(12), "redis://:{}@cache.example.org:6379/0"),
    "query": (secret(24), "https://example.org/data?access_token={}&v=2"),
    "signed": (secret(43), "https://x.example.net/a?se=2026&sig={}%3D"),
    # keys
    "AWS id": (f"AK{'IA'}{secret(16, string.ascii_uppercase + '234567')}", "for {} in us-east-1"),
    "AWS secret": (secret(40), "aws_secret_access_key = {}"),
    "AWS session": (secret(120), "AWS_SESSION_TOKEN={}"),
    "Azure": (f"{secret(86)}==", "AccountName=x;AccountKey={};EndpointSuffix=core"),
    "private key": (f"{secret(64)}\n{secret(64)}", f"-----BEGIN RSA {'PRIVATE'} KEY-----\n{{}}\n-----END"),
    "cut key": (secret(64), f"-----BEGIN OPENSSH {'PRIVATE'} KEY-----\n{{}}"),
    # people and machines
    "home": ("dmitri", 'File "/home/dmitri/a b/x.py", line 3'),
    "home of a cluster": ("yolanda", "cd /lustre/yolanda failed"),
    "home of Windows": ("Gwendolyn", r"C:\Users\Gwendolyn\proj\x.py"),
    "host": ("gpu-node-17.cluster.local", "ssh: connect to {} port 22"),
    "host of a cloud": ("ip-10-3-7-21", "launched on {}.ec2.internal"),
    "prompt": ("zelda", "zelda@login03:~$ python x.py"),
    "address": ("192.168.14.7", "NCCL socket 192.168.14.7<0>"),
    "mail": ("first.last+x@mail.example.co.uk", "write to {}"),
    # the environment
    "dump": ("qwerasdf", "SHELL=/bin/sh\nPWD=/x\nMYTHING=qwerasdf\nLANG=C\nOMP_NUM_THREADS=2\n"),
    "password": ("Tr0ub4dor&3", "DB_PASSWORD={}"),
}  # fmt: skip


@pytest.mark.parametrize("kind", SECRETS)
def test_no_secret_of_forty_one_kinds_is_kept(kind):
    value, text = SECRETS[kind]
    shown = redacted(f"It fails here:\n{text.format(value)}\nand here.")
    assert value not in shown
    assert "and here." in shown or "key" in kind


def test_of_harmless_words_less_than_one_in_a_hundred_is_taken_out():
    texts = [inspect.getdoc(one) or "" for module in (subprocess, statistics, decimal, asyncio, argparse)
             for one in vars(module).values() if inspect.isclass(one) or inspect.isfunction(one)]  # fmt: skip
    texts += [path.read_text() for path in sorted(Path(__file__).parents[2].glob("docs/*.md"))[:12]]
    taken = kept = 0
    for text in texts:
        shown = Counter(redacted(text).split())
        taken += (Counter(text.split()) - shown).total()
        kept += shown.total()
    assert kept > 10_000
    assert taken < 0.01 * kept
