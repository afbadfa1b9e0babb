"""What all tests share."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.fixture
def shared_data() -> Path:
    """Recordings made by others, which lie beside a checkout and are never copied into it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"the recordings of others are not here ({folder})")
    return folder


@pytest.fixture(scope="session")
def examples() -> Path:
    """The example conversations and replies."""
    return ROOT / "examples"
