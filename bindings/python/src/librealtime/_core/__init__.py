"""What all objects of the binding share; it knows none of them."""
