"""The files of chapters in the folder for JupyterLab."""

from dnnbook.chapters import lab, notebooks

ORDER = lab.named([page for _, pages in lab.parts(notebooks.folder().resolve().parent)
                   for page in pages])


def of(chapter: str) -> str:
    """The name of a chapter's file there, without its ending."""
    return ORDER[f"notebooks/{chapter}"].removesuffix(".ipynb")
