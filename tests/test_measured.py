"""Rows that were measured take their places in a table of the manual, each with its commit."""

from pathlib import Path

from docs.measured import oldest, with_rows
from tests.outside.__main__ import shortest_name

TABLE = [
    "| package | model | CPU s | commit |",
    "| --- | --- | --- | --- |",
    "| b | one.onnx | 1 | 11111111 |",
    "| a | one.onnx | 2 | 22222222 |",
]


def test_a_row_takes_the_place_of_that_of_its_key_and_rows_are_in_order():
    printed = [*TABLE[:2], "| b | two.onnx | 4 | 33333333 |", "| b | one.onnx | 3 | 33333333 |", "make: *** Error 1"]
    assert with_rows(TABLE, printed, ("package", "model")) == [
        *TABLE[:2],
        "| a | one.onnx | 2 | 22222222 |",
        "| b | one.onnx | 3 | 33333333 |",
        "| b | two.onnx | 4 | 33333333 |",
    ]


def test_a_table_is_as_old_as_its_oldest_row():
    assert oldest(TABLE, ["33333333", "22222222", "11111111"]) == "11111111"
    assert oldest(TABLE, ["11111111", "22222222"]) == "22222222"


def test_files_of_one_name_have_as_much_of_their_paths_as_tells_them_apart():
    files = [Path("p/small/det/det.onnx"), Path("p/tiny/det/det.onnx"), Path("p/cls.onnx")]
    assert [shortest_name(file, files) for file in files] == ["small/det/det.onnx", "tiny/det/det.onnx", "cls.onnx"]
