"""The HTML page in a real browser: headless Chromium, driven by selenium. Skipped where one of them
is missing."""

from __future__ import annotations

import base64
import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import weightedshap as ws
from tests.oracles import random_game
from tests.plots.examples import classifier, two_games
from tests.report.test_content import D, Evaluation, make_explanation, wide
from weightedshap._format import number
from weightedshap.curves import judge_error_share
from weightedshap.plots import data as reading
from weightedshap.plots import style

EVIL = (
    "<script>document.title='hacked'</script>",
    "</script><img src=x onerror=\"document.title='hacked'\">",
    "<a href='https://example.com'>&lt;b&gt;</a>",
    "שם \u2028 🐘 " + "n" * 200,
    "",
)


@pytest.fixture(scope="module")
def browser():
    webdriver = pytest.importorskip("selenium.webdriver")
    chromium = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    driver = shutil.which("chromedriver")
    if not chromium or not driver:
        pytest.skip("of the report in a browser; to run: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-dev-shm-usage",
        "--window-size=1280,900",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    started.set_script_timeout(90)
    yield started
    started.quit()


@pytest.fixture(scope="module")
def open_page(browser, tmp_path_factory):
    """A function that writes the page of an explanation, opens it from disk and waits until it is
    drawn.

    A page that is open already is loaded again only if it must be fresh.
    """
    folder = tmp_path_factory.mktemp("pages")
    known = {}

    def open_page(name, explanation, evaluation=None, fresh=True):
        if name not in known:
            known[name] = folder / f"{name}.html"
            explanation.report(known[name], evaluation)
        if fresh or browser.current_url != known[name].as_uri():
            browser.get(known[name].as_uri())
        wait_for(browser, "document.documentElement.dataset.ready === 'yes'")
        return browser

    return open_page


@pytest.fixture
def plain(open_page):
    """Six rows with an evaluation, freshly loaded."""
    return open_page("plain", make_explanation(), Evaluation())


def wait_for(browser, condition):
    found = browser.execute_async_script(
        f"""const done = arguments[0], end = Date.now() + 60000;
        (function look() {{
            ({condition}) || Date.now() > end ? done({condition}) : setTimeout(look, 20);
        }})();"""
    )
    assert found, f"{condition} never held; the page says: {text(browser, '#summary')}"


def text(browser, selector):
    return browser.execute_script(
        "return document.querySelector(arguments[0]).textContent", selector
    )


def texts(browser, selector):
    script = "return [...document.querySelectorAll(arguments[0])].map((found) => found.textContent)"
    return browser.execute_script(script, selector)


def click(browser, selector):
    browser.find_element("css selector", selector).click()


def press(browser, *keys):
    from selenium.webdriver import ActionChains

    ActionChains(browser).send_keys(*keys).perform()


def type_query(browser, query):
    field = browser.find_element("css selector", "#search")
    field.clear()
    field.send_keys(query)


def bars(browser):
    """The sizes of the steps in the waterfall, as drawn."""
    return browser.execute_script(
        "return Array.from(document.getElementById('waterfall').data[0].x)"
    )


def current(browser):
    return texts(browser, "#list [aria-current=true] bdi")


def problems(browser):
    """Errors in the console since the last look."""
    return [
        entry["message"]
        for entry in browser.get_log("browser")
        if entry["level"] in ("SEVERE", "WARNING")
    ]


def column(browser, place):
    return texts(browser, f"#table tbody tr > :nth-child({place})")


def test_it_opens_from_disk_without_errors_or_requests(plain):
    assert problems(plain) == []
    assert (
        plain.execute_script(
            "return performance.getEntriesByType('resource').map((entry) => entry.name)"
        )
        == []
    )
    charts = plain.execute_script(
        "return document.querySelectorAll('.js-plotly-plot .main-svg').length"
    )
    assert charts >= 8
    assert "6 rows and 5 features" in text(plain, "#summary")


def test_the_policy_stops_requests_and_foreign_scripts(plain):
    ran = plain.execute_async_script(
        """const done = arguments[0], script = document.createElement('script');
        script.textContent = 'window.foreign = true'; document.body.append(script);
        fetch('https://example.com')
            .then(() => done('loaded'), () => done(window.foreign || 'stopped'));"""
    )
    assert ran == "stopped"
    assert problems(plain) != []


def test_a_row_is_picked_by_mouse_and_every_part_follows(plain):
    before = bars(plain)
    click(plain, "#list button:nth-child(4)")
    assert current(plain) == ["Row 3"]
    assert "Row 3" in text(plain, "#row-title")
    assert text(plain, "#table caption").startswith("Row 3")
    explanation = make_explanation()
    factor = reading.display_factors(explanation)[3]
    steps = factor * explanation.values[3][explanation.orders[3]]
    assert np.isfinite(factor)
    assert bars(plain) != before
    np.testing.assert_allclose(bars(plain), steps, rtol=1e-4, atol=1e-5 * np.abs(steps).max())
    curve = plain.execute_script(
        "return Array.from(document.getElementById('row-recovery').data[0].y)"
    )
    np.testing.assert_allclose(curve, explanation.curves[3], rtol=1e-4, atol=1e-12)
    delta = plain.execute_script("return document.getElementById('sizes').data[0].y")
    np.testing.assert_allclose(
        delta, explanation.contributions[3][:, explanation.orders[3, 0]], rtol=1e-4
    )
    click(plain, "#next")
    assert current(plain) == ["Row 4"]


def test_rows_are_picked_by_keys(plain):
    from selenium.webdriver import Keys

    press(plain, "j", "j", "k")
    assert current(plain) == ["Row 1"]
    press(plain, "/")
    assert plain.switch_to.active_element.get_attribute("id") == "search"
    press(plain, Keys.ARROW_DOWN)
    assert current(plain) == ["Row 2"]
    press(plain, Keys.TAB, Keys.TAB)
    assert plain.switch_to.active_element.text.startswith("Row 2")
    press(plain, Keys.ARROW_DOWN)
    assert plain.switch_to.active_element.text.startswith("Row 3")
    assert "Row 3" in text(plain, "#row-title")
    outline = plain.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    press(plain, Keys.END)
    assert current(plain) == ["Row 5"]
    assert not plain.find_element("css selector", "#next").is_enabled()
    press(plain, Keys.TAB, Keys.ENTER)
    assert current(plain) == ["Row 4"]


def test_rows_are_found_by_number_prediction_and_text(plain):
    predictions = make_explanation().predictions
    type_query(plain, "4")
    assert texts(plain, "#list bdi") == ["Row 4"]
    assert "Row 4" in text(plain, "#row-title")
    type_query(plain, ">0")
    assert texts(plain, "#list bdi") == [f"Row {row}" for row in np.flatnonzero(predictions > 0)]
    type_query(plain, "-100..0")
    assert texts(plain, "#list bdi") == [f"Row {row}" for row in np.flatnonzero(predictions < 0)]
    type_query(plain, f"{predictions[2]:.3f}")
    assert texts(plain, "#list bdi") == ["Row 2"]
    type_query(plain, f"x1 = {make_explanation().data[5, 1]:.6g}")
    assert texts(plain, "#list bdi") == ["Row 5"]
    type_query(plain, "nothing like it")
    assert texts(plain, "#list bdi") == []
    assert "No row fits" in text(plain, "#found")


def headings(browser):
    return texts(browser, "h2")


def test_what_matters_comes_first_and_the_method_later(plain):
    assert headings(plain)[0] == "What matters overall"
    assert headings(plain).index("Row by row") < headings(plain).index(
        "How much better than Shapley"
    )


def shown_row(browser, explanation, factor):
    """The first row whose attribution is multiplied, or not."""
    found = np.flatnonzero(np.isfinite(reading.display_factors(explanation)) == factor)[0]
    type_query(browser, str(found))
    return int(found)


def test_steps_lead_to_the_prediction_or_start_at_zero_with_a_step_for_the_rest(open_page):
    explanation = make_explanation()
    other = explanation.predictions.copy()
    other[1] = explanation.base_values[1] - explanation.values[1].sum()
    explanation = replace(explanation, predictions=other)
    browser = open_page("gap", explanation)
    row = shown_row(browser, explanation, True)
    note = text(browser, "#waterfall-note")
    factor = reading.display_factors(explanation)[row]
    base = browser.execute_script(
        "return Array.from(document.getElementById('waterfall').data[0].base)"
    )
    assert base[-1] + bars(browser)[-1] == pytest.approx(explanation.predictions[row], rel=1e-4)
    assert ("so that it adds up" in note) == (abs(factor - 1) > 1e-5)
    row = shown_row(browser, explanation, False)
    assert row == 1
    base = browser.execute_script(
        "return Array.from(document.getElementById('waterfall').data[0].base)"
    )
    assert set(base) == {0}
    assert bars(browser)[-1] == pytest.approx(explanation.efficiency_gap[1], rel=1e-4)
    assert texts(browser, "#waterfall .ytick title")[-1] == "not attributed"
    assert "grey: not attributed" in text(browser, "#waterfall-note")
    assert problems(browser) == []


def test_the_judges_error_is_shown_next_to_the_steps(open_page):
    browser = open_page("two games", two_games(), fresh=False)
    type_query(browser, "3")
    miss = float(re.search(r"still misses (\S+) of", text(browser, "#judge-miss"))[1])
    assert miss == pytest.approx(two_games().curves[3, -1], rel=1e-2)
    browser = open_page("classifier", classifier(), fresh=False)
    assert (
        text(browser, "#judge-miss") == "With all features known the judge gives this row's f(x)."
    )


def test_long_names_are_wrapped_and_whole_when_pointed_at(open_page):
    name = "the area of the flat in square metres without balcony, cellar, attic and garden " * 2
    browser = open_page(
        "long", replace(make_explanation(), feature_names=(name, "b", "c", "d", "e"), data=None)
    )
    for chart in ("importance", "swarm", "waterfall"):
        assert name in texts(browser, f"#{chart} .ytick title")
        lines = browser.execute_script(
            f"return document.querySelectorAll('#{chart} .ytick tspan').length"
        )
        assert lines >= 3
    assert problems(browser) == []


def test_colours_are_those_of_the_style_sheet(plain):
    drawn = plain.execute_script(
        "return document.getElementById('importance').data.map((each) => each.marker.color)"
    )
    assert drawn == [style.BLUE, style.VERMILION]
    steps = plain.execute_script("return document.getElementById('waterfall').data[0].marker.color")
    assert {*steps} <= {style.RAISES, style.LOWERS, style.DARK_GREY}
    spoken = plain.execute_script(
        "return getComputedStyle(document.querySelector('.raises')).color"
    )
    assert spoken == f"rgb({', '.join(str(int(style.RAISES[i : i + 2], 16)) for i in (1, 3, 5))})"


def test_keys_reach_the_rows_first_and_every_table(plain):
    from selenium.webdriver import Keys

    plain.execute_script("document.body.focus()")
    press(plain, Keys.TAB)
    assert plain.switch_to.active_element.text == "Skip to the rows"
    each = (
        "[...document.querySelectorAll('.scroll')].map((box) => [box.tabIndex, box.role,"
        " Boolean(box.ariaLabel)])"
    )
    boxes = plain.execute_script(f"return {each}")
    assert boxes
    assert all(box == [0, "region", True] for box in boxes)
    spoken = plain.find_element("css selector", "#importance").get_attribute("aria-label")
    assert all(name in spoken for name in make_explanation().feature_names)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (207327.4, "207,327"),
        (0.043214, "0.04321"),
        (-0.25, "−0.25"),
        (1e-6, "1e−6"),
        (0, "0"),
        (999.96, "1,000"),
    ],
)
def test_numbers_are_written_as_in_the_figures(open_page, value, expected):
    browser = open_page("plain", make_explanation(), Evaluation(), fresh=False)
    assert browser.execute_script("return number(arguments[0])", value) == expected == number(value)


