import json
import os
import random
import re
import signal
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, TensorDataset

from dnnlib import custom, files
from dnnlib.custom import ranking_run, scores
from dnnlib.selection import DSA, KMNC

BY = "gini,pd,nss,nac,kmnc,dsa,random"


@pytest.fixture
def folder(tmp_path, tiny_data, own, monkeypatch):
    """Forty images and forty for training, one each cut off, and a model in a file; we are there."""
    monkeypatch.chdir(tmp_path)
    for name, images in (("photos", tiny_data.images), ("train", 1 - tiny_data.images)):
        (tmp_path / name).mkdir()
        for i, image in enumerate(images):
            pixels = (image[0] * 255).round().to(torch.uint8).numpy()
            Image.fromarray(pixels).save(tmp_path / name / f"{i:02d}.png")
        torn = tmp_path / name / "07.png"
        torn.write_bytes(torn.read_bytes()[:-60])
    (tmp_path / "own.py").write_text(own)
    return tmp_path


@pytest.fixture
def ranked(folder, tiny_model):
    """``ranked(out, ...)``: the table of a run in that folder."""
    def call(out="run", by=BY, photos="photos", model=None, **more):
        reference = None if by == "gini" else custom.read_photos("train", tiny_model())
        given = {"top": 5, "block": 8, "batch_size": 3, "folder": out, "reference": reference} | more
        return custom.rank(model or tiny_model(), photos, by, **given)
    return call


class Killed(BaseException):
    pass


def content(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes()
            for p in sorted(folder.rglob("*")) if p.is_file()}


def passes(model):
    seen = []
    model.register_forward_pre_hook(lambda module, given: seen.append(len(given[0])))
    return seen


def killed_before_its_end(ranked, monkeypatch):
    def killed(*arguments):
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(ranking_run, "finished", killed)
        with pytest.raises(Killed):
            ranked(by="gini")


# ---- what streams


def test_blocks_and_batches_change_no_order(ranked):
    whole = ranked("a", block=40, batch_size=40)
    for i, (block, size) in enumerate([(8, 3), (1, 1), (39, 64)]):
        pd.testing.assert_frame_equal(  # a processor may add float32 in another order by batch
            ranked(f"b{i}", block=block, batch_size=size), whole, rtol=1e-4)


def test_an_image_that_ends_too_soon_is_told_and_not_ranked(ranked):
    table = ranked()
    assert table["path"].iloc[-1] == "07.png" and len(table) == 40
    assert table["note"].iloc[-1].startswith("is not a readable image")
    assert [*table.attrs["unread"]] == [*table.attrs["reference"]] == ["07.png"]
    for name in BY.split(","):
        assert sorted(table[f"{name}_rank"][:-1]) == [*range(1, 40)]
        assert table[f"{name}_selected"].sum() == 5 and not table[f"{name}_selected"].iloc[-1]


def test_all_methods_share_a_pass(ranked, tiny_model):
    model = tiny_model()
    seen = passes(model)
    for number, (by, passed) in enumerate([
            ("gini", 39), ("gini,pd,nac,ats,random", 39), ("gini,kmnc,dsa", 39 + 39),
            ("gini,nss", 39 + 39)]):
        seen.clear()
        ranked(f"run{number}", by=by, model=model, batch_size=8)
        first, *rest = [n for n in seen if n > 2]
        assert first == 39 and sum(rest) == passed  # a look at the outputs, then what is counted


def test_whatever_holds_images(ranked, folder, tiny_data, tiny_model):
    x = (tiny_data.images * 255).round().to(torch.uint8)
    (folder / "photos" / "07.png").unlink()
    expected = ranked("a", by="gini")["gini_score"].tolist()
    x = torch.cat([x[:7], x[8:]])
    names = [f"{i:02d}.png" for i in range(40) if i != 7]
    pd.DataFrame({"path": [f"photos/{name}" for name in names]}).to_csv("list.csv")
    for i, images in enumerate([
            x, x / 255, x.numpy(), TensorDataset(x, torch.zeros(39)),
            [Image.fromarray(image[0].numpy()) for image in x],
            DataLoader(TensorDataset(x), batch_size=4, shuffle=True), folder / "photos", "list.csv",
            custom.read_photos("photos", tiny_model())]):
        found = ranked(f"b{i}", by="gini", photos=images)
        assert found["gini_score"].tolist() == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("images, error, words", [
    (3, TypeError, "images: expected a folder, .*got int"), ([], ValueError, "at least one"),
    (torch.zeros(3, 8, 8), ValueError, r"expected shape \(N, C, H, W\)"),
    (torch.full((3, 1, 8, 8), 2.0), ValueError, r"values in \[0, 1\]"),
    ([np.full((1, 8, 8), -1.0)] * 3, ValueError, "none can be read; the first: 0 expected values"),
    ("nowhere", FileNotFoundError, "nowhere is not a folder")])
