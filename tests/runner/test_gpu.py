"""GPUs by the vendor's own Python library, on a pretend driver: the library that it loads."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from job_runner.resources.monitor import gpu_pause

from .jobs import Job, notebook

Make = Callable[..., Job]
DRIVER = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* Two GPUs of 8 GiB, and with NVML_MIG a third in MIG mode, of which we see one part alone, at the
 * second of its places. What each reports tells which was asked. At the first look 4 GiB are in
 * use, others'; from then on more, by what the run is supposed to use. */
typedef struct { char name[48]; unsigned long long used; unsigned busy, looks; } gpu;
static gpu gpus[] = {{"GPU-aaaa-1", 1ull << 30, 10}, {"GPU-bbbb-2", 2ull << 30, 50},
                     {"GPU-cccc-0", 5ull << 30, 90}};
static gpu part = {"MIG-cccc-3", 3ull << 30, 0};
typedef struct { unsigned gpu, memory; } rates;
typedef struct { unsigned long long total, free, used; } memory;
typedef struct { unsigned pid; unsigned long long used; unsigned instance, compute; } process;
static char *is(const char *what) { return getenv(what); }
int nvmlInitWithFlags(unsigned flags) { return is("NVML_BROKEN") ? 9 : 0; }
const char *nvmlErrorString(int code) { return "pretended"; }
enum { INVALID = 2, NOT_SUPPORTED = 3, NO_PERMISSION = 4, NOT_FOUND = 6 };
int nvmlDeviceGetCount_v2(unsigned *count) { *count = is("NVML_MIG") ? 3 : 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned index, gpu **handle) {
    if (index >= (is("NVML_MIG") ? 3 : 2)) return INVALID;
    *handle = &gpus[index];
    return 0;
}
int nvmlDeviceGetMigMode(gpu *handle, unsigned *mode, unsigned *pending) {
    *mode = *pending = handle == &gpus[2];
    return handle == &gpus[0] ? NOT_SUPPORTED : 0;
}
int nvmlDeviceGetMaxMigDeviceCount(gpu *handle, unsigned *count) {
    *count = handle == &gpus[2] ? 3 : 0;
    return 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(gpu *handle, unsigned index, gpu **found) {
    if (index != 1) return index ? NOT_FOUND : NO_PERMISSION;
    *found = &part;
    return 0;
}
int nvmlDeviceGetUUID(gpu *handle, char *uuid, unsigned size) {
    strncpy(uuid, handle->name, size);
    return 0;
}
int nvmlDeviceGetName(gpu *handle, char *name, unsigned size) {
    strncpy(name, is("NVML_MIXED") ? handle->name : "GPU", size);
    return 0;
}
int nvmlDeviceGetUtilizationRates(gpu *handle, rates *seen) {
    if (is("NVML_HANGS")) pause();
    FILE *looks = is("NVML_LOOKS") ? fopen(is("NVML_LOOKS"), "a") : NULL;
    if (looks) fputc('.', looks), fclose(looks);
    seen->gpu = handle->busy;
    return handle == &part || handle == &gpus[2] ? NOT_SUPPORTED : 0;
}
int nvmlDeviceGetMemoryInfo(gpu *handle, memory *seen) {
    if (handle == &gpus[2]) return NO_PERMISSION; /* as in a container that was given a part */
    seen->total = 8ull << 30, seen->used = (4ull << 30) + (handle->looks++ ? handle->used : 0);
    seen->free = seen->total - seen->used;
    return 0;
}
int nvmlDeviceGetComputeRunningProcesses_v3(gpu *handle, unsigned *count, process *list) {
    FILE *file = is("NVML_PID_FILE") ? fopen(is("NVML_PID_FILE"), "r") : NULL;
    if (!file) return 3;
    if (*count < 2) { fclose(file); *count = 2; return 7; }
    memset(list, 0, 2 * sizeof(process));
    list[0].pid = 1, list[0].used = 5ull << 30;
    list[1].used = is("NVML_NO_AMOUNTS") ? ~0ull : 123ull << 20;
    if (fscanf(file, "%u", &list[1].pid) != 1) list[1].pid = 0;
    fclose(file);
    *count = 2;
    return 0;
}
"""
GIB = 1 << 30


