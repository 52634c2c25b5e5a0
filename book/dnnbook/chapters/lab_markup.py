"""The book's markup as Markdown and HTML that JupyterLab, VS Code, Colab and nbconvert show alike.

MyST's own blocks and roles are only known where the book is built. Here each becomes what any
Markdown shows: a solution folds, a term has its explanation at hand, a picture comes with its text.
"""

import base64
import mimetypes
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from html import escape, unescape
from pathlib import Path, PurePosixPath
from urllib.parse import unquote

__all__ = ["Page", "UnknownMarkup", "html", "markdown", "plain", "terms"]

OPTION = re.compile(r":([\w-]+):[ \t]*(.*)")
# What stands in a line of prose. Code comes first where it begins first, and stays as it is.
INLINE = re.compile(r"""
    (?<![\\\w])\{(?P<role>[a-z][\w:+-]*)\}`(?P<said>[^`]+)`
  | (?P<code>(?<!`)(?P<ticks>`+)(?!`).+?(?<!`)(?P=ticks)(?!`))
  | !\[(?P<alt>[^\]]*)\]\((?P<picture>[^)\s]+)\)
  | (?<!!)\[(?P<text>(?:[^\[\]]|\[[^\[\]]*\])*)\]\((?P<target>[^)\s]+)\)
""", re.X | re.S)
HREF = re.compile(r"""(?P<start><a\b[^>]*?)\s+href=(?P<quote>["'])(?P<target>.*?)(?P=quote)""")
OUTSIDE = re.compile(r"[a-z][a-z0-9+.-]*:|#", re.I)  # an address elsewhere, or on this page
BOX = "border-left: 4px solid #888; padding-left: 1em"  # as much style as JupyterLab lets through


class UnknownMarkup(ValueError):
    """A block, a role, a term or a link that is not known here; ``place``: page and line."""

    def __init__(self, what: str, place: str = ""):
        super().__init__(f"{place}: {what}" if place else what)
        self.place = place


@dataclass(frozen=True)
class Page:
    """A text of the book, and what lies beside the place where it is shown.

    ``name``: of the page below ``root``, without its ending. ``beside``: by page, the file's name.
    ``elsewhere``: the address of a file of the repository that does not lie there, '' for none; its
    link is then text. ``titles``: of pages. ``terms``: what they mean, by their names in small
    letters. ``works``: what is cited, as its authors and its address. ``strict``: unknown markup is
    an error; otherwise it stays as it is. ``part``: which part of the page an error is to name.
    """

    name: str
    root: Path
    beside: Mapping[str, str] = field(default_factory=dict)
    elsewhere: Callable[[str], str] = lambda file: ""
    titles: Mapping[str, str] = field(default_factory=dict)
    terms: Mapping[str, str] = field(default_factory=dict)
    works: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    strict: bool = True
    part: str = ""

    def address(self, target: str) -> str:
        """Where a link of this page leads from the file that shows it; '' if nowhere."""
        if OUTSIDE.match(target):
            return target
        path, hash_, place = unquote(target).partition("#")
        file = os.path.normpath(PurePosixPath(self.name).parent / path)
        page = re.sub(r"\.(ipynb|md|html|py)$", "", file)
        if page in self.beside:  # JupyterLab calls a place as its heading is written
            return self.beside[page] + (f"#{place[:1].upper()}{place[1:]}" if hash_ else "")
        for known in (file, f"{page}.ipynb", f"{page}.md"):
            if (self.root / known).is_file():
                return self.elsewhere(known)
        raise UnknownMarkup(f"a link to {target}, where nothing lies")

    def picture(self, source: str) -> str:
        """A picture of the repository as an address that carries it."""
        if OUTSIDE.match(source):
            return source
        path = self.root / os.path.normpath(PurePosixPath(self.name).parent / source)
        if not path.is_file():
            raise UnknownMarkup(f"a picture {source}, where nothing lies")
        kind, _ = mimetypes.guess_type(path.name)
        return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def markdown(text: str, page: Page, line: int = 1) -> str:
    """A text in the book's markup as plain Markdown.

    ``line``: the number of its first line. Raises :class:`UnknownMarkup`, which names page and
    line, unless the page is not strict.

    >>> here = Page("notebooks/nss/00", Path("."), terms={"pass": "Once through the network."})
    >>> print(markdown("One {term}`pass`.", here))
    One <abbr title="Once through the network.">pass</abbr>.
    >>> print(markdown("```{admonition} Solution\\n:class: dropdown\\n$x = 1$\\n```", here))
    <BLANKLINE>
    <details><summary>Solution</summary>
    <BLANKLINE>
    $x = 1$
    <BLANKLINE>
    </details>
    <BLANKLINE>
    >>> markdown("See\\n{nod}`x`.", here)
    Traceback (most recent call last):
    dnnbook.chapters.lab_markup.UnknownMarkup: notebooks/nss/00, line 2: the role {nod}
    """
    lines, made, at = text.split("\n"), [], 0
    for token in _parser().parse(text):
        if token.type not in BLOCKS or token.map[0] < at:
            continue
        start, end = token.map
        made += _prose(lines[at:start], page, line + at)
        at, raw = end, lines[start:end]
        try:
            made += BLOCKS[token.type](token, raw, page, line + start)
        except UnknownMarkup as error:
            if page.strict:
                raise _placed(error, page, line + start) from None
            made += raw
    return "\n".join(made + _prose(lines[at:], page, line + at))