def test_what_holds_no_images(ranked, images, error, words):
    with pytest.raises(error, match=words):
        ranked(by="gini", photos=images, top=1)


def test_workers_read_the_same(ranked, folder):
    ranked("a", workers=0)
    ranked("b", workers=2)
    assert content(folder / "a") == content(folder / "b")


# ---- what is kept


def test_killed_at_any_moment_it_ends_with_the_same_bytes(ranked, folder, monkeypatch):
    """Twenty moments: a file about to be renamed, a batch about to pass, a method about to end."""
    events = [(os, "replace"), (scores, "shown"), (ranking_run, "finished")]
    real = {pair: getattr(*pair) for pair in events}
    left = [10**9]

    def counted(pair):
        def call(*arguments, **options):
            left[0] -= 1
            if not left[0]:
                raise Killed
            return real[pair](*arguments, **options)
        return call

    for pair in events:
        monkeypatch.setattr(*pair, counted(pair))
    expected = ranked("whole")
    total, whole = 10**9 - left[0], content(folder / "whole")
    assert [*whole] == ["result.safetensors", "run.json", "run.safetensors"] and total > 40
    for number, moment in enumerate(random.Random(0).sample(range(1, total + 1), 20)):
        out = f"run{number}"
        left[0] = moment
        with pytest.raises(Killed):
            ranked(out)
        left[0] = 10**9
        pd.testing.assert_frame_equal(ranked(out), expected)
        assert content(folder / out) == whole


def test_a_killed_command_goes_on(folder, killed):
    command = ["rank", "--model", "own.py:build", "--images", "photos", "--by", "gini,nss",
               "--block", "8", "--top", "5"]
    run = [sys.executable, "-c", killed]
    whole = subprocess.run([*run, "999", *command, "--out", "whole.csv"], capture_output=True)
    assert whole.returncode == 3, whole.stderr  # one image could not be read
    ended = subprocess.run([*run, "5", *command], capture_output=True)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    done = [*(folder / "ranking.run" / "blocks").glob("*.safetensors")]
    assert len(done) == 2 and not (folder / "ranking.csv").exists()
    before = done[0].stat().st_mtime_ns
    again = subprocess.run([*run, "999", *command], capture_output=True)
    assert again.returncode == 3, again.stderr
    assert not done[0].exists() and before  # the result stands for the blocks
    assert (folder / "ranking.csv").read_bytes() == (folder / "whole.csv").read_bytes()


def test_blocks_that_are_done_are_not_made_again(ranked, tiny_model, monkeypatch):
    killed_before_its_end(ranked, monkeypatch)
    model = tiny_model()
    seen = passes(model)
    first = ranked(by="gini", model=model)
    assert [n for n in seen if n == 3] == []
    seen.clear()
    other = ranked(by="gini", model=model, top=9)  # how many are selected needs no pass
    assert [n for n in seen if n == 3] == [] and other["gini_selected"].sum() == 9
    assert other["gini_score"].equals(first["gini_score"])


def test_a_damaged_block_is_made_again(ranked, folder, monkeypatch):
    expected = ranked("whole", by="gini")
    killed_before_its_end(ranked, monkeypatch)
    path = folder / "run" / "blocks" / "000001.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    pd.testing.assert_frame_equal(ranked(by="gini"), expected)


@pytest.mark.parametrize("change, words", [
    ({"block": 9}, "block was 8 and is 9"), ({"by": "pd"}, r"by was \['gini'\] and is \['pd'\]"),
    ({"seed": 1}, "seed was None and is 1"), ("model", "model was"), ("photo", "images was")])
@pytest.mark.parametrize("whole", [True, False])
def test_folder_of_another_run(ranked, folder, tiny_model, change, words, whole, monkeypatch, caplog):
    ranked(by="gini") if whole else killed_before_its_end(ranked, monkeypatch)
    before, more = content(folder / "run"), {"by": "gini"}
    if change == "model":
        more["model"] = tiny_model(1)
    if change == "photo":  # of the same size, at another time
        path = folder / "photos" / "03.png"
        state = path.stat()
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns + 1))
    if isinstance(change, dict):
        more |= change
    if whole:
        ranked(**more)
        assert re.search(f"run holds another run: .*{words}.*kept as run-1", caplog.text)
        assert content(folder / "run-1") == before != content(folder / "run")
    else:
        with pytest.raises(ValueError, match=f"out: run holds another run: .*{words}.*another --out"):
            ranked(**more)
        assert content(folder / "run") == before and not (folder / "run-1").exists()


