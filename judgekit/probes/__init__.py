"""How well a judge withstands what a recording says to it: conversations, clean and attacked, and what came of them."""
