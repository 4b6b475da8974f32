"""What continuous integration reads: checks as JUnit XML; remarks for GitHub.

A *check* is one question with its outcome, so that a report shows what passed as well. A *remark*
is something to be said, of one way and one cause, with a fingerprint that stays the same from run
to run. Both are made from a session (:mod:`of_session`) or a comparison (:mod:`of_comparison`);
``junit`` and ``github`` are their forms. See docs/ci.md.
"""
