"""Rules and formats without processes: tables and properties."""
