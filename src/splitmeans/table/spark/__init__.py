"""A party's table in Spark: its own DataFrame, session and workers.

    frame ──freeze──> blocks in the spool ──map──> sums, results by block   (small, to the driver)
                                          └─map──> records ──shuffle by tag──> parts in tag order

`open_spark` has Spark check the rows, put them on the grid and write them once to a folder that the
cluster shares; everything later walks that copy. Rows stay with the workers. The driver adds up
what they return, draws the noise, and reads the parts of the message one after the other. Results
are those of the table in memory, bit for bit.

`pyspark` is an extra and is imported when it is used.
"""

from splitmeans.table.spark.session import start_session
from splitmeans.table.spark.table import SparkTable, open_spark

__all__ = ["SparkTable", "open_spark", "start_session"]
