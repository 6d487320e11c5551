"""The reference of the C interface: a page for each header of include/vgasnet, made from its comments and declarations."""

import functools
import os
import re
import textwrap

# What belongs to the language and not to the interface.
FRAME = re.compile(r"^#include [^\n]*\n|^#define \w+_H\n|^#pragma [^\n]*\n", re.MULTILINE)
BLOCK = re.compile(r"/\*(?P<comment>.*?)\*/\n?(?P<code>(?:(?!/\*)[^\n]+\n)*)|(?P<bare>(?:(?!/\*)[^\n]+\n)+)", re.DOTALL)
CHAPTER = re.compile(r"#include <vgasnet/(\w+\.h)> /\* (.+) \*/")
NAME = re.compile(r"(?:#define |\b)((?:vgasnet|VGASNET)_\w+)")
CODE = re.compile(r"(?<![\w`])((?:vgasnet|VGASNET|GASNET|gasnet|MPI)_\w*(?:\(\)|=\d+)?|\w+\.h\b|\w+\(\d?\)|O_[A-Z]+|SIG[A-Z]+\d?|[a-z]+_[a-z_]+)")
LABEL = re.compile(r"(?P<label>[A-Za-z_]\w*(?:, \w+)*): (?P<text>.*)")
HEADING = re.compile(r"\s*-{3,} (.+) -{3,}\s*")
TAG = re.compile(r"@(param|return|retval|see) ")

# A function of each number of arguments, inside the macro that makes it.
COUNTED = re.compile(r"    /\*\*(?P<comment>(?:(?!\*/).)*)\*/ \\\n    static inline (?P<head>int \w+)##M\((?P<arguments>[^)]*) VGASNET_PARAMETERS##M##_\)", re.DOTALL)
MAKING_COUNTED = re.compile(r"^#define VGASNET_MESSAGES_\(M\).*^VGASNET_MESSAGES_\(\d+\)\n", re.MULTILINE | re.DOTALL)
PRIVATE = re.compile(r"^(/\*(?:(?!\*/).)*\*/\n)?(#define \w+_\b(?!\().*\n)+", re.MULTILINE)


def headers(root):
    """The headers, that of the conventions first, then the chapters in its order."""
    first = root / "include/vgasnet.h"
    return [first] + [root / "include/vgasnet" / name for name, _ in CHAPTER.findall(first.read_text())]


def in_plain_c(text):
    """A header as a compiler for C without extensions reads it, but with comments and macros: of two ways the one behind `#else`."""
    lines, conditions = [], []
    for line in text.splitlines(keepends=True):
        if line.startswith("#if"):
            conditions.append((len(lines), line.rstrip().endswith("def __cplusplus")))
        elif line.startswith("#else"):
            del lines[conditions[-1][0] :]
        elif line.startswith("#endif"):
            first, is_for_cplusplus = conditions.pop()
            if is_for_cplusplus:
                del lines[first:]
        else:
            lines.append(line)
    return "".join(lines)


def with_counted(text):
    """A header whose functions of each number of arguments are declared once, in place of the macros that make them."""

    def declare(macro):
        functions = COUNTED.finditer(macro[0])
        declared = [
            f"/**{function['comment']}*/\n{function['head']}M({unbroken(function['arguments'])}, vgasnet_handlerarg_t a0, ...);\n"
            for function in functions
        ]
        return "\n".join(re.sub(r"^     \*", " *", text, flags=re.MULTILINE) for text in declared)

    return PRIVATE.sub("", MAKING_COUNTED.sub(declare, text))


def unbroken(code):
    return " ".join(code.replace("\\\n", " ").split())


def title(path, root):
    """The title of a header's page: as the first header names its chapters."""
    titles = dict(CHAPTER.findall((root / "include/vgasnet.h").read_text()))
    words = titles.get(path.name, "conventions of the interface")
    return words[0].upper() + words[1:]


def inline(text):
    text = re.sub(r"([*<>\\|])", r"\\\1", text)
    return CODE.sub(r"`\1`", text)


def bare(comment):
    """The lines of a comment, without stars."""
    return [re.sub(r"^ ?\*? ?", "", line) for line in comment.strip().splitlines()]


def prose(lines):
    """Lines of a comment as Markdown. A paragraph of which all lines are further in is code."""
    paragraphs = [paragraph for paragraph in re.split(r"\n(?:\s*\n)+", "\n".join(lines)) if paragraph.strip()]
    return "\n\n".join(code(paragraph) if is_code(paragraph) else sentences(paragraph) for paragraph in paragraphs)


def is_code(paragraph):
    return all(line.startswith("  ") for line in paragraph.splitlines())


def code(paragraph):
    return f"```c\n{textwrap.dedent(paragraph)}\n```"


def sentences(paragraph):
    """A line that begins with a name and a colon, or with a word and a full stop at the beginning of a paragraph, is an entry."""
    if paragraph.startswith("Fatal: "):
        return f"**Fatal:** {inline(' '.join(paragraph.removeprefix('Fatal: ').split()))}"
    out, begins = [], True
    for at, line in enumerate(paragraph.splitlines()):
        label = LABEL.match(line.strip())
        topic = re.match(r"([A-Z]\w*)\. (.*)", line) if begins else None
        if label and begins:
            out += [""] * (at > 0) + [f"- `{label['label']}`: {inline(label['text'])}"]
        elif topic:
            out.append(f"**{topic[1]}.** {inline(topic[2])}")
        else:
            out.append(inline(line.strip()))
        begins = line.rstrip().endswith((".", ":"))
    return "\n".join(out)