def test_percentages_add_up_and_a_smaller_area_has_no_minus(open_page):
    browser = open_page("plain", make_explanation(), Evaluation(), fresh=False)
    assert (
        browser.execute_script("return percents([1/3, 1/3, 1/3]).join()")
        == "34\u00a0%,33\u00a0%,33\u00a0%"
    )
    assert "−" not in text(browser, "#better .big")
    assert browser.execute_script("return changed(-0.136)") == "13.6\u00a0% smaller"


def test_the_list_is_ordered_by_prediction(plain):
    click(plain, "#list-order option[value=prediction]")
    assert texts(plain, "#list bdi") == [
        f"Row {row}" for row in np.argsort(-make_explanation().predictions)
    ]


def test_the_table_is_sorted_by_any_column(plain):
    explanation = make_explanation()
    names = np.array(explanation.feature_names)
    assert column(plain, 2) == list(names[explanation.orders[0]])
    click(plain, "#table [data-sort=phi]")
    assert column(plain, 2) == list(names[np.argsort(-explanation.values[0])])
    click(plain, "#table [data-sort=phi]")
    assert column(plain, 2) == list(names[np.argsort(explanation.values[0])])
    assert plain.execute_script("return document.activeElement.dataset.sort") == "phi"
    sorted_by = plain.find_element("css selector", "#table th:has([data-sort=phi])").get_attribute(
        "aria-sort"
    )
    assert sorted_by == "ascending"
    click(plain, "#table [data-sort=feature]")
    assert column(plain, 2) == sorted(names)
    assert column(plain, 3) == [f"{value:.6g}" for value in explanation.data[0]]