def html(text: str, page: Page) -> str:
    """HTML whose links lead to where the pages lie; a link that leads nowhere becomes text.

    >>> html('<a href="../nss/00.html#verdict">it</a>', Page(
    ...     "notebooks/nsatp/01", Path("."), {"notebooks/nss/00": "09_method.ipynb"}))
    '<a href="09_method.ipynb#Verdict">it</a>'
    """
    def led(found: re.Match) -> str:
        try:
            address = page.address(unescape(found["target"]))
        except UnknownMarkup as error:
            if page.strict:
                raise _placed(error, page, None) from None
            return found[0]
        return found["start"] + (f' href="{escape(address)}"' if address else "")

    return HREF.sub(led, text)


def plain(text: str, page: Page) -> str:
    """A text in the book's markup as words alone, such as an attribute can hold.

    >>> plain("A *pass* through {term}`networks <network>`.", Page("a", Path(".")))
    'A pass through networks.'
    """
    def words(found: re.Match) -> str:
        if found["role"] == "cite":
            return _cited(found["said"], page, linked=False)
        if found["role"]:
            text, target = _split(found["said"])
            return _called(target, page) if (found["role"], text) == ("doc", target) else text
        return found["alt"] or found["text"] or found["code"].strip("`")

    text = re.sub(r"\*\*|[*$]|<[^>]+>", "", INLINE.sub(words, text))
    return " ".join(text.split())


def terms(glossary: str) -> dict[str, str]:
    """What each term of a page with a ``{glossary}`` means: the first paragraph, as it is written.

    >>> terms("```{glossary}\\npass\\nforward pass\\n    Once through.\\n```")
    {'pass': 'Once through.', 'forward pass': 'Once through.'}
    """
    return {name.lower(): meaning.split("\n\n")[0]
            for token in _parser().parse(glossary) if token.info.startswith("{glossary}")
            for names, meaning in _entries(token.content) for name in names}


@cache
def _parser():
    from markdown_it import MarkdownIt
    from mdit_py_plugins.colon_fence import colon_fence_plugin
    from mdit_py_plugins.dollarmath import dollarmath_plugin
    from mdit_py_plugins.myst_blocks import myst_block_plugin

    return MarkdownIt("commonmark").enable("table").use(colon_fence_plugin).use(
        dollarmath_plugin).use(myst_block_plugin)


def _placed(error: UnknownMarkup, page: Page, line: int | None) -> UnknownMarkup:
    """The error with its place: the innermost, where it came up."""
    place = [page.name, page.part, f"line {line}" if line else ""]
    return error if error.place else UnknownMarkup(str(error), ", ".join(filter(None, place)))


def _prose(lines: list[str], page: Page, line: int) -> list[str]:
    """Lines without blocks of markup: their roles, links and pictures."""
    text = "\n".join(lines)

    def shown(found: re.Match) -> str:
        try:
            return _inline(found, page)
        except UnknownMarkup as error:
            if page.strict:
                raise _placed(error, page, line + text.count("\n", 0, found.start())) from None
            return found[0]

    return INLINE.sub(shown, text).split("\n") if lines else []


def _inline(found: re.Match, page: Page) -> str:
    if found["code"]:
        return found[0]
    if found["picture"]:
        return f"![{found['alt']}]({page.picture(found['picture'])})"
    if found["target"]:
        text = INLINE.sub(lambda inner: _inline(inner, page), found["text"])
        address = page.address(found["target"])
        return f"[{text}]({address.replace(' ', '%20')})" if address else text
    if found["role"] not in ROLES:
        raise UnknownMarkup(f"the role {{{found['role']}}}")
    return ROLES[found["role"]](found["said"], page)


def _split(said: str) -> tuple[str, str]:
    """What a role shows, and what it means: ``text <target>``, or both in one."""
    said = " ".join(said.split())
    named = re.fullmatch(r"(.+?)\s*<([^<>]+)>", said)
    return (named[1], named[2]) if named else (said, said)


def _term(said: str, page: Page) -> str:
    text, name = _split(said)
    if name.lower() not in page.terms:
        raise UnknownMarkup(f"the term {name!r}, which is not in the glossary")
    meaning = escape(plain(page.terms[name.lower()], page)).replace("|", "&#124;")
    return f'<abbr title="{meaning}">{text}</abbr>'


def _called(target: str, page: Page) -> str:
    """The title of another page of the book, else its name in words."""
    name = Path(target).name
    return next((plain(title, page) for other, title in page.titles.items()
                 if Path(other).name == name), name.replace("_", " "))


