"""TIR as object files and one library a model."""
