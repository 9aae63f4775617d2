/* The roofline: how fast every group is predicted to be, against what bandwidth and compute units allow. */

function roofline() {
  const known = PLANS.filter((plan) => plan.device.known);
  const usable = PLANS.flatMap((plan) => plan.groups).some((group) => group.time > 0 && isNumber(group.operations));
  const lede = "Every group by its operations per byte and its predicted speed, as large as its part of the time. Sloped roofs are bandwidths of memories that the bytes pass, flat ones compute units.";
  if (!known.length || !usable) {
    return section("roofline", "Roofline", lede, h("p", { class: "none" }, usable
      ? `No roofs: the file of device ${PLANS[0].device.name} is not at hand. Name it with --device FILE.` : "No group has a predicted time and operations that are known."));
  }
  const named = (plan, n) => countedPairs(plan).slice(n, n + 1).map(([level, below]) => `${below} ⇄ ${level}`);
  const options = [...Array(Math.max(...PLANS.map((plan) => countedPairs(plan).length))).keys()];
  let option = 0;
  const holder = h("div", { class: "holder" });
  const missing = h("p", { class: "note" });
  const redraw = responsive(holder, (width) => {
    fill(holder, rooflineChart(width, option, missing));
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

function rooflineChart(width, option, missing) {
  const spots = [];
  let without = 0;
  PLANS.forEach((plan, side) => {
    const pair = countedPairs(plan)[option];
    plan.groups.forEach((group, n) => {
      const x = pair ? intensity(group, pair[0]) : null;
      if (!pair || !x || !group.time) without += 1;
      else if (plan.device.known) spots.push({ plan, side, group, n, x, y: group.operations / (group.time / 1e12), partial: group.inPlace.includes(pair[0]) });
    });
  });
  const partial = spots.filter((spot) => spot.partial).length;
  missing.textContent = [
    without ? `${several(without, "group")} without operations, bytes or a predicted time ${without === 1 ? "is" : "are"} not drawn.` : "",
    partial ? `${several(partial, "group")} with a dashed ring ${partial === 1 ? "reads" : "read"} something in place that is not counted: truly further left.` : "",
    "A group above a sloped roof is predicted to find its bytes in a faster memory.",
  ].filter(Boolean).join(" ");
  const devices = PLANS.map((plan, side) => ({
    side,
    key: JSON.stringify([plan.device, option]),
    slopes: plan.device.roofs.filter((roof) => roof.level === countedPairs(plan)[option]?.[0]),
    units: plan.device.units,
    peak: Math.max(...plan.device.units.map((unit) => unit.rate), 1),
  })).filter((device, n, all) => all.findIndex((other) => other.key === device.key) === n);
  const peak = Math.max(...devices.map((device) => device.peak));
  const x = { label: "operations per byte", text: (value) => (value >= 1 ? separated(value) : String(Number(value.toPrecision(1)))) };
  const y = { label: "speed", text: rate };
  const ridge = devices.flatMap((device) => device.slopes.map((roof) => device.peak / roof.bandwidth));
  [x.lo, x.hi] = around([...spots.map((spot) => spot.x), ...ridge], 2);
  [y.lo, y.hi] = around([...spots.map((spot) => spot.y), peak], 1.9);
  const height = Math.min(520, Math.max(320, width * 0.46));
  const { svg, body, top, X, Y, right } = frame(width, height, x, y, `Roofline of ${PLANS.map((plan, n) => planName(n)).join(" and ")}`);
  for (const device of devices) drawRoofs(device, x, y, { body, top, X, Y, right }, devices.length > 1);
  const totals = PLANS.map((plan) => plan.groups.reduce((sum, group) => sum + group.time, 0));
  const ordered = [...spots].sort((a, b) => b.group.time / totals[b.side] - a.group.time / totals[a.side]);
  const marks = ordered.map(({ plan, side, group, n, x: at, y: speed, partial: less }) => {
    const part = group.time / totals[side];
    return s("g", {
      class: `dot ${TWO ? `side-${SIDES[side]}` : group.kind}${less ? " partial" : ""}`, role: "button", tabindex: "-1", "data-side": side, "data-group": n,
      "aria-label": `${TWO ? `${SIDES[side]}, ` : ""}group ${n + 1}, ${group.operators}: ${digits(at)} operations per byte, ${rate(speed)}`,
      ...pressed(() => open(n, side, true)),
      ...tipped(() => [`${TWO ? `${SIDES[side]} ` : ""}${group.operators}`, `${digits(at)} operations per byte, ${rate(speed)}`, `${time(group.time)}, ${percent(part)} of the run`, `${percent(speed / plan.device.units[0].rate)} of ${rate(plan.device.units[0].rate)}`]),
    }, s("circle", { cx: X(at), cy: Y(speed), r: 4 + 22 * Math.sqrt(part) }));
  });
  marks[0]?.setAttribute("tabindex", "0");
  roving(top, () => marks);
  top.append(...marks);
  return svg;
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
