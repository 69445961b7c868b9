"""The style sheet of the figures and of the report: colours, dashes, sizes and fonts.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart, too; where two might
look the same in print, the dashes, the hatches or the side of the axis differ as well.
"""

BLUE = "#0072B2"
VERMILION = "#D55E00"
GREEN = "#009E73"
PURPLE = "#CC79A7"
ORANGE = "#E69F00"
SKY = "#56B4E9"
BLACK = "#000000"
GREY = "#D9D9D9"
DARK_GREY = "#8C8C8C"
INK = "#404040"
PALETTE = (BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, BLACK)
OF_GAMES = (BLUE, ORANGE, GREEN, PURPLE, SKY, BLACK)  # vermilion is Shapley's
RAISES = VERMILION
LOWERS = BLUE
UNKNOWN = "#9E9E9E"  # a value that is missing or has no colour

# Colour, dashes and width of a line, by method.
METHODS = {
    "WeightedSHAP": (BLUE, "solid", 2.4),
    "Shapley": (VERMILION, "dash", 1.8),
    "first": (GREEN, "dot", 1.6),
    "last": (PURPLE, "dashdot", 1.6),
    "greedy": (BLACK, "longdashdot", 1.3),
    "optimum": ("#595959", "dot", 1.3),
    "refined": (SKY, "solid", 1.6),
}
OTHERS = (
    (ORANGE, "longdash", 1.3),
    (SKY, "longdash", 1.3),
    (GREEN, "longdashdot", 1.3),
    (PURPLE, "longdashdot", 1.3),
)

LOW_TO_HIGH = ("#0D0887", "#5C01A6", "#9A169F", "#CB4679", "#EC7754", "#FDB22F")
"""From dark blue to orange, ever lighter; without yellow, which is hard to see on white."""
SIGNED = (LOWERS, "#F7F7F7", RAISES)  # from values that lower the prediction to those that raise it

WIDTH = 5.5
HEIGHT = 3.6  # inches: one column of a paper
NAME_WIDTH = 26  # letters in a line of the name of a bar
# Font families for letters that the default font lacks, if they are installed.
FONTS = (
    "DejaVu Sans",
    "Noto Sans",
    "Noto Sans CJK SC",
    "Noto Sans CJK JP",
    "Noto Sans CJK KR",
    "Noto Sans SC",
    "Hiragino Sans",
    "PingFang SC",
    "Apple SD Gothic Neo",
    "Microsoft YaHei",
    "Yu Gothic",
    "Malgun Gothic",
    "WenQuanYi Micro Hei",
    "Droid Sans Fallback",
    "Segoe UI Emoji",
    "Segoe UI Symbol",
    "Noto Emoji",
    "Symbola",
    "Arial Unicode MS",
    "Unifont",
)

# All of these constants by name, for the report.
SHEET = {name: value for name, value in globals().items() if name.isupper()}
