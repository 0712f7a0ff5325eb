"""The report: what a run found and what it cost, as data first and then as one page of HTML."""
