"""What an operator accepts and computes: contracts, operators, and what derives from them."""
