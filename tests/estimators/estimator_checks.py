"""scikit-learn's checks that NMF and MiniBatchNMF cannot pass, each with its reason."""


def sample_weight_exceptions(estimator):
    """Samples given twice lead to the same loss, but to equal norms of columns of W and H, which then have more rows."""
    reason = "columns of W and H have equal norms, and W has more rows; tests/estimators/test_sample_weights.py compares losses"
    found = {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}
    if estimator.alpha_W:
        found["check_sample_weights_not_overwritten"] = "weights with both penalties on W are refused in a sentence"
    return found
