"""What tests of files share."""

import pytest


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One place for all examples of a test."""
    return tmp_path_factory.mktemp("files")
