"""What the commands of tools/dev do. Standard library only."""
