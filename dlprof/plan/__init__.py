"""From a request to cases: axes, paths, settings. Nothing is started here."""
