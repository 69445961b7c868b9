"""Algorithm 2: walks, chains, ends, budgets and reasons."""

import numpy as np
import pytest

from tests.oracles import CountingGame, additive, random_game, value
from weightedshap import curves
from weightedshap._checks import UnknownNameError
from weightedshap.estimators import (
    ESTIMATORS,
    algorithm_2,
    as_estimator,
    authors,
    auto,
    exact,
    permutation,
    stopping,
)
from weightedshap.estimators.permutation import (
    MOST_STEPS,
    ORDERS,
    EndpointValues,
    _plan_calls,
    walk,
    walk_per_feature,
)
from weightedshap.estimators.stopping import (
    Rule,
    evaluations,
    gelman_rubin,
    seconds,
    standard_error,
)
from weightedshap.games.adapters import FunctionGame
from weightedshap.games.user import check_game

D = 6
ENDS = 2 * D + 2
BLOCK = D * (D - 3)  # evaluations of the ends, and of one drawn order with its cyclic shifts


def sample(budget=ENDS + 10 * BLOCK, **choices):
    return permutation(random_game(D), evaluations=budget, **choices)


def test_cyclic_shifts_visit_every_cell_equally_often():
    inner = sample().counts[1:-1]
    assert (inner == 10).all()


def test_one_block_visits_every_cell_once():
    table = sample(ENDS + BLOCK)
    assert (table.counts[1:-1] == 1).all()
    assert table.evaluations == ENDS + BLOCK


def test_independent_orders_visit_one_cell_of_each_size_and_player_per_walk():
    inner = sample(ENDS + 40 * (D - 3), orders="independent").counts[1:-1]
    assert (inner.sum(axis=0) > 0).all()
    assert (inner.sum(axis=1) == 40).all()
    assert inner.min() != inner.max()


def test_cells_that_independent_orders_miss_are_nan():
    table = sample(ENDS + (D - 3), orders="independent")
    np.testing.assert_array_equal(np.isnan(table.mean), table.counts == 0)
    assert not table.visited


def test_a_walk_steps_from_nothing_to_all():
    game = random_game(D)
    orders = np.array([[3, 1, 0, 5, 2, 4], [0, 1, 2, 3, 4, 5]])
    steps = walk(check_game(game), EndpointValues.from_game(check_game(game)), orders)
    known = [order[:k] for order in orders for k in range(D + 1)]
    values = game(np.array([np.isin(np.arange(D), players) for players in known])).reshape(2, D + 1)
    np.testing.assert_allclose(steps, np.diff(values, axis=1), atol=1e-14)


def test_the_ends_are_evaluated_once_and_shared_by_all_walks():
    game = CountingGame(random_game(D))
    permutation(game, evaluations=ENDS + 5 * BLOCK, rng=0)
    sizes = np.array(game.asked).sum(axis=1)
    assert np.isin(sizes, [0, 1, D - 1, D]).sum() == ENDS


@pytest.mark.parametrize("d", [1, 2, 3])
def test_few_players_are_enumerated(d):
    table = permutation(random_game(d), rng=0)
    assert table.exact
    np.testing.assert_array_equal(table.mean, exact(random_game(d)).mean)


@pytest.mark.parametrize(("d", "least"), [(1, 2), (2, 4), (3, 8), (4, 14), (D, ENDS + BLOCK)])
def test_the_least_budget_named_is_the_least_that_works(d, least):
    with pytest.raises(ValueError, match=f"at d = {d} permutation sampling needs at least {least}"):
        permutation(random_game(d), evaluations=least - 1)
    game = CountingGame(random_game(d))
    assert permutation(game, evaluations=least).visited
    assert len(game.asked) == least


