"""ALFWorld's household games: the official ones and generated ones, on an exact engine of our own or the stock one."""