def test_a_method_that_fails_late_costs_only_itself(ranked, folder, monkeypatch):
    read, calls = KMNC.read, []

    def sometimes(self, batch, known):
        calls.append(batch.places)
        if 20 in batch.places:
            raise ValueError("too strange\nfor words")
        return read(self, batch, known)

    monkeypatch.setattr(KMNC, "read", sometimes)
    table = ranked(by="gini,kmnc")
    assert table.attrs["failed"] == {"kmnc": "too strange"} and "kmnc_rank" not in table
    assert sorted(table["gini_rank"].dropna()) == [*range(1, 40)]
    again = ranked(by="gini,kmnc")
    assert again.attrs["failed"] == {"kmnc": "too strange"}
    assert json.loads((folder / "run" / "run.json").read_bytes())["by"] == ["gini", "kmnc"]


def test_a_reason_that_methods_share_is_given_once(ranked, monkeypatch):
    def never(self, batch, known):
        raise ValueError("too strange")

    for kind in (KMNC, DSA):
        monkeypatch.setattr(kind, "read", never)
    with pytest.raises(ValueError, match="^kmnc, dsa: too strange$"):
        ranked(by="kmnc,dsa")


def test_what_fails_at_once_leaves_no_folder(ranked, folder):
    with pytest.raises(ValueError, match="^ats: .*at least 3 classes"):
        ranked(by="ats", model=torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 2)))
    assert not (folder / "run").exists()


# ---- what it will take


@pytest.mark.parametrize("by, passes, reference", [
    ("random", 0, 0), ("gini,pd,ats", 1, 0), ("gini,nss", 2, 0), ("gini,kmnc,dsa", 1, 1),
    ("npc", 3, 3), ("gini,npc", 4, 3), ("excitable", 29, 0)])
def test_passes_are_told_before(folder, tiny_model, by, passes, reference):
    model = tiny_model()
    photos, seen = (custom.read_photos(name, model) for name in ("photos", "train"))
    job = custom.prepared_job(model, photos, by.split(","), reference=seen, seed=None, layers=None,
                              probabilities=False, batch_size=4, block=8)
    found = custom.estimate(job, seen)
    assert (found.passes, found.passes_reference) == (passes, reference)
    assert (found.images, found.reference) == (40, 40 if reference else 0)
    assert found.reading > 0 and found.passing > 0 and found.seconds(4) == found.seconds(1) / 4


def test_the_passes_told_are_those_made(ranked, folder, tiny_model):
    model = tiny_model()
    photos = custom.read_photos("photos", model)
    seen = passes(model)
    for number, by in enumerate(["gini,pd", "gini,nss"]):
        job = custom.prepared_job(model, photos, by.split(","), reference=None, seed=None,
                                  layers=None, probabilities=False, batch_size=8, block=8)
        seen.clear()
        ranked(f"run{number}", by=by, model=model, batch_size=8, reference=None)
        assert sum(n for n in seen[1:] if n > 2) == 39 * custom.estimate(job).passes


def test_command_tells_what_it_will_take_and_does_not_begin(folder):
    done = subprocess.run([sys.executable, "-m", "dnnlib.cli", "rank", "--model", "own.py:build",
                           "--images", "photos", "--by", "gini,nss", "--estimate"],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for words in ("40 images by gini, nss, about", "passes over an image: 2\n", "here, on cpu",
                  "4 workers of one core", "disk for scores"):
        assert words in done.stdout
    assert not [*folder.glob("ranking*")]


def test_command_tells_what_a_pass_holds(folder):
    """A model that takes 800 MB more in a pass."""
    (folder / "large.py").write_text("""
import own, torch

class Large(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = own.build()

    def forward(self, x):
        return self.net(x) + torch.ones(200_000_000)[:1] - 1

def build():
    return Large()
""")
    told = []
    for model in ("own.py", "large.py"):
        done = subprocess.run([sys.executable, "-m", "dnnlib.cli", "rank", "--model",
                               f"{model}:build", "--images", "photos", "--by", "gini",
                               "--estimate"], capture_output=True, text=True, check=True)
        told.append(int(re.search(r"a few passes: ([\d,]+) MB", done.stdout)[1].replace(",", "")))
    assert 600 < told[1] - told[0] < 900


def test_python_has_both_at_the_top(folder, tiny_model):
    import dnnlib

    x = torch.rand(6, 1, 8, 8)
    assert dnnlib.rank(tiny_model(), x, "gini", top=2)["gini_selected"].sum() == 2
    found = dnnlib.fuzz(tiny_model(), x, folder / "f", by="noise", l2=3.0, iterations=2)
    assert len(found.inputs) == 6
    with pytest.raises(AttributeError, match="no attribute 'rnak'"):
        dnnlib.rnak  # noqa: B018


# ---- a cluster


@pytest.fixture(scope="module")
def cluster():
    """Two workers on this machine, and the function that kills one."""
    distributed = pytest.importorskip("distributed")
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0",
                                  silence_logs=50) as local:
        yield local


