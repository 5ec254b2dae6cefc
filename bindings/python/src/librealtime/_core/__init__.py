"""Code that all objects of the binding share; it depends on none of them."""
