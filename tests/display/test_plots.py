"""Pictures: what they show, that they can be saved, and that nothing global is touched."""

import dataclasses
import io
import math
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

from cvxnmf.results import Iterate

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

import cvxnmf
from cvxnmf import plots


def saved(figure):
    """The bytes of a figure as PNG."""
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=60)
    return file.getvalue()


def test_figure_1_shows_the_matrix_before_and_after(club):
    left, right = plots.figure1(club.A, club.order, club.labels).axes
    dense = club.A.toarray() > 0
    assert np.array_equal(np.asarray(left.images[0].get_array()) > 0, dense)
    assert np.array_equal(np.asarray(right.images[0].get_array()) > 0, dense[club.order][:, club.order])
    assert len(right.lines) == 2
    assert not left.lines


def test_a_large_matrix_is_counted_on_a_grid():
    ends = np.random.default_rng(0).integers(0, 2500, (2, 600))
    A = sp.coo_array((np.ones(600), ends), shape=(2500, 2500))
    left, _ = plots.figure1(A, np.arange(2500)).axes
    assert left.images[0].get_array().shape == (1000, 1000)


@pytest.mark.parametrize("order", [[0, 1], [0, 0, 1], [0, 1, 3]])
def test_an_order_that_is_none_is_refused(order):
    with pytest.raises(ValueError, match="each of the 3 nodes once"):
        plots.figure1(np.ones((3, 3)), order)


HISTORIES = {
    "none": [],
    "one": [Iterate(1, 0.1, 5.0, 5.0, 1)],
    "three": [Iterate(i, 0.1 * i, 5.0 + 1 / i, 5.0 - 1 / i, 1) for i in (1, 2, 3)],
    "many": [Iterate(i, 0.1 * i, 5.0 + 1 / i, 0.0, 1) for i in range(1, 60)],
    "odd": [Iterate(1, 0.1, math.inf, -math.inf, 1), Iterate(2, 0.1, 5.0, -math.inf, 1), Iterate(3, 0.1, math.nan, 1.0, 1)],
}


@pytest.mark.parametrize("name", HISTORIES)
@pytest.mark.parametrize("bound", [None, 4.5])
def test_the_gap_closing_is_drawn_for_every_history(name, bound):
    figure = plots.gap_closing(HISTORIES[name], bound)
    assert saved(figure) == saved(figure)
    finite = [step.value for step in HISTORIES[name] if math.isfinite(step.value)]
    assert np.array_equal(figure.axes[0].lines[0].get_ydata(), finite)


def test_a_few_steps_have_a_bar_each_and_many_a_line():
    bars, line = (plots.gap_closing(HISTORIES[name], 4.5).axes[1] for name in ("three", "many"))
    assert [text.get_text() for text in bars.get_yticklabels()] == ["step 1", "step 2", "step 3"]
    assert np.allclose(bars.lines[0].get_xdata(), [2 / 6, 1 / 5.5, (2 / 3) / (5 + 1 / 3)])
    assert len(line.lines[0].get_ydata()) == 59


def test_bounds_far_below_do_not_squeeze_the_values():
    steps = [Iterate(i, 0.1, 5.0 + 1 / i, -1000.0 if i < 10 else 4.0, 1) for i in range(1, 30)]
    axes = plots.gap_closing(steps).axes[0]
    assert 3.5 < axes.get_ylim()[0] < 4.0
    assert axes.lines[1].get_ydata().min() == axes.get_ylim()[0]


def test_a_bound_proved_at_the_end_stands_in_for_steps_without(club):
    value, lower = plots.gap_closing(HISTORIES["many"], 4.5).axes[0].lines
    assert set(lower.get_ydata()) == {4.5}
    assert value.get_ydata()[0] == 6.0


def test_the_spectrum_shows_who_entered(club):
    entered, left_out, edge = plots.spectrum(club).axes[0].lines
    assert len(entered.get_ydata()) == club.solution.rank
    assert len(left_out.get_ydata()) + club.solution.rank <= len(club.spectrum)
    assert set(edge.get_ydata()) == {club.noise_edge}


def test_memberships_stand_in_clustered_order(club):
    shown = np.asarray(plots.memberships(club).axes[0].images[0].get_array())
    assert np.allclose(shown, club.memberships[club.order].T)


def test_the_graph_has_a_mark_for_each_node_and_names(club):
    strange = dataclasses.replace(club, nodes=("$x^", *club.nodes[1:]))
    axes = plots.graph(strange).axes[0]
    clouds = [cloud for cloud in axes.collections if hasattr(cloud, "get_offsets") and cloud.get_label() in {"0", "1"}]
    assert [len(cloud.get_offsets()) for cloud in clouds] == np.bincount(club.labels).tolist()
    assert "$x^" in {text.get_text() for text in axes.texts}


@pytest.mark.parametrize("draw", [plots.spectrum, plots.memberships, plots.graph])
def test_pictures_of_a_partition_can_be_saved_and_are_the_same_twice(club, draw):
    assert saved(draw(club)) == saved(draw(club))


def test_pyplot_stays_out(tmp_path):
    code = (
        "import sys; from cvxnmf import Iterate, plots; plots.gap_closing([Iterate(1, 0.1, 5.0, 4.0, 1)]).savefig(sys.argv[1])\n"
    )
    code += "sys.exit('matplotlib.pyplot' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path / "gap.png")], check=False).returncode == 0


def test_without_matplotlib_one_sentence_says_what_to_do(club, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"pip install matplotlib"):
        plots.spectrum(club)


def test_notebooks_show_a_picture_without_pyplot(club):
    from matplotlib.image import imread

    shown = imread(io.BytesIO(plots.spectrum(club)._repr_png_()))
    assert shown.shape == (540, 960, 4)
    assert len(np.unique(shown.reshape(-1, 4), axis=0)) > 10


def test_components_are_drawn_as_images_of_the_side_that_fits():
    rng = np.random.default_rng(0)
    result = cvxnmf.factorize(rng.random((30, 12)), 3)
    drawn = plots.components(result, (3, 4)).axes
    np.testing.assert_array_equal(drawn[1].images[0].get_array(), (result.V[:, 1] / result.V[:, 1].max()).reshape(3, 4))
    assert plots.components(result, (5, 6)).axes[0].images[0].get_array().shape == (5, 6)
    for shape, sentence in (((5, 5), "25 pixels, but V has 12 lines and U has 30 lines"), (8, "pair"), ((0, 3), "at least 1")):
        with pytest.raises(ValueError, match=sentence):
            plots.components(result, shape)
