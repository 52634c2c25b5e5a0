"""How well a network withstands attacks: their success rate, and CLEVER's bound on distances."""

from dnnlib.robustness.attacks import (
    ATTACKS,
    FGSM,
    JSMA,
    PGD,
    Attacked,
    DeepFool,
    attack,
    attack_success_rate,
)

__all__ = ["ATTACKS", "Attacked", "DeepFool", "FGSM", "JSMA", "PGD", "attack",
           "attack_success_rate"]
