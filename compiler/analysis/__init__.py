"""IR is judged here: the graph, its rules, and admission."""
