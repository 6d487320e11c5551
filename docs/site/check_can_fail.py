#!/usr/bin/env python3
"""check.py finds each fault of a small site, and nothing in one without faults. Usage: check_can_fail.py"""

import pathlib
import subprocess
import sys
import tempfile

CHECK = pathlib.Path(__file__).with_name("check.py")

# A picture of one pixel.
PICTURE = '<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>'

RIGHT = '''<p id="here">Right</p><a href="other.html#there">other</a><img src="there.svg">
<div style="overflow-x: auto"><table><tr><td style="min-width: 3000px">wide, and can be scrolled</td></tr></table></div>'''

# Pages, each with the begin of the line that is to be found of it.
WRONG = {
    "wide.html": ('<div style="width: 3000px">wide</div>', "wide.html at 400 pixels: the page is 3000 pixels wide"),
    "column.html": (
        '<div style="overflow: hidden"><table><tr><td style="min-width: 3000px">cut off</td></tr></table></div>',
        "column.html at 1400 pixels: a table's last column ends at 30",
    ),
    "folded.html": (
        '<details><div style="overflow: hidden"><table><tr><td style="min-width: 3000px">cut off</td></tr></table></div></details>',
        "folded.html at 1400 pixels: a table's last column ends at 30",
    ),
    "link.html": ('<a href="nowhere.html">nowhere</a>', "link.html: a link to nowhere.html, which is not there"),
    "anchor.html": ('<a href="index.html#gone">gone</a>', "anchor.html: a link to index.html#gone, which is not there"),
    "picture.html": ('<img src="gone.png">', "picture.html at 1400 pixels: the picture http"),
}


def checked(pages):
    """The status of check.py for a site of these pages, and the lines that it prints."""
    with tempfile.TemporaryDirectory() as place:
        site = pathlib.Path(place) / "site"
        site.mkdir()
        (site / "there.svg").write_text(PICTURE)
        for name, body in pages.items():
            (site / name).write_text(f'<!DOCTYPE html><html><body style="margin: 0">{body}</body></html>')
        command = [sys.executable, CHECK, site, pathlib.Path(place) / "screenshots"]
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
        return ended.returncode, ended.stdout.splitlines()


def main():
    right = {"index.html": RIGHT, "other.html": '<p id="there">Right</p>'}
    status, lines = checked(right)
    if status != 0:
        sys.exit("check.py finds faults where there are none:\n" + "\n".join(lines))
    status, lines = checked(right | {name: body for name, (body, _) in WRONG.items()})
    unseen = [line for _, line in WRONG.values() if not any(found.startswith(line) for found in lines)]
    false = [line for line in lines if line.startswith(("index.html", "other.html"))]
    if status != 1 or unseen or false:
        sys.exit(f"check.py ends with status {status}; it lacks {unseen}, and has {false}, in:\n" + "\n".join(lines))
    print(f"the check finds {len(WRONG)} faults of {len(WRONG)} in a site made for it")


if __name__ == "__main__":
    main()
