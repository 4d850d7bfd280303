"""Past flights outside the own database."""
