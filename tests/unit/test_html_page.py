"""The HTML report as a whole: verdict first, everything there, nothing fetched, always a page."""

from __future__ import annotations

import re

import pytest
from builders import make_measure, make_session
from html_builders import US, alone, case, full_session, lost
from reading import Page

from dlprof.reports.html import render
from dlprof.rules import find
from dlprof.session.model import Result

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def html():
    return render(full_session())


@pytest.fixture(scope="module")
def page(html):
    return Page(html)


def test_rendering_is_a_pure_function(html):
    assert render(full_session()) == html


def test_a_thousand_cases_are_a_page_of_less_than_a_megabyte():
    few = full_session()
    results = [
        result.model_copy(update={"case": result.case.model_copy(update={"shape": (rows, 7)})})
        for rows in range(1, 73)
        for result in few.results
    ]
    many = few.model_copy(update={"results": results, "findings": find(results)})
    assert len(results) > 1000
    assert len(render(many).encode()) < 1_000_000


def test_the_verdict_stands_first(html):
    order = ["headline", "findings", "map", "cases", "charts", "handshake", "unmeasured"]
    places = [html.index(f'id="{name}"') for name in [*order, "environment", "session"]]
    assert places == sorted(places)


def test_every_id_stands_once(page):
    assert len(page.ids()) == len(set(page.ids()))


def test_every_link_within_the_page_has_its_target(page):
    wanted = {link[1:] for link in page.links() if link.startswith("#")}
    assert wanted <= set(page.ids())


def test_every_case_has_a_line(page):
    lines = [attrs["id"] for tag, attrs in page.tags if tag == "tr" and "id" in attrs]
    assert sorted(lines) == sorted(f"r{index}" for index in range(len(full_session().results)))


def test_nothing_is_fetched(html, page):
    for tag, attrs in page.tags:
        assert "src" not in attrs, (tag, attrs)
        if tag != "a":
            assert "href" not in attrs, (tag, attrs)
    assert "url(http" not in html
    assert "@import" not in html


DOCUMENTS = (
    "https://github.com/",
    "https://data-apis.org/",
    "https://dmlc.github.io/",
    "https://docs.jax.dev/",
    "https://docs.pytorch.org/",
)


def test_links_lead_to_this_page_to_the_session_to_an_issue_or_to_a_document(page):
    for link in page.links():
        assert link.startswith(("#", "data:application/gzip;base64,", *DOCUMENTS)), link


def test_only_the_own_script_may_run(page):
    policy = next(
        attrs["content"]
        for tag, attrs in page.tags
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert "default-src 'none'" in policy
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='", policy)


def test_every_chart_has_a_caption_and_a_table(page):
    charts = page.count("figure")
    assert charts >= 4
    assert page.count("figcaption") == page.count("svg") == charts
    assert page.text.count("The numbers of this chart as a table") == charts


def test_a_chart_takes_its_colours_from_the_page(html):
    for picture in re.findall(r"<svg.*?</svg>", html, re.DOTALL):
        assert "#0a0b" not in picture
        assert "var(--" in picture


def test_a_busy_machine_is_said(page):
    assert "Other processes kept 1.5 of" in page.text


def test_a_run_that_was_stopped_is_said():
    assert "The run was stopped" in Page(render(full_session(complete=False))).text


def test_a_session_without_results_says_so():
    text = Page(render(make_session())).text
    assert "Nothing could be measured" in text
    assert "This session holds no results." in text


def test_a_session_of_crashes_says_so():
    text = Page(render(alone(lost(status="crashed", reason="SIGSEGV during timing")))).text
    assert "Nothing could be measured" in text
    assert "1 case: 1 crashed" in text
    assert "SIGSEGV during timing" in text


def test_missing_measures_are_dashes():
    bare = case().model_copy(
        update=dict.fromkeys(
            ("phases", "ownership", "values", "host_time", "first_call_ns", "copy_cost")
        )
        | {"handshake": []}
    )
    assert "numpy.from_dlpack(x)" in Page(render(alone(bare))).text


@pytest.mark.parametrize("time_ns", [0.0, 1e-9, 1e300])
def test_absurd_times_still_make_a_page(time_ns):
    measure = make_measure(time_ns, None, min_ns=time_ns)
    odd = case().model_copy(update={"ready_time": measure, "host_time": measure})
    assert "numpy.from_dlpack(x)" in Page(render(alone(odd, case("numpy.asarray(x)")))).text


def test_evidence_that_is_no_number_still_makes_a_page():
    odd = case(
        ordering={"verdict": "host-sync", "evidence": {"loaded": {"host_ns": float("nan")}}},
        ownership={"verdict": "copy", "evidence": {"result_device": [float("inf"), {"a": None}]}},
        handshake=[{"call": 3, "ns": "soon", "capsule": [], "arguments": None}],
    )
    assert "numpy.from_dlpack(x)" in Page(render(alone(odd))).text


def test_an_array_without_elements_still_makes_a_page():
    empty = [case(shape=(0,)), case("numpy.array(x)", 3 * US, "copy", (0,))]
    assert "numpy.array(x)" in Page(render(alone(*empty))).text


def test_a_result_of_a_newer_version_still_makes_a_page():
    newer = {**case().model_dump(by_alias=True), "new_part": {"x": "<b>"}}
    assert "<b>x" not in render(alone(Result.model_validate(newer)))
