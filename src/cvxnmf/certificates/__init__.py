"""The trusted kernel: certificates and their check, with numpy and scipy and no other module of this package.

A certificate states a problem, a value and a bound, and holds a witness. Its check believes only the data and the witness: it
computes the bound anew, less all that rounding may have added, and compares it with what is stated. To trust a bound, read this
room and docs/mathematics.md, and no solver. A module begins with the theorem that it checks. In this order, and of the three
scopes only the one that matters to you:

Shared by all proofs
    statement            what a bound is about, the kinds of bounds, and what a check hands back (`Proof`)
    certificate          the certificate, its check (start at `Certificate.check`) and its file
    rounding             bounds less their rounding errors; matrices proved positive semidefinite, and eigenvalues bounded
    losses               the losses and their Fenchel conjugates
    data                 data and witnesses turned into arrays of numbers, or refused
    row_chunks, whole_files    data read in row chunks; files that take their place when they are complete

Scope "model": no X in the stated cone has a lower objective
    symmetric            ``exp(X)`` of a graph: a dual point, by Fenchel's inequality
    matrix_free          the same for large graphs, whose dual point is given by factors
    elimination          what makes that rigorous: a sparse matrix plus a model of low rank is positive semidefinite
    krylov               what makes that probable: leading eigenvalues from random blocks
    grouped              nodes that share positions: the bound of their sums, and a constant
    row_pieces           these sums of a graph whose rows come in pieces
    nonsymmetric         ``exp(X)`` of a table, with the nuclear norm or the paper's penalty
    doubly_nonnegative   projection on matrices that are positive semidefinite and nonnegative

Scope "rank-k": no nonnegative factorisation of this rank has a lower loss
    rank                 the statement, and which theorem is for which loss
    squared_error        singular values of ``A + N``
    leading              the same for large data, probable (`krylov`)
    divergence           Kullback-Leibler: independence, Ky Fan, subspace and Pinsker
    streamed_divergence  Ky Fan for rows in chunks, the dual point given by a rule
    sparse_divergence    Ky Fan for large sparse data, probable (`krylov`)
    rectangles           missing entries: the bounds of fully observed rectangles, summed
    weighted             entries with weights, by the same rectangles

Scope "labels": no partition of the nodes has a higher quality
    labels               the statement, and how witnesses are read
    pair_objectives      modularity and other qualities as sums of whole numbers over pairs
    label_cuts           inequalities that all partitions satisfy, with multipliers, by cases
    label_semidefinite   the same with a positive semidefinite matrix
    label_routing        demands routed along shortest paths
    label_currents       demands sent as electrical currents, for graphs of any size
"""

from cvxnmf.certificates.certificate import NEGLIGIBLE, Certificate, parse_statement, relative_gap
from cvxnmf.certificates.doubly_nonnegative import DoublyNonnegativeStatement
from cvxnmf.certificates.grouped import GroupedStatement
from cvxnmf.certificates.labels import LabelStatement
from cvxnmf.certificates.nonsymmetric import NonsymmetricStatement
from cvxnmf.certificates.rank import RankStatement
from cvxnmf.certificates.statement import CertificateError, Proof, Statement
from cvxnmf.certificates.symmetric import SymmetricStatement, metric_digest
from cvxnmf.certificates.weighted import WeightedRankStatement, weights_digest

__all__ = [
    "NEGLIGIBLE",
    "Certificate",
    "CertificateError",
    "DoublyNonnegativeStatement",
    "GroupedStatement",
    "LabelStatement",
    "NonsymmetricStatement",
    "Proof",
    "RankStatement",
    "Statement",
    "SymmetricStatement",
    "WeightedRankStatement",
    "metric_digest",
    "parse_statement",
    "relative_gap",
    "weights_digest",
]
