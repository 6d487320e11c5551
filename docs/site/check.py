#!/usr/bin/env python3
"""Looks at every page of the built site in Chromium, as readers do: in a wide window and on a telephone.

Usage: check.py SITE SCREENSHOTS

Found are pages wider than their window, table columns that cannot be scrolled to, pictures that do not load, links and anchors that lead
nowhere. A line for each on standard output; the status is 1 if there is any. Screenshots of some pages go to SCREENSHOTS.
"""

import functools
import http.server
import pathlib
import sys
import threading
import urllib.parse

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

WINDOWS = [(1400, 1000), (400, 800)]

# Pages that a person should look at after a change of the theme or of many pages.
SHOWN = [
    "index",
    "tutorials/python",
    "how-to/sizes",
    "reference/settings",
    "reference/statistics",
    "explanation/performance",
    "explanation/when",
    "explanation/figures",
    "interface/transfer",
]

CHROMIUM = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
]

LOOK = """
for (const folded of document.querySelectorAll('details')) folded.open = true;
const found = [], width = window.innerWidth;
if (document.documentElement.scrollWidth > width)
  found.push(`the page is ${document.documentElement.scrollWidth} pixels wide`);
for (const table of document.querySelectorAll('table')) {
  let box = table;
  while (box && !['auto', 'scroll'].includes(getComputedStyle(box).overflowX)) box = box.parentElement;
  const edge = (box || document.documentElement).getBoundingClientRect();
  if (box && edge.right > width + 1) found.push(`a table's box ends at ${edge.right}`);
  if (box) box.scrollLeft = box.scrollWidth;
  for (const cell of table.querySelectorAll('th:last-child, td:last-child')) {
    const place = cell.getBoundingClientRect();
    if (place.width > 0 && place.right > edge.right + 1) {
      found.push(`a table's last column ends at ${Math.round(place.right)}: ${table.textContent.trim().slice(0, 60)}`);
      break;
    }
  }
  if (box) box.scrollLeft = 0;
}
for (const picture of document.images)
  if (!picture.complete || picture.naturalWidth === 0) found.push(`the picture ${picture.src} does not load`);
return found;
"""

# Links of the page itself; what they say is resolved by the browser.
LINKS = "return [...document.querySelectorAll('a[href]')].map(link => link.href)"
ANCHORS = "return [...document.querySelectorAll('[id], a[name]')].map(place => place.id || place.name)"


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def serve(site):
    """A server of the site on a port that is free."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def browser():
    options = webdriver.ChromeOptions()
    options.binary_location = "/usr/bin/chromium"
    for argument in CHROMIUM:
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))


def resize(driver, width, height):
    """Sets the size of the page's own window, which may be narrower than Chromium's may be."""
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def photograph(driver, page, width, shots):
    """Screenshots of the upper part of the page that is shown, in both colour schemes; it is left in the light one."""
    resize(driver, width, 2000)
    for scheme in ["dark", "light"]:
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
        # There the theme remembers the scheme of the page before.
        driver.execute_script("localStorage.clear()")
        driver.refresh()
        driver.save_screenshot(str(shots / f"{page.removesuffix('.html').replace('/', '-')}-{width}-{scheme}.png"))


def look(driver, base, pages, shots):
    """What is wrong on the pages, each with its page; the links and anchors of each."""
    wrong, links, anchors = [], {}, {}
    for page in pages:
        for width, height in WINDOWS:
            resize(driver, width, height)
            driver.get(base + page)
            wrong += [f"{page} at {width} pixels: {what}" for what in driver.execute_script(LOOK)]
            if page.removesuffix(".html") in SHOWN:
                photograph(driver, page, width, shots)
        links[page] = driver.execute_script(LINKS)
        anchors[page] = set(driver.execute_script(ANCHORS))
    return wrong, links, anchors


def dead(base, site, links, anchors):
    """Links within the site that lead nowhere."""
    for page, leads in links.items():
        for link in sorted(set(leads)):
            if not link.startswith(base):
                continue
            path, _, anchor = link.removeprefix(base).partition("#")
            path = urllib.parse.unquote(path.partition("?")[0]) or "index.html"
            if not (site / path).is_file():
                yield f"{page}: a link to {path}, which is not there"
            elif anchor and path in anchors and urllib.parse.unquote(anchor) not in anchors[path]:
                yield f"{page}: a link to {path}#{anchor}, which is not there"


def main():
    site, shots = (pathlib.Path(argument) for argument in sys.argv[1:])
    shots.mkdir(parents=True, exist_ok=True)
    pages = sorted(str(path.relative_to(site)) for path in site.rglob("*.html") if path.name != "404.html")
    server, driver = serve(site), browser()
    base = f"http://127.0.0.1:{server.server_address[1]}/"
    try:
        wrong, links, anchors = look(driver, base, pages, shots)
    finally:
        driver.quit()
        server.shutdown()
    wrong += dead(base, site, links, anchors)
    print("\n".join(wrong) or f"{len(pages)} pages, {sum(map(len, links.values()))} links: nothing wrong")
    print(f"screenshots: {shots}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
