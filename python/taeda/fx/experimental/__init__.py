"""Parts of graph capture that programs import."""
