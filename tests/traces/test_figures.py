"""Numbers, dates, times and ids of a claim, looked for in its sources."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgekit.traces.figures import missing_figures

RECORD = (
    '{"id":"W5744371","date":"2024-05-15","departs":"2024-05-15T17:05:00","price":1234.50,"seats":[1,2,30],'
    '"method":"gift_card_1712795","fee":3.50,"total":"1,000"}'
)


@pytest.mark.parametrize(
    ("claim", "missing"),
    [
        ("Order #W5744371 of May 15, 2024 at 5:05 PM is $1,234.5.", []),
        ("Order #W5744372.", ["W5744372"]),
        ("On 15 May, the 15th of May, 05/15/2024, 15.05.2024 or 2024-05-15.", []),
        ("On May 16, or May 15, 2023, or 2025-05-15.", ["May 16", "May 15, 2023", "2025-05-15"]),
        ("At 17:05, or 6 PM, or 5:05 a.m.", ["6 PM", "5:05 a.m"]),
        ("$3.5, or 3.51, and 1000, or 100.", ["3.51", "100"]),
        ("Card 1712795, or ending in 2795.", ["2795"]),
        ("Seats 1, 2 and 30, not 3.", ["3"]),
        ("2. The fee is 3.50.", []),
        ("30kg, a 24-hour fare, flight HAT030, 1GB, 2ABCDE.", ["HAT030", "24", "2ABCDE"]),
        ("Preis: 1.234,50 €, 3,50 €.", []),
        ("价格3.5元，共4件。", ["4"]),  # noqa: RUF001 - as it is written
        ("٣٠ seats", []),
    ],
)
def test_what_no_source_has_is_missing(claim, missing):
    assert sorted(missing_figures(claim, [RECORD])) == sorted(missing)


def test_several_sources_are_searched_and_none_has_nothing():
    assert missing_figures("1 of 2", ["1", "2"]) == []
    assert missing_figures("1 of 2", []) == ["1", "2"]
    assert missing_figures("none", []) == []


@given(st.integers(0, 10**30), st.integers(0, 99))
def test_a_number_is_found_however_it_is_written(whole, cents):
    written = [
        f"{whole}.{cents:02}",
        f"{whole:,}.{cents:02}",
        f"{whole:,}.{cents:02}0",
        f"{whole}.{cents:02}".rstrip("0"),
    ]
    for claim in written:
        for source in written:
            assert missing_figures(f"${claim}", [f"[{source}]"]) == []
        assert missing_figures(f"${claim}", [f"{whole + 1}.{cents:02}"]) != []


@given(st.text(max_size=80) | st.text("0123456789.,:-/ Tapm", max_size=30))
def test_a_text_has_all_figures_of_its_own(text):
    assert missing_figures(text, [text]) == []
