"""The settings of the rivals, and the choice of the best."""

from dataclasses import replace

import pytest
import torch

from dnnbook import studies
from dnnbook.studies import Best, FuzzerKey
from dnnbook.studies import settings as released
from dnnlib.fuzzing import Budget, Noise


@pytest.fixture
def pool(tiny_model, tiny_data):
    """Images and the classes that the model gives them."""
    images = tiny_data.images
    with torch.inference_mode():
        return images, tiny_model()(images).argmax(1)


WEAK, STRONG = Noise(scale=1e-6), Noise(scale=5.0)


def best(pool, **options):
    return Best(**{"settings": (("weak", WEAK), ("strong", STRONG)), "images": pool[0],
                   "labels": pool[1], "count": 8} | options)


def test_the_best_setting_is_run(tiny_model, pool, generator):
    x, labels = pool[0][:4], pool[1][:4]
    assert best(pool).chosen(tiny_model(), x, iterations=3)[0] == "strong"
    one, other = (fuzzer.run(tiny_model(), x, labels, iterations=3, generator=generator(2))
                  for fuzzer in (best(pool), STRONG))
    assert torch.equal(one.images, other.images) and one.passes == other.passes


def test_a_tie_goes_to_the_first(tiny_model, pool):
    alike = best(pool, settings=(("first", WEAK), ("second", replace(WEAK, scale=2e-6))))
    assert alike.chosen(tiny_model(), pool[0][:4], iterations=2)[0] == "first"


def test_the_choice_is_made_on_other_inputs(tiny_model, pool):
    inputs = pool[0][:30]
    found, labels = best(pool, count=1000).others(tiny_model(), inputs)
    assert len(found) == len(pool[0]) - 30 == len(labels)
    assert not any(torch.equal(a, b) for a in found for b in inputs)
    with torch.inference_mode():
        assert torch.equal(tiny_model()(found).argmax(1), labels)


def test_no_other_input_of_the_target(tiny_model, pool):
    target = int(pool[1][0])
    _, labels = best(pool, target=target, count=1000).others(tiny_model(), pool[0][:1])
    assert len(labels) and (labels != target).all()


def test_without_other_inputs_nothing_can_be_chosen(tiny_model, pool):
    with pytest.raises(ValueError, match="^images: expected some of the .* that are not inputs"):
        best(pool).others(tiny_model(), pool[0])


def test_the_choice_is_made_within_the_budget(tiny_model, pool):
    near = replace(best(pool), budget=Budget(l2=0.01))
    assert max(near.rates(tiny_model(), pool[0][:4], iterations=2).values()) < max(
        best(pool).rates(tiny_model(), pool[0][:4], iterations=2).values())
    assert near.chosen(tiny_model(), pool[0][:4], iterations=2)[1].budget == Budget(l2=0.01)


def test_errors_of_a_target_decide_where_they_count(tiny_model, pool):
    """In percent of the examples that are given that class."""
    target = int(pool[1].bincount().argmin())
    rates = best(pool, target=target).rates(tiny_model(), pool[0][:4], iterations=3)
    assert rates["weak"] == 0


def test_rivals_share_the_budget_and_hold_what_they_need(tiny_model, pool):
    oracle, budget = tiny_model(1), Budget(l2=0.5)
    found = studies.rivals([oracle], pool[0], best=pool, count=7, target=2, budget=budget)
    names = ["deepxplore", "dlfuzz", "deephunter"]
    assert list(found) == [FuzzerKey(name, setting=s) for s in ("paper", "best") for name in names]
    assert all(each.budget == budget for each in found.values())
    assert found[FuzzerKey("deepxplore", setting="paper")].others == (oracle,)
    assert found[FuzzerKey("deepxplore", setting="paper")].constraint == "blackout"
    assert found[FuzzerKey("deephunter", setting="paper")].reference is pool[0]
    chosen = found[FuzzerKey("deepxplore", setting="best")]
    assert (chosen.count, chosen.target) == (7, 2)
    assert {name for name, _ in chosen.settings} == {
        "blackout", "light", "occlusion", "blackout_free", "light_free", "occlusion_free"}
    assert len(studies.rivals([oracle], pool[0])) == 3


def test_without_other_networks_deepxplore_runs_on_one(pool):
    assert studies.rivals([], pool[0])[FuzzerKey("deepxplore", setting="paper")].reading == "single"


def test_large_images_take_the_values_for_imagenet():
    small, large = (released("deepxplore", size=size) for size in (64, 224))
    assert small["blackout"].step == 10 and small["occlusion"].patch is None
    assert large["occlusion"].patch == 50 and large["blackout"].patch == 10
    assert large["blackout"].step == pytest.approx(10 / 255)
    assert large["light"].step == pytest.approx(1e4 * large["blackout"].step)
    assert released("dlfuzz", size=224)["rare"].step == pytest.approx(0.5 / 255)


def test_settings_of_deephunter_differ_from_the_text_s_in_what_they_name(pool):
    found = released("deephunter", reference=pool[0])
    text = found.pop("text")
    assert (text.affine, text.schedule, text.steps) == ("paper", "paper", 1)
    changed = {name: {option for option in ("affine", "schedule", "steps")
                      if getattr(each, option) != getattr(text, option)}
               for name, each in found.items()}
    assert changed == {"released_mutations": {"affine"}, "released_schedule": {"schedule"},
                       "released_feedback": {"steps"},
                       "released": {"affine", "schedule", "steps"}}


def test_choices_name_one_setting_of_each_rival(tiny_model, pool):
    rows = studies.choices({FuzzerKey("dlfuzz", setting="best"): best(pool),
                            FuzzerKey("dlfuzz", setting="paper"): WEAK},
                           tiny_model(), pool[0][:4], iterations=3)
    assert {row["setting"]: row["value"] for row in rows if row["quantity"] == "chosen"} == {
        "weak": 0.0, "strong": 1.0}


def test_a_clock_times_the_chosen_setting(tiny_model, pool):
    found = studies.settled({"a": best(pool), "b": WEAK}, tiny_model(), pool[0][:4], iterations=3)
    assert found == {"a": STRONG, "b": WEAK}


def test_ratios_are_kept_apart_by_setting():
    swarm = FuzzerKey("deepsensor", "paper")
    rivals = [FuzzerKey("dlfuzz", setting=s) for s in ("paper", "best")]
    rows = studies.outcomes.times({swarm: 6, rivals[0]: 2, rivals[1]: 3}, [swarm], rivals, "over")
    assert {(row["setting"], row["baseline"]): row["value"] for row in rows} == {
        ("paper", "dlfuzz"): 3, ("paper", "mean"): 3, ("best", "dlfuzz"): 2, ("best", "mean"): 2}
