"""What a study will give, before any data is touched: noise, errors, message sizes, run time."""
