"""Scoring models: observation in, scores h(agent, task) and g(task, task) out."""
