"""What sessions found over weeks: a store that is only added to, trends, and steps in them."""
