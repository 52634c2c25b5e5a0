"""A command's help: what an option does stands once, in the docstring of what the command calls."""

import re

from typer.core import TyperCommand, TyperOption

_ITEM = re.compile(r"^ *- ((?:``\w+``(?:, )?)+): (.+?)(?=\n *- |\n *\n|\Z)", re.M | re.S)


def told(documented: object) -> dict[str, str]:
    """What each option does, by name, as the list in a docstring has it.

    A sentence that refers to a function is for Python alone.

    >>> told(type("Options", (), {"__doc__": "- ``a``, ``b``: at least one. See :func:`x`."}))
    {'a': 'At least one.', 'b': 'At least one.'}
    """
    found = {}
    for names, text in _ITEM.findall(documented.__doc__ or ""):
        sentences = re.split(r"(?<=\.) ", " ".join(text.split()).replace("``", "`"))
        said = " ".join(sentence for sentence in sentences if ":`" not in sentence)
        found |= dict.fromkeys(re.findall(r"\w+", names), said[:1].upper() + said[1:])
    return found


class Helped(TyperCommand):
    """A command in whose help {name} stands for what :func:`told` has for that option.

    {fuzzers} and {selectors} stand for the names of the methods.
    """

    def format_help(self, ctx, formatter) -> None:
        from dnnlib.custom import compare, fuzz, methods, options, rank, stress

        called = {"rank": (rank,), "fuzz": (options.Options, fuzz),
                  "compare": (options.Options, compare), "stress": (stress,)}[self.name or ""]
        texts = {"fuzzers": ", ".join(options.METHODS), "selectors": ", ".join(methods.METHODS)}
        for documented in called:
            texts |= told(documented)
        for option in self.params:
            if isinstance(option, TyperOption) and option.help:
                option.help = option.help.format_map(texts)
        super().format_help(ctx, formatter)
