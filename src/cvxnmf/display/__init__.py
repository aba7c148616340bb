"""Results in, something to look at out: words, cards, pictures, the page."""
