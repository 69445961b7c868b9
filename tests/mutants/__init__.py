"""Small faults put into the code, one by one: do the tests notice? `make mutants` runs them."""
