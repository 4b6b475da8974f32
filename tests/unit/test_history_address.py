"""Where a history is; what is secret in the address is shown nowhere."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given as examples
from hypothesis import strategies as st

from dlprof.errors import HistoryError, UsageError
from dlprof.history.address import given, parse
from dlprof.history.store import folder_at

pytestmark = pytest.mark.unit

SECRETS = {
    "s3://key:sec/ret@bucket/folder": ("key", "sec", "ret"),
    "sftp://somebody:pass@word@host/folder": ("somebody", "pass", "word"),
    "https://host/folder?sig=abc%2Bdef&se=later": ("abc%2Bdef", "abc+def", "later"),
    "abfs://container/folder#token": ("token",),
    "https://user:who?knows@host/folder": ("user", "who", "knows"),
    "https://host/folder?mail=a@b.example&token=xyz": ("b.example", "xyz"),
    "simplecache::s3://key:secret@bucket/folder": ("key", "secret"),
    "S3://KEY:SECRET@bucket": ("KEY", "SECRET"),
}


@pytest.mark.parametrize(("text", "secrets"), SECRETS.items())
def test_login_and_query_are_shown_by_nothing(text, secrets):
    address = parse(text)
    message = address.without_secrets(f"cannot reach {text}: {' '.join(secrets)} refused")
    for shown in (address.shown, repr(address), message):
        assert not [secret for secret in secrets if secret in shown], shown


@examples(st.text(alphabet="abcXYZ019:/@?&=%+.-", min_size=6, max_size=40))
def test_no_password_is_shown_whatever_is_in_it(password):
    assert password not in parse(f"s3://user:{password}@bucket/folder").shown


@pytest.mark.parametrize(
    ("text", "protocols"),
    [
        ("s3://bucket", ("s3",)),
        ("ftp://bob:ab::secret@localhost:1/h", ("ftp",)),
        ("zip::simplecache::s3://bucket/a.zip", ("zip", "simplecache", "s3")),
        ("zip://inner::ftp://host/a.zip", ("zip", "ftp")),
    ],
)
def test_the_protocols_of_a_chain_are_those_of_its_addresses(text, protocols):
    assert parse(text).protocols == protocols


@pytest.mark.parametrize("text", ["s3://bucket/folder", "memory://history"])
def test_an_address_without_secrets_is_shown_as_it_is(text):
    assert parse(text).shown == text


@pytest.mark.parametrize(
    ("text", "folder"),
    [
        ("./history", Path("history")),
        ("/tmp/a?b@c", Path("/tmp/a?b@c")),
        ("file:///tmp/history", Path("/tmp/history")),
        ("~/history", Path.home() / "history"),
    ],
)
def test_a_folder_is_a_folder_whatever_its_name(text, folder):
    assert parse(text).folder == folder


def test_the_variable_is_the_default(monkeypatch):
    monkeypatch.setenv("DLPROF_HISTORY", "here")
    assert given(None, "--to").folder == Path("here")
    assert given("there", "--to").folder == Path("there")
    monkeypatch.delenv("DLPROF_HISTORY")
    with pytest.raises(UsageError, match="Give --to, or set DLPROF_HISTORY"):
        given(None, "--to")


@pytest.mark.parametrize("text", ["", " ", "a\0b", "s3:/bucket/folder"])
def test_no_address_is_refused(text):
    with pytest.raises(UsageError):
        parse(text)


def test_an_unknown_protocol_is_named():
    with pytest.raises(HistoryError, match="fsspec knows no protocol 'bogus'"):
        folder_at(parse("bogus://user:secret@place"))


def test_a_missing_driver_is_told_with_the_command_that_installs_it(monkeypatch):
    def missing(name):
        raise ImportError(f"Install {name}")

    monkeypatch.setattr("fsspec.get_filesystem_class", missing)
    with pytest.raises(HistoryError, match="python -m pip install gcsfs"):
        folder_at(parse("gs://bucket/folder"))


def test_a_driver_that_fails_is_told_without_the_secret(monkeypatch):
    def broken(text):
        raise RuntimeError(f"no way to {text}\nat line 1")

    monkeypatch.setattr("fsspec.core.url_to_fs", broken)
    with pytest.raises(HistoryError) as caught:
        folder_at(parse("memory://user:secret@place"))
    assert not {"secret", "\n"} & set(str(caught.value).split())
    assert caught.value.__suppress_context__
