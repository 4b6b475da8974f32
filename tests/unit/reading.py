"""Read a page as a browser does: elements, and the text that a reader sees."""

from html.parser import HTMLParser

SILENT = frozenset(("style", "script"))


class Page(HTMLParser):
    """``tags`` are all elements with their attributes, ``text`` is what is shown."""

    def __init__(self, html):
        super().__init__(convert_charrefs=True)
        self.tags = []
        self.scripts = []
        self._silent = None
        self._shown = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag in SILENT:
            self._silent = tag
            self.scripts.append("") if tag == "script" else None

    def handle_endtag(self, tag):
        if tag == self._silent:
            self._silent = None

    def handle_data(self, data):
        if self._silent is None:
            self._shown.append(data)
        elif self._silent == "script":
            self.scripts[-1] += data

    @property
    def text(self):
        return " ".join(" ".join(self._shown).split())

    def ids(self):
        return [attrs["id"] for _, attrs in self.tags if "id" in attrs]

    def links(self):
        return [attrs["href"] for tag, attrs in self.tags if tag == "a" and "href" in attrs]

    def count(self, tag):
        return sum(found == tag for found, _ in self.tags)