def _doc(said: str, page: Page) -> str:
    text, target = _split(said)
    address = page.address(target)
    text = _called(target, page) if text == target else text
    return f"[{text}]({address})" if address else text


def _source(said: str, page: Page) -> str:
    module, _, name = said.rpartition(".")
    return f"`{module.split('.', 1)[1].replace('.', '/')}.{name}`"


def _cited(said: str, page: Page, linked: bool = True) -> str:
    texts = []
    for key in (key.strip() for key in said.split(",")):
        if key not in page.works:
            raise UnknownMarkup(f"the work {key!r}, which is not in the references")
        text, address = page.works[key]
        texts.append(f"[{text}]({address})" if address and linked else text)
    return f"({'; '.join(texts)})"


ROLES = {"term": _term, "doc": _doc, "source": _source, "cite": _cited}


def _fence(token, raw: list[str], page: Page, line: int) -> list[str]:
    """Code as it is; of a directive what Markdown has for it."""
    directive = re.match(r"\{([\w:+-]+)\}\s*(.*)", token.info.strip())
    if not directive:
        return raw
    name, argument = directive.groups()
    indent = raw[0][:len(raw[0]) - len(raw[0].lstrip())]
    if name not in DIRECTIVES or raw[0].lstrip()[:1] not in "`~:":  # or on the line of a bullet
        raise UnknownMarkup(f"the block {{{name}}}")
    body, options = token.content.rstrip("\n").split("\n"), {}
    line += 1
    while body and (option := OPTION.fullmatch(body[0])):
        options[option[1]] = option[2]
        body, line = body[1:], line + 1
    made = DIRECTIVES[name](argument, options, "\n".join(body), page, line)
    return ["", *(indent + each if each else "" for each in made.split("\n")), ""]


def _admonition(title: str, options: Mapping[str, str], body: str, page: Page, line: int) -> str:
    inner = markdown(body, page, line).strip("\n")
    if "dropdown" in options.get("class", "").split():
        return f"<details><summary>{escape(title)}</summary>\n\n{inner}\n\n</details>"
    return f'<div style="{BOX}">\n\n**{title}**\n\n{inner}\n\n</div>'


def _named(title: str) -> Callable:
    return lambda argument, options, body, page, line: _admonition(
        title, options, f"{argument}\n{body}".strip("\n"), page, line - bool(argument))


def _figure(source: str, options: Mapping[str, str], body: str, page: Page, line: int) -> str:
    if not options.get("alt"):
        raise UnknownMarkup(f"the figure {source} without :alt:")
    width = f' width="{options["width"].removesuffix("px")}"' if "width" in options else ""
    caption = markdown(body, page, line).strip("\n")
    return f'<img alt="{escape(options["alt"])}"{width} src="{page.picture(source)}">' + (
        f"\n\n{caption}" if caption else "")


def _included(file: str, options: Mapping[str, str], body: str, page: Page, line: int) -> str:
    text = (page.root / PurePosixPath(page.name).parent / file).read_text(encoding="utf-8")
    return f"```{options.get('language', '')}\n{text}```"


def _grid(columns: str, options: Mapping[str, str], body: str, page: Page, line: int) -> str:
    return markdown(body, page, line).strip("\n")


def _card(title: str, options: Mapping[str, str], body: str, page: Page, line: int) -> str:
    heading = f"[{title}]({options['link']})" if "link" in options else title
    return _grid("", {}, f"**{heading}**\n\n{body}", page, line - 2)


def _glossary(argument: str, options: Mapping[str, str], body: str, page: Page, line: int) -> str:
    return markdown("\n\n".join(f"**{', '.join(names)}**\n\n{meaning}"
                                for names, meaning in _entries(body)), page, line)


def _entries(body: str) -> list[tuple[list[str], str]]:
    """The entries of a glossary: names at the margin, one a line, and the indented meaning."""
    found: list[tuple[list[str], str]] = []
    for lines in re.findall(r"((?:^\S.*\n?)+)((?:^(?:[ \t]+.*)?(?:\n|\Z))*)", body + "\n", re.M):
        names, meaning = lines
        found.append((names.split("\n")[:-1],
                      re.sub(r"^[ \t]+", "", meaning, flags=re.M).strip("\n")))
    return found


DIRECTIVES = {"admonition": _admonition, "note": _named("Note"), "figure": _figure,
              "literalinclude": _included, "grid": _grid, "grid-item-card": _card,
              "glossary": _glossary}
BLOCKS = {  # what the parser finds, by its name there
    "fence": _fence, "colon_fence": _fence, "code_block": lambda token, raw, page, line: raw,
    "math_block": lambda token, raw, page, line: raw,
    "myst_target": lambda token, raw, page, line: [],
    "myst_line_comment": lambda token, raw, page, line: [],
    "myst_block_break": lambda token, raw, page, line: []}
