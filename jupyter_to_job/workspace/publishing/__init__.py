"""Publishing: results and artifacts appear in the workspace, whole or not at all."""