@pytest.mark.parametrize("budget", [ENDS + BLOCK, ENDS + 2 * BLOCK - 1, 100, 500])
@pytest.mark.parametrize("orders", ["cyclic", "independent"])
def test_a_budget_is_used_as_far_as_whole_draws_go(budget, orders):
    cost = BLOCK if orders == "cyclic" else D - 3
    game = CountingGame(random_game(D))
    permutation(game, evaluations=budget, orders=orders)
    assert budget - cost < len(game.asked) <= budget


def test_a_budget_in_the_stopping_rule_is_as_hard():
    game = CountingGame(random_game(D))
    permutation(game, stop=standard_error(1e-9) | evaluations(100))
    assert len(game.asked) <= 100


def test_the_smaller_of_two_budgets_counts():
    game = CountingGame(random_game(D))
    permutation(game, stop=evaluations(500), evaluations=100)
    assert len(game.asked) <= 100


def test_a_rule_may_stop_before_the_budget():
    table = sample(10_000, stop=standard_error(0.2))
    assert table.evaluations < 10_000
    assert "standard error" in table.stopped


def test_the_reason_tells_of_the_budget():
    assert sample(100).stopped == "budget of 100 evaluations used (86; one more draw costs 18)"
    assert sample(ENDS + BLOCK).stopped == "budget of 32 evaluations used"


def test_a_users_own_rule_is_asked_and_its_reason_kept():
    table = permutation(
        random_game(D), stop=lambda progress: "tea time" if progress.evaluations > 50 else None
    )
    assert table.stopped == "tea time"


def test_without_a_rule_sampling_stops_at_a_small_standard_error():
    table = permutation(additive(np.arange(8.0)).game)
    assert table.stopped == "largest standard error is 0.0000 of the range of φ, at most 0.01"


def test_the_rule_says_how_many_chains_there_are():
    table = permutation(random_game(D), stop=gelman_rubin(1.5, chains=4), rng=0)
    assert len(table.chains.mean) == 4
    assert "in 4 chains" in table.stopped


def test_chains_can_be_asked_for():
    assert len(sample(chains=3).chains.mean) == 3


def test_a_budget_that_does_not_go_round_is_shared_by_the_least_drawn_chains():
    per_chain = sample(ENDS + 13 * BLOCK).chains.counts[:, 2, 2]
    assert sorted(per_chain) == [1] * 7 + [2] * 3


@pytest.mark.parametrize(("orders", "budget"), [("cyclic", 400), ("independent", 1_600)])
def test_standard_errors_of_phi_tell_the_true_spread(orders, budget):
    game = random_game(5)
    w = np.full(5, 0.2)
    truth = w @ exact(game).mean
    tables = [permutation(game, evaluations=budget, rng=seed, orders=orders) for seed in range(120)]
    errors = np.array([w @ table.mean - truth for table in tables])
    claimed = np.array([table.standard_error_of(w) for table in tables])
    ratio = np.sqrt((errors**2).mean(axis=0) / (claimed**2).mean(axis=0))
    assert (ratio > 0.75).all()
    assert (ratio < 1.25).all()


def test_sampling_has_no_bias():
    game = random_game(5)
    tables = [permutation(game, evaluations=100, rng=seed).mean for seed in range(200)]
    error = np.mean(tables, axis=0) - exact(game).mean
    spread = np.std(tables, axis=0, ddof=1) / np.sqrt(200)
    assert (np.abs(error) <= 4 * spread + 1e-12).all()


def test_an_integer_seed_is_a_generator():
    np.testing.assert_array_equal(sample(rng=3).mean, sample(rng=np.random.default_rng(3)).mean)


def test_an_unknown_kind_of_orders_is_refused():
    with pytest.raises(UnknownNameError, match="Did you mean 'cyclic'"):
        sample(orders="cyclc")


@pytest.mark.parametrize("budget", [0, -5, 10.5])
def test_a_budget_is_a_positive_integer(budget):
    with pytest.raises(ValueError, match="`evaluations` must be an integer of at least 1"):
        sample(budget)


