"""Leading eigenpairs of operators."""

import numpy as np

from cvxnmf.linalg.leading import krylov_pairs, lanczos_pairs, operator_pairs


def test_iterations_that_do_not_converge_are_replaced():
    B = np.diag(np.arange(70.0))
    values, vectors = lanczos_pairs(B, 3, np.ones(70), max_iter=1)
    np.testing.assert_allclose(values, [69.0, 68.0, 67.0])
    np.testing.assert_allclose(np.abs(vectors[[69, 68, 67], [0, 1, 2]]), 1.0)


def test_an_operator_has_the_leading_pairs_of_its_matrix():
    rng = np.random.default_rng(0)
    for n in (20, 90):  # written out, and by Lanczos iterations
        B = rng.normal(size=(n, n))
        B = B + B.T
        values, vectors = operator_pairs(lambda x, B=B: B @ x, n, 3)
        np.testing.assert_allclose(values, np.linalg.eigvalsh(B)[::-1][:3], rtol=1e-3)
        np.testing.assert_allclose(B @ vectors, vectors * values, atol=1e-2 * values[0])


def test_leading_pairs_by_few_products():
    A = np.random.default_rng(0).random((300, 80)) * np.linspace(1, 0.1, 80) ** 4
    gram = A.T @ A
    values, vectors = krylov_pairs(lambda X: gram @ X, 80, 3)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(gram)[::-1][:3], rtol=1e-9)
    np.testing.assert_allclose(gram @ vectors, vectors * values, atol=1e-4 * values[0])
