"""The paper's convex problems: losses, cones, noise, each problem with its dual point, methods, solve and certify.

symmetric        loss(A, exp(X)) + trace <N, X>             X in a cone
nonsymmetric     loss(A, exp(X)) + 2 trace ||X||_*          X rectangular
sparse           ||A - X||^2 + l1 sum X + trace Tr X        X positive semidefinite and nonnegative
"""
