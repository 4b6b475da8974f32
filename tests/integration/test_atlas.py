"""``dlprof atlas build`` on recorded sessions of four environments: the pages, and what is refused."""

import re
from pathlib import Path

import pytest
from command_line import dlprof

VERSIONS = Path(__file__).parents[1] / "recorded" / "versions"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("atlas") / "site"
    done = dlprof("atlas", "build", VERSIONS, "--out", folder)
    assert (done.code, done.err) == (0, "")
    return folder


def test_every_link_leads_to_a_page_and_none_leaves_the_site(site):
    pages = {page.name: page.read_text(encoding="utf-8") for page in site.iterdir()}
    for text in pages.values():
        found = set(re.findall(r'href="([^"#]+)"', text))
        assert found <= set(pages)
        assert "src=" not in text


def test_the_history_of_a_pair_has_its_changes_and_cells(site):
    text = (site / "pair-numpy-safetensors.html").read_text(encoding="utf-8")
    assert "until safetensors 0.7.0" in text
    assert "since 0.8.0" in text
    assert "onnxruntime" not in text


def test_a_rule_has_a_page_with_all_that_show_it(site):
    text = (site / "DLP008.html").read_text(encoding="utf-8")
    assert "safetensors.numpy.load" in text
    assert "pair-numpy-safetensors.html" in text


def test_a_second_site_replaces_the_first_and_nothing_else(tmp_path):
    folder = tmp_path / "site"
    assert dlprof("atlas", "build", VERSIONS, "--out", folder).code == 0
    (folder / "own.html").write_text("mine", encoding="utf-8")
    only = [file for file in VERSIONS.iterdir() if "safetensors" in file.name]
    assert dlprof("atlas", "build", *only, "--out", folder).code == 0
    names = {page.name for page in folder.iterdir()}
    assert "own.html" in names
    assert "pair-numpy-onnxruntime.html" not in names


@pytest.mark.parametrize("words", [("--out", "{}"), ("--out", "{}/index.html"), ()])
def test_a_folder_that_is_not_its_own_is_refused_in_a_sentence(tmp_path, words):
    (tmp_path / "index.html").write_text("mine", encoding="utf-8")
    done = dlprof("atlas", "build", VERSIONS, *(word.format(tmp_path) for word in words))
    assert done.code == 2
    assert done.sentence()
    assert [page.name for page in tmp_path.iterdir()] == ["index.html"]
