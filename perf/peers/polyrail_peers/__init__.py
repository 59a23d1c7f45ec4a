"""Runs peers on the same rails in turn and shows what each reaches."""
