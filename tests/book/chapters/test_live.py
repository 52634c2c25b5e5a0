"""Cells as people run them: alone, twice, all below; and a line of the method that is changed."""

import ast
import re
from collections import Counter
from contextlib import contextmanager
from itertools import count

import jupytext
import matplotlib
import nbformat
import pytest
import torch
from nbclient import NotebookClient
from nbconvert.preprocessors import CoalesceStreamsPreprocessor

from dnnbook.chapters import notebooks, yours
from dnnbook.chapters.experiments import Experiment
from dnnbook.data import load
from tests.book import cells as chapter

SWARM, METHOD = "deepsensor_sensitivity/13", "nss/00"


@contextmanager
def opened(name, monkeypatch):
    """A chapter in a fresh kernel: its cells of code, and ``run(cell)``: what it says."""
    monkeypatch.delenv("DNNLIB_BOOK", raising=False)  # the committed records
    path = notebooks.find(name)
    book = nbformat.read(path, 4)
    client = NotebookClient(book, timeout=600, resources={"metadata": {"path": str(path.parent)}})
    cells = [cell for cell in book.cells if cell.cell_type == "code"]

    def run(cell):
        cell.outputs = []
        client.execute_cell(cell, book.cells.index(cell))
        return heard(cell)

    with client.setup_kernel():
        yield cells, run


def heard(cell):
    """What the outputs of a cell say; a bar that is done has no data, and a kernel may print a line in pieces."""
    CoalesceStreamsPreprocessor().preprocess_cell(cell, {}, 0)
    return [said(output) for output in cell.outputs if output.get("name") != "stderr" and output.get("data", 1)]


def said(output):
    data = output.get("data", {})
    return output.get("text") or next((data[kind] for kind in ("text/html", "text/markdown", "image/png", "text/plain")
                                       if kind in data), "")


