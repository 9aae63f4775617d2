/* The roofline: how fast every group is predicted to be, against what bandwidth and compute units allow. */

function roofline() {
  const known = PLANS.filter((plan) => plan.device.known);
  const usable = PLANS.flatMap((plan) => plan.groups).some((group) => group.time > 0 && isNumber(group.operations));
  const lede = "Every group by its operations per byte and its predicted speed, as large as its part of the time. Sloped roofs are bandwidths of memories that the bytes pass, flat ones compute units.";
  if (!known.length || !usable) {
    return section("roofline", "Roofline", lede, h("p", { class: "none" }, usable
      ? `No roofs: the file of device ${PLANS[0].device.name} is not at hand. Name it with --device FILE.` : "No group has a predicted time and operations that are known."));
  }
  const named = (plan, n) => pairs(plan).slice(n, n + 1).map(([level, below]) => `${below} ⇄ ${level}`);
  const options = [...Array(Math.max(...PLANS.map((plan) => pairs(plan).length))).keys()];
  let option = 0;
  const holder = h("div", { class: "holder" });
  const missing = h("p", { class: "note" });
  const redraw = responsive(holder, (width) => {
    const every = [...PLANS.keys()];
    fill(holder, rooflineChart(width, every, option));
    missing.textContent = rooflineNote(spotsOf(every, option));
    markChosen(holder);
  });
  listen(() => markChosen(holder));
  const choice = options.length > 1 && h("div", { class: "choice", role: "group", "aria-label": "Bytes counted between" },
    options.map((each) => h("button", { type: "button", "aria-pressed": String(each === option), onclick: (event) => {
      option = each;
      for (const button of event.currentTarget.parentNode.children) button.setAttribute("aria-pressed", String(button === event.currentTarget));
      redraw();
    } }, [...new Set(PLANS.flatMap((plan) => named(plan, each)))].join(" | "))));
  const marks = TWO ? SIDES.map((side, n) => [`dot side-${side}`, `${side}: ${PLANS[n].label}`]) : kindsThere().map(([kind, name]) => [`dot ${kind}`, name]);
  return section("roofline", "Roofline", lede, choice, h("figure", {}, holder, legend(...marks, ["line roof", "bandwidth or compute unit"])), missing);
}

/** Groups that have a place in the chart: operations per byte at the `option`-th pair of levels, operations a second. */
function spotsOf(sides, option) {
  return sides.flatMap((side) => {
    const plan = PLANS[side];
    const pair = pairs(plan)[option];
    const total = plan.groups.reduce((sum, group) => sum + group.time, 0);
    if (!pair || !plan.device.known) return [];
    return plan.groups.map((group, n) => ({
      plan, side, group, n, x: intensity(group, pair[0]), y: group.operations / (group.time / 1e12), part: group.time / total,
    })).filter((spot) => spot.x && spot.group.time);
  });
}

/** What the chart leaves out, and how to read it. */
function rooflineNote(spots) {
  const without = PLANS.reduce((sum, plan) => sum + plan.groups.length, 0) - spots.length;
  return [
    without ? `${several(without, "group")} without operations, bytes or a predicted time ${without === 1 ? "is" : "are"} not drawn.` : "",
    "A group above a sloped roof is predicted to find its bytes in a faster memory.",
  ].filter(Boolean).join(" ");
}