def test_both_judges_are_shown_side_by_side(open_page):
    plain = open_page("plain", make_explanation(), Evaluation(), fresh=False)
    assert texts(plain, "#better h3") == [
        "On the judge that chose the weights",
        "On a judge that chose nothing",
    ]
    assert "marginal (prediction). Flattering" in text(plain, "#better > :first-child")
    assert "The fair number: 7 rows" in text(plain, "#better > :last-child")
    assert "judged by 'independent' games of rows that chose nothing" in text(
        plain, "#better > :last-child"
    )
    misfit = judge_error_share(Evaluation().curves("independent")["Shapley"])
    sentence = f"Of the area {100 * misfit:.0f}\u00a0% is what this judge misses by itself."
    assert sentence in text(plain, "#better > :last-child")
    assert sentence in texts(plain, "#metrics caption")[0]
    assert "greedy" in texts(plain, "#better > :last-child th")
    traces = plain.execute_script(
        "return document.getElementById('fair').data.map((trace) => trace.name)"
    )
    assert "greedy" in " ".join(filter(None, traces))


def test_a_probability_is_shown_next_to_log_odds(open_page):
    browser = open_page("classifier", classifier())
    explanation = classifier()
    sentence = "Explained: tree_path (log-odds). Judged by: anchored (probability)."
    assert sentence in text(browser, "#summary")
    title = text(browser, "#row-title").replace("−", "-")
    logit, share = re.fullmatch(r"Row 0: log-odds (\S+), probability (\S+)", title).groups()
    assert (float(logit), float(share)) == pytest.approx(
        (explanation.predictions[0], explanation.judge_predictions[0]), rel=1e-3
    )
    titles = {
        chart: texts(browser, f"#{chart} .ytitle, #{chart} .xtitle")
        for chart in ("swarm", "row-recovery")
    }
    assert "φ* (⁨log-odds⁩)" in titles["swarm"]
    assert "|f(x) − v(top k)| (⁨probability⁩)" in titles["row-recovery"]
    assert "prediction as log-odds" in text(browser, "#search-help")
    assert problems(browser) == []


