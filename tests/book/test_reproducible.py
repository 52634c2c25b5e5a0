import pytest
import torch

from dnnbook import reproducible
from dnnbook.training import Recipe, fitted
from dnnlib.inference import accuracy


@pytest.fixture(autouse=True)
def untouched(monkeypatch):
    """Threads and algorithms are afterwards as they were; two threads to begin with."""
    for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        monkeypatch.setenv(name, "2")
    monkeypatch.delenv(reproducible.THREADS, raising=False)
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(2)
    torch.use_deterministic_algorithms(False)
    yield
    torch.set_num_threads(before[0])
    torch.use_deterministic_algorithms(before[1], warn_only=True)


def test_a_run_has_one_thread_whatever_was_set():
    reproducible.fix()
    assert torch.get_num_threads() == 1 and torch.are_deterministic_algorithms_enabled()
    assert reproducible.settings()["threads"] == 1


def test_who_has_many_cores_asks_for_them(monkeypatch):
    monkeypatch.setenv(reproducible.THREADS, "2")
    reproducible.fix()
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_another_number_of_threads_is_refused(monkeypatch, text):
    monkeypatch.setenv(reproducible.THREADS, text)
    with pytest.raises(ValueError, match=f"DNNLIB_THREADS: expected a whole number.*{text}"):
        reproducible.fix()


def test_fixed_holds_only_within():
    with pytest.raises(KeyError), reproducible.fixed():
        assert torch.get_num_threads() == 1 and torch.are_deterministic_algorithms_enabled()
        raise KeyError
    assert torch.get_num_threads() == 2 and not torch.are_deterministic_algorithms_enabled()


def test_the_key_changes_with_threads_processor_and_revision(monkeypatch):
    keys = [reproducible.key("orders")]
    torch.set_num_threads(1)
    keys.append(reproducible.key("orders"))
    monkeypatch.setattr(reproducible, "capability", lambda device: "another")
    keys.append(reproducible.key("orders"))
    monkeypatch.setattr(reproducible, "REVISIONS", {"orders": ("one",) * 9})
    keys.append(reproducible.key("orders"))
    assert all(a != b for i, a in enumerate(keys) for b in keys[:i])


def test_networks_of_other_threads_stand_beside_in_the_cache(tiny_data, monkeypatch, folders):
    """The caller's threads change nothing, those asked for by the variable do."""
    data = type(tiny_data)("tiny", "train", torch.nn.functional.interpolate(tiny_data.images, 28),
                           tiny_data.labels, tiny_data.classes, "tiny-28")
    recipe = Recipe(0.1, 8, 1, precision="bfloat16")

    def kept() -> int:
        network = fitted("lenet1", data, recipe)
        assert 0 <= accuracy(network, data.images, data.labels) <= 1
        return len(list((folders / "cache" / "checkpoints").glob("*.safetensors")))

    assert kept() == 1
    torch.set_num_threads(1)
    assert kept() == 1
    monkeypatch.setenv(reproducible.THREADS, "2")
    assert kept() == 2
    assert torch.get_num_threads() == 1


def test_settings_tell_what_the_run_rests_on(tiny_data):
    reproducible.fix()
    assert reproducible.settings()["revisions"] == {}
    reproducible.note("training", precision="bfloat16")
    reproducible.note("training", precision="float32")
    found = reproducible.settings()
    assert found["revisions"] == {"training": reproducible.revision("training")}
    assert found["precision"] == "bfloat16 float32" and found["capability"]
    reproducible.fix()  # another run
    assert reproducible.settings()["precision"] == ""


def test_a_gpu_computes_in_float32_and_its_record_says_so():
    """What decides bits on a GPU is fixed and named; the keys and records of a CPU stay."""
    tf32 = torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32
    try:
        torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
        assert reproducible.arithmetic("meta")["tf32"] == "products convolutions"
        with reproducible.fixed():
            found = reproducible.arithmetic("meta")
        assert found == {"tf32": "", "deterministic": True, "workspace": ":4096:8"}
        assert torch.backends.cuda.matmul.allow_tf32 and torch.backends.cudnn.allow_tf32
    finally:
        torch.backends.cuda.matmul.allow_tf32, torch.backends.cudnn.allow_tf32 = tf32
    assert reproducible.arithmetic("cpu") == {}
    assert set(reproducible.key("orders", "meta")) - set(reproducible.key("orders")) == set(found)