def docstring(comment):
    """The description of a docstring, as lines, and its tags: each a kind and a text."""
    description, tags = [], []
    for line in bare(comment.removeprefix("*")):
        if TAG.match(line):
            kind, _, text = line[1:].partition(" ")
            tags.append([kind, text])
        elif tags:
            tags[-1][1] += " " + line.strip()
        else:
            description.append(line)
    return description, tags


def table(head, rows):
    lines = [f"| {head[0]} | {head[1]} |", "| --- | --- |"]
    return "\n".join(lines + [f"| `{name}` | {inline(text)} |" for name, text in rows])


def documented(comment, links):
    """A docstring as Markdown; `links` gives a link for what is worth seeing, or nothing."""
    description, tags = docstring(comment)
    named = {kind: [text.partition(" ")[::2] for of, text in tags if of == kind] for kind in ("param", "retval")}
    parts = [prose(description)]
    if named["param"]:
        parts.append(table(("parameter", "meaning"), named["param"]))
    parts += [f"**Returns** {inline(text)}." for kind, text in tags if kind == "return"]
    if named["retval"]:
        parts.append(table(("result", "when"), named["retval"]))
    parts += ["**See also:** " + ", ".join(links(name) for name in text.split(", ")) for kind, text in tags if kind == "see"]
    return "\n\n".join(part for part in parts if part)


def declared(code):
    """The names that some code declares, each once."""
    without_comments = re.sub(r"/\*.*?\*/", "", code, flags=re.DOTALL)
    functions = re.findall(r"\b(vgasnet_\w+|VGASNET_[A-Z_]*[A-Z])\(", without_comments.split("{")[0].split("\\\n")[0])
    types = re.findall(r"^(?:\}|typedef [^{;(]*?) *\*?(vgasnet_\w+);", without_comments, re.MULTILINE)
    defined = re.findall(r"^#define (\w+)", without_comments, re.MULTILINE)
    return list(dict.fromkeys(defined or functions[:1] or types or NAME.findall(without_comments)))


def blocks(path):
    """The comments of a header, each with the code behind it. One of them may be missing."""
    text = with_counted(FRAME.sub("", in_plain_c(path.read_text())))
    return [(block["comment"], block["code"] or block["bare"] or "") for block in BLOCK.finditer(text)]


@functools.cache
def places(root):
    """Where each function and macro is documented: its header, and the anchor there if it has one."""
    found = {}
    for path in headers(root):
        for comment, code in blocks(path):
            for name in declared(code):
                found[name] = (path, heading_of(declared(code)))
    return found


def heading_of(names):
    return ", ".join(f"`{name}`" for name in names[:3]) + (", ..." if len(names) > 3 else "")


def linking(path, root):
    """Makes links from a header's page to names and files."""

    def link(name):
        if name.startswith("docs/"):
            return f"[{name}]({os.path.relpath(root / name, path.parent)})"
        if name not in places(root):
            raise SystemExit(f"{path.relative_to(root)}: nothing is called {name}")
        target, heading = places(root)[name]
        anchor = re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower())
        return f"[`{name}`]({os.path.relpath(target, path.parent)}#{anchor})"

    return link


def signature(code):
    """What callers see of a declaration: of a macro its name and parameters."""
    macro = re.match(r"#define (\w+\([^)]*\))", code)
    return macro[1] if macro else code


def section(comment, code, links, level):
    heading = HEADING.fullmatch(comment or "")
    if heading and not code.strip():
        return f"## {heading[1][0].upper()}{heading[1][1:]}"
    names = declared(code)
    is_docstring = comment is not None and comment.startswith("*")
    shown = signature(code.strip()) if is_docstring else code.strip()
    parts = [
        f"{'#' * level} {heading_of(names)}" if names else "",
        f"```c\n{shown}\n```" if shown else "",
        documented(comment, links) if is_docstring else prose(bare(comment or "")),
    ]
    return "\n\n".join(part for part in parts if part)


def page(path, root):
    chapters = CHAPTER.findall(path.read_text())
    of_page = blocks(path)
    intro = ""
    if of_page and of_page[0][0] is not None and not of_page[0][1].strip():
        intro = prose(bare(re.sub(r"\Avgasnet: (.)", lambda first: first[1].upper(), of_page.pop(0)[0].strip(" *\n"))))
    listed = "\n".join(f"- [{words}](vgasnet/{name}): `{name}`" for name, words in chapters)
    include = "vgasnet.h" if path.name == "vgasnet.h" else f"vgasnet/{path.name}"
    head = f"# {title(path, root)}\n\n`#include <{include}>`"
    level = 3 if any(HEADING.fullmatch(comment or "") for comment, _ in of_page) else 2
    links = linking(path, root)
    body = [section(comment, code, links, level) for comment, code in of_page if (comment or code).strip()]
    return "\n\n".join(part for part in [head, intro, listed, *body] if part) + "\n"
