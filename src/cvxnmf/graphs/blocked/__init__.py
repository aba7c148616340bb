"""Clusters of graphs in blocks of rows: rounds of moves, levels, and the shortest description."""
