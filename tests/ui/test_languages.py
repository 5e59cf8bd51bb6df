"""The whole way in Chinese, where the language pack is: nothing of ours is left English."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.ui.lab import Lab
from tests.ui.steps import END_TIMEOUT, file_item, toast, told_name

LOCALES = Path(__file__).parents[2] / "jupyter_to_job" / "locale"

SHOWN = """element => {
    const shown = [];
    for (const inner of [element, ...element.querySelectorAll('*')]) {
        shown.push(...['title', 'aria-label', 'placeholder'].map(name => inner.getAttribute(name)));
        shown.push(...[...inner.childNodes].filter(node => node.nodeType === Node.TEXT_NODE)
            .map(node => node.textContent));
    }
    return shown.filter(Boolean).map(text => text.trim());
}"""
"""All that is read or read aloud of an element."""


class Words(NamedTuple):
    """What a user looks for."""

    submit: str
    checking: str
    send: str
    submitted: str
    finished: str
    jobs: str


CHINESE = {
    "zh_CN": Words("提交作业", "正在检查…", "发送", "已提交", "已完成", "作业"),
    "zh_TW": Words("提交作業", "正在檢查…", "送出", "已提交", "已完成", "作業"),
}


def english(locale: str) -> set[str]:
    """What the English interface says and this language's says in another way."""
    catalog = json.loads((LOCALES / locale / "LC_MESSAGES" / "jupyter_to_job.json").read_text())
    return {text for text, said in catalog.items() if text and text != said[0]}


def assert_translated(element: Locator, locale: str) -> None:
    shown = set(element.evaluate(SHOWN))
    assert any("\u4e00" <= sign <= "\u9fff" for text in shown for sign in text)
    assert not shown & english(locale)


@pytest.mark.parametrize(
    ("lab", "locale"),
    [
        pytest.param(
            {"settings": {"@jupyterlab/translation-extension/plugin": {"locale": locale}}},
            locale,
            id=locale,
        )
        for locale in CHINESE
    ],
    indirect=["lab"],
)
def test_everything_is_said_in_chinese(
    lab: Lab, locale: str, open_lab: Callable[[], Page], screenshot: Callable[[str], None]
) -> None:
    words = CHINESE[locale]
    lab.write("reports/train.ipynb", "epochs = 3", "print(epochs)", tags=("parameters",))
    page = open_lab()
    file_item(page, "reports").dblclick()
    file_item(page, "train.ipynb").dblclick()
    toolbar = page.locator(".jp-NotebookPanel-toolbar")
    toolbar.get_by_role("button", name=words.submit).click()

    dialog = page.get_by_role("dialog", name=words.submit)
    expect(dialog.get_by_role("radio").first).to_be_visible()
    expect(dialog.get_by_text(words.checking)).to_have_count(0)
    screenshot(f"dialog-{locale}")
    for section in dialog.locator("summary").all():
        section.click()
    expect(dialog.get_by_label("epochs", exact=True)).to_be_visible()
    assert_translated(dialog, locale)

    dialog.get_by_role("button", name=words.send).click()
    name = told_name(page, words.submitted)
    assert re.fullmatch(r"train-[a-z2-7]{8}", name)
    finished = toast(page, f"{name} {words.finished}")
    expect(finished).to_be_visible(timeout=END_TIMEOUT)

    page.get_by_role("tab", name=re.compile(f"^{words.jobs}")).click()
    panel = page.get_by_role("region", name=words.jobs)
    expect(panel.get_by_role("article", name=name)).to_be_visible()
    assert_translated(panel, locale)
    screenshot(f"panel-{locale}")
