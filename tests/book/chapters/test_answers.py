"""A wrong answer is told in at most three lines, without the code that knows the right one."""

import jupytext
import nbformat
import numpy as np
import pytest
import torch
from nbclient import NotebookClient

from dnnbook.chapters.answers import NotYet, check, judged


def double(x):
    return 2 * x


def test_a_right_answer_and_none_are_told(capsys):
    check(None, 3)
    check(torch.tensor([1.0, 2.0], requires_grad=True), np.array([1, 2]))
    check(sum, lambda x: x[0] + x[1], ([1, 2],), ([5, 5],))
    check(lambda x: [float(2 * each) for each in x], double, (torch.tensor([1.0, 2.0]),))
    assert capsys.readouterr().out == "No answer yet.\nRight.\nRight.\nRight.\n"


def raises(x):
    return x + "one"


@pytest.mark.parametrize("answer, truth, cases, told", [
    (lambda x: x, double, [(0.0,), (1.5,)], "for 1.5 expected 3, got 1.5"),
    (lambda x: x, double, [(torch.tensor([[0.7, 0.2]]),)], "for [[0.7, 0.2]] expected [[1.4, 0.4]], got [[0.7, 0.2]]"),
    (lambda x: 2 * x.T, double, [(torch.eye(2, 3),)],
     "for [[1, 0, 0], [0, 1, 0]] expected shape (2, 3), got shape (3, 2)"),
    (lambda x: x.flip(0), double, [(torch.arange(100.0),)],
     "for [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16... "
     "the first that differs is at [0]: expected 0, got 99"),
    (lambda x: 2.00003 * x, double, [(1.0,)], "for 1 the first that differs is: expected 2, got a number close by"),
    (lambda x: None, double, [(1.0,)], "for 1 your function returned nothing; did you forget `return`?"),
    (lambda x: "two", double, [(1.0,)], "for 1 expected numbers, got two"),
    (raises, double, [(1.0,)], "for 1 your function fails, in line 26 of its cell: TypeError: unsupported operand "
     "type(s) for +: 'float' and 'str'"),
    (3.0, double, [(1.0,)], "expected a function, got 3"),
    ([1.0], [1.0, 1.0], [], "expected shape (2,), got shape (1,)"),
    ([6, 6, 6], [2.0, 2.0, 2.0], [], "got [6, 6, 6]; the first that differs is at [0]"),
    (2, 3, [], "got 2")])
def test_a_wrong_answer_is_named_with_its_case(answer, truth, cases, told):
    with pytest.raises(NotYet) as wrong:
        check(answer, truth, *cases)
    assert str(wrong.value) == told
    assert wrong.value.__cause__ is None and wrong.value._render_traceback_() == [f"Not yet: {told}"]


@pytest.mark.parametrize("sparse", [torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr])
def test_a_sparse_answer_is_taken_as_any_other(sparse, capsys):
    twos = 2 * torch.eye(2)
    check(lambda x: sparse(2 * x), double, (torch.eye(2),))
    assert capsys.readouterr().out == "Right.\n"
    for answer, truth, cases, told in ((sparse(twos), torch.eye(2), [], "got [[2, 0], [0, 2]]; the first"),
                                       (sparse(twos), double, [(torch.eye(2),)], "expected a function, got [[2, 0], [0, 2]]"),
                                       ([sparse(twos)], twos, [], "")):
        with pytest.raises(NotYet) as wrong:
            check(answer, truth, *cases)
        assert str(wrong.value).startswith(told) and len(str(wrong.value).splitlines()) == 1


def test_an_answer_that_changes_what_it_gets_changes_no_case():
    def in_place(x):
        return x.mul_(2)

    case = torch.ones(2)
    check(in_place, double, (case,))
    assert case.tolist() == [1, 1]
    with pytest.raises(NotYet, match=r"expected \[2, 2\], got \[1, 1\]"):
        check(lambda x: x, lambda x: x.mul_(2), (case,))


def test_an_answer_may_be_asked_to_leave_what_it_gets():
    case = (torch.ones(2), 3)
    check(lambda x, by: by * x, lambda x, by: by * x, case, keeps=True)
    with pytest.raises(NotYet, match=r"for \[1, 1\], 3 your function changes what it gets; write into a copy"):
        check(lambda x, by: x.mul_(by), lambda x, by: by * x, case, keeps=True)


def test_a_function_needs_cases_and_a_value_none():
    for truth, cases in ((lambda x: x, []), (3, [(1,)])):
        with pytest.raises(TypeError, match="cases"):
            check(None, truth, *cases)


@pytest.mark.parametrize("question, told", [
    ("check = answer(1)", "your function needs `theirs` in line 2 of its cell; it is not defined"),
    ("check = answer(above)", "the check needs `above`; run the cells above first")])
def test_who_lacks_a_name_is_told(question, told):
    names = {}
    for cell, code in (("cell 1", "def mine(x):\n    return x + theirs"),
                       ("cell 2", f"def right(answer):\n    {question}")):
        exec(compile(code, cell, "exec"), names)
    with pytest.raises(NotYet, match=told):
        judged(names["right"], names["mine"])


def test_a_notebook_shows_one_line(tmp_path):
    source = ("# %%\nfrom dnnbook.chapters.practice import check\n\n"
              "def secret(x):\n    return 3 * x\n\n"
              "# %%\ncheck(lambda x: x, secret, (2.0,))\n")
    book = jupytext.reads(source, fmt="py:percent")
    book.metadata.kernelspec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    NotebookClient(book := nbformat.from_dict(book), allow_errors=True,
                   resources={"metadata": {"path": str(tmp_path)}}).execute()
    error, = book.cells[-1].outputs
    assert error.traceback == ["Not yet: for 2 expected 6, got 2"]
