"""Language models that are prompted rather than trained: conversations, endpoints, ReAct and Reflexion."""
