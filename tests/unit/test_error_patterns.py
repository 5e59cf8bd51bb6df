"""What an exception is about, by the words that libraries really use (found in public reports)."""

from __future__ import annotations

import sys
import traceback

import pytest

from job_runner.diagnosis import endings, error_patterns
from job_runner.diagnosis.cell_place import CellPlace
from job_runner.diagnosis.diagnosis import Diagnosis
from job_runner.diagnosis.error_patterns import CellFailure, OutOfMemoryMatch
from job_runner.resources.host_memory import MemoryStatus

GPU = {
    "torch": (
        "OutOfMemoryError",
        "CUDA out of memory. Tried to allocate 496.00 MiB. GPU 0 has a total capacty of 14.75 GiB "
        "of which 235.06 MiB is free. Process 20398 has 14.52 GiB memory in use.",
    ),
    "torch 1": (
        "RuntimeError",
        "CUDA out of memory. Tried to allocate 9.80 GiB (GPU 0; 14.76 GiB total capacity; "
        "9.94 GiB already allocated; 3.89 GiB free; 160.79 MiB cached)",
    ),
    "torch, the driver": (
        "AcceleratorError",
        "CUDA error: out of memory\nCUDA kernel errors might be asynchronously reported",
    ),
    "torch, cuBLAS": (
        "RuntimeError",
        "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
    ),
    "torch, ROCm": (
        "OutOfMemoryError",
        "HIP out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.98 GiB",
    ),
    "torch, Apple": (
        "RuntimeError",
        "MPS backend out of memory (MPS allocated: 17.26 GB, other allocations: 768.00 KB)",
    ),
    "CuPy, cuRAND": ("CURANDError", "CURAND_STATUS_ALLOCATION_FAILED"),
    "TensorFlow": (
        "ResourceExhaustedError",
        "OOM when allocating tensor with shape[500,17,17,4032] and type float on "
        "/job:localhost/replica:0/task:0/device:GPU:0 by allocator GPU_0_bfc\n"
        '\t [[Node: a = Recv[recv_device="/job:localhost/replica:0/task:0/device:CPU:0"]]]',
    ),
    "TensorFlow, several": (
        "ResourceExhaustedError",
        "2 root error(s) found.\n  (0) Resource exhausted: OOM when allocating tensor with "
        "shape[16,112,112,147] and type float on /job:localhost/replica:0/task:0/device:GPU:0",
    ),
    "TensorFlow, eager": ("ResourceExhaustedError", "failed to allocate memory [Op:AddV2]"),
    "TensorFlow, a copy": ("InternalError", "Dst tensor is not initialized."),
    "JAX": (
        "XlaRuntimeError",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4770354232 bytes.\n"
        "BufferAssignment OOM Debugging.",
    ),
    "JAX, a request": (
        "JaxRuntimeError",
        "RESOURCE_EXHAUSTED: Failed to allocate request for 2.99GiB (3206250496B) "
        "on device ordinal 0",
    ),
    "JAX 0.11": (
        "JaxRuntimeError",
        "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 1.00TiB with allocator "
        "GPU_0_bfc on device 0. [tf-allocator-allocation-error='']",
    ),
    "JAX, old": (
        "RuntimeError",
        "Resource exhausted: Failed to allocate request for 32.00MiB (33554432B) "
        "on device ordinal 0",
    ),
    "CuPy": (
        "OutOfMemoryError",
        "Out of memory allocating 25,600,000 bytes (allocated so far: 3,635,267,072 bytes).",
    ),
    "CuPy, old": (
        "OutOfMemoryError",
        "out of memory to allocate 1073741824 bytes (total 12373894656 bytes)",
    ),
    "CuPy, the runtime": ("CUDARuntimeError", "cudaErrorMemoryAllocation: out of memory"),
    "numba": ("CudaAPIError", "[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY"),
    "RMM": (
        "MemoryError",
        "std::bad_alloc: out_of_memory: CUDA error at: /opt/include/rmm/mr/device/"
        "cuda_memory_resource.hpp",
    ),
    "RMM, old": (
        "MemoryError",
        "std::bad_alloc: CUDA error at: ../include/rmm/mr/device/cuda_memory_resource.hpp:68: "
        "cudaErrorMemoryAllocation out of memory",
    ),
    "RMM, a pool": (
        "MemoryError",
        "std::bad_alloc: out_of_memory: RMM failure at:pool_memory_resource.hpp:257: "
        "Maximum pool size exceeded",
    ),
    "torch, in colour": ("RuntimeError", "\x1b[31mCUDA out of memory"),
    "Triton": ("RuntimeError", "Triton Error [CUDA]: out of memory"),
    "torch, the driver's own": (
        "RuntimeError",
        "CUDA driver error: out of memory",
    ),
    "torch, with cudaMallocAsync": (
        "OutOfMemoryError",
        "Allocation on device 0 would exceed allowed memory. (out of memory)\n"
        "Currently allocated     : 21.54 GiB\nRequested               : 3.00 GiB",
    ),
    "CTranslate2": ("RuntimeError", "CUDA failed with error out of memory"),
    "ONNX Runtime": (
        "RuntimeException",
        "[ONNXRuntimeError] : 6 : RUNTIME_EXCEPTION : Exception during initialization: "
        "CUDA failure 2: out of memory ; GPU=0 ; hostname=pod ; expr=cudaMalloc((void**)&p, size);",
    ),
    "CatBoost": (
        "CatBoostError",
        "catboost/cuda/cuda_lib/cuda_base.h:281: CUDA error 2: out of memory",
    ),
    "LightGBM": (
        "LightGBMError",
        "[CUDA] out of memory /tmp/build/src/io/cuda/cuda_column_data.cpp 119\n",
    ),
    "NCCL": (
        "DistBackendError",
        "NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:219, unhandled cuda error\n"
        "ncclUnhandledCudaError: Call to CUDA function failed.\n"
        "Last error:\nCuda failure 2 'out of memory'",
    ),
    "faiss": (
        "RuntimeError",
        "Error in virtual void* faiss::gpu::StandardGpuResourcesImpl::allocMemory(const "
        "AllocRequest&) at StandardGpuResources.cpp:452: Error: 'err == cudaSuccess' failed: "
        "StandardGpuResources: alloc fail type IVFLists dev 0 space Device stream 0x1 size 96 "
        "bytes (cudaMalloc error out of memory [2])",
    ),
}
HOST = {
    "Python": ("MemoryError", ""),
    "numpy": (
        "MemoryError",
        "Unable to allocate 8.00 TiB for an array with shape (1048576, 1048576)",
    ),
    "numpy's class": ("_ArrayMemoryError", "Unable to allocate 8.00 TiB for an array"),
    "torch": (
        "RuntimeError",
        "[enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate "
        "memory: you tried to allocate 4000000000000 bytes. Error code 12",
    ),
    "TensorFlow": (
        "ResourceExhaustedError",
        "OOM when allocating tensor with shape[100000,100000] and type float on "
        "/job:localhost/replica:0/task:0/device:CPU:0 by allocator cpu",
    ),
    "duckdb": (
        "OutOfMemoryException",
        "Out of Memory Error: failed to allocate data of size 256.0 MiB (271.9 MiB/488.2 MiB used)",
    ),
    "Spark": (
        "Py4JJavaError",
        "An error occurred while calling o39516.save.\n: java.lang.OutOfMemoryError: "
        "Java heap space\n\tat java.util.Arrays.copyOf(Arrays.java:3332)",
    ),
    "fork": ("OSError", "[Errno 12] Cannot allocate memory"),
    "Julia": ("OutOfMemoryError", ""),
    "R": ("ERROR", "Error: cannot allocate vector of size 7.5 Gb"),
}
NEITHER = {
    "a quota": ("ResourceExhausted", "429 RESOURCE_EXHAUSTED: Quota exceeded for requests"),
    "gRPC": (
        "_InactiveRpcError",
        "<_InactiveRpcError of RPC that terminated with:\n\tstatus = "
        'StatusCode.RESOURCE_EXHAUSTED\n\tdetails = "Received message larger than max">',
    ),
    "a library's own": ("ValueError", "the buffer is out of memory pages"),
    "a host's loader beside CUDA": (
        "RuntimeError",
        "CUDA is not used here: the loader's worker is out of memory",
    ),
    "a host's buffer for CUDA": ("RuntimeError", "cudaMallocHost error out of memory [2]"),
    "another error of CUDA": (
        "RuntimeError",
        "CUDA error 700: an illegal memory access. It is no sign that a GPU is out of memory",
    ),
    "two lines": ("RuntimeError", "No kernel image for CUDA\nout of memory pages: 0"),
    "a longer word": ("ValueError", "CHIP error: out of memory"),
    "the disk": ("OSError", "[Errno 28] No space left on device"),
}


