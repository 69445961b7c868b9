"""Files without pickle: archives, frames in them, explanations and explainers."""
