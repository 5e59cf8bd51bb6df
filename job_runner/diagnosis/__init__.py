"""Why a run ended, in words and exit codes."""