@pytest.mark.parametrize("name", [SWARM, METHOD])
def test_a_cell_says_the_same_alone_and_twice(name, monkeypatch):
    with opened(name, monkeypatch) as (cells, run):
        first = [run(cell) for cell in cells]
        for cell, before in list(zip(cells, first))[::-1]:  # each alone, after all
            assert [run(cell), run(cell)] == [before, before], cell.source
        assert [run(cell) for cell in cells[len(cells) // 2:]] == first[len(cells) // 2:]  # all below


def edited(cells, line, other):
    cell, = (cell for cell in cells if line in cell.source)
    cell.source = cell.source.replace(line, other)
    return cells.index(cell)


@pytest.mark.parametrize("line, other, told", [
    ("ns = (phi[1:] - phi[:1]) / (x_p - x).norm", "ns = (phi[:1] - phi[1:]) / (x_p - x).norm", "`SensitiveNeurons`"),
    ("c2 * r_2 * (g_best - x_p)", "0 * r_2 * (g_best - x_p)", "`Swarm`")])
def test_a_changed_line_of_the_swarm_reaches_the_sentences_below(line, other, told, monkeypatch):
    with opened(SWARM, monkeypatch) as (cells, run):
        at = edited(cells, line, other)
        committed = [heard(cell) for cell in cells]
        now = [run(cell) for cell in cells]
    differs = [i for i, (a, b) in enumerate(zip(committed, now)) if a != b and i > at]
    texts = "".join(str(part) for i in differs for part in now[i])
    assert re.search(rf"differs from the engine's {told} on [\d,]+ of [\d,]+ \w+: from here on this page shows yours",
                     texts)
    assert len(differs) > 1 and not re.search("Error", texts)


PATCHED = {"trials": 10}
FEW = {"inputs": 5, "iterations": 2, "population": 2, "references": 50}
EDITS = [  # a chapter, small; lines of its method, others in their places, and the start of what is to move
    ("nsatp/01", PATCHED | {"repeats": 3, "inputs": 10}, [
        ("(of_undecided[:, None] > of_decided)", "(of_undecided[:, None] < of_decided)", "run.save(data")]),
    ("nsatp/02", PATCHED, [
        ("(p[:, :-1] - p[:, 1:]) / i)", "p[:, :-1] - p[:, 1:])", "decays(distances, eff"),
        ("fit_exponential(x, eff) for", "fit_exponential(x, eff + 0.01) for", 'on=ON, **PAPER).drop('),
        ("measured.success.double().mean(1)", "measured.success.double().mean(1) ** 2", "pd.DataFrame({shown(name)")]),
    ("nsatp/03", PATCHED, [
        ("falling[:, :-1] - falling[:, 1:]) / i)", "falling[:, :-1] - falling[:, 1:]) * i)", "orders(ranks, eff)"),
        ("M * before + (M + 1) / (k + 1)", "M * before + M", "run.save(data")]),
    ("nsatp/04", PATCHED, [
        ("(far ** 2).sum()", "abs(far).sum()", 'wide(run.live, "distance.notna()'),
        ("if name == \"pe\" else x", "if name != \"pe\" else x", "for name, x in distances.items():\n    order")]),
    ("peacepact/01", PATCHED | {"repeats": 3, "inputs": 10}, [
        ("(of_undecided[:, None] > of_decided)", "(of_undecided[:, None] < of_decided)", "run.beside(paper"),
        ("(copied == second[:, None])", "(copied != second[:, None])", "run.add(pairs)")]),
    ("peacepact/02", PATCHED, [
        ("(p[:, :-1] - p[:, 1:]) / torch.arange(1, p.shape[1])", "p[:, :-1] - p[:, 1:]", 'decays({"pd": delta}')]),
    ("peacepact/03", PATCHED, [
        ("(p[:, :-1] - p[:, 1:]) / torch.arange(1, p.shape[1])", "p[:, 1:]", 'orders({"pd": ranks}')]),
    ("nss/00", {}, [
        ("moved[:, chosen].sum(1)", "moved.sum(1)", "predicted = inference"),
        ("(x_a - trace).norm() /", "1 /", "rest = torch.randperm"),
        ("alpha * values.sum", "0.2 * values.sum", "channels = torch.stack")]),
    ("nss/01", {}, [("moved[:, chosen].mean()", "moved.mean()", "wide(run.live, \"quantity == 'sensitivity'")]),
    ("nss/02", {"references": 50}, [
        ('return faults.roc_area(scores["faults (%)"] > 0', 'return faults.roc_area(scores["faults (%)"] <= 0',
         'for by in ("made by", "drawn")')]),
    ("nss/03", {}, [('differences=["l1"]', 'differences=["squared_normalised"]', "shown = named(run.live")]),
    ("nss/04", {"references": 200}, [('differences=["l1"]', 'differences=["squared_normalised"]', "curves(run.live")]),
    ("nss/05", {"references": 200, "epochs": 1}, [
        ("(after - before[test])", "(before[test] - after)", "training on without candidates")]),
    ("nss/06", {"references": 50}, [
        ("return min(taken)", "return sum(taken)", "curves(run.live, x="),
        ('/ taken["nss"', '+ taken["nss"', 'xlabel="time (that of NSS')]),
    ("nss/07", {}, [("moved[:, columns].sum(1", "moved.sum(1", "random order expects")]),
    ("deepsensor_sensitivity/01", {"inputs": 10, "iterations": 5, "references": 100}, [
        ("(phi_moved - phi) / length", "phi_moved - phi", "engine = sensitivity")]),
    ("deepsensor_sensitivity/02", FEW | {"inputs": 2, "others": "lenet1", "distances": "4", "held_out": 0}, [
        ("- lambda1 * z[0]", "+ lambda1 * z[0]", "climbed = "),
        ("/ 2 - z[:, c] +", "/ 2 + z[:, c] +", "climbed = ")]),
    ("deepsensor_sensitivity/03", {"inputs": 2, "iterations": 3, "population": 5}, [
        ("recombination=search.recombination", "recombination=1.0", "pd.DataFrame({name: {")]),
    ("deepsensor_sensitivity/04", FEW, [
        ("argmax(1) == setting", "argmax(1) != setting", "wide(run.live, \"quantity in ('accuracy'")]),
    ("deepsensor_sensitivity/05", FEW, [
        ("made.predicted[-1] != made.labels", "made.predicted[-1] == made.labels", "wide(run.live.fillna(")]),
    ("deepsensor_sensitivity/06", FEW | {"sections": 100}, [
        ("scaled.values > 0.2", "scaled.values > 0.6", "run.add(outcomes.each(")]),
    ("deepsensor_sensitivity/07", FEW | {"epochs": 1, "attacked_inputs": 5, "attack_steps": 2, "clever_samples": 4}, [
        (".clamp(max=2.0)", ".clamp(max=0.01)", "table = pd.DataFrame(success)")]),
    ("deepsensor_sensitivity/08", FEW, [("fuzzing.Budget(l2=bound)", "fuzzing.Budget()", "pd.DataFrame({name: shares")]),
    ("deepsensor_sensitivity/09", FEW | {"inputs": 20, "iterations": 5, "lambdas": "0.1 0.9", "epsilons": "0.02"}, [
        ("SensitiveNeurons(threshold=threshold", "SensitiveNeurons(threshold=0.5",
         "errors_against_thresholds(run.live")]),
    ("deepsensor_sensitivity/10", FEW, [
        ("Swarm.paper(population=population, **options)", "Swarm.paper(population=population)",
         "wide(run.live, \"quantity in ('test_errors', 'l2')\"")]),
    ("deepsensor_sensitivity/11", FEW | {"others": "lenet1"}, [
        ('cost["passes"] / cost["test_errors"]', 'cost["test_errors"] / cost["passes"]', 'tables.headed(cost.drop('),
        ('cost["passes"][rival] / cost["passes"][key]', 'cost["passes"][key] / cost["passes"][rival]',
         "tables.wide(run.live, ")]),
    ("deepsensor_sensitivity/14", {"inputs": 3, "iterations": 4, "population": 3}, [
        ("replace(text, population=1)", "replace(text, population=2)", 'wide(run.live, index=["budget", "choice"]'),
        ("campaign.predicted != campaign.labels", "campaign.predicted == campaign.labels",
         'wide(run.live, index=["budget", "choice"]')]),
    ("deepsensor_excitable/00", {"estimator_inputs": 1, "permutations": 2}, [
        ("m @ weight[inside]", "m.mean(1)", "generator = torch.Generator().manual_seed(seed)  # of the orders")]),
    ("deepsensor_excitable/01", FEW | {"points": 1, "others": "lenet1"}, [
        ("rate[EXCITABLE] - rate[key]", "rate[EXCITABLE] + rate[key]", "wide(run.live, AHEAD")]),
    ("deepsensor_excitable/02", FEW, [
        ("(given == setting", "(given != setting", "wide(run.live, \"quantity in ('accuracy'")]),
    ("deepsensor_excitable/03", FEW, [
        (" - loss(models[state], x, labels)  # Eq. 3", "", "wide(run.live.replace(UNITS)")]),
    ("deepsensor_excitable/04", FEW | {"points": 1, "others": "lenet1", "epochs": 1, "attacked_inputs": 5,
                                 "slowly_attacked_inputs": 1, "attack_steps": 2, "deepfool_steps": 1}, [
        ('"fgsm": robustness.FGSM(eps=eps)', '"fgsm": robustness.FGSM(eps=0.01)', "measured = measure(models)")]),
    ("deepsensor_excitable/05", {}, [
        ("L = gradient.flatten(1).norm(dim=1).max()", "L = gradient.mean()", "NUMBERS =")]),
    ("deepsensor_excitable/06", {"inputs": 4, "iterations": 2, "population": 2, "attack_steps": 10, "points": 1}, [
        ("(a & b)[both]", "(a | b)[both]", "tens = {name")]),
    ("deepsensor_excitable/07", FEW | {"inputs": 8, "points": 1}, [
        ("(neighbour < n) ==", "(neighbour >= n) ==", "half = len(x) // 2")]),
    ("deepsensor_excitable/08", FEW | {"model_name": "lenet1", "others": "lenet4", "points": 1}, [
        ("(found[budget, key].images == images)", "(found[budget, key].images != images)", "wide(run.live, GUIDED"),
        ("np.corrcoef(x[i].flatten(), picture.flatten())[0, 1]", "1", 'pd.DataFrame({"taken for": given')]),
    ("deepsensor_excitable/09", FEW | {"points": 1, "lambdas": "0.01 0.6", "epsilons": "0.02",
                                   "kinds": "adversarial"}, [
        ('guided(name, value) for name', 'guided(name, 0.6) for name', "wide(run.live.sort_values")]),
    ("deepsensor_excitable/10", FEW | {"points": 1}, [
        ("fitness=fitness, **options)", "fitness=fitness)", 'wide(run.live, index=["budget", "swarm", "start"]')]),
    ("deepsensor_excitable/11", FEW | {"others": "lenet1"}, [
        ("ExcitableNeurons(points=8)", "ExcitableNeurons(points=1)", "headed(cost.drop("),
        ("population=population)", "population=1)", "wide(run.live, \"quantity == 'times_passes'")]),
    ("deepsensor_excitable/12", {"points": 1}, [(".values > 0.5)", ".values > 0.1)", "run.add(studies.tidy(fdr")]),
    ("deepsensor_excitable/13", {}, [
        ("strength[left] >= strength[right]", "strength[left] < strength[right]", "plots.images(torch.cat([images"),
        ("campaign.predicted != campaign.labels", "campaign.predicted == campaign.labels",
         'wide(run.live, index=["budget", "optimiser"]')]),
    ("deepsensor_excitable/14", {"clever_inputs": 1, "clever_samples": 8, "many_batches": 2, "many_samples": 8,
                                 "pool": 10}, [
        ('ours | {"radius": large_radius}', "ours", "scores_by_setting(run.live)")]),
    ("deepsensor_excitable/15", {"inputs": 3, "iterations": 4, "population": 3, "permutations": 2, "judged": 2}, [
        ("ExcitableNeurons(points=points) for points", "ExcitableNeurons(points=1) for points",
         'wide(run.live, index=["budget", "guide"]'),
        ("campaign.predicted != campaign.labels", "campaign.predicted == campaign.labels",
         'wide(run.live, index=["budget", "guide"]')]),
    ("synthesis/01", {"seeds": "0", "references": 50}, [
        ("faults.fault_detection_rate(wrong, order, 0.05)", "faults.fault_detection_rate(wrong, order, 0.5)",
         'mean_and_interval(live, index=["selector"]')]),
    ("synthesis/02", {"seeds": "0", "inputs": 2, "iterations": 2, "population": 2, "distances": "12", "others": "lenet1",
                      "references": 50}, [
        ("sensitive excitable constant", "sensitive excitable random", 'by_bound(live, "error_rate")'),
        ('both["value"] - both["value_noise"]', 'both["value"] + both["value_noise"]', "by_bound(both.assign(")]),
    ("synthesis/04", {"references": 50, "trials": 5}, [
        ("fragility.eff(patched) > 0", "fragility.eff(patched) == 0", "pd.concat([shares"),
        ("faults.roc_area(hit, score)", "faults.roc_area(hit, -score)", "wide(run.live, \"quantity == 'auc'"),
        ("len(first[a] & first[b]) /", "2 * len(first[a] & first[b]) /", "plots.matrix(axes[1]")]),
]


@pytest.mark.parametrize("name, parameters, edits", EDITS, ids=[name for name, *_ in EDITS])
def test_a_changed_line_of_the_method_moves_a_table_or_figure(name, parameters, edits, shared_cache, monkeypatch):
    monkeypatch.setenv("DNNLIB_CACHE", str(shared_cache))
    monkeypatch.delenv("DNNLIB_BOOK", raising=False)  # the committed records
    monkeypatch.setattr("time.perf_counter", count(0.0).__next__)  # so that what takes time is drawn alike
    sources = chapter.small(notebooks.find(name).with_suffix(".py"), parameters)
    names = {"__name__": "__main__"}
    done: set[int] = set()
    told = compares = False
    with matplotlib.rc_context():
        for line, other, shown in edits:
            last, at = (next(i for i, source in enumerate(sources) if part in source) for part in (shown, line))
            needed = chapter.needed(sources, at, last)
            if not done:
                monkeypatch.setenv(yours.MAKING, "1")  # nothing differs before a line is changed
            before = [chapter.run(sources[i], names) for i in needed if i not in done or i == last][-1]
            monkeypatch.delenv(yours.MAKING, raising=False)
            sources[at] = sources[at].replace(line, other)
            below = [i for i in needed if i >= at]
            now = [chapter.run(sources[i], names) for i in below]
            done |= {*needed}
            assert before.pictures or "<table" in before.text
            assert now[-1] != before
            compares |= any("compared(" in sources[i] for i in below)
            told |= any("from here on this page shows yours" in said.text for said in now)
    assert told == compares


@pytest.mark.parametrize("path", notebooks.starting([], ".py"), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_no_cell_takes_a_name_that_two_cells_bind(path):
    cells = [chapter.names(cell.source) for cell in chapter.code(path)]
    bound = Counter(name for _, binds in cells for name in binds)
    assert not {name for read, _ in cells for name in read if bound[name] > 1}


@pytest.mark.parametrize("path", notebooks.starting([], ".py"), ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_table_of_the_run_names_its_rows_where_more_are_added_below(path):
    sources = [cell.source for cell in chapter.code(path)]
    above = sources[:max((i for i, source in enumerate(sources) if "run.add(" in source), default=0)]
    assert not [source for source in above if "order=" not in source
                and re.search(r"wide\((named\()?run\.live\)?,\s*index", source)]


def test_the_making_of_the_book_takes_a_difference_as_an_error(monkeypatch, capsys):
    mine, engine = torch.tensor([1.0, 3.0]), torch.tensor([1.0, 2.0])
    assert yours.compared(mine, engine, "it") is mine
    assert "differs from the engine's `it` on 1 of 2 images" in capsys.readouterr().out
    yours.compared(mine, engine, "it", but="the film")
    assert capsys.readouterr().out.endswith("shows yours, but for the film.\n")
    monkeypatch.setenv(yours.MAKING, "1")
    with pytest.raises(AssertionError, match="1 of 2 images"):
        yours.compared(mine, engine, "it")


@pytest.mark.parametrize(("mine", "said"), [
    (None, "the code above None; did you forget `return`"), ([1.0, 3.0], "the code above list"),
    (torch.ones(1), r"a tensor \(2,\), the code above a tensor \(1,\)"),
    (torch.tensor([1.0, torch.nan]), "the code above gives NaN 1 times")])
def test_what_cannot_be_shown_is_one_line(mine, said):
    with pytest.raises(yours.Unlike, match=said) as raised:
        yours.compared(mine, torch.tensor([1.0, 2.0]), "it")
    assert raised.value._render_traceback_() == [f"Unlike: {raised.value}"]  # what notebooks show


def test_a_run_whose_method_was_changed_leaves_no_record(monkeypatch, capsys, tmp_path):
    monkeypatch.setenv("DNNLIB_RESULTS", str(tmp_path))
    run = Experiment("toy/luck", "paper", dataset="digits", model_name="lenet1", seed=0)
    run.add({"error_rate": 1.0})
    engine = torch.tensor([1.0, 2.0])
    yours.compared(engine + 1, engine, "nss.score")
    assert run.save(load("digits")) is None and "nss.score" in capsys.readouterr().out
    yours.compared(engine, engine, "nss.score")  # changed back
    assert run.save(load("digits")).is_relative_to(tmp_path)


@pytest.mark.parametrize(("cell", "mine"), [
    ("def judged(found):\n    return found[:5]", True), ("def judged(found):\n    return found", False),
    ("rows['gini'] = 0", True), ("run.add({'fdr': 1})", True), ("trials, side = 5, 2", True),
    ("rows['gini'] + 1", False), ("scratch = rows", False), ("rows = = 1", False)])
def test_a_cell_in_the_place_of_the_chapters_is_named(cell, mine):
    chapter = ["trials = 50", "def judged(found):\n    return found", "rows = judged({})", "run.add(rows)"]
    assert yours.others([*chapter, cell], chapter) == [cell.partition("\n")[0]] * mine
    assert yours.others([*chapter, cell], []) == []


def test_a_chapter_with_a_cell_of_ones_own_leaves_no_record(monkeypatch, tmp_path):
    with opened("synthesis/04", monkeypatch) as (cells, run):
        parameters, begins, saves = (next(i for i, cell in enumerate(cells) if part in cell.source) for part in (
            "profile = ", "run = Experiment(", "run.save("))
        cells[parameters].source += "\nprofile, inputs, references, trials = 'paper', 40, 50, 5"
        run(cells[parameters])
        line, other = "fragility.eff(patched) > 0", "fragility.eff(patched) >= 0"
        for before, after, kept in ((line, other, 0), (other, line, 1)):  # changed, and changed back
            at = edited(cells, before, after)
            said = [text for cell in cells[begins:saves + 1] for text in run(cell)]
            mine = cells[at].source.partition("\n")[0]
            assert (f"This run leaves no record, since its code is yours: {mine}.\n" in said) == (not kept)
            assert len([*tmp_path.rglob("synthesis/same_inputs/*.json")]) == kept


TABLES = {"headed", "wide", "mean_and_interval", "sentences", "claims", "to_frame", "round",
          "rename_axis", "rename", "beside"}  # calls that give a table


@pytest.mark.parametrize("source", notebooks.starting([], ".py"), ids=lambda path: path.stem)
def test_a_table_within_a_cell_is_displayed(source):
    """A notebook shows the value of a cell's last line alone; any other table nobody would see."""
    lost = []
    for cell in jupytext.read(source).cells:
        if cell.cell_type == "code" and not cell.source.startswith("%%"):
            before = ast.parse(cell.source).body[:-1]
            lost += [ast.unparse(node) for node in before if isinstance(node, ast.Expr)
                     and isinstance(node.value, ast.Call)
                     and ast.unparse(node.value.func).rpartition(".")[2] in TABLES]
    assert lost == []
