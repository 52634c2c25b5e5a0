"""Attack success rate: how many images an attack turns, by Adversarial Robustness Toolbox.

Each attack is a frozen dataclass of options. Defaults are ART's, since DeepSensor gives the eps
of PGD and no more: 0.3 for MNIST and CIFAR-10, 0.5 for ImageNet. On pixels in [0, 1] both are
enough to turn nearly everything, so report a small eps, such as 8/255, beside them.
"""

import copy
from dataclasses import dataclass

import torch
from torch import nn

from dnnlib import checks
from dnnlib.inference import device_of, global_seed, leaves_modes, predict

OF = ("correct", "all")


@dataclass(frozen=True, kw_only=True)
class FGSM:
    """x + eps sign(gradient of the cross-entropy), in one step (Goodfellow et al., 2015).

    ``eps``: in units of a pixel in [0, 1].
    """

    eps: float = 0.3

    def __post_init__(self):
        checks.finite(self.eps, "eps", least=0)
        checks.of_a_pixel(self.eps, "eps")

    def build(self, classifier, batch_size: int):
        from art.attacks.evasion import FastGradientMethod

        return FastGradientMethod(classifier, eps=float(self.eps), batch_size=batch_size)


@dataclass(frozen=True, kw_only=True)
class PGD:
    """Steps of ``eps_step``, each projected into the ball of ``eps`` (Madry et al., 2018).

    ``random_starts``: random points of the ball to start from, of which the best counts: one, as
    the authors have it; 0, a reading, starts at the image.
    Raises ``ValueError`` for an ``eps_step`` above ``eps``, with which an attack only jumps from
    corner to corner; a quarter of eps is common.
    """

    eps: float = 0.3
    eps_step: float = 0.1
    iterations: int = 100
    random_starts: int = 1

    def __post_init__(self):
        checks.finite(self.eps, "eps", least=0)
        checks.positive(self.iterations, "iterations")
        checks.of_a_pixel(self.eps, "eps")
        if not 0 < self.eps_step <= self.eps:
            raise ValueError(f"eps_step: expected a number above 0 and at most eps={self.eps:g}, "
                             f"got {self.eps_step!r}")
        if self.random_starts != 0:
            checks.positive(self.random_starts, "random_starts")

    def build(self, classifier, batch_size: int):
        from art.attacks.evasion import ProjectedGradientDescent

        return ProjectedGradientDescent(
            classifier, eps=float(self.eps), eps_step=float(self.eps_step),
            max_iter=self.iterations, num_random_init=self.random_starts, batch_size=batch_size,
            verbose=False)


@dataclass(frozen=True, kw_only=True)
class DeepFool:
    """To the nearest of the linearised boundaries, again and again (Moosavi-Dezfooli, 2016).

    ``overshoot``: share of the way added at the end, 0.02 in the original; with ART's 1e-6 some
    images end on the boundary and rounding decides their class. The 10 most probable classes are
    tried. No eps: it goes as far as it must.
    """

    iterations: int = 100
    overshoot: float = 1e-6

    def __post_init__(self):
        checks.positive(self.iterations, "iterations")
        checks.finite(self.overshoot, "overshoot", least=0)

    def build(self, classifier, batch_size: int):
        from art.attacks import evasion

        return evasion.DeepFool(
            classifier, max_iter=self.iterations, epsilon=float(self.overshoot),
            batch_size=batch_size, verbose=False)


@dataclass(frozen=True, kw_only=True)
class JSMA:
    """Raises two pixels at a time by ``theta`` towards a random wrong class (Papernot, 2016).

    ART takes the two with the largest gradient of that class, not the original's search over
    pairs. ``gamma``: largest share of pixels changed.
    """

    theta: float = 0.1
    gamma: float = 1.0

    def __post_init__(self):
        for name in ("theta", "gamma"):
            checks.share(getattr(self, name), name)

    def build(self, classifier, batch_size: int):
        from art.attacks.evasion import SaliencyMapMethod

        return SaliencyMapMethod(classifier, theta=self.theta, gamma=self.gamma,
                                 batch_size=batch_size, verbose=False)


Attack = FGSM | PGD | DeepFool | JSMA
ATTACKS: dict[str, type[Attack]] = {"fgsm": FGSM, "pgd": PGD, "deepfool": DeepFool, "jsma": JSMA}


def attack(name: str, **options) -> Attack:
    """An attack by name, with options other than its defaults.

    Raises ``ValueError`` for a name or an option that is unknown, with the nearest one.

    >>> attack("pgd", eps=8 / 255, eps_step=2 / 255).iterations
    100
    >>> attack("deepfool", eps=0.3)
    Traceback (most recent call last):
    ValueError: unknown option of 'deepfool' 'eps'; Known: iterations, overshoot
    """
    kind = ATTACKS[checks.known(name, ATTACKS, "attack")]
    checks.options(kind, options, name)
    return kind(**options)


