/* The ski slope of a group: least traffic known at every capacity, what is proved, and where the plan is. */

function slopeChart(plan, group) {
  const slope = plan.slopes[group.slope];
  if (!slope) return h("p", { class: "none" }, noSlope(plan, group));
  const points = Object.entries(group.levels).filter(([, use]) => "least" in use)
    .map(([level, use]) => ({ level, x: plan.levels.find((each) => each.name === level).bounded, y: use.moved, known: use.known, least: use.least, parallel: use.parallel }));
  const draw = (width) => {
    const x = { binary: true, label: "capacity of the buffer", text: bytes };
    const y = { binary: true, label: "traffic", text: bytes };
    const [low, high] = around([...slope.known.map(([size]) => size), ...points.map((point) => point.x)], 1.6);
    [x.lo, x.hi] = [Math.max(low, 1), high];
    [y.lo, y.hi] = around([...slope.known.map(([, moved]) => moved), ...slope.proved.map(([, moved]) => moved), ...points.map((point) => point.y)], 1.4);
    const { svg, body, top, X, Y, right, bottom } = frame(width, Math.min(330, Math.max(260, width * 0.55)), x, y, "Least traffic at every capacity");
    const stairs = slope.known.map(([size, moved]) => [X(size), Y(moved)]);
    if (stairs.length) {
      stairs.push([right, stairs.at(-1)[1]]);
      body.append(s("path", { class: "under", d: `${path(stairs, true)}V${bottom}H${stairs[0][0]}Z` }), s("path", { class: "line known", d: path(stairs, true) }));
    }
    const proved = slope.proved.filter(([, moved]) => moved > 0).map(([size, moved]) => [X(size), Y(moved)]);
    if (proved.length) body.append(s("path", { class: "line proved", d: path(proved) }));
    for (const point of points) {
      const label = `${point.level}: moves ${bytes(point.y)}${point.known ? `, ${times(point.y / point.known)} the known ${bytes(point.known)}` : ""}`;
      top.append(s("line", { class: "mark", x1: X(point.x), x2: X(point.x), y1: MARGIN.top, y2: bottom }),
        s("g", { role: "img", tabindex: "0", class: "spot", "aria-label": label, ...tipped(() => [`This plan at ${point.level}`, `${bytes(point.y)} moved within ${bytes(point.x)}`, point.known ? `${times(point.y / point.known)} the least known, ${bytes(point.known)}` : "nothing known fits", point.parallel && `${times(point.y / point.parallel)} the least known in tasks for all units, ${bytes(point.parallel)}`, `${bytes(point.least)} proved`].filter(Boolean)) },
          s("circle", { cx: X(point.x), cy: Y(point.y), r: 7 })),
        s("text", { class: "spot-name", x: Math.min(X(point.x), right - 40), y: Math.max(Y(point.y) - 13, MARGIN.top + 12), "text-anchor": "middle" }, point.level));
    }
    return svg;
  };
  return figure(null, draw, legend(["line known", "least known, by a mapping"], ["line proved", "proved, up to the capacity of the plan"], ["spot", "this plan"])).element;
}

function noSlope(plan, group) {
  if (!plan.totals.ratio) return "No ski slope: this plan has no bounds.";
  return "No ski slope: nothing in the group is bounded.";
}
