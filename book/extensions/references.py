"""Names in docstrings as people write them, ``layers.layers_of``, become links."""

import importlib
from collections.abc import Mapping
from types import ModuleType

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.nodes import make_refnode


def full_name(name: str, module: str, objects: Mapping, *, a_module: bool = False) -> str | None:
    """What ``name`` means in a docstring of ``module``: a name among ``objects``, or None.

    That of the module itself comes first, then of its room, then the only one of that ending. A
    name that a room hands on leads to where it is defined, and a constant to its module.
    """
    ending = [each for each, found in objects.items()
              if each.endswith(f".{name}") and (found.objtype == "module") == a_module]
    for near in (module, module.rpartition(".")[0], ""):
        found = [each for each in ending if each.startswith(near)]
        if len(found) == 1:
            return found[0]
    head, _, last = name.rpartition(".")
    rooms = [room for room in (f"dnnlib.{head}", f"dnnbook.{head}", head)
             if any(each.startswith(f"{room}.") for each in objects)] if head else [module]
    for place in [*(each for each in objects if each.endswith(f".{head}")), *rooms]:
        thing = getattr(_module(place), last, None)
        defined = f"{getattr(thing, '__module__', '')}.{getattr(thing, '__qualname__', '')}"
        for target in (defined, place):
            if thing is not None and target in objects:
                return target
    return None


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None


def resolved(app: Sphinx, env, node, text: nodes.Element) -> nodes.Element | None:
    """The link of a reference that Sphinx itself does not find."""
    if node.get("refdomain") != "py":
        return None
    objects = env.get_domain("py").objects
    name = full_name(node["reftarget"], node.get("py:module") or "", objects,
                     a_module=node.get("reftype") == "mod")
    if name is None:
        return None
    return make_refnode(app.builder, node["refdoc"], objects[name].docname, objects[name].node_id,
                        text, name)


def setup(app: Sphinx) -> dict:
    app.connect("missing-reference", resolved)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