@dataclass(frozen=True, eq=False)
class Attacked:
    """What an attack did to N images, on the CPU.

    ``images``: float32 (N, C, H, W), the adversarial ones; those misclassified from the first
    are as they were. ``correct``: bool (N,), right before the attack. ``fooled``: bool (N,),
    right before and wrong after it.
    """

    images: torch.Tensor
    correct: torch.Tensor
    fooled: torch.Tensor

    def rate(self, of: str = "correct") -> float:
        """The attack success rate, a share in [0, 1].

        ``of``: 'correct', the fooled of the correctly classified; 'all', the misclassified after
        the attack of all images, as DeepSensor prints it (n_adv / n_total, n_adv / n_benign,
        where n_benign is again all benign examples). Errors of the model itself count there.

        >>> found = Attacked(torch.zeros(4, 1, 1, 1), torch.tensor([True, True, True, False]),
        ...                  torch.tensor([True, False, False, False]))
        >>> round(found.rate(), 3), found.rate("all")
        (0.333, 0.5)
        """
        checks.known(of, OF, "of")
        right, turned, n = int(self.correct.sum()), int(self.fooled.sum()), len(self.correct)
        return turned / right if of == "correct" else (n - right + turned) / n


@leaves_modes
def attack_success_rate(model: nn.Module, x: torch.Tensor, y: torch.Tensor,
                        attack: str | Attack = "pgd", *, seed: int = 0,
                        batch_size: int = 128) -> Attacked:
    """Attack the correctly classified of the images (N, C, H, W) in [0, 1]; see ``.rate()``.

    ``y``: (N,), true classes. ``attack``: a name, for its defaults, or options such as
    ``PGD(eps=8 / 255, eps_step=2 / 255)``. ``seed``: of JSMA's targets and random starts; the
    global generators are left as they were, and so is the model. Raises
    ``ValueError`` for an unknown attack, labels that do not fit, and no correct classification.

    >>> model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2, bias=False))
    >>> model[1].weight.data = torch.tensor([[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 0.0, 0.6]])
    >>> x = torch.tensor([0.2, 0.9]).view(2, 1, 1, 1).expand(2, 1, 2, 2)
    >>> found = attack_success_rate(model, x, torch.tensor([0, 0]), FGSM(eps=0.3))
    >>> found.fooled.tolist(), found.rate()
    ([True, False], 0.5)
    """
    checks.images(x)
    checks.positive(batch_size, "batch_size")
    if isinstance(attack, str):
        attack = ATTACKS[checks.known(attack, ATTACKS, "attack")]()
    elif not isinstance(attack, Attack):
        raise TypeError(f"attack: expected a name or its options, got {type(attack).__name__}")
    x = x.detach().cpu().float()
    p = predict(model, x, batch_size=batch_size)
    y = checks.labels(y, len(x), p.shape[1], "y").cpu()
    correct = p.argmax(1) == y
    if not correct.any():
        raise ValueError(f"y: expected at least one correctly classified image to attack, "
                         f"got none of {len(x)}")
    images = x.clone()
    images[correct] = _generate(model, x[correct], y[correct], p.shape[1], attack, seed,
                                batch_size)
    after = predict(model, images, batch_size=batch_size).argmax(1)
    return Attacked(images, correct, correct & (after != y))


def _generate(model: nn.Module, x: torch.Tensor, y: torch.Tensor, classes: int, attack: Attack,
              seed: int, batch_size: int) -> torch.Tensor:
    with checks.extra("attacks"):
        from art.estimators.classification import PyTorchClassifier

    device = device_of(model)
    # a copy, since ART writes gradients into the parameters, and drops those that were there
    classifier = PyTorchClassifier(
        copy.deepcopy(model).requires_grad_(False), loss=nn.CrossEntropyLoss(),
        input_shape=tuple(x.shape[1:]), nb_classes=classes, clip_values=(0.0, 1.0),
        device_type="cpu" if device.type == "cpu" else "gpu")
    if isinstance(attack, JSMA):  # ART's own draw gives all images of a class one target
        y = (y + torch.randint(1, classes, y.shape,
                               generator=torch.Generator().manual_seed(seed))) % classes
    with global_seed(seed), torch.enable_grad():
        found = attack.build(classifier, batch_size).generate(x.numpy(), y.numpy())
    # ART clips before it projects, which rounding may undo
    return torch.from_numpy(found).clamp(0, 1)
