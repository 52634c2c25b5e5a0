"""What a dataset's fingerprint is known to be: which pictures a record or a run rests on."""

import re

# 12 digits of the hash of pixels and labels: dataset, split, and which of its copies
KNOWN = {
    "f3120a8fa253": ("cifar10", "train", ""),
    "815bee49b921": ("cifar10", "test", ""),
    "dc7f0ae64fca": ("cifar10", "train", "JPEG copy"),
    "c3578a95941b": ("cifar10", "test", "JPEG copy"),
    "2675257e6e97": ("cifar100", "train", ""),
    "e7f2df1fc916": ("cifar100", "test", ""),
    "71d3be42f93a": ("mnist", "train", ""),
    "4718853ea946": ("mnist", "test", ""),
    "a8007d7be041": ("fashion_mnist", "train", ""),
    "3581bf52f521": ("fashion_mnist", "test", ""),
    "11acf7913233": ("svhn_part", "train", ""),
    "0a632ef340ab": ("svhn_part", "test", ""),
    "7309d238d374": ("imagenet", "test", "a photograph of each class"),
    "f178ce133952": ("fsdd", "train", ""),
    "447b530ac740": ("fsdd", "test", ""),
}


def digits(fingerprint: str) -> str:
    """The 12 digits of a fingerprint, also of older ones, which begin with a form; '' if none.

    >>> digits("idx-4718853ea946[2000]"), digits("4718853ea946"), digits("unknown")
    ('4718853ea946', '4718853ea946', '')
    """
    found = re.match(r"(?:[\w+]+-)?([0-9a-f]{12})(?![0-9a-f])", fingerprint)
    return found[1] if found else ""


def known(fingerprint: str) -> tuple[str, str, str] | None:
    """The dataset, the split and the copy of these pixels and labels; None: nobody knows.

    The copy is '' for the pictures as they were published, also if only some were taken.

    >>> known("jpeg-c3578a95941b[2000]"), known("000000000000")
    (('cifar10', 'test', 'JPEG copy'), None)
    """
    return KNOWN.get(digits(fingerprint))


def copy_of(fingerprint: str) -> str:
    """Which copy of a dataset it is, '' for the published one and where nobody knows.

    >>> copy_of("jpeg-c3578a95941b"), copy_of("815bee49b921")
    ('JPEG copy', '')
    """
    found = known(fingerprint)
    return found[2] if found else ""