def test_a_rule_must_be_a_rule():
    with pytest.raises(TypeError, match="`stop` must be a stopping rule"):
        permutation(random_game(D), stop=0.01)


@pytest.mark.parametrize(
    ("d", "budget", "is_exact"), [(12, None, True), (7, 128, True), (7, 127, False)]
)
def test_auto_enumerates_what_the_budget_allows(d, budget, is_exact):
    assert auto(random_game(d), evaluations=budget, rng=0).exact is is_exact


@pytest.mark.parametrize(
    ("cost", "budget", "picked"),
    [
        ("cheap", None, "permutation"),
        ("cheap", 1_400, "stratified"),
        ("costly", 1_400, "stratified"),
        ("costly", None, "stratified"),
        (None, 1_400, "stratified"),
    ],
)
def test_auto_picks_by_budget_and_by_what_the_game_says_it_costs(cost, budget, picked):
    class Priced:
        d = 14

        def __call__(self, coalitions):
            return coalitions @ np.arange(14.0)

    game = Priced()
    if cost is not None:
        game.cost = cost
    assert auto(game, evaluations=budget, rng=0).stopped.startswith(picked)


def test_auto_samples_beyond_twelve_players():
    table = auto(additive(np.arange(13.0)).game, rng=0)
    assert not table.exact
    assert table.stopped.startswith("stratified: ")
    np.testing.assert_allclose(table.mean, np.tile(np.arange(13.0), (13, 1)), atol=1e-5)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_is_taken_by_name_or_as_a_function(name):
    assert as_estimator(name) == as_estimator(ESTIMATORS[name])
    assert as_estimator(name).function is ESTIMATORS[name]


def test_an_unknown_estimator_is_told_the_nearest():
    with pytest.raises(UnknownNameError, match="Did you mean 'permutation'"):
        as_estimator("permutations")


def test_anything_else_is_no_estimator():
    with pytest.raises(TypeError, match="`estimator` must be a name or a function"):
        as_estimator(3)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_budget_bound_to_an_estimator_is_a_positive_integer(name):
    with pytest.raises(ValueError, match="`evaluations` must be an integer of at least 1"):
        as_estimator(name, 0)


def test_a_budget_is_bound_where_it_is_taken_and_refused_elsewhere():
    mine = lambda game, *, rng: exact(game)
    assert as_estimator(mine).function is mine
    with pytest.raises(ValueError, match="takes no `evaluations`"):
        as_estimator(mine, 100)
    assert as_estimator("permutation", 100)(random_game(D), rng=0).evaluations <= 100


def test_a_rule_without_a_budget_never_ends_before_its_reason():
    looks = []

    def patient(progress):
        looks.append(progress.evaluations)
        return "enough" if len(looks) == 3 else None

    permutation(random_game(D), stop=Rule(patient), rng=0)
    assert looks == [ENDS, ENDS + 10 * BLOCK, ENDS + 20 * BLOCK]


def test_orders_per_feature_visit_every_cell_once_for_twice_the_price():
    game = CountingGame(random_game(D))
    table = permutation(game, evaluations=ENDS + 6 * BLOCK, orders="per_feature", rng=0)
    assert (table.counts[1:-1] == 3).all()
    assert len(game.asked) == ENDS + 6 * BLOCK


def test_orders_per_feature_have_no_bias():
    game = random_game(5)
    tables = [
        permutation(game, evaluations=150, rng=seed, orders="per_feature").mean
        for seed in range(200)
    ]
    error = np.mean(tables, axis=0) - exact(game).mean
    assert (np.abs(error) <= 4 * np.std(tables, axis=0, ddof=1) / np.sqrt(200) + 1e-12).all()


def test_a_walk_of_one_player_steps_over_the_first_others():
    game = random_game(D)
    orders = np.array([[2, 3, 1, 0, 5, 4], [0, 1, 2, 3, 4, 5]])
    steps = walk_per_feature(check_game(game), EndpointValues.from_game(check_game(game)), orders)
    expected = [
        [value(game, [*others[:t], i]) - value(game, others[:t]) for t in range(D)]
        for i, *others in orders.tolist()
    ]
    np.testing.assert_allclose(steps, expected, atol=1e-14)


