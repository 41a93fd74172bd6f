"""Does an environment keep its contract? Everything that training and evaluation rely on, tried out."""
