"""Graphs: adapters, the planted block graphs, quality, and partitions with a proof."""
