#!/usr/bin/env python3
"""Puts together the sources of the documentation as a site.

Usage: sources.py ROOT DEST

Pages of docs/ and the repository's own pages are copied, with links that lead to pages of the site. The reference of the C interface is
made from the headers. A link that leads nowhere is an error.
"""

import json
import pathlib
import re
import shutil
import sys

import bars
import figures
import reference

# Pages from outside docs/, by their place in the site.
PAGES = {"README.md": "index.md", "ARCHITECTURE.md": "internals.md", "HACKING.md": "hacking.md", "CONTRIBUTING.md": "contributing.md"}

# The page of figures, and what it shows.
FIGURES, FIGURES_DATA = "docs/explanation/figures.md", "docs/explanation/figures.json"

IMAGE = re.compile(r"(!\[[^\]]*\]\()([^)\s]+)\)")
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def slug(heading):
    """The anchor that Python-Markdown gives a heading."""
    text = re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower()
    return re.sub(r"[-\s]+", "-", text)


def anchors(text):
    return {slug(heading) for heading in re.findall(r"^#+ +(.+)$", FENCED.sub("", text), re.MULTILINE)}


class Site:
    def __init__(self, root):
        self.root = root
        # Each page of the site, by the file it is made from.
        self.pages = {root / name: place for name, place in PAGES.items()}
        self.pages |= {path: str(path.relative_to(root / "docs")) for path in sorted((root / "docs").rglob("*.md"))}
        self.pages |= {path: f"interface/{path.stem}.md" for path in reference.headers(root)}
        self.texts = {path: self.text(path) for path in self.pages}

    def text(self, path):
        if path.suffix == ".h":
            return reference.page(path, self.root)
        if path == self.root / FIGURES:
            return figures.filled(path.read_text(), json.loads((self.root / FIGURES_DATA).read_text()))
        return path.read_text()

    def up(self, path):
        """The way from the page made from `path` to the top of the site."""
        return "../" * self.pages[path].count("/")

    def link(self, path, shown, target):
        """A link of the page made from `path`, for the site. A file that is no page is named without a link."""
        if re.match(r"[a-z]+:", target):
            return f"[{shown}]({target})"
        name, _, anchor = target.partition("#")
        leads_to = (path.parent / name).resolve() if name else path
        if not leads_to.exists():
            raise SystemExit(f"{path.relative_to(self.root)}: [{shown}]({target}) leads nowhere")
        if leads_to not in self.pages:
            return shown
        if anchor and anchor not in anchors(self.texts[leads_to]):
            raise SystemExit(f"{path.relative_to(self.root)}: [{shown}]({target}): there is no such heading")
        return f"[{shown}]({self.up(path)}{self.pages[leads_to]}{'#' + anchor if anchor else ''})"

    def image(self, path, opening, target):
        """An image of the page made from `path`, for the site, which has those of docs/."""
        file = (path.parent / target).resolve()
        if not file.is_file():
            raise SystemExit(f"{path.relative_to(self.root)}: there is no image {target}")
        return f"{opening}{self.up(path)}{file.relative_to(self.root / 'docs')})"

    def check_contents(self):
        """Each page is in the table of contents."""
        contents = (self.root / "mkdocs.yml").read_text()
        for place in self.pages.values():
            if not re.search(rf"[:-] {re.escape(place)}\n", contents):
                raise SystemExit(f"mkdocs.yml: the table of contents lacks {place}")
        # Chapters of the reference are called there as the first header calls them.
        for path in reference.headers(self.root)[1:]:
            entry = f"- {reference.title(path, self.root)}: {self.pages[path]}\n"
            if entry not in contents.replace("'", ""):
                raise SystemExit(f"mkdocs.yml: the table of contents lacks {entry.strip()}")

    def write(self, dest):
        for path, place in self.pages.items():
            parts = FENCED.split(self.texts[path])
            for at in range(0, len(parts), 2):
                parts[at] = LINK.sub(lambda link: self.link(path, link[1], link[2]), parts[at])
                parts[at] = IMAGE.sub(lambda image: self.image(path, image[1], image[2]), parts[at])
            page = dest / place
            page.parent.mkdir(parents=True, exist_ok=True)
            page.write_text("".join(parts))
        shutil.copytree(self.root / "docs/images", dest / "images")
        (dest / "site").mkdir()
        shutil.copy(self.root / "docs/site/site.css", dest / "site")


def main():
    root, dest = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    shutil.rmtree(dest, ignore_errors=True)
    bars.check(root)
    site = Site(root)
    site.check_contents()
    site.write(dest)


if __name__ == "__main__":
    main()
