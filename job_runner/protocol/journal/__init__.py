"""The journal: records as lines, and what makes a record valid."""
