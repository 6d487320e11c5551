#!/usr/bin/env python3
"""Draws the bars of docs/explanation/performance.md: each table of factors behind a comment `<!-- bars: NAME.svg -->`, as docs/images/NAME.svg.

Usage: bars.py ROOT

The site is not built from a picture that is not of its table.
"""

import html
import math
import pathlib
import re
import sys

PAGE = "docs/explanation/performance.md"
IMAGES = "docs/images"
TABLE = re.compile(r"<!-- bars: (\S+) -->\n.*?\n((?:\|[^\n]*\n)+)", re.DOTALL)

WIDTH, ROW, LABELS, TOP, BOTTOM, RIGHT = 800, 36, 440, 34, 46, 112

# Letters of a label that fit.
LABEL_MAX = 68
TICKS = [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100]


def rows(table):
    """Work, alternative, and the factor's ends, for each row."""
    previous = ""
    for line in table.splitlines()[2:]:
        work, alternative, factor = [cell.strip().replace("`", "") for cell in line.strip("|").split(" | ")][:3]
        if work.startswith("the same"):
            work = previous + work.removeprefix("the same")
        else:
            previous = work.split(", pool of")[0]
        if len(work) > LABEL_MAX:
            raise SystemExit(f"{PAGE}: a row of bars has room for {LABEL_MAX} letters, not for: {work}")
        ends = [float(end) for end in factor.split(" to ")]
        yield work, alternative, factor, ends[0], ends[-1]


def text(x, y, content, extra=""):
    return f'<text x="{x:.0f}" y="{y:.0f}"{extra}>{html.escape(content)}</text>'


def picture(table):
    all_rows = list(rows(table))
    least = min(row[3] for row in all_rows + [("", "", "", 1.0, 1.0)])
    most = max(row[4] for row in all_rows + [("", "", "", 1.0, 1.0)])
    ticks = [tick for tick in TICKS if least * 0.45 <= tick <= most * 1.2]
    low, high = math.log(min(least, ticks[0])), math.log(max(most, ticks[-1]))

    def x(value):
        return LABELS + (math.log(value) - low) / (high - low) * (WIDTH - LABELS - RIGHT)

    height = TOP + ROW * len(all_rows) + BOTTOM
    bottom = height - BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="Helvetica, Arial, sans-serif" font-size="15" fill="#222">',
        f'<rect width="{WIDTH}" height="{height}" rx="10" fill="#fff"/>',
    ]
    for tick in ticks:
        style = 'stroke="#333" stroke-width="2"' if tick == 1 else 'stroke="#ddd"'
        parts.append(f'<path d="M{x(tick):.1f} {TOP - 6}V{bottom}" {style}/>')
        parts.append(text(x(tick), bottom + 20, f"{tick:g}", ' text-anchor="middle"'))
    parts.append(text(x(1), TOP - 12, "as fast as the alternative", ' text-anchor="middle" font-size="13" fill="#555"'))
    parts.append(text(LABELS, bottom + 38, "times as fast as the alternative (logarithmic)", ' font-size="13" fill="#555"'))
    for at, (work, alternative, factor, first, last) in enumerate(all_rows):
        middle = TOP + ROW * at + ROW / 2
        colour = "#3f51b5" if last > 1 else "#b5533f"
        # From 1 to the nearer end in full, from there to the other in light: the spread.
        near, far = (first, last) if last > 1 else (last, first)
        for begin, end, opacity in [(1, near, 1), (near, far, 0.4)]:
            left, width = min(x(begin), x(end)), abs(x(begin) - x(end))
            parts.append(
                f'<rect x="{left:.1f}" y="{middle - 9:.1f}" width="{width:.1f}" height="18" fill="{colour}" opacity="{opacity}"/>'
            )
        parts.append(text(LABELS - 12, middle - 1, work, ' text-anchor="end" font-size="14"'))
        parts.append(text(LABELS - 12, middle + 13, f"instead of {alternative}", ' text-anchor="end" font-size="12" fill="#555"'))
        parts.append(text(max(x(last), x(1)) + 8, middle + 5, factor, ' font-weight="bold"'))
    return "\n".join([*parts, "</svg>", ""])


def pictures(root):
    """Each picture's file, and its text."""
    tables = TABLE.findall((root / PAGE).read_text())
    if not tables:
        raise SystemExit(f"{PAGE} has no tables of bars")
    return [(root / IMAGES / name, picture(table)) for name, table in tables]


def check(root):
    for file, image in pictures(root):
        if not file.is_file() or file.read_text() != image:
            raise SystemExit(f"{file.relative_to(root)} is not of its table in {PAGE}: run docs/site/bars.py .")


def main():
    for file, image in pictures(pathlib.Path(sys.argv[1])):
        file.write_text(image)


if __name__ == "__main__":
    main()
