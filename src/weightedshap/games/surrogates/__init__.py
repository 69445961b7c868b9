"""Games learned from masked rows: boosted trees, networks, and the judges that correct them."""
