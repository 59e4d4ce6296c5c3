"""Reports of several implementations side by side: a row per operator, a column per implementation."""
