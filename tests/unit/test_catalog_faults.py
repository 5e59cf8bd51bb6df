"""A broken catalog: every fault at its place, and nothing that takes time or memory to refuse."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from itertools import pairwise
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from jupyter_to_job.domain.errors import BadCatalog, Fault
from jupyter_to_job.flavors import SHIPPED, loader, parse_catalog, yaml_reader

from .test_catalog import EVERYTHING, GOOD


def faults(text: str | bytes) -> list[Fault]:
    data = text.encode() if isinstance(text, str) else text
    with pytest.raises(BadCatalog) as caught:
        parse_catalog(data, "flavors.yaml")
    assert caught.value.faults and caught.value.hint
    return list(caught.value.faults)


def place(text: str, marked: str) -> tuple[int, int]:
    """Line and column at which `marked` begins in `text`."""
    before = text[: text.index(marked)]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


@pytest.fixture(params=["libyaml", "pure Python"])
def each_parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pure Python":
        monkeypatch.setattr(yaml_reader, "_LOADER", yaml.SafeLoader)


ONE_FAULT = [
    # what to change, into what, where the fault is, what is said, what to do
    ("gpus: 2", "gpus: 2, cpus: 4", "cpus", "`cpus` is no key of a flavor.", "`cpu`?"),
    ("cpu:   {}", "cpu:   {colour: red}", "colour", "no key of a device", "x-colour"),
    ("cpu:   {}", "cpu:   {queue: a}", "queue", "no key of a device", "belongs to a flavor"),
    ("\ndevices:", "\nextra: {}\ndevices:", "extra", "no key of the catalog", "Delete"),
    ("groups: [", "group: [", "group:", "no key of `allowed`", "`groups`?"),
    ("{groups: [research]}", "{groups: []}", "{groups", "`allowed` names no group.", "List one"),
    ("{groups: [research]}", "{}", "{}}", "`allowed` names no group.", "delete"),
    ("{groups: [research]}", "", "allowed", "`allowed` must be a mapping", "List one"),
    ("memory: 2Gi", "memory: 2 GB", "2 GB", "`memory`: '2 GB' is no quantity.", "16Gi"),
    ("memory: 2Gi", "memory: .nan", ".nan", "no quantity", "16Gi"),
    ("memory: 2Gi", "memory: 0", "0, max", "more than 0", "how much"),
    ("memory: 2Gi", "memory: " + "9" * 5000, "999", "5000 characters", "Shorten"),
    ("memory: 2Gi", "memory: ", "memory: , max", "There is no value", "delete the line"),
    ("memory: 2Gi", "memory: [2Gi]", "[2Gi]", "A list does not belong here", "one value"),
    ("max_runtime: 2h", "max_runtime: soon", "soon", "no duration", "1h30m"),
    ("gpus: 2", "gpus: -1", "-1", "`gpus`: '-1' is no whole number", "0, 1, 2"),
    ("gpus: 2", "gpus: 0.5", "0.5", "no whole number", "0, 1, 2"),
    ("gpus: 2", "gpus: " + "9" * 5000, "999", "no whole number", "0, 1, 2"),
    ("gpus: 2", "gpus: 2, retries: 11", "11", "`retries` is more than 10.", "less"),
    ("[t4, slice]", "[t4, slise]", "slise", "There is no device `slise`.", "`slice`?"),
    ("[t4, slice]", "[t4, t4]", "t4], x", "`t4` is listed twice.", "once"),
    ("devices: [cpu]", "devices: []", "[]", "`devices` is empty", "one"),
    ("devices: [cpu]", "devices: cpu", "cpu}\n  gpu", "must be a list, and is text", "[a, b]"),
    (", devices: [cpu]", "", "small: {cpu", "`devices` is missing from a flavor", "Add"),
    ("flavor: small,", "flavor: smal,", "smal,", "There is no flavor `smal`.", "`small`?"),
    ("device: cpu}", "device: t4}", "t4}", "does not offer device `t4`", "cpu"),
    ("isolation: software", "isolation: perfect", "perfect", "'perfect' is not", "'hardware'"),
    ("io/v1", "io/v2", "jupyter-to-job.io/v2", "`apiVersion`:", "jupyter-to-job.io/v1"),
    ("gpus: 1, devices: [t4, cpu]", "gpus: 1, devices: [cpu]", "1, devices: [cpu]",
     "none of its devices has a `resource`", "delete `gpus`"),
    ("gpus: 1, devices: [t4, cpu]", "devices: [t4, cpu]", "t4, cpu]",
     "Device `t4` has a `resource`, but this flavor has no `gpus`.", "`gpus: 1`"),
    ("resource: nvidia.com/gpu}", "resource: gpu}", "gpu}\n", "'gpu' is not allowed", "nvidia.com"),
    ("limits: {", "resource: nvidia.com/gpu, limits: {", "nvidia.com/gpu: 1",
     "in `resource` and in `limits`", "Keep"),
    ("gpucores: 5", "gpucores: 5, cpu: 8", "cpu: 8", "`cpu` belongs to a flavor", "Delete"),
    ("limits: {", "limits: {memory: 32Gi, ", "memory: 32Gi", "`memory` belongs to a flavor",
     "give each flavor"),
    ("gpucores: 5", "gpucores: many", "many", "'many' is no quantity", "500m"),
    ("isolation: software", "labels: {team: a b}", "a b", "'a b' is not allowed", "63 letters"),
    ("isolation: software", "labels: {a/b/c: d}", "a/b/c", "not allowed", "label's key"),
    ("isolation: software", "env: {A B: d}", "A B", "not allowed", "variable"),
    ("isolation: software", "tolerations: [{Key: a}]", "Key", "no key of a toleration", "`key`?"),
    ("isolation: software", "tolerations: [a]", "a]}", "must be a mapping", "{}"),
    ("isolation: software", "title: !!python/name:os.system a", "!!python",
     "tag !!python/name:os.system is not allowed", "Delete"),
    ("  cpu:   {}", "  cpu:   {}\n  t4: {resource: a.b/c}", "t4:    {", "`t4` is here twice, first",
     "Keep one"),
    ("  lab:", "  the lab:", "the lab", "not allowed here", "63 letters"),
    ("x-note: {any: thing}", "x-note: *thing", "*thing", "There is no &thing", "Define"),
]  # fmt: skip


@pytest.mark.usefixtures("each_parser")
@pytest.mark.parametrize(("old", "new", "at", "said", "hint"), ONE_FAULT)
def test_a_fault_has_its_place_and_a_hint(
    old: str, new: str, at: str, said: str, hint: str
) -> None:
    assert GOOD.count(old) == 1
    text = GOOD.replace(old, new)
    (fault,) = faults(text)
    assert (fault.line, fault.column) == place(text, at)
    assert said in fault.message and hint in fault.hint


def test_all_faults_at_once_in_their_order() -> None:
    text = GOOD
    for old, new in (
        ("flavor: small,", "flavor: large,"), ("memory: 2Gi", "memory: lots"),
        ("gpus: 2", "gpus: two"), ("[research]}", "[research]}, colour: red"),
        ("cpu:   {}", "cpu:   {isolation: 7}"), ("gpucores: 5", "gpucores: -"),
    ):  # fmt: skip
        text = text.replace(old, new)
    found = faults(text)
    assert [(f.line, f.column) for f in found] == [
        place(text, at) for at in ("large,", "lots", "two", "colour", "7}", "-}")
    ]


def test_the_error_reads_like_a_compiler() -> None:
    text = GOOD.replace("gpus: 2", "gpu: 2").replace("2Gi", "2 GB")
    with pytest.raises(BadCatalog) as caught:
        parse_catalog(text.encode(), "etc/flavors.yaml")
    lines = caught.value.message.splitlines()
    assert lines[1].startswith("etc/flavors.yaml:4:30: `memory`: '2 GB' is no quantity. Write it")
    many = GOOD.replace("devices: [t4, slice]", f"devices: {[f'a{n}' for n in range(50)]}")
    with pytest.raises(BadCatalog) as caught:
        parse_catalog(many.encode(), "flavors.yaml")
    assert len(caught.value.faults) == 50
    assert caught.value.message.splitlines()[-1] == f"and {50 - loader.MAX_LISTED_FAULTS} more"


# What is no catalog at all ----------------------------------------------------------------------


CHAIN = "x-a:\n" + "".join(
    f"  a{n}: &a{n} {'[' * 20}{f'*a{n - 1}' if n else 'x'}{']' * 20}\n" for n in range(32)
)
"""Each line is 20 levels deep, and each but the first has the one before it inside."""


@pytest.mark.usefixtures("each_parser")
@pytest.mark.parametrize(
    ("data", "at", "said"),
    [
        (b"", (1, 1), "empty"),
        (b"# only this\n", (1, 1), "empty"),
        (b"null", (1, 1), "must be a mapping"),
        (b"[]", (1, 1), "must be a mapping, and is a list"),
        (b"text", (1, 1), "must be a mapping, and is text"),
        (b"a: 1\n b: 2", (2, 3), "no YAML"),
        (b"a: 'x", None, "no YAML"),
        (b"\ta: 1", (1, 1), "no YAML"),
        (b"%YAML 2.0\n---\na: 1", (1, 1), "no YAML"),
        (b"a: 1\n---\nb: 2", (2, 1), "second document"),
        (b"[a]: 1", (1, 1), "key must be plain text"),
        (b"{a: 1}: 1", (1, 1), "key must be plain text"),
        (b"a: &a [x]\n*a : 1", (2, 1), "key must be plain text"),
        (b"a: &a [*a]", (1, 8), "no &a before"),
        (b"a: b\n\xc3\xa9: \xff", (2, 4), "not UTF-8"),
        ("a: 1".encode("utf-16"), (1, 1), "not UTF-8"),
        ("a: é\nb: é\0".encode(), (2, 5), "U+0000"),
        (b"a: !!python/object:os.system {}", (1, 4), "!!python/object:os.system"),
        (b"[" * 5000, (1, 33), "32 levels"),
        (b"{a: " * 3000, (1, 129), "32 levels"),
        (b"- " * 3000, (1, 65), "32 levels"),
        (CHAIN.encode(), (3, 31), "32 levels"),
        (b"a: [" + b"1," * 30_000 + b"]", None, "20000 values"),
        (b"#" * (1 << 20) + b"\n", (1, 1), "1 MiB"),
        (b"a: <<\n<<: text", (2, 1), "merges mappings only"),
        (rb'a: "\0"', (1, 4), "U+0000"),
        (rb'a: "\e[2J"', (1, 4), "U+001B"),
        (rb'a: "\ud800"', None, ""),
        (rb'a: "\Uffffffff"', None, "no YAML"),
        (b"%YAML 1." + b"9" * 5000 + b"\n---\na: 1", None, "no YAML"),
    ],
    ids=lambda value: repr(value)[:24] if isinstance(value, bytes) else None,
)
def test_what_is_no_catalog(data: bytes, at: tuple[int, int] | None, said: str) -> None:
    started = time.process_time()
    found = faults(data)
    assert time.process_time() - started < 2
    fault = next(f for f in found if said in f.message)
    assert at is None or (fault.line, fault.column) == at


def _bomb(first: str, line: str) -> str:
    """Ten lines, each of which stands for nine times the one before: `{0}` and `{1}` in `line`."""
    return "\n".join([first, *(line.format(*names) for names in pairwise("abcdefghij"))])


BOMBS = {
    "lists": _bomb("a: &a [x, x]", "{1}: &{1} [" + ", ".join(["*{0}"] * 9) + "]"),
    "mappings": _bomb(
        "a: &a {x: 1}", "{1}: &{1} {{" + ", ".join(f"k{n}: *{{0}}" for n in range(9)) + "}}"
    ),
    "merges": _bomb(
        "a: &a {x: 1}", "{1}: &{1} {{<<: [" + ", ".join(["*{0}"] * 5) + "], k: [*{0}, *{0}]}}"
    ),
    "texts": "a: &a " + "x" * 500_000 + "\nb: [" + ", ".join(["*a"] * 100) + "]",
}


@pytest.mark.usefixtures("each_parser")
@pytest.mark.parametrize("kind", BOMBS)
def test_an_alias_bomb_is_refused_at_its_line(kind: str) -> None:
    text = BOMBS[kind]
    assert kind != "lists" or len(text) <= 430, "a few bytes that stand for gigabytes"
    harmless = re.sub(r"\*\w+", "x", text)
    started = time.process_time()
    faults(harmless)
    between = time.process_time()
    fault = faults(text)[-1]
    assert time.process_time() - between < 5 * (between - started)
    assert "aliases expanded" in fault.message
    assert 1 < fault.line <= 12


def test_refusing_a_bomb_takes_little_memory() -> None:
    """In a process of its own that may use little more than what it has when it begins."""
    code = (
        "import re, sys\n"
        "from jupyter_to_job.flavors import load_catalog, parse_catalog\n"
        "from jupyter_to_job.domain.errors import BadCatalog\n"
        "load_catalog()\n"
        "def peak():\n"
        "    return int(re.search(r'VmHWM:\\s+(\\d+)', open('/proc/self/status').read())[1])\n"
        "before = peak()\n"
        "try:\n    parse_catalog(sys.stdin.buffer.read(), 'bomb')\n"
        "except BadCatalog:\n"
        "    print(peak() - before)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        input=BOMBS["lists"].encode(),
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert int(ran.stdout) < 8 << 10, "KiB"


# Aliases that admins write ----------------------------------------------------------------------


class _Merging(yaml.SafeLoader):
    """Merges, and takes every scalar for text."""

    yaml_implicit_resolvers = {"<": [("tag:yaml.org,2002:merge", re.compile("^<<$"))]}  # noqa: RUF012


@pytest.mark.usefixtures("each_parser")
def test_aliases_and_merges_mean_what_yaml_says() -> None:
    """PyYAML's own loader says the same, where it leaves scalars alone."""

    ours, _ = yaml_reader.read(EVERYTHING.encode())
    theirs = yaml.load(EVERYTHING, _Merging)
    assert yaml_reader.plain_value(ours) == theirs
    assert theirs["devices"]["all"]["title"] == "All", "what stands there itself wins"