@pytest.mark.parametrize(
    ("cost", "elapsed", "pause"),
    [
        (0.0003, 0.001, 0.25),
        (40 * 0.0003 + 0.004, 10.0, 0.25),  # one sample was slow
        (40 * 0.004, 10.0, 2.0),  # all are: many GPUs
        (0.004, 0.004, 0.596),
    ],
)
def test_how_often_gpus_are_sampled(cost: float, elapsed: float, pause: float) -> None:
    assert gpu_pause(cost, elapsed) == pytest.approx(pause)


def wait_for_looks(count: int, looks: Path) -> str:
    """Return the source of a cell that runs until the GPU was looked at `count` times more."""
    looks.touch()
    return (
        "import os, time\n"
        f"before = os.path.getsize({str(looks)!r})\n"
        f"while os.path.getsize({str(looks)!r}) < before + {count}: time.sleep(0.02)"
    )


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with the pretend library in it."""
    folder = tmp_path_factory.mktemp("driver")
    if shutil.which("gcc") is None:
        pytest.skip("gcc is missing: it makes the pretend driver")
    (folder / "nvml.c").write_text(DRIVER)
    command = ["gcc", "-shared", "-fPIC", "-o", "libnvidia-ml.so.1", "nvml.c"]
    subprocess.run(command, cwd=folder, check=True)
    return str(folder)


@pytest.mark.parametrize(
    ("visible", "memory", "utilisation"),
    [
        (None, 3 * GIB, 0.3),
        ("0", GIB, 0.1),
        ("1,0", 3 * GIB, 0.3),
        ("GPU-bbbb", 2 * GIB, 0.5),
        ("1,7,0", 2 * GIB, 0.5),
        ("", None, None),
        ("-1", None, None),
        ("NoDevFiles", None, None),
    ],
)
def test_only_the_gpus_that_a_run_sees(
    driver: str, visible: str | None, memory: int | None, utilisation: float | None
) -> None:
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    expected = None if memory is None else (memory, utilisation)
    assert look(driver, environment) == expected


@pytest.mark.parametrize(
    ("visible", "memory", "utilisation"),
    [
        (None, 6 * GIB, 0.3),  # as a device plugin leaves it, which sets no variable of CUDA's
        ("2", 3 * GIB, None),
        ("MIG-cccc-3", 3 * GIB, None),
        ("0,2", 4 * GIB, 0.1),
        ("GPU-cccc", None, None),
    ],
)
def test_of_a_partitioned_gpu_the_parts_are_read(
    driver: str, visible: str | None, memory: int | None, utilisation: float | None
) -> None:
    """The GPU itself refuses to say anything to a container that was given a part of it."""
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    expected = None if memory is None else (memory, utilisation)
    assert look(driver, environment, NVML_MIG="1") == expected


@pytest.mark.parametrize(
    ("visible", "order", "memory"),
    [
        ("1", "PCI_BUS_ID", 2 * GIB),
        ("1", "FASTEST_FIRST", None),
        ("1", None, None),
        ("GPU-bbbb", None, 2 * GIB),
    ],
)
def test_numbers_of_gpus_mean_something_only_in_a_known_order(
    driver: str, visible: str, order: str | None, memory: int | None
) -> None:
    environment = {"CUDA_VISIBLE_DEVICES": visible}
    if order is not None:
        environment["CUDA_DEVICE_ORDER"] = order
    seen = look(driver, environment, NVML_MIXED="1")
    assert (None if seen is None else seen[0]) == memory


def test_in_a_container_the_memory_of_others_never_counts(driver: str, tmp_path: Path) -> None:
    """The driver shows the run's processes there, but only once they use a GPU.

    Until then the growth of what is in use counts.
    """
    script = textwrap.dedent(
        f"""
        from pathlib import Path
        from job_runner.resources import gpu
        gpu._PID_NAMESPACE = Path("/proc/self/ns/mnt")
        file = Path({str(tmp_path / "pid")!r})
        file.write_text("0")
        read = gpu.open_nvml({{"CUDA_VISIBLE_DEVICES": "0"}})
        before = read([77]).memory
        file.write_text("77")
        print(before, read([77]).memory)
        """
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "LD_LIBRARY_PATH": driver, "NVML_PID_FILE": str(tmp_path / "pid")},
        stdout=subprocess.PIPE,
        check=True,
    )
    assert list(map(int, ran.stdout.split())) == [GIB, 123 << 20]


def test_a_driver_that_lists_processes_without_their_memory(driver: str, tmp_path: Path) -> None:
    """As on Windows: the growth of what is in use counts."""
    file = tmp_path / "pid"
    file.write_text(str(1 << 30))
    pretended = {"NVML_PID_FILE": str(file), "NVML_NO_AMOUNTS": "1"}
    assert look(driver, {"CUDA_VISIBLE_DEVICES": "0"}, **pretended) == (GIB, 0.1)


def look(
    driver: str, environment: dict[str, str], **pretended: str
) -> tuple[int | None, float | None] | None:
    """What a run with these variables is told, in a process that loads the pretend driver."""
    script = textwrap.dedent(
        f"""
        from job_runner.resources import gpu
        read = gpu.open_nvml({environment!r})
        seen = None if read is None else read([1 << 30])
        print(None if seen is None else (seen.memory, seen.utilisation))
        """
    )
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "LD_LIBRARY_PATH": driver, **pretended},
        stdout=subprocess.PIPE,
        check=True,
    )
    seen: tuple[int | None, float | None] | None = ast.literal_eval(ran.stdout.decode())
    return seen


def test_a_run_with_a_gpu_has_it_on_its_receipt(job: Make, driver: str, tmp_path: Path) -> None:
    looks = tmp_path / "looks"
    used = job(notebook(wait_for_looks(2, looks)), env={"CUDA_VISIBLE_DEVICES": "1"})
    assert used.run(LD_LIBRARY_PATH=driver, NVML_LOOKS=str(looks)) == 0
    usage = used.outcome().usage
    assert (usage["gpu_memory_peak"], usage["gpu_memory_mean"]) == (2 * GIB, 2 * GIB)
    assert (usage["gpu_utilisation_peak"], usage["gpu_utilisation_mean"]) == (0.5, 0.5)


def test_what_the_runs_own_processes_use(job: Make, driver: str, tmp_path: Path) -> None:
    """Not what others use on the same GPU, where the driver tells them apart."""
    file, looks = tmp_path / "pid", tmp_path / "looks"
    file.write_text("0")
    says = f"import os\nopen({str(file)!r}, 'w').write(str(os.getpid()))"
    cells = notebook(f"{says}\n{wait_for_looks(3, looks)}")
    used = job(cells, env={"CUDA_VISIBLE_DEVICES": "0"})
    assert used.run(LD_LIBRARY_PATH=driver, NVML_PID_FILE=str(file), NVML_LOOKS=str(looks)) == 0
    usage = used.outcome().usage
    assert usage["gpu_utilisation_peak"] == 0.1
    # In a container, before it was known: by how much the use of the whole GPU grew.
    assert usage["gpu_memory_peak"] in (123 << 20, GIB)
    assert usage["gpu_memory_mean"] < GIB


@pytest.mark.parametrize("fault", ["NVML_BROKEN", "NVML_HANGS"])
def test_a_driver_that_fails_or_hangs_fails_no_run(job: Make, driver: str, fault: str) -> None:
    used = job(notebook("print('kept')"))
    assert used.run(LD_LIBRARY_PATH=driver, **{fault: "1"}) == 0
    assert used.outcome().usage["gpu_memory_peak"] is None
    assert used.outcome().usage["memory_peak"] > 0
