"""Small maps: labels that can be read, and a table of what is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from core.model.shape import ModelShape
from pages.shared.figures.maps import label_positions, small_maps_table, stage_maps_figure
from pages.shared.figures.template import in_steps
from pages.shared.theme import colour_at


def test_labels_of_points_in_one_place_stand_on_different_sides() -> None:
    places = np.array([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0], [100.0, 40.0]])
    found = label_positions(places)
    assert found[0] == "top center"
    assert len(set(found[:3])) == 3
    assert found[3] == "top center"  # it has all the room


def test_a_label_keeps_off_a_point_above() -> None:
    places = np.array([[0.0, 0.0], [0.0, 6.0], [100.0, 0.0]])
    assert label_positions(places)[0] != "top center"
    assert label_positions(np.zeros((2, 2)))[0] == "top center"  # nothing to scale by


def test_the_table_is_what_the_small_maps_show() -> None:
    places = np.arange(2 * 3 * 2, dtype=np.float32).reshape(2, 3, 2)  # [doc, head, 2]
    table = small_maps_table({1: places, 3: places + 100}, np.array([4, 9]))
    assert table.num_rows == 12
    rows = {(row["stage"], row["document"], row["head"]): (row["x"], row["y"]) for row in table.to_pylist()}
    assert rows[1, 5, 1] == (0, 1)
    assert rows[1, 10, 3] == (10, 11)
    assert rows[3, 10, 1] == (106, 107)


def test_a_small_map_keeps_its_proportions() -> None:
    figure = stage_maps_figure({1: np.ones((2, 3, 2)), 2: np.ones((2, 3, 2))}, ModelShape(6, 3, 3, 12, 4), "light")
    assert (figure.layout.yaxis.scaleanchor, figure.layout.yaxis2.scaleanchor) == ("x", "x2")


@pytest.mark.parametrize(("count", "of_a_number"), [(1, 1), (12, 1), (256, 1), (257, 2)])
def test_a_point_has_its_code_s_colour_by_a_number_of_few_bytes(count: int, of_a_number: int) -> None:
    colours = [f"#{997 * code:06X}" for code in range(count)]
    codes = np.array([0, count - 1, count // 2])
    found = in_steps(codes, colours)
    numbers, least, most = np.asarray(found["color"]), found["cmin"], found["cmax"]
    assert numbers.itemsize == of_a_number
    assert isinstance(least, float)
    assert isinstance(most, float)
    assert isinstance(found["colorscale"], list)
    shares = (numbers.astype(float) - least) / (most - least)
    assert [colour_at(share, found["colorscale"]) for share in shares] == [colours[code] for code in codes]
