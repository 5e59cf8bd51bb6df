"""What `digits.ipynb` trains: the data, split and enlarged, and the loop over epochs.

It is a module beside the notebook, as in most real projects, because a job must find such modules
just as the editor does. Everything random follows from a seed: the same parameters give the same
numbers on the same machine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

SIDE = 8  # a digit is SIDE x SIDE pixels


class Digits(NamedTuple):
    """Images of shape (n, 64), grey values scaled to 0..1, and labels 0..9 of shape (n,)."""

    images: NDArray[np.float64]
    labels: NDArray[np.int64]


class Epoch(NamedTuple):
    """What is known after an epoch: cross-entropy losses, and the accuracy (0..1) on the test set.

    `train_loss` is the mean over the epoch, while the weights were still moving; `test_loss` and
    `test_accuracy` are taken at its end.
    """

    number: int
    train_loss: float
    test_loss: float
    test_accuracy: float


def load(seed: int) -> tuple[Digits, Digits]:
    """Return the training set and the test set: three quarters and one quarter of every digit."""
    pixels, labels = load_digits(return_X_y=True)
    train_images, test_images, train_labels, test_labels = train_test_split(
        pixels / 16.0, labels, test_size=0.25, stratify=labels, random_state=seed
    )
    return Digits(train_images, train_labels), Digits(test_images, test_labels)


def with_shifted_copies(digits: Digits) -> Digits:
    """Return the digits plus eight copies of each, moved by one pixel in every direction.

    A digit that sits a little to the left is the same digit, which a fully connected network can
    learn from examples only. Shift after the split, so that no test digit leaks into training.
    """
    padded = np.pad(digits.images.reshape(-1, SIDE, SIDE), ((0, 0), (1, 1), (1, 1)))
    shifts = [
        padded[:, down : down + SIDE, right : right + SIDE].reshape(-1, SIDE * SIDE)
        for down in range(3)
        for right in range(3)
    ]
    return Digits(np.concatenate(shifts), np.tile(digits.labels, len(shifts)))


def train(model: MLPClassifier, training: Digits, test: Digits, epochs: int) -> Iterator[Epoch]:
    """Train the model in place and yield after every pass over the training set.

    Raises:
        ValueError: `epochs` is less than 1.
    """
    if epochs < 1:
        raise ValueError(f"epochs must be at least 1, not {epochs}")
    classes = np.unique(training.labels)
    for number in range(1, epochs + 1):
        model.partial_fit(training.images, training.labels, classes=classes)  # exactly one pass
        probabilities = model.predict_proba(test.images)
        yield Epoch(
            number=number,
            train_loss=float(model.loss_),
            test_loss=float(log_loss(test.labels, probabilities, labels=classes)),
            test_accuracy=float(np.mean(classes[probabilities.argmax(axis=1)] == test.labels)),
        )
