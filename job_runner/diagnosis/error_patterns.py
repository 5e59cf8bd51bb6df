"""Classifies exceptions by the texts of the libraries that raise them.

Kernels send a class's bare name, a text and a traceback, so the texts decide: a class that is
called OutOfMemoryError may be torch's, a database's or the user's own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum

from .cell_place import CellPlace


class OutOfMemoryMatch(Enum):
    """Which memory was not enough."""

    HOST = "host"
    GPU = "gpu"


@dataclass(frozen=True)
class CellFailure:
    """An exception of a cell, as the kernel reported it.

    `ends_run` is False for one that the kernel only showed: the run goes on with the next cell.
    """

    name: str
    value: str
    cell: CellPlace
    execution_count: int | None = None
    traceback: tuple[str, ...] = ()
    ends_run: bool = True

    @property
    def place(self) -> str:
        """The cell as messages name it."""
        return self.cell.describe(self.execution_count)

    def chain(self) -> Iterator[tuple[str, str]]:
        """Yield class and text of the exception, then of its causes in the traceback.

        A cause has the first line of its text only: later ones look like lines of code.
        """
        yield self.name, self.value
        for line in _ANSI.sub("", "\n".join(self.traceback)).splitlines():
            match = _EXCEPTION_LINE.fullmatch(line)
            if match is not None:
                yield match[1].rpartition(".")[2], match[2]


_ANSI = re.compile(r"\x1b\[[0-9;]*m")
_EXCEPTION_LINE = re.compile(r"([A-Za-z_][\w.]*): (\S.*)")
"""The last line of a traceback. Lines of code and places are indented or begin otherwise."""

_GPU = re.compile(
    r"""
    \b(XPU|MPS\ backend)\ out\ of\ memory                   # torch's allocators
    | Allocation\ on\ device\ \S+\ would\ exceed\ allowed\ memory      # that of cudaMallocAsync
    # These and the driver, in torch, Triton, CTranslate2, ONNX Runtime, CatBoost, LightGBM, NCCL
    | (?<![A-Z])(CUDA|Cuda|HIP)\]?(\ driver)?(\ error|\ failure|\ failed\ with\ error)?(\ \d+)?:?
      \ '?out\ of\ memory
    | cudaMalloc\ error\ out\ of\ memory                    # faiss
    | (CU(BLAS|DNN|SOLVER|SPARSE)|HIPBLAS|ROCBLAS)_STATUS_(ALLOC_FAILED|NOT_ENOUGH_WORKSPACE)
    | CURAND_STATUS_ALLOCATION_FAILED | CUFFT_ALLOC_FAILED
    | CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED
    | cudaErrorMemoryAllocation | hipErrorOutOfMemory       # CuPy, RMM, XGBoost
    | CUDA_ERROR_OUT_OF_MEMORY                              # the driver's: numba, TensorFlow
    | bad_alloc:\ (out_of_memory:\ )?(CUDA|RMM)             # RMM, also of a full pool
    | [Oo]ut\ of\ memory\ error\ on\ GPU                    # Paddle
    | Dst\ tensor\ is\ not\ initialized                     # TensorFlow's copies to a full device
    """,
    re.VERBOSE,
)
_GPU_LIBRARY = re.compile(
    r"(CUDNN|CUBLAS|CUSOLVER)_STATUS_(INTERNAL_ERROR|NOT_INITIALIZED)|CUFFT_INTERNAL_ERROR"
)
"""What the same libraries also say of a GPU without memory for their own needs, and of much else.
"""
_TENSORFLOW = re.compile(r"OOM when allocating tensor(?:[^\n]*?device:(?P<device>GPU|CPU))?")
_XLA = re.compile(
    r"RESOURCE_EXHAUSTED: .*([Oo]ut of memory|Failed to allocate)"
    r"|Resource exhausted: (Out of memory while trying|Failed to allocate request)"
)
"""These words must follow: servers answer RESOURCE_EXHAUSTED for a quota, too."""
_CUPY = re.compile(r"[Oo]ut of memory (allocating|to allocate) [\d,]+ bytes \((allocated so|total)")
_HOST = re.compile(
    r"""
    DefaultCPUAllocator:\ (can't\ allocate|not\ enough)\ memory   # torch
    | java\.lang\.OutOfMemoryError                                # Spark
    | std::bad_alloc | \[Errno\ 12\]\ Cannot\ allocate
    | cannot\ allocate\ (memory\ block|vector)\ of\ size          # R
    """,
    re.VERBOSE,
)
_HOST_NAMES = frozenset(
    [
        "MemoryError",
        "_ArrayMemoryError",
        "ArrowMemoryError",
        "OutOfMemoryError",
        "OutOfMemoryException",
        "java.lang.OutOfMemoryError",
    ]
)
_LOST_PROCESS = re.compile(
    r"BrokenProcessPool|TerminatedWorkerError|WorkerLostError|WorkerCrashedError|KilledWorker"
    r"|killed by signal: Killed|exited unexpectedly|SIGKILL|terminated abruptly"
    r"|exit (status|code) (-9|137)\b"
)
_MODULE = re.compile(
    r"No module named '?([\w.]+)'?"
    r"|Missing optional dependency '([\w.-]+)'"
    r"|requires the ([\w.-]+) library but it was not found"
)


def find_out_of_memory(failure: CellFailure) -> tuple[OutOfMemoryMatch, str] | None:
    """Return which memory was not enough and the text that says so; None for other failures."""
    for name, text in failure.chain():
        kind = _memory(name, text)
        if kind is not None:
            return kind, text
    return None


def is_lost_worker(failure: CellFailure) -> bool:
    """Tell whether the exception reports that another process of the run is gone."""
    lines = (f"{name}: {text}" for name, text in failure.chain())
    return any(_LOST_PROCESS.search(line) is not None for line in lines)


def is_gpu_library_error(failure: CellFailure) -> bool:
    """Tell whether a library of the GPU's vendor failed without saying why."""
    return any(_GPU_LIBRARY.search(text) is not None for _, text in failure.chain())


def is_clean_exit(name: str, value: str) -> bool:
    """Tell whether an exception's class and text are those of an exit without an error."""
    return name == "SystemExit" and value in ("", "0", "None")


def missing_module(failure: CellFailure) -> str | None:
    """Return the import name of a module that is not installed; None for other failures."""
    if failure.name not in ("ModuleNotFoundError", "ImportError"):
        return None
    match = _MODULE.search(failure.value)
    name = None if match is None else next(filter(None, match.groups()))
    return None if name is None else name.partition(".")[0]


def _memory(name: str, text: str) -> OutOfMemoryMatch | None:
    tensorflow = _TENSORFLOW.search(text)
    if tensorflow is not None:
        return OutOfMemoryMatch.HOST if tensorflow["device"] == "CPU" else OutOfMemoryMatch.GPU
    if any(pattern.search(text) for pattern in (_GPU, _XLA, _CUPY)):
        return OutOfMemoryMatch.GPU
    if name == "ResourceExhaustedError" and "failed to allocate memory" in text:
        return OutOfMemoryMatch.GPU
    if name in _HOST_NAMES or _HOST.search(text) is not None:
        return OutOfMemoryMatch.HOST
    return None
