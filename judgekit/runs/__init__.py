"""Many samples: how they are run, and what comes out."""
