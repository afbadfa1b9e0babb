"""``judgekit formats``."""

import sys

import pytest

from judgekit.cli import main
from judgekit.formats.readers import READERS


def test_each_format_is_a_line_that_begins_with_its_name(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["judgekit", "formats"])
    with pytest.raises(SystemExit) as ended:
        main()
    lines = capsys.readouterr().out.splitlines()
    assert (ended.value.code or 0, [line.partition(":")[0] for line in lines]) == (0, list(READERS))