def test_games_that_compete_have_a_part_of_each_bar_and_the_winner_is_named(open_page):
    browser = open_page("two games", two_games())
    explanation = two_games()
    names = browser.execute_script(
        "return document.getElementById('weights').data.map((trace) => trace.name)"
    )
    assert [re.sub("[\u2068\u2069]", "", name).split()[0] for name in names] == [
        "baseline",
        "marginal",
    ]
    assert len(texts(browser, "#weights .ytick text")) == 13
    game, weight = explanation.weight_labels[0].split(" · ")
    words = reading.weight_in_words(explanation.weights[0])
    assert f"Explained by {game} · Chosen weight {weight}: {words} · " in text(
        browser, "#row-facts"
    )
    assert "judged by tree_surrogate (prediction)" in text(browser, "#row-facts")
    assert "Shapley, first and last are those of baseline." in text(
        browser, "#better > :first-child"
    )
    type_query(browser, "marginal")
    rows = np.flatnonzero(explanation.game_labels == "marginal")
    assert texts(browser, "#list bdi") == [f"Row {row}" for row in rows]
    assert problems(browser) == []


def test_without_an_evaluation_the_page_says_how_to_get_one(open_page):
    browser = open_page("sampled", make_explanation(estimator="permutation"))
    assert "ws.evaluate(explainer, X)" in text(browser, "#better > :last-child")
    assert "std. error" in texts(browser, "#table thead button")
    assert problems(browser) == []


