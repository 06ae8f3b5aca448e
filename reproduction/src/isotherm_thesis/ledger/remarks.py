"""What a reader of an experiment's numbers should know."""

REMARKS = {
    "mixture-csgld": (
        "The thesis does not say where the bins begin; here at an energy of 2. CSGLD has this library's field, whose fixed point "
        "is the masses of the bins; the rows of the theta^zeta field are the thesis', with this library's weights but for the "
        "last row, which has the thesis'. Bounds of the multiplier are the author's."
    ),
    "rugged-paths": (
        "The thesis gives no domain for the first surface, without which its energy has no minimum, and no shift of its energies "
        "into the bins. Here the box is that of its figure, and the lowest energy is 0. For Griewank's function it gives settings "
        "and no results."
    ),
    "cifar-deo": (
        "30 epochs of pretraining instead of 300, then 115 of the thesis' 500, one seed, on one H200 that both runs shared with"
        " others. Window and target rate are the thesis'; the window of 604 iterations swaps each pair in 17 or 18 of its 18 "
        "turns. Pairs that accept at the run's rates, whatever their neighbors did, make 5.4 round trips with that window and "
        "1.6 with a window of one, from the same start and in as many iterations (simulated; single runs scatter by 1.4 and "
        "1.1). Half of the run passes before the first trip with the window can end. `isotherm reproduce cifar-deo --scale 0.1 "
        '--seeds 1 --methods "DEO-mSGD x P10, longer" "DEO*-mSGD x P10, longer"` makes it.'
    ),
    "cifar-icsghmc": (
        "A fifth of the thesis' 500 epochs, two seeds, on one H200 that up to four methods shared, so that images per second do"
        " not compare methods. An error from two seeds has one degree of freedom: these are indications. reSGHMC as the thesis "
        "describes it, with control variates, is behind M-SGD in both seeds. Pairs are tried every second iteration, from the "
        "share 0.8 of the epochs on, between temperatures of ratio 3, and rest for an epoch after a swap. The buffer of 4000 is"
        " hardly ever passed once the noise of the energies is gone (3 and 6 swaps), so that the average holds 20 networks of "
        "two or three replicas; with plain energies noise passes the buffer 51 and 52 times, near the most that rests allow, "
        "and the average holds networks of all four. M-SGD averages 8 networks of its last two epochs, as in the author's code,"
        " ICSGHMC and SGHMC 80 of their last twenty; with 80 networks (from 0.8) M-SGD has the highest accuracy of the table, "
        "in one seed. For exchange four forms were tried on 5,000 held-out images, at a tenth of the epochs and in one seed "
        "(held-out.json): all rungs averaged 67.3 %, also with plain energies 67.2, also with a temperature ratio of 1.5 67.0, "
        "the target rung with a buffer of 0 66.7. That is within the error of 5,000 images, other scores choose others, and the"
        " target rung with a buffer of 4000 was not among them. The first was then run like the others. SGHMC, with 80 networks"
        " of four replicas and no swaps, has 72.4 %, so that swaps are not needed to explain its 72.35. Energies above the "
        "partition before theta is learned count as in the top bin."
    ),
    "cifar-icsghmc-cifar10": (
        "A tenth of the thesis' epochs, one seed; the H200 was shared by up to six runs, so that images per second say nothing "
        "about a method. A single seed decides no comparison. VR-reSGHMC never swapped: without the noise of its energies no "
        "difference passes the buffer of 4000, and its 10 networks are of one replica; with plain energies noise passed it 6 "
        "times. The one chain of cycSGHMC is four times as long. `isotherm reproduce cifar-icsghmc --scale 0.1 --seeds 1 "
        '--data-set cifar10 --methods "M-SGD x P4" "SGHMC x P4" "reSGHMC x P4, plain energies" "VR-reSGHMC x P4" "ICSGHMC x P4"'
        ' "cycSGHMC x T4"` makes it.'
    ),
    "cifar-icsghmc-full": (
        "All 500 epochs of the thesis, one seed, on one H200 that both runs shared with two others. The two rows of M-SGD are "
        "one run, averaged over its last 10 epochs as in the author's code and over its last 100 like ICSGHMC; its seconds "
        "count twice in the sum. A single seed decides no comparison: at a fifth of the epochs two seeds of one method differ "
        'by up to 0.6 per cent. `isotherm reproduce cifar-icsghmc --scale 1 --seeds 1 --methods "M-SGD x P4" "M-SGD x P4, from '
        '0.8" "ICSGHMC x P4"` makes it.'
    ),
    "cifar-hmc-reference": (
        "A fraction 0.15 of the epochs, one seed, on one H200 that up to seven runs shared. Theirs (cs-giung/bdlx): trained on "
        "40,960 images and scored on 9,040 others of the training set, 500,000 updates of a chain by the defaults of its "
        "scripts, with noise throughout the cycle; ours: 50,000 images and the test set, 14,700 updates of each of four chains,"
        " 58,800 of the cyclical one. Their row of M-SGD is of single networks: ours have 42 %. Step sizes start at those of "
        "the other experiments, fall by half twice instead of to a fifth, and were not tuned for this network, which has no "
        "augmentation and a prior of variance 1/5. By averages of logits M-SGD is first, 54.9 %. At a temperature ratio of 1.02"
        " the hotter rung has the lower energy in half of the tries, and 45 swaps are the most that a rest of an epoch allows: "
        "these rungs are practically one temperature. Wider ladders were not tried. Exchange averages 15 networks, the others "
        "60, M-SGD 8. Cycles explore without noise, and without augmentation their networks probably learn the training images "
        "by heart (a single network has an NLL of 3.4, one of a chain with noise 2.1; training losses were not kept): the NLL "
        "of the average is best after four of 20 cycles, 2.02, and ends at 2.08. `isotherm reproduce cifar-hmc-reference "
        "--scale 0.15 --seeds 1` makes it."
    ),
    "cifar-resghmc": (
        "A tenth of the thesis' 500 epochs, all schedules shortened, eight seeds. `isotherm reproduce cifar-resghmc --scale "
        "0.1 --seeds 8 --methods M-SGD SGHMC reSGHMC` makes it. Up to five runs shared the GPU: speeds are not comparable. F "
        "grows from 3e5 to 6e9 as the temperature falls: what is left of the correction is about 1 per cent of the loss, a "
        "third of the standard deviation of the energy difference that swaps read. Rungs are two learning rates, 0.1 and "
        "0.15; the temperature, 0.01 and falling, is of no account. A swap scales momenta to their new rung, which the thesis "
        "does not do. Both chains start from the same weights, so that the first measured variance is zero and swaps of epoch "
        "1 are not corrected; the author's code allows none before epoch 10. Which replica a network came from was recorded "
        "in seeds 4 to 7."
    ),
    "cifar-resghmc-cost": (
        "A tenth of the thesis' 500 epochs, all schedules shortened, five seeds. `isotherm reproduce cifar-resghmc --scale "
        '0.1 --seeds 5 --methods SGHMC reSGHMC "two chains without swaps" "SGHMC, twice as long"` makes it. Up to five runs '
        "shared the GPU: speeds are not comparable. Two chains without swaps are those of reSGHMC, with learning rates of 0.1 "
        "and 0.15 and the same start; the networks of both are averaged. Schedules of the chain that is twice as long are "
        "stretched, so that it ends at the same step size and temperature. Averages of every second epoch hold 30 networks, "
        "as many as reSGHMC's."
    ),
    "cifar-resghmc-factors": (
        "A tenth of the thesis' 500 epochs, all schedules shortened, five seeds. `isotherm reproduce cifar-resghmc --scale "
        '0.1 --seeds 5 --methods SGHMC reSGHMC "reSGHMC, F = 1e+04" "reSGHMC, F = 1e+05" "reSGHMC, F = 1e+06" "reSGHMC, F = '
        '1e+07"` makes it. Up to five runs shared the GPU: speeds are not comparable. Factors are those of the start; all '
        "grow as the temperature falls, and reSGHMC has 3e5. At F = 1e4 no swap follows epoch 3. Most probably come in "
        "epoch 1, which is not corrected: both chains start from the same weights, and the first measured variance is zero."
    ),
    "cifar-resghmc-fixed": (
        "A tenth of the thesis' 500 epochs, all schedules shortened, three seeds. `isotherm reproduce cifar-resghmc --scale "
        '0.1 --seeds 3 --methods SGHMC reSGHMC "reSGHMC, fixed temperatures"` makes it. Up to five runs shared the GPU: '
        "speeds are not comparable. The correction is that of F = 1; swaps use F = 3e5. Its ratio to the loss is above 1,000 "
        "in nine of ten epochs, below in the first five or six, while the tracked variance grows from zero, and 4,200 to "
        "4,700 at most."
    ),
    "cifar-resghmc-swaps": (
        "A tenth of the thesis' 500 epochs, all schedules shortened, three seeds. `isotherm reproduce cifar-resghmc --scale "
        '0.1 --seeds 3 --methods SGHMC "reSGHMC, F = 1e+04" "reSGHMC, at most five swaps" reSGHMC` makes it. Up to five runs '
        "shared the GPU: speeds are not comparable. A pair rests for ten epochs after a swap, so that the five fall into "
        "epochs 1, 11, 21, 31 and 41; the first exchanges two networks that are still alike. The rest is counted in epochs: "
        "at another length it allows another number of swaps."
    ),
    "cifar-vr-long": (
        "A tenth of the thesis' 500 and 1,000 epochs, all schedules shortened, three seeds. `isotherm reproduce cifar-vr --scale "
        "0.1 --seeds 3 --methods reSGHMC VR-reSGHMC cycSGHMC cVR-reSGHMC` makes it. Every method takes gradients on five million "
        "images; control variates add about 7.5 million passes without gradients, which are not counted. The first quarter is "
        "that of each method's own measurements, of epochs 1 to 12 and 3 to 14. Speeds are of four experiments that shared one "
        "GPU, and not comparable."
    ),
    "cifar-csghmc": (
        "A twentieth of the thesis' 1,000 epochs, all schedules shortened, three seeds. `isotherm reproduce cifar-csghmc --scale "
        "0.05 --seeds 3` makes it. Lowest and highest multipliers are means over seeds of the extremes of each. Speeds are of "
        "four experiments that shared one GPU, and not comparable."
    ),
    "cifar-vr": (
        "Twenty epochs instead of 500, all schedules shortened, one seed: for the variance of swap energies, not for "
        "accuracies. Control variates that are refreshed every two epochs are of no use while networks move this fast. The "
        "first quarter compares control variates with one another, but not with plain energies: both chains start at the same "
        "weights, where the plain variance is zero. Temperatures fall during the run, and corrections grow with them: their "
        "median over the run is not that at the thesis' fixed temperatures, which were not run."
    ),
    "mixture-vr": (
        "The thesis gives neither the batch size, the number of iterations nor where the hot chain starts. F is that of a "
        "correction by half of the variance of the difference; the thesis prints the whole, so that its F = 100 is F = 50 here. "
        "SGLD starts at 30, five from its mode, and is on its way there for most of the run: its sd within modes, a distance "
        "from the mode over the second half, is that drift. Exchange starts in the modes."
    ),
    "round-trips": "Simulations beside the thesis' formulas.",
    "interaction": "Simulations beside the thesis' formula.",
    "modes25-deo": (
        "Round trips are those of the thesis' counter; strict ones go from end to end. Settings in parentheses are step sizes, "
        "of cycles the largest. They are chosen by the variation of shapes, which is taken over the inner and the outer half of"
        " every mode: masses of modes forgive steps so long that modes can no longer be told apart (SGLD with 0.02, DEO* with "
        "0.04)."
    ),
    "modes9": (
        "Settings in parentheses are factors on the thesis' step sizes, chosen by the variation of shapes, over the inner and "
        "the outer half of every mode."
    ),
    "modes25-icsgld": (
        "Settings in parentheses are step sizes, of exchange a factor on those of its rungs, chosen by the variation of shapes,"
        " over the inner and the outer half of every mode. CSGLD and ICSGLD start from theta of a run of SGLD, as in the "
        "author's code: 20,000 gradients beyond the budget of 400,000, and one theta for all runs, so that its error is not in "
        "theirs."
    ),
    "energy-cdf": (
        "The thesis' gain; it does not give the step size. The fixed point is that of the recursion with these bins, by "
        "quadrature: for zeta = 1 it is the distribution function, for other powers it comes closer with finer bins."
    ),
    "ten-functions": (
        "Runs that did not arrive within 100,000 iterations count as 100,000, so that their means are lower bounds. Two choices"
        " were made by looking at which numbers come back: SGLD's low temperature on Rastrigin's and Ackley's functions is "
        "AWSGLD's own and its high one ten times that, against the thesis' text, by which the high one would be AWSGLD's; and "
        "AWSGLD's displacement, which the thesis does not limit, is held to 0.3 widths of the domain, on Levy's function to 1."
    ),
    "uci": (
        "Energy's target is the heating load, the thesis' probably the cooling load, which is harder. With the thesis' settings"
        " the multiplier moves between 0.97 and 1.07 on energy, and between -0.4 and 3.0 on wine. Wine by SGHMC and CSGHMC is a"
        " miss: in 3 of 10 splits weights that a nearly flat prior does not hold wander so far that a few test wines are badly "
        "predicted; a prior of 1e-4 per example mends most of it. With the settings that this library finds by itself contours "
        "do nothing here."
    ),
    "mnist-icsgld": (
        "The author's weights, (theta / max theta)^zeta, leave all hundred networks in one run of five and about one in the "
        "other four, which is part of why the average is no better: it is one network of a hotter chain."
    ),
    "mnist-awsgld": (
        "AWSGLD walks between high and low losses and has the lowest loss and the highest accuracy. The largest multipliers of "
        "the runs are 733 to 906 (the thesis: up to 1000); the ramp at which theta starts gives 694 by itself at losses of 10 "
        "to 20, with the zeta that we chose. Multipliers are never below 1, so that it is also a colder chain with longer "
        "steps, and it alone has a limit on displacements: SGD, or a colder SGLD with such a limit, was not compared, and might"
        " have as low a loss. That its single models are the surest of the digits 5 to 9 is a miss. Over methods entropy mostly"
        " rises with the loss; but cycSGLD, at half of the loss of high-tau SGLD, is less sure than it. Averages are not "
        "weighted, and so not those of the posterior. Step sizes were chosen by the training loss, AWSGLD's zeta by its range, "
        "in runs of 200 and 300 epochs on other seeds."
    ),
}
