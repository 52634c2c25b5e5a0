"""An option is told once: the command's help has the words of the docstring that it calls."""

import inspect
import re
from dataclasses import fields

import pytest

from dnnlib import custom
from dnnlib.cli import helped

CALLED = {"rank": custom.rank, "fuzz": custom.Options, "compare": custom.compare,
          "stress": custom.stress}


def words(text):
    return re.findall(r"[\w'%-]+", text)


@pytest.mark.parametrize("command", CALLED)
def test_a_command_says_of_an_option_what_the_docstring_says(dnnlib, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")  # so that an option has a line
    _, out, _ = dnnlib(command, "--help")
    texts = helped.told(CALLED[command])
    assert texts["seed"] and "{" not in out
    for name in ("seed", "batch_size", "layers", "limit", "top", "rates", "block"):
        if name in texts:
            line, = re.findall(rf"^│[ *]*--{name.replace('_', '-')} .*$", out, re.MULTILINE)
            assert " ".join(words(texts[name])) in " ".join(words(line))


def test_every_field_of_the_options_is_told():
    assert {field.name for field in fields(custom.Options)} == {*helped.told(custom.Options)}


@pytest.mark.parametrize("command", [custom.rank, custom.stress])
def test_every_argument_is_told(command):
    arguments = {*inspect.signature(command).parameters} - {"model"}
    assert all(f"``{name}``" in command.__doc__ for name in arguments)


def test_sentences_for_python_alone_are_left_out():
    assert helped.told(custom.rank)["layers"].endswith("take the last.")
    assert "layers.matching" in custom.rank.__doc__
