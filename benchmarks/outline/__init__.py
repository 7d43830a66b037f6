"""How many of the definitions that universal-ctags finds the outline has, by language."""
