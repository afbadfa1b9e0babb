"""Names, numbers and files that no user means to give: each is an error in words, or works."""

import os

import pytest

GOOD = '{"messages": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}]}\n'
DEEP = "[" * 5_000 + "]" * 5_000
HUGE = "9" * 23
COUNTED = ("--scorer", "max_messages:5")
WRITTEN = [word for kind in ("html", "jsonl", "csv", "xml", "md") for word in ("-o", f"run.{kind}")]


@pytest.fixture
def strange(tmp_path):
    """A file whose name is no UTF-8."""
    path = os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9.jsonl")
    try:
        with open(path, "w") as file:  # noqa: PTH123 - a text of bytes
            file.write(GOOD)
    except OSError:
        pytest.skip("the file system takes names in UTF-8 alone")
    return path


@pytest.fixture(autouse=True)
def good(tmp_path):
    (tmp_path / "good.jsonl").write_text(GOOD)


def test_a_file_whose_name_is_no_utf8_is_scored_kept_and_written_about(cli, strange, tmp_path):
    done = cli("run", strange, *COUNTED, *WRITTEN)
    assert done.code == 0, done.err
    assert all((tmp_path / name).read_text(encoding="utf-8") for name in WRITTEN[1::2])
    assert "caf%E9.jsonl" in cli("runs").out
    assert cli("convert", strange, "-o", "converted.jsonl").code == 0
    assert "caf%E9.jsonl" in (tmp_path / "converted.jsonl").read_text()
    assert cli("run", "good.jsonl", "--references", strange, *COUNTED).code == 0


def test_a_run_of_it_can_go_on(cli, strange):
    assert cli("run", strange, *COUNTED).code == 0
    resumed = cli("resume")
    assert resumed.code == 0, resumed.err


def test_a_folder_whose_name_is_no_utf8_is_read_and_its_bad_lines_are_reported(cli, strange, tmp_path):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    os.mkdir(folder)  # noqa: PTH102 - a text of bytes
    os.rename(strange, f"{folder}/one.jsonl")  # noqa: PTH104
    with open(f"{folder}/two.jsonl", "w") as file:  # noqa: PTH123
        file.write(f"{GOOD}{{broken\n")
    done = cli("run", folder, *COUNTED)
    assert done.code == 1
    assert "%FF/two.jsonl (line 2)" in done.err


def test_a_name_that_is_no_utf8_is_no_name_of_a_scorer(cli):
    done = cli("run", "good.jsonl", "--scorer", "max_messages:5,as=\udcff")
    assert done.code == 2
    assert "UTF-8" in done.err


def test_a_number_that_is_too_large_is_an_error_that_names_its_option_and_the_largest_works(cli):
    for option in ("--limit", "--sample", "--show", "--workers"):
        done = cli("run", "good.jsonl", *COUNTED, option, HUGE)
        assert (done.code, f"'{option}'" in done.err) == (2, True)
        if option != "--workers":
            assert cli("run", "good.jsonl", *COUNTED, option, 10**9).code == 0


def test_a_seed_may_have_any_size(cli):
    assert cli("run", "good.jsonl", *COUNTED, "--sample", 1, "--seed", HUGE).code == 0


@pytest.mark.parametrize("text", [f"a = {DEEP}", f"a = {'{a = ' * 5_000}1{'}' * 5_000}", f"[{'.'.join('a' * 5_000)}]"])
def test_a_deep_config_is_an_error_that_names_the_file(cli, tmp_path, text):
    (tmp_path / "deep.toml").write_text(text)
    done = cli("run", "good.jsonl", *COUNTED, "--config", "deep.toml")
    assert done.code == 2
    assert "deep.toml: " in done.err


@pytest.mark.parametrize(
    ("front", "question"),
    [
        (f"description: {'[' * 33}{']' * 33}", "Good?"),
        (f"description: {DEEP}", "Good?"),
        ("description: x", f"{{{{ {'(' * 5_000}1{')' * 5_000} }}}}"),
    ],
)
def test_a_deep_prompt_is_an_error_that_names_the_file(cli, tmp_path, front, question):
    scale = "inputs: [conversation]\nscale: {a: 1, b: 0}\nsource: x"
    (tmp_path / "deep.md").write_text(f"---\n{front}\n{scale}\n---\n{question}\n")
    done = cli("run", "good.jsonl", "--scorer", "prompt:deep.md", "--judge", "openai/x", "--dry-run")
    assert done.code == 2
    assert "deep.md: nested too deeply" in done.err
