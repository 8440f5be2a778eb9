"""What op classes share: checks of tensors, the list that mixes static and dynamic sizes, words of attributes."""