def test_rows_are_called_by_the_index_of_the_table(open_page):
    frame = pd.DataFrame(make_explanation().data, columns=make_explanation().feature_names)
    browser = open_page(
        "named", replace(make_explanation(), data=frame.set_axis([f"house {i}" for i in range(6)]))
    )
    assert texts(browser, "#list bdi") == [f"house {i}" for i in range(6)]
    type_query(browser, "house 4")
    assert text(browser, "#row-title").startswith("house 4: prediction ")


def test_dark_and_light_can_be_switched(plain):
    def looks():
        script = """return [getComputedStyle(document.body).backgroundColor,
            getComputedStyle(document.querySelector('#recovery .xtick text')).fill]"""
        return plain.execute_script(script)

    light = looks()
    click(plain, "#theme")
    dark = looks()
    assert light[0] != dark[0]
    assert light[1] != dark[1]
    click(plain, "#theme")
    assert looks() == light
    plain.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": "dark"}]},
    )
    plain.refresh()
    wait_for(plain, "document.documentElement.dataset.ready === 'yes'")
    assert looks() == dark
    plain.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def evil():
    """Names and values that would do harm if they were read as HTML."""
    explanation = make_explanation(n=4, outputs=3)
    data = pd.DataFrame([list(EVIL)] * 4, columns=list(EVIL), index=list(EVIL[:4]))
    return replace(
        explanation,
        feature_names=EVIL,
        output_names=EVIL[:3],
        data=data,
        _notes=EVIL[:2],
        stopped=EVIL[:4],
    )


def test_names_and_values_are_text_everywhere(open_page):
    browser = open_page("evil", evil())
    assert browser.title == "WeightedSHAP: 4 rows, 5 features"
    assert set(column(browser, 2)) == {*EVIL[:4], "(no name)"}
    assert {cell[:100] for cell in column(browser, 3)} == {name[:100] for name in EVIL}
    for chart in ("importance", "swarm", "waterfall"):
        labels = " ".join(texts(browser, f"#{chart} .ytick text"))
        assert "<script>do" in labels
        assert "<a" in labels
    assert "<script>document.tit" in " ".join(texts(browser, "#sizes .legendtext"))
    for chart, trace in (("importance", 0), ("swarm", 0), ("waterfall", 0), ("sizes", 0)):
        for point in range(D):
            browser.execute_script(
                f"Plotly.Fx.hover('{chart}', [{{curveNumber: {trace}, pointNumber: {point}}}])"
            )
            shown = " ".join(texts(browser, f"#{chart} .hoverlayer text"))
            assert shown
            assert "&lt;script" not in shown
    made = browser.execute_script(
        "return document.querySelectorAll('main img, main a, main script, .note *').length"
    )
    assert made == 0
    assert texts(browser, ".note") == list(EVIL[:2])
    assert problems(browser) == []


