"""Every link inside the built site leads to a file and an anchor that exist; those that lead
outside are listed.

python docs/check_links.py site
"""

from __future__ import annotations

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """What a page points to, and what can be pointed at."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value for name, value in attrs if value}
        self.links |= {given[name] for name in ("href", "src") if name in given}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}


def broken(path: Path, page: Page, pages: dict[Path, Page]) -> list[str]:
    """Links of a page that lead nowhere."""
    return [link for link in sorted(page.links) if _inside(link) and not _leads(path, link, pages)]


def _inside(link: str) -> bool:
    return not urlsplit(link).scheme and not link.startswith("//")


def _leads(path: Path, link: str, pages: dict[Path, Page]) -> bool:
    parts = urlsplit(link)
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target in pages and parts.fragment:
        return unquote(parts.fragment) in pages[target].anchors
    return target.exists()


def _written(folder: Path) -> list[Path]:
    """The pages; the theme keeps templates in _static."""
    return sorted(path for path in folder.rglob("*.html") if "_static" not in path.parts)


def main(folder: str) -> int:
    pages = {path: Page(path) for path in _written(Path(folder).resolve())}
    lost = [
        f"{path.name}: {link}" for path, page in pages.items() for link in broken(path, page, pages)
    ]
    outside = sorted(
        {link for page in pages.values() for link in page.links if link.startswith("http")}
    )
    said = [
        f"{len(pages)} pages",
        *(f"BROKEN {one}" for one in lost),
        *(f"outside {link}" for link in outside),
    ]
    sys.stdout.write("\n".join(said) + "\n")
    return len(lost) > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
