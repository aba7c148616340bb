"""Upper bounds on the quality of all partitions of a graph; the theorems they rest on are in `certificates`.

verify              `verify_labels`, and which bounds are sought in which order (`LabelBounds.run`)
given_labels        labels as users give them
budget              work that is counted, and what a bound hands to the trusted kernel
contraction         nodes that every optimum has together are joined first
branching           linear program with cuts (`linear_program`, `separation`), and branching on pairs of nodes
complementary       cuts and a matrix without slack at a partition, weighted until they prove it optimal
semidefinite        doubly nonnegative program with cuts, by alternating directions (`negative_part`)
routing, currents   demands along edges, for large sparse graphs
packing             conflicted cycles, for large signed graphs
uniqueness          whether an optimum is the only one
"""
