"""Parts of a chapter: words, exercises and seconds fall to the heading that they stand below."""

from nbformat.v4 import new_code_cell, new_markdown_cell

from dnnbook.chapters import times


def test_what_stands_below_a_heading_counts_for_it():
    timed = {"papermill": {"duration": 2.5}}
    cells = [new_markdown_cell("# A title\n\nfour more words here"),
             new_code_cell("x = 1", metadata=timed),
             new_markdown_cell(f"two words\n\n## Exercises\n\n1. Why? {times.SOLUTION}\n"
                               f"2. How? {times.SOLUTION}\n\n## Further\n\nread"),
             new_code_cell("y", metadata=timed), new_code_cell("z")]
    start, exercises, further = times.parts(cells)
    assert start == ("the beginning", 3 + 4 + 3 + 2, 0, 2.5)
    assert exercises == ("Exercises", 2 * (2 + len(times.SOLUTION.split())), 2, 0)
    assert further == ("Further", 3, 0, 2.5)
    assert times.table([start]).splitlines()[-1] == "| the beginning | 1 |  | 2 |"


def test_grids_are_those_of_the_chapter_alone():
    grids = [{"notebook": ["nss/01", "nss/02"], "minutes": 0.5}, {"notebook": "nss/02", "minutes": 8},
             {"notebook": "nss/07", "minutes": 90}]
    assert times.at_paper_scale("nss/02_fault_detection", grids) == "0.5 to 8"
    assert times.at_paper_scale("nss/03_one_mutation", grids) == ""
