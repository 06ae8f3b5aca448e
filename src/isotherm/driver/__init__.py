"""The host side of a run: preparing, the loop around compiled blocks, checkpoints, progress."""
