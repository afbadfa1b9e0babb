"""Blocks: what a message is made of in the formats of providers, which many other formats carry within."""
