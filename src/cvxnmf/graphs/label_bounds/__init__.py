"""Upper bounds on the quality of all partitions of a graph: linear and semidefinite programs, branching, routing."""
