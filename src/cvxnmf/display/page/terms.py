"""What the words on a page mean, for whoever points at them."""

TERMS = {
    "modularity": "The share of edges inside clusters, less what it would be if edges fell at random with the same degrees. "
    "0 is no better than chance; 1 is out of reach.",
    "performance": "The share of pairs of nodes that are right: joined and in one cluster, or not joined and in different ones.",
    "without diagonal": "The same, without the pairs of a node with itself.",
    "value": "What the method made as small as it could: the loss of the fit, penalties included.",
    "proved bound": "No other answer of this kind can be better than this number. Anybody can check it.",
    "gap": "Value and bound apart: what could still be gained, at most.",
    "relative gap": "The gap in units of the value: the share that could still be gained, at most.",
    "rigorous": "Whether the bound holds including all rounding errors of the computer.",
    "share": "How much of a node belongs to its cluster, by the model behind the clusters.",
    "degree": "The number of neighbours.",
    "strength": "The sum of the weights of a node's edges.",
    "nats": "Units of information, 1.44 bits each: by how much a description of the graph is shorter or longer.",
    "noise edge": "The largest eigenvalue that noise alone would reach. What stands above it is structure.",
    "components": "Parts whose nonnegative mixtures make up the data.",
}