@pytest.fixture(params=["blocks", "lessons"])
def kills_one(request, cluster, monkeypatch):
    """One worker dies once the first block is there; the list says whether it did."""
    write, killed = files.write_atomically, []

    def and_kill(path, data):
        write(path, data)
        if path.parent.name == request.param and not killed:
            killed.append(next(iter(cluster.workers.values())).pid)
            os.kill(killed[0], signal.SIGKILL)

    monkeypatch.setattr(files, "write_atomically", and_kill)
    return killed


def test_a_worker_that_dies_before_its_first_block_costs_nothing(ranked, cluster):
    """The one that was sent the model, before any block came back."""
    from distributed import Client, wait

    killed = []
    with Client(cluster) as client:
        submit = client.submit

        def submit_and_kill(function, *arguments, **options):
            future = submit(function, *arguments, **options)
            if not killed:
                wait(future)
                holder = next(iter(next(iter(client.who_has([future]).values()))))
                worker = next(w for w in cluster.workers.values() if w.worker_address == holder)
                killed.append(worker.pid)
                os.kill(worker.pid, signal.SIGKILL)
            return future

        client.submit = submit_and_kill
        table = ranked("there", by="gini", client=client)
    assert killed
    pd.testing.assert_frame_equal(table, ranked("here", by="gini"))


def test_a_cluster_of_which_a_worker_dies_ranks_the_same(ranked, folder, cluster, kills_one):
    from distributed import Client

    with Client(cluster) as client:
        table = ranked("there", block=4, client=client)
    assert kills_one
    pd.testing.assert_frame_equal(table, ranked("here", block=4))
    assert content(folder / "there") == content(folder / "here")


@pytest.mark.parametrize("kills_one", ["blocks"], indirect=True)
def test_a_cluster_of_which_a_worker_dies_fuzzes_the_same(folder, tiny_model, cluster, kills_one):
    from distributed import Client

    options = custom.Options(by="dlfuzz", l2=2.5, iterations=3, block=3)
    with Client(cluster) as client:
        found = custom.fuzz(tiny_model(), "photos", "there", options, client=client)
    assert kills_one and len(found.failures)
    here = custom.fuzz(tiny_model(), "photos", "here", options)
    assert here.failures.equals(found.failures)
    assert content(folder / "there") == content(folder / "here")


def test_command_on_a_cluster_with_the_users_own_code(folder, cluster):
    """The model's file is not where the workers are: its code travels along."""
    command = [sys.executable, "-m", "dnnlib.cli", "rank", "--model", "own.py:build", "--images",
               "photos", "--by", "gini,nss", "--top", "5", "--block", "8"]
    for more in (["--scheduler", cluster.scheduler_address, "--out", "there.csv"],
                 ["--out", "here.csv"]):
        done = subprocess.run([*command, *more], capture_output=True, text=True)
        assert done.returncode == 3, done.stderr  # one image could not be read
    assert (folder / "there.csv").read_bytes() == (folder / "here.csv").read_bytes()


def test_command_with_processes_of_its_own(folder):
    command = [sys.executable, "-m", "dnnlib.cli", "fuzz", "--model", "own.py:build", "--images",
               "photos", "--by", "noise", "--l2", "2", "--iterations", "3", "--block", "8"]
    for more in (["--processes", "2", "--out", "there"], ["--out", "here"]):
        done = subprocess.run([*command, *more], capture_output=True, text=True)
        assert done.returncode == 3, done.stderr  # one image could not be read
    assert content(folder / "there" / "images") == content(folder / "here" / "images") != {}
    refused = subprocess.run([*command, "--processes", "2", "--scheduler", "tcp://nowhere:8786"],
                             capture_output=True, text=True)
    assert refused.returncode == 2 and "--processes: only without --scheduler" in refused.stderr