@pytest.mark.parametrize(
    ("name", "value", "whose"),
    [
        *((*said, OutOfMemoryMatch.GPU) for said in GPU.values()),
        *((*said, OutOfMemoryMatch.HOST) for said in HOST.values()),
        *((*said, None) for said in NEITHER.values()),
    ],
    ids=[f"{name}-{whose}" for whose in ("gpu", "host", "neither") for name in (
        {"gpu": GPU, "host": HOST, "neither": NEITHER}[whose]
    )],
)  # fmt: skip
def test_whose_memory_was_not_enough(name: str, value: str, whose: OutOfMemoryMatch | None) -> None:
    found = error_patterns.find_out_of_memory(CellFailure(name, value, CellPlace(0, 1)))
    assert (None if found is None else found[0]) is whose


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("RuntimeError", "cuDNN error: CUDNN_STATUS_INTERNAL_ERROR"),
        ("CuFFTError", "CUFFT_INTERNAL_ERROR"),
        ("CUSOLVERError", "CUSOLVER_STATUS_INTERNAL_ERROR"),
    ],
)
def test_an_error_that_a_full_gpu_may_have_caused(name: str, value: str) -> None:
    """All of these were seen on a full GPU, and none of them says so."""
    failure = CellFailure(name, value, CellPlace(0, 1))
    end = build_diagnosis(CUDA_VISIBLE_DEVICES="0").cell_failed(failure)
    assert end.reason == "CellError" and str(end.message).endswith(endings.FULL_GPU_ADVICE)
    end = build_diagnosis(CUDA_VISIBLE_DEVICES="").cell_failed(failure)
    assert str(end.message).endswith(f"{value}.")


