"""Read a page as a browser does, and sections of a document as text."""

from html.parser import HTMLParser

SILENT = frozenset(("style", "script"))
LINKS = ("href", "src")


class Page(HTMLParser):
    """A parsed page: ``tags`` are all elements with their attributes, ``text`` is what is shown."""

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

    @property
    def active(self):
        """Return the elements and attributes that could run or fetch something."""
        elements = [tag for tag, _ in self.tags if tag in ("script", "img", "iframe", "style")]
        names = [(name, value or "") for _, attrs in self.tags for name, value in attrs.items()]
        scripts = [name for name, value in names if "javascript:" in value and name in LINKS]
        return [*elements, *(name for name, _ in names if name.startswith("on")), *scripts]

    def ids(self):
        return [attrs["id"] for _, attrs in self.tags if "id" in attrs]

    def links(self):
        return [attrs["href"] for tag, attrs in self.tags if tag == "a" and "href" in attrs]

    def count(self, tag):
        return sum(found == tag for found, _ in self.tags)


def texts(found):
    """Return the cells of a table, or of all tables in a section."""
    blocks = getattr(found, "blocks", (found,))
    rows = [row for block in blocks for row in getattr(block, "rows", ())]
    return [[f"{cell.text} {cell.note}".strip() for cell in row] for row in rows]


def told(*sections):
    """Return the lines of sections, without tables."""
    blocks = [block for section in sections for block in section.blocks]
    return "\n".join(line for block in blocks for line in getattr(block, "lines", ()))


def part(document, heading):
    """Return the first section whose heading starts with this text."""
    return next(one for one in document.sections if one.heading.startswith(heading))
