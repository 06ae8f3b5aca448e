"""Remarks on the numbers of experiments."""

REMARKS = {
    "mixture-csgld": (
        "The thesis does not give the lowest edge of the bins; here it is an energy of 2. CSGLD has this library's field, whose"
        " fixed point is the masses of the bins. Rows of the theta^zeta field have the thesis' field and this library's "
        "weights; only the last row has the thesis' weights. The bounds of the multiplier are the author's."
    ),
    "rugged-paths": (
        "The thesis gives no domain for the first surface, whose energy has no minimum without one, and no shift of its "
        "energies. Here the box is that of its figure, and the lowest energy is 0. For Griewank's function it gives settings "
        "but no results."
    ),
    "cifar-deo": (
        "30 epochs of pretraining instead of 300, then 115 of the thesis' 500, one seed, on one H200 that both runs shared with"
        " others. Window and target rate are the thesis'; the window of 604 iterations swaps each pair in 17 or 18 of its 18 "
        "turns. Pairs that accept at the run's rates, independently of their neighbors, make 5.4 round trips with that window "
        "and 1.6 with a window of one, from the same start and in as many iterations (simulated; single runs scatter by 1.4 and"
        " 1.1). The first trip with the window cannot end before half of the run. `isotherm reproduce cifar-deo --scale 0.1 "
        '--seeds 1 --methods "DEO-mSGD x P10, longer" "DEO*-mSGD x P10, longer"` reproduces it.'
    ),
    "cifar-icsghmc": (
        "A fifth of the thesis' 500 epochs, two seeds, on one H200 that up to four methods shared, so images per second are not"
        " comparable. An error from two seeds has one degree of freedom; these results are indications. reSGHMC as the thesis "
        "describes it, with control variates, is behind M-SGD in both seeds. Pairs are tried every second iteration, from the "
        "share 0.8 of the epochs on, between temperatures of ratio 3, and rest for an epoch after a swap. Without noise, energy"
        " differences rarely exceed the buffer of 4000 (3 and 6 swaps), so the average contains 20 networks of two or three "
        "replicas. With plain energies the noise exceeds the buffer 51 and 52 times, close to the limit set by the rests, and "
        "the average contains networks of all four. M-SGD averages 8 networks of its last two epochs, as in the author's code, "
        "ICSGHMC and SGHMC 80 of their last twenty; with 80 networks (from 0.8) M-SGD has the highest accuracy of the table, in"
        " one seed. Four variants of exchange were compared on 5,000 held-out images, at a tenth of the epochs and with one "
        "seed (held-out.json): an average over all rungs has 67.3 %, with plain energies 67.2 %, with a temperature ratio of "
        "1.5 as well 67.0 %, and the target rung with a buffer of 0 66.7 %. These differences are within the error of 5,000 "
        "images, and other scores prefer other variants. The target rung with a buffer of 4000 was not compared. The first "
        "variant was then run like the other methods. SGHMC, with 80 networks of four replicas and no swaps, has 72.4 %, so its"
        " 72.35 % need no swaps as an explanation. Before theta is learned, energies above the partition are in the top bin."
    ),
    "cifar-icsghmc-cifar10": (
        "A tenth of the thesis' epochs, one seed; the H200 was shared by up to six runs, so images per second are not "
        "comparable. A single seed decides no comparison. VR-reSGHMC never swapped: without noise no energy difference exceeds "
        "the buffer of 4000, and its 10 networks are from one replica. With plain energies the noise exceeded it 6 times. The "
        "one chain of cycSGHMC is four times as long. `isotherm reproduce cifar-icsghmc --scale 0.1 --seeds 1 --data-set "
        'cifar10 --methods "M-SGD x P4" "SGHMC x P4" "reSGHMC x P4, plain energies" "VR-reSGHMC x P4" "ICSGHMC x P4" "cycSGHMC '
        'x T4"` reproduces it.'
    ),
    "cifar-icsghmc-full": (
        "All 500 epochs of the thesis, one seed, on one H200 that both runs shared with two others. The two rows of M-SGD are "
        "one run, averaged over its last 10 epochs, as in the author's code, and over its last 100, like ICSGHMC. Its seconds "
        "are counted twice in the sum. A single seed decides no comparison: at a fifth of the epochs two seeds of one method "
        'differ by up to 0.6 per cent. `isotherm reproduce cifar-icsghmc --scale 1 --seeds 1 --methods "M-SGD x P4" "M-SGD x '
        'P4, from 0.8" "ICSGHMC x P4"` reproduces it.'
    ),
    "cifar-hmc-reference": (
        "A fraction 0.15 of the epochs, one seed, on one H200 that up to seven runs shared. Theirs (cs-giung/bdlx): trained on "
        "40,960 images and scored on 9,040 others of the training set, 500,000 updates per chain by the defaults of its "
        "scripts, with noise throughout the cycle. Ours: 50,000 images and the test set, 14,700 updates of each of four chains,"
        " 58,800 of the cyclical one. Their row of M-SGD is for single networks; ours have 42 %. Step sizes start at those of "
        "the other experiments, fall by half twice instead of to a fifth, and were not tuned for this network, which has no "
        "augmentation and a prior of variance 1/5. By averages of logits M-SGD is first, 54.9 %. At a temperature ratio of 1.02"
        " the hotter rung has the lower energy in half of the tries, and with a rest of an epoch after each, at most 45 swaps "
        "are possible. These rungs have practically one temperature. Wider ladders were not tried. Exchange averages 15 "
        "networks, the others 60, M-SGD 8. Cycles explore without noise, and without augmentation their networks probably "
        "memorize the training images (a single network has an NLL of 3.4, one of a chain with noise 2.1; training losses were "
        "not kept): the NLL of the average is best after four of 20 cycles, 2.02, and ends at 2.08. `isotherm reproduce "
        "cifar-hmc-reference --scale 0.15 --seeds 1` reproduces it."
    ),
    "cifar-resghmc": (
        "A tenth of the thesis' 500 epochs, all schedules shortened, eight seeds. `isotherm reproduce cifar-resghmc --scale 0.1"
        " --seeds 8 --methods M-SGD SGHMC reSGHMC` reproduces it. Up to five runs shared the GPU: speeds are not comparable. F "
        "grows from 3e5 to 6e9 as the temperature falls. The remaining correction is about 1 per cent of the loss, a third of "
        "the standard deviation of the energy difference in swaps. The rungs differ in the learning rate, 0.1 and 0.15; the "
        "temperature, 0.01 and falling, has no effect. A swap scales momenta to their new rung, which the thesis does not do. "
        "Both chains start from the same weights, so the first measured variance is zero, and swaps of epoch 1 are not "
        "corrected. The author's code allows none before epoch 10. The replica of each network was recorded in seeds 4 to 7."
    ),
    "cifar-resghmc-cifar10": (
        "A tenth of the thesis' 500 epochs, all schedules shortened, six seeds. `isotherm reproduce cifar-resghmc --scale 0.1 "
        "--seeds 6 --data-set cifar10 --methods M-SGD SGHMC reSGHMC` reproduces it. Up to 14 runs shared the GPU: speeds are "
        "not comparable."
    ),
    "cifar-vr-cifar10": (
        "A tenth of the thesis' 500 and 1,000 epochs, all schedules shortened, six seeds. `isotherm reproduce "
        "cifar-vr --scale 0.1 --seeds 6 --data-set cifar10` reproduces it. M-SGD is the run of cifar-resghmc-cifar10, averaged "
        "from epoch 30 on instead of 20; its seconds are those of that run. Up to 14 runs shared the GPU: speeds are not "
        "comparable."
    ),
    "ood-svhn": (
        "The networks of cifar-vr-cifar10: a tenth of the thesis' epochs, six seeds. `isotherm reproduce ood-svhn --scale 0.1 "
        "--seeds 6 --methods M-SGD SGHMC reSGHMC VR-reSGHMC cycSGHMC cVR-reSGHMC` reproduces it. cVR-reSGHMC averages 16 "
        "networks, cycSGHMC 30 and the others 20. SVHN's images were derived from those of full numbers."
    ),
    "cifar-resghmc-cost": (
        "A tenth of the thesis' 500 epochs, all schedules shortened, five seeds. `isotherm reproduce cifar-resghmc --scale 0.1 "
        '--seeds 5 --methods SGHMC reSGHMC "two chains without swaps" "SGHMC, twice as long"` reproduces it. Up to five runs '
        "shared the GPU: speeds are not comparable. The two chains without swaps have the learning rates of reSGHMC, 0.1 and "
        "0.15, and the same start; the networks of both are averaged. The schedules of the chain of twice the length are "
        "stretched to end at the same step size and temperature. Averages of every second epoch contain 30 networks, as many as"
        " reSGHMC's."
    ),
    "cifar-resghmc-factors": (
        "A tenth of the thesis' 500 epochs, all schedules shortened, five seeds. `isotherm reproduce cifar-resghmc --scale 0.1 "
        '--seeds 5 --methods SGHMC reSGHMC "reSGHMC, F = 1e+04" "reSGHMC, F = 1e+05" "reSGHMC, F = 1e+06" "reSGHMC, F = 1e+07"`'
        " reproduces it. Up to five runs shared the GPU: speeds are not comparable. Factors are initial values, which grow as "
        "the temperature falls; reSGHMC has 3e5. At F = 1e4 no swap follows epoch 3. Most swaps are probably in epoch 1, which "
        "is not corrected: both chains start from the same weights, and the first measured variance is zero."
    ),
    "cifar-resghmc-fixed": (
        "A tenth of the thesis' 500 epochs, all schedules shortened, three seeds. `isotherm reproduce cifar-resghmc --scale 0.1"
        ' --seeds 3 --methods SGHMC reSGHMC "reSGHMC, fixed temperatures"` reproduces it. Up to five runs shared the GPU: '
        "speeds are not comparable. The correction is for F = 1; swaps use F = 3e5. Its ratio to the loss is above 1,000 in "
        "nine of ten epochs, and 4,200 to 4,700 at most. It is below 1,000 in the first five or six, while the tracked variance"
        " grows from zero."
    ),
    "cifar-resghmc-swaps": (
        "A tenth of the thesis' 500 epochs, all schedules shortened, three seeds. `isotherm reproduce cifar-resghmc --scale 0.1"
        ' --seeds 3 --methods SGHMC "reSGHMC, F = 1e+04" "reSGHMC, at most five swaps" reSGHMC` reproduces it. Up to five runs '
        "shared the GPU: speeds are not comparable. A pair rests for ten epochs after a swap, so the five are in epochs 1, 11, "
        "21, 31 and 41; the first swaps two networks that are still similar. The rest is counted in epochs, so runs of other "
        "lengths allow other numbers of swaps."
    ),
    "cifar-vr-long": (
        "A tenth of the thesis' 500 and 1,000 epochs, all schedules shortened, three seeds. `isotherm reproduce cifar-vr "
        "--scale 0.1 --seeds 3 --methods reSGHMC VR-reSGHMC cycSGHMC cVR-reSGHMC` reproduces it. Every method computes "
        "gradients on five million images; control variates add about 7.5 million forward passes, which are not counted. The "
        "first quarter is of each method's own measurements, epochs 1 to 12 and 3 to 14. Four experiments shared one GPU, so "
        "speeds are not comparable."
    ),
    "cifar-csghmc": (
        "A twentieth of the thesis' 1,000 epochs, all schedules shortened, three seeds. `isotherm reproduce cifar-csghmc "
        "--scale 0.05 --seeds 3` reproduces it. Lowest and highest multipliers are means over seeds of the extremes. Four "
        "experiments shared one GPU, so speeds are not comparable."
    ),
    "cifar-vr": (
        "Twenty epochs instead of 500, all schedules shortened, one seed: this run measures the variance of swap energies, not "
        "accuracies. Control variates that are refreshed every two epochs have no effect while networks move this fast. The "
        "first quarter compares control variates with one another, but not with plain energies: both chains start at the same "
        "weights, where the plain variance is zero. Temperatures fall during the run, and corrections grow with them: their "
        "median over the run cannot be compared with the thesis' fixed temperatures, which were not run."
    ),
    "mixture-vr": (
        "The thesis gives neither the batch size, the number of iterations nor the start of the hot chain. Here F divides half "
        "of the variance of the difference; the thesis prints the whole variance, so its F = 100 is F = 50 here. SGLD starts at"
        " 30, a distance of five from its mode, and moves towards it for most of the run. Its sd within modes is the distance "
        "from the mode over the second half, and so measures this drift. Exchange starts in the modes."
    ),
    "round-trips": "Simulations and the thesis' formulas.",
    "interaction": "Simulations and the thesis' formula.",
    "modes25-deo": (
        "Round trips are counted as in the thesis; strict ones go from end to end. Settings in parentheses are step sizes, for "
        "cycles the largest. They are chosen by the total variation over the inner and outer half of every mode (shape "
        "variation). Masses of modes alone prefer steps so long that modes are no longer separate (SGLD with 0.02, DEO* with "
        "0.04)."
    ),
    "modes9": (
        "Settings in parentheses are factors on the thesis' step sizes, chosen by the shape variation, over the inner and the "
        "outer half of every mode."
    ),
    "modes25-icsgld": (
        "Settings in parentheses are step sizes, for exchange a factor on those of its rungs. They are chosen by the shape "
        "variation, over the inner and the outer half of every mode. CSGLD and ICSGLD start from the theta of a run of SGLD, as"
        " in the author's code. That run takes 20,000 gradients beyond the budget of 400,000. All runs share this theta, so "
        "their spread does not include its error."
    ),
    "energy-cdf": (
        "The gain is the thesis'; it does not give the step size. The fixed point of the recursion with these bins is computed "
        "by quadrature. For zeta = 1 it is the distribution function; for other powers it is closer with finer bins."
    ),
    "ten-functions": (
        "Runs that did not reach the minimum within 100,000 iterations count as 100,000, so their means are lower bounds. Two "
        "settings were chosen to match the thesis' numbers. On Rastrigin's and Ackley's functions SGLD's low temperature is "
        "that of AWSGLD, and its high one ten times that; in the thesis' text the high one is AWSGLD's. AWSGLD's displacement, "
        "which the thesis does not limit, is limited to 0.3 widths of the domain, on Levy's function to 1."
    ),
    "uci": (
        "The target on energy is the heating load; the thesis' is probably the cooling load, which is harder. With the thesis' "
        "settings the multiplier moves between 0.97 and 1.07 on energy, and between -0.4 and 3.0 on wine. Wine with SGHMC and "
        "CSGHMC is not reproduced: in 3 of 10 splits weights drift so far under a nearly flat prior that a few test wines are "
        "badly predicted. A prior of 1e-4 per example removes most of this. With the settings from this library's pilot runs "
        "contours have no effect here."
    ),
    "mnist-icsgld": (
        "The author's weights, (theta / max theta)^zeta, use all hundred networks in one run of five, and about one in the "
        "other four. This is one reason why the average is no better: it is one network of a hotter chain."
    ),
    "mnist-awsgld": (
        "AWSGLD moves between high and low losses and has the lowest loss and the highest accuracy. The largest multipliers of "
        "the runs are 733 to 906 (the thesis: up to 1000); the initial ramp of theta alone gives 694 at losses of 10 to 20, "
        "with the zeta that we chose. Multipliers are never below 1, so AWSGLD is also a colder chain with longer steps, and "
        "only it has a limit on displacements. SGD, or a colder SGLD with such a limit, was not compared, and might have as low"
        " a loss. The thesis' uncertainty of single models on the digits 5 to 9 is not reproduced: they are the most confident."
        " Over methods entropy mostly rises with the loss; but cycSGLD, at half of the loss of high-tau SGLD, is less "
        "confident. Averages are not weighted, and so are not posterior averages. Step sizes were chosen by the training loss, "
        "AWSGLD's zeta by its range, in runs of 200 and 300 epochs on other seeds."
    ),
}
