"""Sizes, column means and letters of the UCI tables, by which a file is recognized where no checksum is known."""

from isotherm_thesis.data.mushrooms import MushroomTable
from isotherm_thesis.data.tables import Table

ENERGY = Table(
    num_rows=768,
    means=(0.764166667, 671.708333, 318.5, 176.604167, 5.25, 3.5, 0.234375, 2.8125, 22.3072005, 24.5877604),
    targets=("targets", "cooling"),
)
CONCRETE = Table(
    num_rows=1030,
    means=(281.167864, 73.8958252, 54.1883495, 181.567282, 6.20466019, 972.918932, 773.580485, 45.6621359, 35.8179612),
)
YACHT = Table(
    num_rows=308,
    means=(-2.38181818, 0.564136364, 4.78863636, 3.93681818, 3.20681818, 0.2875, 10.4953571),
)
WINE = Table(
    num_rows=1599,
    means=(
        *(8.31963727, 0.527820513, 0.27097561, 2.5388055, 0.0874665416, 15.8749218, 46.4677924),
        *(0.996746679, 3.3111132, 0.658148843, 10.4229831, 5.63602251),
    ),
)
MUSHROOM = MushroomTable(
    num_rows=8124,
    num_poisonous=3916,
    letters=(
        *("bcfksx", "fgsy", "bcegnpruwy", "ft", "acflmnpsy", "af", "cw", "bn", "beghknopruwy", "et", "?bcer"),
        *("fksy", "fksy", "bcegnopwy", "bcegnopwy", "p", "nowy", "not", "eflnp", "bhknoruwy", "acnsvy", "dglmpuw"),
    ),
    sums=(
        *(27200, 14848, 36596, 3376, 33672, 7914, 1312, 2512, 39082, 4608, 9016),
        *(12796, 13028, 47252, 47076, 0, 15968, 8688, 18620, 29220, 29604, 12256),
    ),
)
