"""What code does, as a digest of its parsed text: keys of the cache change when it does.

Comments, docstrings, annotations, the names of local variables, the lay-out and what an error
says do not count. Of a function, all that it uses of this library counts as well, but for
:data:`BESIDE`: functions, classes with their methods, and plain values such as tables and sizes.
So a changed option, sign or order of steps is noticed, and a renamed variable is not. A digest
is preferred to revisions raised by hand, which are forgotten; these say which change was meant.
"""

import ast
import inspect
import textwrap
from collections.abc import Collection, Iterator
from functools import cache
from types import FunctionType, ModuleType

from dnnlib import files

# they check, keep and name, or build networks, which are told apart by their answers and weights
BESIDE = ("dnnlib.checks", "dnnlib.files", "dnnlib.models", "dnnlib.cli",
          *(f"dnnbook.{room}" for room in ("published", "records", "display", "chapters", "cli",
                                           "places", "reproducible", "words")))
OURS = ("dnnlib.", "dnnbook.")
_PLAIN = (bool, int, float, str, bytes, type(None))


def digest(*roots, without: Collection[str] = ()) -> str:
    """16 hexadecimal digits of the code of functions and classes, and of what that uses.

    ``without``: names that are not followed.

    >>> def twice(x):
    ...     return 2 * x
    >>> digest(digest) != digest(files.digest)
    True
    """
    found: dict[str, str] = {}
    waiting = list(roots)
    while waiting:
        thing = inspect.unwrap(waiting.pop())
        name = f"{thing.__module__}.{thing.__qualname__}"
        if name not in found:
            found[name], used = _class(thing) if isinstance(thing, type) else _function(thing)
            waiting += [each for key, each in used if key not in without]
    return files.digest(found)


def _ours(thing) -> bool:
    module = getattr(thing, "__module__", None) or ""
    return module.startswith(OURS) and not module.startswith(BESIDE)


def _class(kind: type) -> tuple[str, list]:
    """A class's own methods and plain values as text; its bases and what the methods use."""
    text, used = [], [(base.__name__, base) for base in kind.__bases__ if _ours(base)]
    for name, value in vars(kind).items():
        value = getattr(value, "fget", None) or getattr(value, "__func__", value)
        if isinstance(value, FunctionType):
            if inspect.unwrap(value).__code__.co_filename != "<string>":  # as of a dataclass
                code, more = _function(inspect.unwrap(value))
                text.append(f"{name}: {code}")
                used += more
        elif not name.startswith("__") and (plain := _plain(value)) is not None:
            text.append(f"{name} = {plain}")
    return "\n".join(text), used


@cache  # a function's text is read once
def _bare(function: FunctionType) -> tuple[str, ast.AST]:
    """A function as text without what does not count, and parsed."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):  # written at a prompt, or a lambda within an expression
        code = function.__code__
        return f"{code.co_code.hex()} {code.co_names} {code.co_consts}", ast.Module([], [])
    tree = ast.fix_missing_locations(_Bare(tree).visit(tree))
    return ast.unparse(tree), tree


def _function(function: FunctionType) -> tuple[str, list]:
    """A function as text, with the plain values that it uses; and what else it uses of ours."""
    bare, tree = _bare(function)
    text, used = [bare], []
    for name, value in _used(tree, function.__globals__):
        if isinstance(value, type | FunctionType) and _ours(inspect.unwrap(value)):
            used.append((name, value))
        elif (plain := _plain(value)) is not None:
            text.append(f"{name} = {plain}")
        elif _ours(type(value)):  # an object: its type, and its fields where it shows them
            text.append(f"{name} = {value!r}" if " at 0x" not in repr(value) else name)
            used.append((name, type(value)))
    return "\n".join(text), used


def _used(tree: ast.AST, names: dict) -> Iterator[tuple[str, object]]:
    """The global values that a parsed function reads, also by way of a module of this library."""
    seen = set()
    for node in ast.walk(tree):
        name, value = None, None
        if isinstance(node, ast.Name) and node.id in names:
            name, value = node.id, names[node.id]
        elif (isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
              and isinstance(module := names.get(node.value.id), ModuleType)
              and f"{module.__name__}.".startswith(OURS)
              and not module.__name__.startswith(BESIDE)):
            name, value = f"{node.value.id}.{node.attr}", getattr(module, node.attr, None)
        if name is not None and name not in seen:
            seen.add(name)
            yield name.rpartition(".")[2], value


def _plain(value) -> str | None:
    """A plain value, or a table of such, as text; None for anything else."""
    if isinstance(value, _PLAIN):
        return repr(value)
    if isinstance(value, list | tuple):
        parts = [_plain(each) for each in value]
        return None if None in parts else f"[{', '.join(map(str, parts))}]"
    if isinstance(value, dict):
        return _plain([list(each) for each in value.items()])
    if isinstance(value, set | frozenset):
        return _plain(sorted(value, key=repr))
    return None


class _Bare(ast.NodeTransformer):
    """Leaves out of a parsed function what does not count; local names become numbers."""

    def __init__(self, tree: ast.AST):
        bound = [node.id if isinstance(node, ast.Name) else node.arg for node in ast.walk(tree)
                 if isinstance(node, ast.arg)
                 or isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)]
        self.number = {name: f"local{i}" for i, name in enumerate(dict.fromkeys(bound))}

    def visit_Name(self, node):
        node.id = self.number.get(node.id, node.id)
        return node

    def visit_arg(self, node):
        node.arg, node.annotation = self.number[node.arg], None
        return node

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        return ast.Assign([node.target], node.value) if node.value else ast.Pass()

    def visit_Raise(self, node):
        return ast.Raise(None, None)

    def visit_FunctionDef(self, node):
        self.generic_visit(node)
        node.returns = None
        first = node.body[0]
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
            node.body = node.body[1:] or [ast.Pass()]
        return node

    visit_AsyncFunctionDef = visit_FunctionDef