def test_algorithm_2_as_printed_looks_at_every_cell():
    table = algorithm_2(random_game(4), rng=0)
    assert "over 8 cells in 10 chains" in table.stopped
    assert table.chains.counts.min() == table.chains.counts.max()


def test_the_authors_variant_stops_after_as_many_orders_as_theirs():
    slopes = np.random.default_rng(0).normal(size=90)
    game = FunctionGame(lambda coalitions: np.tanh(coalitions @ slopes / 3), 90)
    table = authors(game, rng=0)
    orders = table.chains.counts[:, :, 0].sum()
    assert orders % 100 == 0
    assert 900 <= orders <= 2_300
    assert "over 90 features in 10 chains" in table.stopped


@pytest.mark.parametrize(("name", "budget"), [("permutation", 5_000), ("stratified", 110)])
def test_what_was_sampled_before_a_game_raised_is_kept(name, budget):
    game = random_game(7)
    calls = []

    def failing(coalitions):
        calls.append(len(coalitions))
        if len(calls) == 6:
            raise OSError("the service is gone")
        return game(coalitions)

    with pytest.raises(OSError, match="the service is gone") as caught:
        ESTIMATORS[name](FunctionGame(failing, 7), evaluations=budget, rng=0)
    table = caught.value.contributions
    assert table.visited
    assert table.stopped == "the game raised OSError: the service is gone"
    assert table.evaluations == sum(calls[:-1])


class Walking:
    """A game with its own `along`, which counts the walks asked for."""

    def __init__(self, game, scale=1.0):
        self.game, self.d, self.scale, self.calls = game, game.d, scale, []

    def __call__(self, coalitions):
        return self.game(coalitions)

    def along(self, orders):
        self.calls.append(len(orders))
        return self.scale * curves.along(self.game, orders)


@pytest.mark.parametrize("orders", ["cyclic", "independent", "per_feature"])
@pytest.mark.parametrize("out", [(), (2,)])
def test_a_game_that_walks_itself_gives_the_same_table(orders, out):
    game = random_game(D, outputs=out)
    tables = [
        permutation(g, evaluations=1_000, orders=orders, rng=0) for g in (game, Walking(game))
    ]
    np.testing.assert_allclose(tables[1].mean, tables[0].mean, atol=1e-12)
    np.testing.assert_array_equal(tables[1].counts, tables[0].counts)
    np.testing.assert_allclose(tables[1].chains.squares, tables[0].chains.squares, atol=1e-12)
    assert tables[1].evaluations == tables[0].evaluations <= 1_000


def test_a_game_that_walks_itself_is_asked_once_where_the_budget_alone_decides():
    game = Walking(random_game(D))
    permutation(game, evaluations=ENDS + 25 * (D - 3), orders="independent", rng=0)
    assert game.calls == [25]


def test_a_walk_with_nan_is_refused():
    with pytest.raises(ValueError, match="NaN or infinite"):
        permutation(Walking(random_game(D), scale=np.nan), evaluations=500, rng=0)


def test_looks_every_so_many_orders_change_nothing_but_the_number_of_looks():
    often = []
    seldom = []

    def noted(looks, every):
        def decide(progress):
            orders = round(progress.chains.counts[:, :, 0].sum())
            looks.append(orders)
            return "enough" if orders == 60 else None

        return Rule(decide, every=every)

    tables = [
        permutation(random_game(D), stop=noted(looks, every), orders="independent", rng=0)
        for looks, every in ((often, 1), (seldom, 30))
    ]
    assert often == [0, 10, 20, 30, 40, 50, 60]
    assert seldom == [0, 30, 60]
    np.testing.assert_allclose(tables[0].mean, tables[1].mean, atol=1e-13)


