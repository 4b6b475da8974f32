"""What a test can claim of a pair's conversions, for the pytest plugin: see docs/pytest.md.

``claim`` has the claims, pure functions from a session to complaints; ``failure`` the words of one
that does not hold; ``assertions`` measures, once for the same request, and raises.
"""