@pytest.mark.usefixtures("each_parser")
def test_an_anchor_may_be_defined_again_and_an_alias_be_a_key() -> None:
    root, faults_before = yaml_reader.read(b"a: &n x\nb: &n y\nc: *n\n*n : 1\ny: 2\n")
    assert yaml_reader.plain_value(root) == {"a": "x", "b": "y", "c": "y", "y": "2"}
    assert [(f.line, f.message) for f in faults_before] == [
        (5, "`y` is here twice, first in line 4.")
    ]


def test_a_fault_behind_an_alias_is_where_it_was_written() -> None:
    text = GOOD.replace("apiVersion", "x-t: &t {memory: lots, devices: [cpu]}\napiVersion", 1)
    text = text.replace("  lab:", "  more: {<<: *t}\n  same: *t\n  lab:")
    (fault,) = faults(text)
    assert (fault.line, fault.column) == place(text, "lots")


# Anything ---------------------------------------------------------------------------------------

_PIECES = """
apiVersion default flavors devices flavor device cpu memory gpus limits resource allowed groups
env labels tolerations small jupyter-to-job.io/v1 x-a << 1 2Gi 0 -1 1e9 .nan null ~ true [] {}
!!binary &a *a ! & * ? : - | > " ' # % @ ` , [ ] { } é \0
"""
_WORDS = st.sampled_from([*_PIECES.split(), "\n", "\n  ", "\t", " "])
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | _WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_WORDS, inner, max_size=5),
    max_leaves=20,
)


