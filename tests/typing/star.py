"""The names that a star import gives, as type checkers see them. This file is checked by mypy and pyright, and never run."""

from typing import assert_type

from judgekit import *  # noqa: F403 - what is checked here

assert_type(run([Sample.of([AIMessage("Hi")])], [ToolCallF1()]), Run)  # noqa: F405 - they come with the star
