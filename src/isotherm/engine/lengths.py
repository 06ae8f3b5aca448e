"""How many iterations the loops of the compiled program take at a time."""

# Numbers of noise drawn at a time: enough to hide the cost of drawing, few enough to stay in a core's cache.
_CHUNK_NUMBERS = 65_536
_LONGEST_CHUNK = 4_096
_SHORTEST_CHUNK = 16
# Bytes of noise of the chains in an inner loop.
_GROUP_BYTES = 512


def chunk_length(num_lanes: int, size: int) -> int:
    """How many iterations draw their noise at a time, for `size` numbers per chain and iteration."""
    length = min(_CHUNK_NUMBERS // max(num_lanes * size, 1), _LONGEST_CHUNK)
    return length if length >= _SHORTEST_CHUNK else 1


def group_length(chunk: int, num_lanes: int, size: int) -> int:
    """How many iterations an inner loop takes: the largest power of two that divides the chunk and whose noise stays tiny.

    XLA compiles a loop on a CPU into one function only if it touches little memory; otherwise every operation of its body is
    dispatched on its own, which for a few numbers costs more than the arithmetic.
    """
    length = chunk & -chunk
    while length > 1 and 4 * length * num_lanes * size > _GROUP_BYTES:
        length //= 2
    return length if length > 1 else chunk