def never_anything_else(data: bytes) -> None:
    started = time.process_time()
    try:
        parse_catalog(data, "flavors.yaml")
    except BadCatalog as error:
        assert error.faults
        assert all(f.line >= 1 and f.column >= 1 and f.message for f in error.faults)
        assert len(error.message) < 20_000
    assert time.process_time() - started < 5


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=200))
@example(b"\xef\xbb\xbf")
@example(b"\xff\xfe")
def test_no_bytes_do_harm(data: bytes) -> None:
    never_anything_else(data)


@settings(max_examples=300, deadline=None)
@given(st.lists(_WORDS, max_size=40), st.sampled_from([" ", "", ": ", "\n"]))
def test_no_yaml_does_harm(words: list[str], between: str) -> None:
    never_anything_else(between.join(words).encode())


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_no_values_do_harm(data: st.DataObject) -> None:
    """A good catalog with anything in one place of it."""
    catalog: Any = yaml.load(EVERYTHING, yaml.BaseLoader)
    spot: Any = catalog
    while True:
        key = data.draw(st.sampled_from(sorted(spot) if isinstance(spot, dict) else [0]))
        if not isinstance(spot[key], dict | list) or not spot[key] or data.draw(st.booleans()):
            break
        spot = spot[key]
    spot[key] = data.draw(_VALUES)
    never_anything_else(yaml.safe_dump(catalog, allow_unicode=True).encode("utf-8", "replace"))


@settings(max_examples=150, deadline=None)
@given(st.integers(0, len(SHIPPED.read_bytes())), st.binary(max_size=3), st.integers(0, 5))
def test_no_slip_of_the_keyboard_does_harm(at: int, typed: bytes, deleted: int) -> None:
    shipped = SHIPPED.read_bytes()
    never_anything_else(shipped[:at] + typed + shipped[at + deleted :])
