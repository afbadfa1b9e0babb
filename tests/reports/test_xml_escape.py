"""Text as XML can hold it."""

import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from judgekit.reports.xml_escape import escape_xml, replace_controls


@given(st.text(st.characters(exclude_categories=())))
def test_any_text_stands_in_an_element_and_in_an_attribute(text):
    read = ET.fromstring(f'<a b="{escape_xml(text)}">{escape_xml(text)}</a>'.encode())  # noqa: S314 - it is our own
    as_read = replace_controls(text).replace("\r\n", "\n").replace("\r", "\n")  # XML 1.0, 2.11
    assert (read.text or "") == as_read
    assert read.get("b") == as_read.replace("\n", " ").replace("\t", " ")  # XML 1.0, 3.3.3


def test_what_is_replaced_is_seen():
    assert replace_controls("a\0\x1b\ud800\ufffe\x7f\x9bé\U0001f600\n") == "a" + "\ufffd" * 6 + "é\U0001f600\n"