def test_a_long_text_is_cut_visibly() -> None:
    """As torch's, which also lists the processes on the GPU."""
    text = f"CUDA out of memory. {'Process 1 has 2 GiB. ' * 20}"
    end = build_diagnosis().cell_failed(CellFailure("OutOfMemoryError", text, CellPlace(0, 1)))
    assert "CUDA out of memory" in str(end.message) and "…)" in str(end.message)


def chained_failure(cause: Exception, *, explicit: bool) -> CellFailure:
    """An exception that a handler of another one raised, as a kernel tells it."""
    try:
        try:
            raise cause
        except type(cause) as error:
            if explicit:
                raise ValueError("training failed") from error
            raise ValueError("training failed")  # noqa: B904  (what users write)
    except ValueError as error:
        lines = traceback.format_exception(error)
        return CellFailure("ValueError", str(error), CellPlace(2, 3), 3, tuple(lines))


@pytest.mark.parametrize("explicit", [True, False])
def test_the_cause_is_found_in_a_chain(explicit: bool) -> None:
    failure = chained_failure(RuntimeError("CUDA out of memory. Tried 2 GiB"), explicit=explicit)
    end = build_diagnosis().cell_failed(failure)
    assert end.reason == "GpuOutOfMemory"
    assert "CUDA out of memory. Tried 2 GiB" in str(end.message)


def test_code_that_speaks_of_memory_is_no_cause() -> None:
    lines = (
        "ValueError\x1b[0m                Traceback (most recent call last)",
        "\x1b[0;32m      1 \x1b[0m# RuntimeError: CUDA out of memory",
        "----> 2 raise ValueError('CUDA out of memory?' and 'x')",
        "\x1b[0;31mValueError\x1b[0m: x",
    )
    failure = CellFailure("ValueError", "x", CellPlace(0, 1), 1, lines)
    assert error_patterns.find_out_of_memory(failure) is None


def build_diagnosis(kills: int = 0, **environ: str) -> Diagnosis:
    return Diagnosis(lambda: MemoryStatus(3 << 29, 2 << 30, kills), {}, environ)


def test_a_job_that_sees_no_gpu_is_short_of_the_hosts_memory() -> None:
    failure = CellFailure("XlaRuntimeError", GPU["JAX"][1], CellPlace(8, 6), 7)
    assert build_diagnosis(CUDA_VISIBLE_DEVICES="0").cell_failed(failure).reason == "GpuOutOfMemory"
    end = build_diagnosis(CUDA_VISIBLE_DEVICES="").cell_failed(failure)
    assert end.reason == "OutOfMemory"
    assert str(end.message).startswith("Cell 6 (In [7]) ran out of memory")
    assert "1.5 of 2 GiB" in str(end.message)


