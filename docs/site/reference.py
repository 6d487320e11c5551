"""The reference of the C interface: a page for each header of include/vgasnet, made from its comments and declarations."""

import re
import textwrap

# What belongs to the language and not to the interface.
FRAME = re.compile(r"^#include [^\n]*\n|^#define \w+_H\n|^#pragma [^\n]*\n", re.MULTILINE)
BLOCK = re.compile(r"/\*(?P<comment>.*?)\*/\n?(?P<code>(?:(?!/\*)[^\n]+\n)*)|(?P<bare>(?:(?!/\*)[^\n]+\n)+)", re.DOTALL)
CHAPTER = re.compile(r"#include <vgasnet/(\w+\.h)> /\* (.+) \*/")
NAME = re.compile(r"(?:#define |\b)((?:vgasnet|VGASNET)_\w+)")
CODE = re.compile(r"(?<![\w`])((?:vgasnet|VGASNET|GASNET|gasnet|MPI)_\w*|\w+\.h\b|\w+\(\d?\)|O_[A-Z]+|SIG[A-Z]+\d?|[a-z]+_[a-z_]+)")
LABEL = re.compile(r"(?P<label>[A-Za-z_]\w*(?:, \w+)*): (?P<text>.*)")


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


def title(path, root):
    """The title of a header's page: as the first header names its chapters."""
    titles = dict(CHAPTER.findall((root / "include/vgasnet.h").read_text()))
    words = titles.get(path.name, "conventions of the interface")
    return words[0].upper() + words[1:]


def inline(text):
    text = re.sub(r"([*<>\\])", r"\\\1", text)
    return CODE.sub(r"`\1`", text)


def prose(comment):
    """A comment as Markdown. A paragraph of which all lines are further in is code."""
    text = "\n".join(re.sub(r"^ ?\*? ?", "", line) for line in comment.strip().splitlines())
    paragraphs = [paragraph for paragraph in re.split(r"\n(?:\s*\n)+", text) if paragraph.strip()]
    return "\n\n".join(code(paragraph) if is_code(paragraph) else sentences(paragraph) for paragraph in paragraphs)


def is_code(paragraph):
    return all(line.startswith("  ") for line in paragraph.splitlines())


def code(paragraph):
    return f"```c\n{textwrap.dedent(paragraph)}\n```"


def sentences(paragraph):
    """A line that begins with a name and a colon, or with a word and a full stop at the beginning of a paragraph, is an entry."""
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


def declared(code):
    """The names that some code declares, each once."""
    without_comments = re.sub(r"/\*.*?\*/", "", code, flags=re.DOTALL)
    functions = re.findall(r"\b(vgasnet_\w+)\(", without_comments)
    types = re.findall(r"^(?:\}|typedef [^{;(]*?) *(vgasnet_\w+);", without_comments, re.MULTILINE)
    return list(dict.fromkeys(functions or types or NAME.findall(without_comments)))


def section(comment, code):
    names = declared(code)
    shown = ", ".join(f"`{name}`" for name in names[:3]) + (", ..." if len(names) > 3 else "")
    parts = [f"### {shown}" if names else "", f"```c\n{code.strip()}\n```" if code.strip() else "", prose(comment or "")]
    return "\n\n".join(part for part in parts if part)


def page(path, root):
    text = path.read_text()
    chapters = CHAPTER.findall(text)
    text = FRAME.sub("", in_plain_c(text))
    blocks = [(block["comment"], block["code"] or block["bare"] or "") for block in BLOCK.finditer(text)]
    intro = ""
    if blocks and blocks[0][0] is not None and not blocks[0][1].strip():
        intro = prose(re.sub(r"\Avgasnet: (.)", lambda first: first[1].upper(), blocks.pop(0)[0].strip(" *\n")))
    listed = "\n".join(f"- [{words}](vgasnet/{name}): `{name}`" for name, words in chapters)
    include = "vgasnet.h" if path.name == "vgasnet.h" else f"vgasnet/{path.name}"
    head = f"# {title(path, root)}\n\n`#include <{include}>`"
    body = [section(comment, code) for comment, code in blocks if (comment or code).strip()]
    return "\n\n".join(part for part in [head, intro, listed, *body] if part) + "\n"
