#!/usr/bin/env python3
"""Draws what `vgasnet-bench figures --out DATA` has found: pictures in SVG, tables that are folded.

Usage: figures.py DATA PAGE.html

In a page of the site `<!-- pictures: SECTION -->` and `<!-- tables: SECTION -->` stand for those of a section of the data.
"""

import html
import json
import math
import pathlib
import re
import sys

MARK = re.compile(r"^<!-- (pictures|tables): ([\w-]+) -->$", re.MULTILINE)

# Told apart in grey, too, on white and on black.
COLOURS = ["#3f6fd8", "#d8453f", "#8a8a8a", "#2f9e6e", "#e08a1e", "#9a5fc0"]
WIDTH, HEIGHT, LEFT, RIGHT, BOTTOM = 900, 420, 84, 24, 64
LEGEND_ROW, LEGEND_COLUMNS, TITLE = 26, 2, 40

STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem}
table{border-collapse:collapse}th,td{padding:.25rem .6rem;border-bottom:1px solid #ccc;text-align:right;vertical-align:top}
th:first-child,td:first-child{text-align:left}.figures-chart,.figures-table{overflow-x:auto}.figures-chart svg{min-width:40rem;width:100%}"""


def number(value):
    """A number at an axis."""
    if value >= 1:
        return f"{value:,.0f}" if value == int(value) else f"{value:,.4g}"
    return f"{value:.4g}"


class Axis:
    """Where values are between `begin` and `end`, and which of them are named."""

    def __init__(self, values, is_log, begin, end):
        self.is_log, self.begin, self.end = is_log, begin, end
        if is_log:
            self.low, self.high = min(values), max(values)
            self.ticks = self.of_log(sorted(set(values)))
        else:
            step = self.step(max(values) / 5 or 1)
            self.low, self.high = 0, step * math.ceil(max(values) * 1.02 / step)
            self.ticks = [step * at for at in range(round(self.high / step) + 1)]

    @staticmethod
    def step(least):
        power = 10 ** math.floor(math.log10(least))
        return next(power * part for part in (1, 2, 2.5, 5, 10) if power * part >= least * 0.999)

    def of_log(self, values):
        # Each value if they are steps of a measurement, else powers of ten around them.
        if len(values) <= 13 and all(value == int(value) for value in values):
            return values
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        self.low, self.high = 10.0 ** powers[0], 10.0 ** powers[-1]
        return [10.0**power for power in powers]

    def place(self, value):
        if self.is_log:
            part = math.log(value / self.low) / (math.log(self.high / self.low) or 1)
        else:
            part = value / self.high
        return self.begin + part * (self.end - self.begin)


def text(x, y, content, extra=""):
    return f'<text x="{x:.1f}" y="{y:.1f}"{extra}>{html.escape(content)}</text>'


def legend(lines):
    for at, line in enumerate(lines):
        x = LEFT + (at % LEGEND_COLUMNS) * (WIDTH - LEFT - RIGHT) / LEGEND_COLUMNS
        y = TITLE + LEGEND_ROW * (at // LEGEND_COLUMNS) + 12
        yield mark(line, [(x, y - 5), (x + 34, y - 5)])
        yield text(x + 44, y, line["name"], ' font-size="16"')


def mark(line, points):
    """A line through places. Numbers of the paper are triangles and dashes."""
    way = "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)
    if line["is_papers"]:
        triangles = "".join(f"M{x - 6:.1f} {y + 5:.1f}h12l-6 -11z" for x, y in points)
        return f'<path d="{way}" fill="none" stroke="currentColor" stroke-dasharray="7 5"/><path d="{triangles}" fill="currentColor"/>'
    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in points)
    colour = line["colour"]
    return f'<path d="{way}" fill="none" stroke="{colour}" stroke-width="2.5"/><g fill="{colour}">{dots}</g>'


def chart(data):
    """A picture of lines: title, legend, axes."""
    colours = iter(COLOURS * 3)
    lines = [line if line["is_papers"] else {**line, "colour": next(colours)} for line in data["lines"]]
    top = TITLE + LEGEND_ROW * math.ceil(len(lines) / LEGEND_COLUMNS) + 20
    height = top + HEIGHT
    points = [point for line in lines for point in line["points"]]
    across = Axis([x for x, _ in points], data["x_is_log"], LEFT, WIDTH - RIGHT)
    up = Axis([y for _, y in points], data["y_is_log"], height - BOTTOM, top)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="Helvetica, Arial, sans-serif" font-size="15" '
        f'fill="currentColor" role="img" aria-label="{html.escape(data["title"])}">',
        text(LEFT, 22, data["title"], ' font-size="19" font-weight="bold"'),
        *legend(lines),
    ]
    for tick in up.ticks:
        y = up.place(tick)
        parts.append(f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="currentColor" opacity="0.2"/>')
        parts.append(text(LEFT - 10, y + 5, number(tick), ' text-anchor="end"'))
    for tick in across.ticks:
        x = across.place(tick)
        parts.append(f'<path d="M{x:.1f} {height - BOTTOM}v6" stroke="currentColor"/>')
        parts.append(text(x, height - BOTTOM + 24, number(tick), ' text-anchor="middle"'))
    middle = (top + height - BOTTOM) / 2
    parts.append(f'<path d="M{LEFT} {top}V{height - BOTTOM}H{WIDTH - RIGHT}" fill="none" stroke="currentColor"/>')
    parts.append(text((LEFT + WIDTH - RIGHT) / 2, height - 12, data["x"], ' text-anchor="middle" font-size="16"'))
    parts.append(text(20, middle, data["y"], f' text-anchor="middle" font-size="16" transform="rotate(-90 20 {middle:.1f})"'))
    parts += [mark(line, [(across.place(x), up.place(y)) for x, y in line["points"]]) for line in lines]
    return f'<div class="figures-chart">{"".join(parts)}</svg></div>'


def table(data):
    def row(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    body = "".join(row(cells, "td") for cells in data["rows"])
    head = row(data["heads"], "th")
    inside = f'<div class="figures-table"><table><thead>{head}</thead><tbody>{body}</tbody></table></div>'
    return f"<details><summary>{html.escape(data['caption'])}</summary>{inside}</details>"


def items(data):
    inside = "".join(f"<li>{html.escape(item)}</li>" for item in data["items"])
    return f"<details><summary>{html.escape(data['caption'])}</summary><ul>{inside}</ul></details>"


DRAWN = {"chart": chart, "table": table, "list": items, "note": lambda note: f"<p>{html.escape(note)}</p>"}


def drawn(section, is_chart):
    """The pictures of a section, or the rest of it."""
    blocks = [(kind, data) for block in section["blocks"] for kind, data in block.items()]
    return "\n".join(DRAWN[kind](data) for kind, data in blocks if (kind == "chart") == is_chart)


def filled(page, data):
    """The text of a page with what its marks stand for."""
    sections = {section["name"]: section for section in data["sections"]}
    asked = MARK.findall(page)
    lacking = {(kind, name) for name, section in sections.items() for kind in kinds(section)} - set(asked)
    if lacking:
        raise SystemExit(f"the page of figures lacks {sorted(lacking)}")
    for name, value in data["made"]:
        page = page.replace(f"<!-- made: {name} -->", html.escape(value))
    return MARK.sub(lambda found: drawn(sections[found[2]], found[1] == "pictures"), page)


def kinds(section):
    return {"pictures" if "chart" in block else "tables" for block in section["blocks"]}


def main():
    data = json.loads(pathlib.Path(sys.argv[1]).read_text())
    made = "".join(f"<p>{html.escape(f'{name}: {value}')}</p>" for name, value in data["made"])
    parts = [f"<h2>{section['name']}</h2>\n{drawn(section, True)}\n{drawn(section, False)}" for section in data["sections"]]
    head = f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>vgasnet: figures</title><style>{STYLE}</style></head><body>'
    pathlib.Path(sys.argv[2]).write_text("\n".join([head, "<h1>vgasnet: figures</h1>", made, *parts, "</body></html>\n"]))


if __name__ == "__main__":
    main()
