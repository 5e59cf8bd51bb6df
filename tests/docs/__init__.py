"""The pages hold what the code says: commands, settings, catalog, reasons, links."""
