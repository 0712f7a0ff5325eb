"""Where a result may be written."""

import pytest

from splitmeans.errors import ParameterError
from splitmeans.run.result_folder import check_place


def test_a_folder_with_something_else_is_kept(tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "important.txt").write_text("do not lose me")
    with pytest.raises(ParameterError, match="holds something else than a result"):
        check_place(tmp_path / "letters")
    with pytest.raises(ParameterError, match="holds something else than a result"):
        check_place(tmp_path / "letters" / "important.txt")


def test_a_new_an_empty_and_an_older_result_folder_may_be_written(tmp_path):
    check_place(tmp_path / "new")
    check_place(tmp_path)
    (tmp_path / "result.json").write_text("{}")
    (tmp_path / "centres.csv").write_text("")
    check_place(tmp_path)
