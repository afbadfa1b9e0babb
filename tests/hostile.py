"""Texts that try to be more than text in a page."""

HOSTILE = (
    *("<script>alert(1)</script>", "</script><script>alert(2)</script>", "<!--<script>"),
    *("<img src=x onerror=alert(3)>", "\"'><svg onload=alert(4)>", "javascript:alert(5)", "\u2028alert(6)\u2029"),
    *("__proto__", "\u202e\u2066reversed", "{{ 7 * 7 }}", "]]>&lt;b&gt;", ""),
)
