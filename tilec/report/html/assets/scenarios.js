/* Scenarios: what the plan moves and how long it is predicted to take in each, along the length. */

function scenarios() {
  if (!PLANS.some((plan) => plan.scenarios.length)) return null;
  const lede = "Sizes that occur together, as the model or the recipe says. The plan has variants for each; these are its bytes from and to the lowest memory, the fewest that are possible there, and its predicted time.";
  const names = [...new Set(PLANS.flatMap((plan) => plan.scenarios.map((each) => each.name)))];
  return section("scenarios", "Scenarios", lede, names.map(scenarioPart));
}

/** One scenario of all plans: its relations, two charts where it has a length, and a table. */
function scenarioPart(name) {
  const found = PLANS.flatMap((plan, side) => plan.scenarios.filter((each) => each.name === name).map((each) => ({ side, ...each })));
  const curves = found.filter((each) => each.length && each.figures.length > 1);
  const charts = curves.length ? [
    scenarioChart(curves, "bytes", { binary: true, text: bytes }, [["moved", "traffic"], ["proved", "bound"]]),
    scenarioChart(curves, "predicted time", { text: time }, [["moved", "picoseconds"]]),
  ] : [];
  const heads = [[found[0].length || "sizes", "right"], ["bytes", "right"], ["at least", "right"], ["predicted", "right"]];
  return h("div", { class: "scenario" },
    h("h3", {}, name),
    found.map((each) => h("p", { class: "quiet wrap" }, TWO && h("b", { class: `side side-${SIDES[each.side]}` }, SIDES[each.side]), h("code", {}, each.relations), each.origin ? ` (${each.origin})` : "")),
    charts.length ? h("div", { class: "charts" }, charts) : null,
    found.map((each) => h("div", { class: "scroll" }, h("table", {},
      h("caption", {}, TWO ? `${SIDES[each.side]}: ${name}` : name),
      h("thead", {}, h("tr", {}, heads.map(([text, kind]) => h("th", { class: kind, scope: "col" }, text)))),
      h("tbody", {}, each.figures.map((figure) => h("tr", {},
        h("td", { class: "right" }, each.length ? separated(figure.sizes[each.length]) : Object.entries(figure.sizes).map(([symbol, size]) => `${symbol}=${size}`).join(", ")),
        h("td", { class: "right" }, roundBytes(figure.traffic)),
        h("td", { class: "right" }, isNumber(figure.bound) ? roundBytes(figure.bound) : "–"),
        h("td", { class: "right" }, figure.picoseconds ? roundTime(figure.picoseconds) : "–"))))))));
}

/** Curves over the length: each of `kinds` is [class of the line, key of the figure]. */
function scenarioChart(curves, label, unit, kinds) {
  const lines = curves.flatMap((each) => kinds.map(([kind, key]) => ({
    side: each.side, kind, points: each.figures.map((figure) => [figure.sizes[each.length], figure[key]]).filter(([length, value]) => length > 0 && value > 0),
  }))).filter((line) => line.points.length);
  if (!lines.length) return null;
  const draw = (width) => {
    const x = { binary: true, label: curves[0].length, text: separated };
    const y = { ...unit, label };
    [x.lo, x.hi] = around(lines.flatMap((line) => line.points.map(([length]) => length)), 1.3);
    [y.lo, y.hi] = around(lines.flatMap((line) => line.points.map(([, value]) => value)), 1.4);
    const { svg, body, top, X, Y } = frame(width, 260, x, y, `${curves[0].name}: ${label} by ${curves[0].length}`);
    for (const { side, kind, points } of lines) {
      const beside = TWO ? ` side-${SIDES[side]}` : "";
      body.append(s("path", { class: `line ${kind === "proved" ? "proved" : "known"}${beside}`, d: path(points.map(([length, value]) => [X(length), Y(value)])) }));
      if (kind === "proved") continue;
      top.append(...points.map(([length, value]) => s("g", { role: "img", tabindex: "0", class: `spot${beside}`, "aria-label": `${curves[0].length} ${length}: ${unit.text(value)}`, ...tipped(() => [`${curves[0].length} ${separated(length)}`, unit.text(value)]) },
        s("circle", { cx: X(length), cy: Y(value), r: 4 }))));
    }
    return svg;
  };
  const proved = kinds.length > 1 && ["line proved", "fewest possible"];
  return figure(label, draw, legend(["line known", "this plan"], proved)).element;
}
