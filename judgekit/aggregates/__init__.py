"""How the scores of a run become its numbers: pure functions of the scored ones."""
