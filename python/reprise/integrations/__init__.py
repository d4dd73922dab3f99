"""Reprise in the training loops of other libraries: each a few lines, each optional."""
