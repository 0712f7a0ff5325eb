"""The paper's figures and tables again: configs, a resumable runner, pictures and a page.

`figures.py` has one small config per figure and table. Each names cells (`cell.py`: one method on
one data set with one seed); `measure.py` runs a cell with the library, `run.py` runs all that are
not yet in the store (`store.py`), and the rest turns what is stored into pictures (`plots.py`),
tables (`tables.py`), findings (`findings.py`) and the page (`page.py`).
"""
