"""Aligning a judge with people: candidates written from some labels, chosen by others, and tested by yet others."""
