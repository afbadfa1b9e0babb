"""Value matchers for the arguments of expected calls: any number near 3, a text that contains a word."""

from judgekit.scorers.tool_calls.matchers import anything, between, contains, near, of_type, one_of, regex, similar

__all__ = ["anything", "between", "contains", "near", "of_type", "one_of", "regex", "similar"]
