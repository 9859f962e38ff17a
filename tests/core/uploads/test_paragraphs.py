"""Lines of a PDF's pages joined to paragraphs."""

from __future__ import annotations

import pytest

from core.uploads.paragraphs import joined_paragraphs

PAGE = """Harbours of the North
The night ferry left the harbour an hour late, be-
cause the wind had turned. On the upper deck a group
of nurses talked about a vaccine that needs no
refrigerator.
Below, in the bar, the television showed the match, and
nobody watched it. The captain had told them that the"""


def test_lines_become_paragraphs_and_divided_words_one() -> None:
    assert joined_paragraphs([PAGE]).split("\n\n") == [
        "Harbours of the North",
        "The night ferry left the harbour an hour late, because the wind had turned. On the upper deck a group of "
        "nurses talked about a vaccine that needs no refrigerator.",
        "Below, in the bar, the television showed the match, and nobody watched it. The captain had told them that the",
    ]


def test_a_paragraph_goes_on_over_the_end_of_a_page_and_page_numbers_are_left_out() -> None:
    found = joined_paragraphs([f"{PAGE}\n 12 ", "13\nport was on strike.\n", "Page 14 of 20\n"]).split("\n\n")
    assert found[-1].endswith("told them that the port was on strike.")
    assert not any(str(number) in part for part in found for number in (12, 13, 14))


def test_a_number_on_the_only_page_is_kept() -> None:
    assert joined_paragraphs(["A long enough line of some text\n\n42"]) == "A long enough line of some text\n\n42"


@pytest.mark.parametrize("item", ["• ", "- ", "2. ", "(b) "])
def test_items_of_a_list_stay_apart(item: str) -> None:
    lines = f"What to bring on board of the ship tonight and later\n{item}a coat that keeps the rain out and the wind"
    assert joined_paragraphs([lines]).count("\n\n") == 1


def test_a_hyphen_of_a_compound_before_a_capital_stays() -> None:
    found = joined_paragraphs(["The ferry of the company Smith-\nJones left the harbour at nine"])
    assert found == "The ferry of the company Smith- Jones left the harbour at nine"


def test_short_lines_of_a_table_are_left_as_they_are() -> None:
    assert joined_paragraphs(["1 ox\n2 cows\n3 geese"]) == "1 ox\n2 cows\n3 geese"


@pytest.mark.parametrize("pages", [[], [""], ["\n \n"], ["", "one line that is long enough to be joined"]])
def test_empty_pages_are_no_problem(pages: list[str]) -> None:
    assert joined_paragraphs(pages) == "".join(pages).strip()