def test_hovering_shows_a_name_as_it_is(open_page):
    browser = open_page("evil", evil(), fresh=False)
    place = browser.execute_script(
        "return document.getElementById('importance').data[0].customdata.findIndex((name) =>"
        " name.includes('href'))"
    )
    hover = f"Plotly.Fx.hover('importance', [{{curveNumber: 0, pointNumber: {place}}}])"
    label = "document.querySelector('#importance .hoverlayer').textContent"
    # Repeated, because the pointer may rest on another bar from an earlier click: its own label
    # then appears a moment later, in the place of the one asked for.
    wait_for(browser, f"({hover}, {label}.includes({json.dumps(EVIL[2])}))")


def test_outputs_can_be_chosen(open_page):
    browser = open_page("evil", evil(), fresh=False)
    explanation = make_explanation(n=4, outputs=3)
    click(browser, "#output option[value='2']")
    assert EVIL[2] in text(browser, "#row-title")
    steps = explanation.values[0, :, 2][explanation.orders[0, :, 2]]
    factor = reading.display_factors(explanation[..., 2])[0]
    drawn = bars(browser) if np.isfinite(factor) else bars(browser)[:-1]
    np.testing.assert_allclose(drawn, np.nan_to_num(factor, nan=1.0) * steps, rtol=1e-4)


@pytest.mark.parametrize("name", ["evil", "plain"])
def test_a_phone_shows_it_without_sideways_scrolling(browser, open_page, name):
    metrics = {"width": 380, "height": 800, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        open_page(name, evil() if name == "evil" else make_explanation(), Evaluation())
        browser.execute_script(
            "document.querySelectorAll('details').forEach((each) => { each.open = true; })"
        )
        assert browser.execute_script(
            "return [innerWidth, document.documentElement.scrollWidth]"
        ) == [380, 380]
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_prints_with_charts_at_the_width_of_the_paper(open_page):
    plain = open_page("plain", make_explanation(), Evaluation(), fresh=False)
    plain.execute_script("""const charts = [...document.querySelectorAll('.js-plotly-plot')];
        addEventListener('beforeprint', () => { window.sizes = charts.map((each) =>
            [each.clientWidth, each._fullLayout.width]); });""")
    pdf = base64.b64decode(plain.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert pdf.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", pdf)) <= 8
    sizes = np.array(plain.execute_script("return window.sizes"))
    assert (sizes[:, 0] == sizes[:, 1]).all()
    assert sizes.max() <= 680
    wide_again = "document.getElementById('waterfall')._fullLayout.width > 680"
    wait_for(plain, wide_again)


def test_of_many_rows_the_page_says_which_it_holds(open_page):
    browser = open_page("many", wide(10_000, d=20))
    assert "of 10,000 rows can be explored here, evenly spread from row 0 to row 9999" in text(
        browser, "#explored"
    )
    assert "the first 500 listed" in text(browser, "#found")
    type_query(browser, "9999")
    assert current(browser) == ["Row 9999"]
    assert problems(browser) == []


SMALL = {
    "one row": lambda: make_explanation(n=1),
    "a game without data": lambda: ws.explain(random_game(4)),
    "one feature": lambda: ws.explain(random_game(1)),
    "groups": lambda: make_explanation(groups=(("pair", (0, 1)),)),
    "no contributions": lambda: replace(make_explanation(), contributions=None),
}


@pytest.mark.parametrize("case", SMALL)
def test_small_and_bare_explanations_are_drawn(open_page, case):
    browser = open_page(case, SMALL[case]())
    assert problems(browser) == []
    assert len(column(browser, 1)) == len(SMALL[case]().feature_names)
    columns_apart = browser.find_element("css selector", "#all-values").is_displayed()
    assert columns_apart == (case == "groups")
