"""The command line: ``dnnlib rank``, ``fuzz``, ``compare``, ``stress``, ``layers``, ``models``."""

import sys

import typer

from dnnlib.cli.compare import compare
from dnnlib.cli.fuzz import fuzz
from dnnlib.cli.helped import Helped
from dnnlib.cli.layers import layers
from dnnlib.cli.rank import rank
from dnnlib.cli.stress import stress
from dnnlib.cli.terminal import ended, examples, print_table

app = typer.Typer(no_args_is_help=True, add_completion=False, rich_markup_mode="markdown",
                  help="Find the inputs that break a neural network, and find them first.",
                  epilog="`--debug` anywhere shows the traceback of an error.")
OF_THE_BOOK = ("data", "figures", "lab", "notebooks", "replay", "run", "runs", "scoreboard",
               "sweep")

app.command(cls=Helped, epilog=examples(
    "dnnlib rank --example",
    "dnnlib rank --model torchvision:resnet18 --images photos",
    "dnnlib rank --model my.py:build --weights w.safetensors --images photos --by "
    "nss,gini --top 5%",
    "dnnlib rank --model mobilenet --width 0.75 --weights mobilenet.safetensors --images "
    "photos --by nac,random --top 50",
    "dnnlib rank --model torchvision:resnet18 --classes 10 --weights w.pth --images "
    "photos --by nac --layers 'layer4.*'",
    "dnnlib rank --model my.py:build --images labelled --by gini --pytest tests/test_rate.py",
    "dnnlib rank --outputs probs.npy --by gini,ats",
    "dnnlib rank --model my.py:build --images photos --by gini,nss --merge --top 100 "
    "--copy-to first --label-studio tasks.json"))(rank)
app.command(cls=Helped, epilog=examples(
    "dnnlib fuzz --model torchvision:resnet18 --images photos --by dlfuzz --l2 2 --limit 20",
    "dnnlib fuzz --model my.py:build --weights w.safetensors --images photos --by "
    "deepsensor --l2 2 --iterations 20 --out failures",
    "dnnlib fuzz --model my.py:build --images photos --by dlfuzz --linf 0.03 --labels "
    "folders --pytest tests/test_failures.py"))(fuzz)
app.command(cls=Helped, epilog=examples(
    "dnnlib compare --model my.py:build --images labelled --by all",
    "dnnlib compare --model my.py:build --images labelled --by gini,nss,dsa --reference "
    "train --fuzz dlfuzz,deepsensor --l2 2"))(compare)
app.command(cls=Helped, epilog=examples(
    "dnnlib stress --model torchvision:resnet18 --images photos",
    "dnnlib stress --model my.py:build --weights w.safetensors --images labelled --labels "
    "folders --by brightness,blur,jpeg",
    "dnnlib stress --model my.py:build --images photos --limit 200 --out night"))(stress)
app.command(epilog=examples(
    "dnnlib layers --model my.py:build --size 224",
    "dnnlib layers --model my.py:build --size 224 --match 'layer3.*'"))(layers)


@app.command("models", epilog=examples(
    "dnnlib models"))
def list_models() -> None:
    """List the networks: parameters and neurons beside the published counts."""
    from dnnlib import models

    print_table(models.table().reset_index(), "Networks of the five papers")


def main() -> None:
    """Entry point: a mistake is one line and code 2; a failed run, or what is missing, 1."""
    arguments = [a for a in sys.argv[1:] if a != "--debug"]
    if arguments[:1] and arguments[0] in OF_THE_BOOK:
        ended(ValueError(f"dnnlib {arguments[0]} is called dnnbook {arguments[0]}; it comes with "
                         "the book, by `pip install -e . -e book` in its checkout"))
    try:
        app(arguments)
    except (ValueError, TypeError, OSError, ModuleNotFoundError) as error:
        ended(error)
