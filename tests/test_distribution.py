"""The distribution's name, which no text takes for that of the package: an index has other software by that name."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from judgekit.distribution import NAME, install_command, other_owners

ROOT = Path(__file__).parents[1]
FOREIGN = re.compile(r"(?<!agent-)judgekit\\?\[|pip install (-\S+ )*['\"]?judgekit|pypi\.org/\S*/judgekit")


def published() -> list[Path]:
    """Return the files that users see."""
    folders = ("judgekit", "docs", "examples", "prompts", "benchmarks", ".github")
    files = [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".py", ".md", ".yml", ".toml", ".txt")
    ]
    return [*files, *ROOT.glob("*.md"), *ROOT.glob("*.yml")]


@pytest.mark.skipif(not (ROOT / "judgekit").is_dir(), reason="the sources are in a checkout")
def test_no_text_names_a_package_of_an_index_that_is_not_ours():
    files = published()
    assert len(files) > 400
    named = [
        (str(path.relative_to(ROOT)), found.group())
        for path in files
        for found in FOREIGN.finditer(path.read_text(encoding="utf-8"))
    ]
    assert named == []


def test_what_an_extra_needs_is_named_as_its_own_metadata_does():
    assert re.fullmatch(r"pip install 'pandas>=[\d.]+'", install_command("pandas"))
    assert install_command("no-such-extra") == "pip install no-such-extra"


def test_other_software_with_the_name_of_the_package_is_reported(tmp_path):
    assert other_owners() == []
    other = tmp_path / "judgekit-9.dist-info"
    other.mkdir()
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: judgekit\nVersion: 9\n")
    (other / "top_level.txt").write_text("judgekit\n")
    command = f"import sys; sys.path.append({str(tmp_path)!r}); sys.argv = ['judgekit', '--version']; from judgekit.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)  # noqa: S603 - ourselves
    assert done.returncode == 0
    assert done.stderr.startswith("judgekit: judgekit in this environment installs a package judgekit too")
    assert f"pip uninstall judgekit {NAME}" in done.stderr
