"""Check that every link within the built site leads to an existing file and anchor.

Links to other sites are listed, and not checked.

python docs/check_links.py site
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links and the anchors of an HTML page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the links and anchors of a tag."""
        values = {name: value for name, value in attrs if value}
        self.links |= {values[name] for name in ("href", "src") if name in values}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}


def broken_links(path: Path, page: Page, pages: dict[Path, Page]) -> list[str]:
    """Return the links of a page to missing files or anchors of the site."""
    return [
        link for link in sorted(page.links) if _is_internal(link) and not _exists(path, link, pages)
    ]


def _is_internal(link: str) -> bool:
    """Return whether a link leads to a page of the site."""
    return not urlsplit(link).scheme and not link.startswith("//")


def _exists(path: Path, link: str, pages: dict[Path, Page]) -> bool:
    """Return whether the file and the anchor of a link on the page `path` exist."""
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target in pages and parts.fragment:
        return unquote(parts.fragment) in pages[target].anchors
    return target.exists()


def _page_paths(folder: Path) -> list[Path]:
    """Return the paths of all pages, without the theme's templates in _static."""
    return sorted(path for path in folder.rglob("*.html") if "_static" not in path.parts)


def main(folder: str) -> int:
    """Print broken links and links to other sites; return 1 if there are broken ones, else 0."""
    pages = {path: Page(path) for path in _page_paths(Path(folder).resolve())}
    broken = [
        f"{path.name}: {link}"
        for path, page in pages.items()
        for link in broken_links(path, page, pages)
    ]
    outside = sorted(
        {link for page in pages.values() for link in page.links if link.startswith("http")}
    )
    lines = [
        f"{len(pages)} pages",
        *(f"BROKEN {link}" for link in broken),
        *(f"outside {link}" for link in outside),
    ]
    sys.stdout.write("\n".join(lines) + "\n")
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
