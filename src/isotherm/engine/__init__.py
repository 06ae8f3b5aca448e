"""The compiled part: the iteration, periodic work, random inputs, programs. No disk, no host state."""
