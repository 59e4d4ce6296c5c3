"""What the documentation site makes by itself: the reference of commands; which pages it has."""

from __future__ import annotations

import re
from fnmatch import fnmatch
from types import ModuleType

import click
import pytest

from mluops_cli.implementations.loading import load_file
from mluops_cli.main import COMMANDS, cli
from tests.conftest import PROJECT

pytestmark = pytest.mark.checkout
SITE = PROJECT / "docs" / "site"
CONTENTS = re.findall(r"^/(\S+)$", (SITE / "contents.md").read_text(encoding="utf-8"), re.MULTILINE)


@pytest.fixture(scope="module")
def commands() -> ModuleType:
    return load_file(SITE / "command_reference.py")


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_stands_there_with_all_its_options(commands: ModuleType, name: str) -> None:
    sections = re.split(r"^## mluops (\S+)$", commands.reference(), flags=re.MULTILINE)
    text = dict(zip(sections[1::2], sections[2::2], strict=True))[name]
    context = click.Context(cli, info_name="mluops", **cli.context_settings)
    _, command, _ = cli.resolve_command(context, [name])
    assert command is not None
    assert text.lstrip().startswith(f"mluops {name} ") or text.lstrip().startswith(f"mluops {name}\n")
    for parameter in command.params:
        if isinstance(parameter, click.Option) and not parameter.hidden:
            (form,) = [
                each
                for each in re.findall(r"^`([^`]+)`$", text, re.MULTILINE)
                if parameter.opts[0] in re.split(r"[ ,]+", each)
            ]
            assert f"`{form}`\n: " in text


def test_commands_of_a_command_stand_below_it(commands: ModuleType) -> None:
    text = commands.reference().partition("## mluops history\n")[2].partition("\n## ")[0]
    for name in ("add", "trend", "bisect"):
        assert f"\n### mluops history {name}\n\n    mluops history {name} [OPTIONS]" in text
    assert "`--html FILE`\n: One page" in text


def test_signs_of_markdown_are_escaped_but_in_code(commands: ModuleType) -> None:
    assert commands._escaped("a*b <c> `d*e` [f]") == r"a\*b \<c> `d*e` \[f\]"


def test_the_start_page_leads_to_every_tutorial() -> None:
    contents = (SITE / "contents.md").read_text(encoding="utf-8")
    tutorials = re.findall(r"^/(\S+)$", contents.partition(":caption: Tutorials")[2].partition("```")[0], re.MULTILINE)
    start = (PROJECT / "README.md").read_text(encoding="utf-8")
    order = start.partition("## In which order to read")[2].partition("\n## ")[0]
    assert tutorials
    assert [page for page in tutorials if f"({page}.md)" not in order] == []


def test_every_page_is_in_the_contents() -> None:
    pages = {str(path.relative_to(PROJECT).with_suffix("")) for path in (PROJECT / "docs").rglob("*.md")}
    pages |= {path.stem for path in PROJECT.glob("*.md")}
    listed = {page for page in pages if any(fnmatch(page, each) for each in [*CONTENTS, "docs/operators/*"])}
    assert pages - listed == {"README", "docs/site/contents"}
    assert len(set(CONTENTS)) == len(CONTENTS)
    assert [page for page in CONTENTS if not (PROJECT / f"{page}.md").is_file()] == []