@pytest.mark.parametrize(
    ("rule", "every"),
    [
        (evaluations(9), 0),
        (evaluations(9) | evaluations(5), 0),
        (evaluations(9) | gelman_rubin(every=100), 100),
        (gelman_rubin(every=40) | gelman_rubin(every=100), 20),
        (gelman_rubin(every=100) & seconds(3), 1),
        (standard_error(0.1) | evaluations(9), 1),
    ],
)
def test_joined_rules_are_asked_as_often_as_one_of_them_needs(rule, every):
    assert rule.every == every


def noisy(scale=0.3, d=12):
    shake = np.random.default_rng(0)
    calm = random_game(d)
    return FunctionGame(
        lambda coalitions: calm(coalitions) + shake.normal(scale=scale, size=len(coalitions)), d
    )


@pytest.mark.parametrize("orders", ["cyclic", "independent", "per_feature"])
def test_a_noisy_game_is_noticed_and_its_exact_cells_get_errors(orders):
    with pytest.warns(UserWarning, match="different values for the same coalition") as seen:
        table = permutation(noisy(), evaluations=20_004, orders=orders, rng=0)
    assert seen[0].filename == __file__
    assert "noisy" in table.stopped
    assert (table.standard_error[[0, -1]] > 0.1).all()
    assert (table.standard_error_of(np.eye(12)[0]) > 0.1).all()


def test_noise_leaves_the_ends_where_they_were_and_cells_without_draws_unknown():
    game = noisy()
    few = {"evaluations": 26 + 12 * 9 + 7, "orders": "independent", "rng": 0}
    ends = []

    def remembering(coalitions):
        values = game(coalitions)
        ends.append(values)
        return values

    with pytest.warns(UserWarning, match="different values"):
        table = permutation(FunctionGame(remembering, 12), **few)
    np.testing.assert_allclose(table.mean[0], ends[0][2:14] - ends[0][0])
    np.testing.assert_array_equal(np.isnan(table.mean), table.counts == 0)
    assert np.isnan(table.mean).any()


def test_the_look_for_noise_is_counted_and_within_the_budget():
    game = CountingGame(random_game(D))
    table = permutation(game, evaluations=100, rng=0)
    assert len(game.asked) == table.evaluations == ENDS + 4 * BLOCK + 6 <= 100


def test_without_room_for_six_evaluations_there_is_no_look_for_noise():
    assert "noisy" not in permutation(noisy(), evaluations=2 * 12 + 2 + 12 * 9 + 5, rng=0).stopped


def test_a_game_that_raises_in_the_look_for_noise_keeps_the_table():
    game = random_game(D)
    asked = []

    def stingy(coalitions):
        asked.extend(coalitions)
        if len(asked) > ENDS + 4 * BLOCK:
            raise OSError("quota used")
        return game(coalitions)

    with pytest.raises(OSError, match="quota used") as caught:
        permutation(FunctionGame(stingy, D), evaluations=100, rng=0)
    assert caught.value.contributions.visited


def test_walks_can_go_on_until_every_cell_is_visited():
    game = additive(np.arange(30.0)).game
    few = permutation(
        game,
        orders="independent",
        stop=lambda progress: "ten" if progress.evaluations > 300 else None,
        rng=0,
    )
    all_of_them = permutation(game, orders="independent", stop=stopping.visited(every=10), rng=0)
    assert not few.visited
    assert all_of_them.visited
    assert all_of_them.stopped == "every cell visited"


@pytest.mark.parametrize("d", [20, 90])
def test_so_many_draws_are_held_and_no_more(d):
    one = ORDERS["cyclic"](d)
    chains = _plan_calls(check_game(random_game(3)), evaluations(10**9), one, 10, 0)
    assert 0 < sum(map(len, chains)) * one.n_orders * 3 <= MOST_STEPS