/** The chart of some plans; with `only`, the number of a group, it alone stands out. */
function rooflineChart(width, sides, option, only = null) {
  const spots = spotsOf(sides, option);
  const devices = sides.map((side) => ({
    side,
    key: JSON.stringify([PLANS[side].device, option]),
    slopes: PLANS[side].device.roofs.filter((roof) => roof.level === pairs(PLANS[side])[option]?.[0]),
    units: PLANS[side].device.units,
    peak: Math.max(...PLANS[side].device.units.map((unit) => unit.rate), 1),
  })).filter((device, n, all) => all.findIndex((other) => other.key === device.key) === n);
  const peak = Math.max(...devices.map((device) => device.peak));
  const x = { label: "operations per byte", text: (value) => (value >= 1 ? separated(value) : String(Number(value.toPrecision(1)))) };
  const y = { label: "speed", text: rate };
  const ridge = devices.flatMap((device) => device.slopes.map((roof) => device.peak / roof.bandwidth));
  [x.lo, x.hi] = around([...spots.map((spot) => spot.x), ...ridge], 2);
  [y.lo, y.hi] = around([...spots.map((spot) => spot.y), peak], 1.9);
  const height = Math.min(520, Math.max(only === null ? 320 : 260, width * 0.46));
  const axes = frame(width, height, x, y, `Roofline of ${sides.map(planName).join(" and ")}${only === null ? "" : `, group ${only + 1}`}`);
  for (const device of devices) drawRoofs(device, x, y, axes, devices.length > 1);
  const ordered = [...spots].sort((a, b) => b.part - a.part);
  if (only !== null) axes.body.append(...ordered.filter(({ n }) => n !== only).map((spot) => s("circle", { class: "faint", cx: axes.X(spot.x), cy: axes.Y(spot.y), r: 3 })));
  const marks = ordered.filter(({ n }) => only === null || n === only).map((spot) => rooflineMark(spot, axes, only !== null));
  marks[0]?.setAttribute("tabindex", "0");
  roving(axes.top, () => marks);
  axes.top.append(...marks);
  return axes.svg;
}

/** A group in the chart; `alone` it opens nothing, for it is open. */
function rooflineMark({ plan, side, group, n, x, y, part }, { X, Y }, alone) {
  const fastest = plan.device.units[0].rate;
  return s("g", {
    class: `dot ${TWO ? `side-${SIDES[side]}` : group.kind}`, role: alone ? "img" : "button", tabindex: "-1", "data-side": side, "data-group": n,
    "aria-label": `${TWO ? `${SIDES[side]}, ` : ""}group ${n + 1}, ${group.operators}: ${digits(x)} operations per byte, ${rate(y)}`,
    ...(alone ? {} : pressed(() => open(n, side, true))),
    ...tipped(() => [`${TWO ? `${SIDES[side]} ` : ""}${group.operators}`, `${digits(x)} operations per byte, ${rate(y)}`, `${time(group.time)}, ${percent(part)} of the run`, `${percent(y / fastest)} of ${rate(fastest)}`]),
  }, s("circle", { cx: X(x), cy: Y(y), r: alone ? 8 : 4 + 22 * Math.sqrt(part) }));
}

/** The sloped and flat roofs of a device. */
function drawRoofs(device, x, y, { body, top, X, Y, right }, several_) {
  const kind = several_ ? ` side-${SIDES[device.side]}` : "";
  for (const roof of device.slopes) {
    const end = device.peak / roof.bandwidth;
    body.append(s("path", { class: `line roof${kind}`, d: path([[X(x.lo), Y(x.lo * roof.bandwidth)], [X(end), Y(device.peak)]]) }));
    const at = Math.max(x.lo * 1.15, (y.lo * 1.25) / roof.bandwidth);
    const angle = (Math.atan2(Y(at * roof.bandwidth * 2) - Y(at * roof.bandwidth), X(at * 2) - X(at)) * 180) / Math.PI;
    body.append(s("text", { class: "roof-name", transform: `translate(${X(at)} ${Y(at * roof.bandwidth)}) rotate(${angle}) translate(4 -6)` }, `${roof.passes} ${bandwidth(roof.bandwidth)}`));
  }
  const fastest = Math.max(...device.slopes.map((roof) => roof.bandwidth), 0);
  for (const unit of device.units) {
    const from = fastest ? unit.rate / fastest : x.lo;
    body.append(s("path", { class: `line roof${kind}`, d: path([[X(from), Y(unit.rate)], [right, Y(unit.rate)]]) }));
    top.append(s("text", { class: "roof-name", x: right - 6, y: Y(unit.rate) - 6, "text-anchor": "end" }, `${unit.name} ${[...new Set(unit.inputs)].join(" × ")} ${rate(unit.rate)}`));
  }
}
