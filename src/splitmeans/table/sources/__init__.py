"""Where a table can be: files, object stores, databases; read batch by batch."""
