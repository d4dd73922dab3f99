"""The table of options, and Session's keywords."""
import inspect

import reprise
from reprise import _core

KEYWORDS = {row["keyword"]: row for row in _core.options_of_run() if row["keyword"]}


def test_the_table_and_the_signature_have_the_same_keywords():
    assert set(KEYWORDS) == set(inspect.signature(reprise.Session).parameters)
    for keyword in KEYWORDS:
        assert f"        {keyword}: " in (reprise.Session.__doc__ or ""), keyword


def test_the_table_has_the_defaults_of_the_signature():
    for keyword, parameter in inspect.signature(reprise.Session).parameters.items():
        default = parameter.default
        if isinstance(default, bool):
            default = "on" if default else "off"
        elif isinstance(default, float):
            default = f"{default:g}"
        if default is not None:
            assert KEYWORDS[keyword]["default"].split(";")[0] == default.replace("_", "-"), keyword


def test_every_option_of_a_session_has_a_keyword_and_a_flag():
    for row in _core.options_of_run():
        if row["name"]:
            assert row["keyword"] and row["flag"], row["name"]
