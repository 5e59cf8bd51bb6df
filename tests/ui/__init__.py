"""The button in a real browser: JupyterLab with our wheel, the local backend, a real kernel."""