LOST = {
    "concurrent.futures": (
        "BrokenProcessPool",
        "A process in the process pool was terminated abruptly while the future was running",
    ),
    "joblib": (
        "TerminatedWorkerError",
        "A worker process managed by the executor was unexpectedly terminated. The exit codes of "
        "the workers are {SIGKILL(-9)}",
    ),
    "torch": ("RuntimeError", "DataLoader worker (pid 22048) is killed by signal: Killed. "),
    "subprocess": (
        "CalledProcessError",
        "Command '['python', 'x.py']' died with <Signals.SIGKILL: 9>.",
    ),
    "a shell": ("CalledProcessError", "Command 'sh x' returned non-zero exit status 137."),
}


@pytest.mark.parametrize(("name", "value"), LOST.values(), ids=LOST)
def test_a_lost_worker_is_out_of_memory_only_if_somebody_was_killed_for_it(
    name: str, value: str
) -> None:
    failure = CellFailure(name, value, CellPlace(1, 2), 2)
    assert build_diagnosis().cell_failed(failure).reason == "CellError"
    end = build_diagnosis(kills=1).cell_failed(failure)
    assert (end.reason, end.exit_code) == ("OutOfMemory", 1)
    assert "1.5 of 2 GiB" in str(end.message) and name in str(end.message)


def test_other_ends_name_a_kill_for_memory() -> None:
    end = build_diagnosis(kills=2).cell_failed(
        CellFailure("ZeroDivisionError", "division by zero", CellPlace(0, 1), 1)
    )
    assert end.reason == "CellError"
    killed = "the operating system killed 2 processes of this run for memory (1.5 of 2 GiB used)."
    assert str(end.message).endswith(f"Before that, {killed}")
    late = build_diagnosis(kills=1).interrupted(endings.deadline(7200, CellPlace(4, 1)))
    assert "time limit of 2 h was reached in cell 1" in str(late.message)
    assert "killed a process of this run for memory" in str(late.message)


@pytest.mark.parametrize(
    ("name", "value", "module"),
    [
        ("ModuleNotFoundError", "No module named 'sklearn'", "sklearn"),
        ("ModuleNotFoundError", "No module named 'google.cloud'; 'google' is not", "google"),
        ("ImportError", "No module named yaml", "yaml"),
        (
            "ImportError",
            "Missing optional dependency 'openpyxl'.  Use pip or conda to install openpyxl.",
            "openpyxl",
        ),
        (
            "ImportError",
            "AutoTokenizer requires the sentencepiece library but it was not found in your "
            "environment.",
            "sentencepiece",
        ),
        ("ImportError", "cannot import name 'x' from 'os' (/usr/lib/python3.11/os.py)", None),
        ("ValueError", "No module named 'x'", None),
    ],
)
def test_a_missing_module(name: str, value: str, module: str | None) -> None:
    assert error_patterns.missing_module(CellFailure(name, value, CellPlace(0, 1))) == module


PACKAGES = {"": ["attr"], "opencv-python": ["cv2"], "Flask": [], "gone": []}
THERE = "It is in the environment you submitted from, not in this one: add "
NOWHERE = "It is neither here nor in the environment you submitted from: add `%pip install nope`"


@pytest.mark.parametrize(
    ("module", "request_", "advice"),
    [
        ("cv2", {"packages": PACKAGES}, f"{THERE}`%pip install opencv-python` to the notebook"),
        ("flask", {"packages": PACKAGES}, f"{THERE}`%pip install Flask`"),
        ("attr", {"packages": PACKAGES}, f"{THERE}a `%pip install` of what brings it"),
        ("nope", {"packages": PACKAGES}, NOWHERE),
        ("nope", {"packages": None}, "It is not in this environment: add `%pip install nope`"),
        ("nope", {"packages": PACKAGES, "isolated": True}, "send it along as an input"),
    ],
)
def test_advice_for_a_missing_module(module: str, request_: dict[str, object], advice: str) -> None:
    failure = CellFailure("ModuleNotFoundError", f"No module named '{module}'", CellPlace(1, 2), 2)
    there = {"interpreter": sys.executable, "host": "there"}
    asked = {"environment": there, "cwd": "/w", **request_}
    end = Diagnosis(lambda: MemoryStatus(0, 1), asked).cell_failed(failure)
    assert end.reason == "CellError"
    assert advice in str(end.message) and advice in end.advice
    assert ("as an input" in end.advice) == ("isolated" in asked)
    assert ("choose an image" in end.advice) == (asked["packages"] is not None)
