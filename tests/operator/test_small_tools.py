"""The small tools: what both makes print on the same input, and how they end."""

import re

import pytest

from harness.tools import both


def without_clock(text):
    """Expiry and what is signed over it differ by the second in which a program runs."""
    return re.sub(r"[0-9a-f]{40}", "SIGNATURE", re.sub(r"\b1[789]\d{8}\b", "EXPIRES", text))


@pytest.mark.parametrize("words", [
    ("/v1/a/c/o", "http://x/", "100", "5", "60", "key"),
    ("/v1/a/c", "", "0", "1", "-60", "key"),
    ("/v1/a/c/", "http://x/?a&b", " 5 ", "+0_2", "0", "kéy"),
    ("/v1/a/é///", "", "99999999999999999999999", "1", "9", ""),
    (), ("/v1/a/c", "", "5", "1", "60"), ("/v1/a/c", "", "5", "1", "60", "key", "more"),
    *(("/v1/a/c/o", "", *numbers, "key") for numbers in (("x", "1", "6"), ("-1", "1", "6"), ("1", "0", "6"), ("1", "y", "6"), ("1", "-5", "6"),
                                                         ("1", "1", "1.5"), ("1", "1", "z"))),
    *((path, "", "1", "1", "6", "key") for path in ("/v1/a", "v1/a/c", "/v2/a/c", "/v1//c", "/v1/a//b", "", "/", "/v1/a/")),
])
def test_form_signature(words):
    theirs, ours = both("form-signature", *words)
    assert (without_clock(ours.out), ours.status) == (without_clock(theirs.out), theirs.status)
    assert not ours.err


def test_form_signature_with_the_same_clock():
    for _ in range(5):
        theirs, ours = both("form-signature", "/v1/a/c/o", "http://x/", "100", "5", "60", "key")
        if theirs.lines[0] == ours.lines[0]:
            assert theirs == ours
            return
    pytest.fail("the clock never agreed")
