"""The names that DESIGN §3 promises are there, and every `__all__` speaks the truth."""

import dataclasses
import importlib
import inspect

import pytest

import weightedshap as ws

MODULES = [
    "",
    ".plots",
    ".games",
    ".estimators",
    ".estimators.stopping",
    ".weights",
    ".utilities",
    ".curves",
]

PROMISED = {
    "": (
        "Explainer explain evaluate Explanation Evaluation Contributions WeightFamily "
        "games estimators weights utilities curves"
    ),
    ".plots": (
        "beeswarm bar waterfall recovery weights weight_vectors sizes stability image "
        "scatter heatmap cohorts decision compare"
    ),
    ".games": "GAMES Baseline Marginal Game FunctionGame from_shap from_shapiq",
    ".estimators": "ESTIMATORS exact permutation stratified stopping algorithm_2 authors",
    ".estimators.stopping": "gelman_rubin standard_error evaluations seconds",
    ".weights": "FAMILIES paper beta beta_grid sizes banzhaf shapley first last wide WeightFamily",
    ".utilities": "UTILITIES aup exclusion masked_inclusion",
    ".curves": "along area recovery_error exclusion_error order_of",
}

CHOICES = (
    "game estimator family utility select evaluations predict groups outputs background_weights"
    " keep_contributions random_state n_jobs progress"
)

RESULT = (
    "values base_values predictions data feature_names output_names contributions shapley weights"
    " weight_labels scores family orders curves reference_curves standard_errors n_evaluations"
    " stopped game_info efficiency_gap endpoint_gaps reweight importance instability to_frame"
    " to_shap to_shapiq save load concatenate equals plot report"
)


def module(suffix):
    return importlib.import_module("weightedshap" + suffix)


@pytest.mark.parametrize("suffix", MODULES)
def test_every_public_name_exists(suffix):
    missing = [name for name in module(suffix).__all__ if not hasattr(module(suffix), name)]
    assert missing == []


@pytest.mark.parametrize("suffix", MODULES)
def test_every_promised_name_is_public(suffix):
    missing = [name for name in PROMISED[suffix].split() if name not in module(suffix).__all__]
    assert missing == []


@pytest.mark.parametrize(
    ("table", "names"),
    [
        (ws.games.GAMES, "marginal baseline"),
        (ws.estimators.ESTIMATORS, "auto exact permutation stratified"),
        (ws.weights.FAMILIES, "paper wide sizes"),
        (ws.utilities.UTILITIES, "aup exclusion masked_inclusion"),
    ],
)
def test_every_promised_name_is_in_its_table(table, names):
    assert set(names.split()) <= set(table)


def test_every_registered_game_is_public_and_has_fit():
    for recipe in ws.games.GAMES.values():
        made = recipe()
        assert type(made).__name__ in ws.games.__all__
        assert callable(made.fit)


def test_the_explainer_takes_every_choice_by_keyword_with_a_default():
    parameters = inspect.signature(ws.Explainer).parameters
    for name in CHOICES.split():
        assert parameters[name].kind is inspect.Parameter.KEYWORD_ONLY
        assert parameters[name].default is not inspect.Parameter.empty


def test_the_explanation_has_every_promised_attribute():
    fields = {field.name for field in dataclasses.fields(ws.Explanation)}
    missing = [
        name for name in RESULT.split() if name not in fields and not hasattr(ws.Explanation, name)
    ]
    assert missing == []


@pytest.mark.parametrize("suffix", MODULES)
def test_every_public_function_and_class_says_what_it_does(suffix):
    objects = {name: getattr(module(suffix), name) for name in module(suffix).__all__}
    spoken = {
        name: thing
        for name, thing in objects.items()
        if inspect.isfunction(thing) or inspect.isclass(thing)
    }
    silent = [name for name, thing in spoken.items() if not inspect.getdoc(thing)]
    assert silent == []
