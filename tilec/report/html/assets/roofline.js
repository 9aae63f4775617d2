/* The roofline: how fast every group is predicted to be, against what bandwidth and compute units allow. */

function roofline() {
  const known = PLANS.filter((plan) => plan.device.known);
  const usable = PLANS.flatMap((plan) => plan.groups).some((group) => group.time > 0 && isNumber(group.operations));
  const lede = "Every group by its operations per byte and its predicted speed, as large as its part of the time. Sloped roofs are bandwidths of memories that the bytes pass, flat ones compute units.";
  if (!known.length || !usable) {
    return section("roofline", "Roofline", lede, h("p", { class: "none" }, usable
      ? `No roofs: the file of device ${PLANS[0].device.name} is not at hand. Name it with --device FILE.` : "No group has a predicted time and operations that are known."));
  }
  const options = [...new Set(PLANS.flatMap((plan) => pairs(plan).map(([level, below]) => `${below} ⇄ ${level}`)))];
  let option = options[0];
  const holder = h("div", { class: "holder" });
  const missing = h("p", { class: "note" });
  const draw = (width) => fill(holder, rooflineChart(width, option, missing));
  const redraw = responsive(holder, draw);
  listen(redraw);
  const choice = options.length > 1 && h("div", { class: "choice", role: "group", "aria-label": "Bytes counted between" },
    options.map((each) => h("button", { type: "button", "aria-pressed": String(each === option), onclick: (event) => {
      option = each;
      for (const button of event.currentTarget.parentNode.children) button.setAttribute("aria-pressed", String(button === event.currentTarget));
      redraw();
    } }, each)));
  const marks = TWO ? SIDES.map((side, n) => [`dot side-${side}`, `${side}: ${PLANS[n].label}`]) : Object.entries(KINDS).map(([kind, name]) => [`dot ${kind}`, name]);
  return section("roofline", "Roofline", lede, choice, h("figure", {}, holder, legend(...marks, ["line roof", "bandwidth or compute unit"])), missing);
}

function rooflineChart(width, option, missing) {
  const spots = [];
  let without = 0;
  PLANS.forEach((plan, side) => {
    const pair = pairs(plan).find(([level, below]) => `${below} ⇄ ${level}` === option);
    plan.groups.forEach((group, n) => {
      const x = pair ? intensity(group, pair[0]) : null;
      if (!pair || !x || !group.time) without += 1;
      else spots.push({ plan, side, group, n, x, y: group.operations / (group.time / 1e12), partial: group.inPlace.includes(pair[0]) });
    });
  });
  const partial = spots.filter((spot) => spot.partial).length;
  missing.textContent = [
    without ? `${several(without, "group")} without operations, bytes or a predicted time ${without === 1 ? "is" : "are"} not drawn.` : "",
    partial ? `${several(partial, "group")} with a dashed ring ${partial === 1 ? "reads" : "read"} something in place that is not counted: truly further left.` : "",
    "A group above a sloped roof is predicted to find its bytes in a faster memory.",
  ].filter(Boolean).join(" ");
  const roofs = PLANS.flatMap((plan) => plan.device.roofs.filter((roof) => pairs(plan).some(([level, below]) => level === roof.level && `${below} ⇄ ${level}` === option)).map((roof) => ({ ...roof, device: plan.device.name })));
  const flat = PLANS.flatMap((plan) => plan.device.units.map((unit) => ({ ...unit, device: plan.device.name })));
  const distinct = (list, key) => [...new Map(list.map((each) => [key(each), each])).values()];
  const slopes = distinct(roofs, (roof) => `${roof.passes} ${roof.bandwidth}`);
  const peaks = distinct(flat, (unit) => `${unit.name} ${unit.rate}`);
  const peak = Math.max(...peaks.map((unit) => unit.rate), 1);
  const x = { label: "operations per byte", text: (value) => (value >= 1 ? separated(value) : String(Number(value.toPrecision(1)))) };
  const y = { label: "speed", text: rate };
  const ridge = slopes.map((roof) => peak / roof.bandwidth);
  [x.lo, x.hi] = around([...spots.map((spot) => spot.x), ...ridge], 2);
  [y.lo, y.hi] = around([...spots.map((spot) => spot.y), peak], 1.9);
  const height = Math.min(520, Math.max(320, width * 0.46));
  const { svg, body, top, X, Y, right } = frame(width, height, x, y, `Roofline, bytes counted ${option}`);
  for (const roof of slopes) {
    const end = peak / roof.bandwidth;
    body.append(s("path", { class: "line roof", d: path([[X(x.lo), Y(x.lo * roof.bandwidth)], [X(end), Y(peak)]]) }));
    const at = Math.max(x.lo * 1.15, (y.lo * 1.25) / roof.bandwidth);
    const angle = (Math.atan2(Y(at * roof.bandwidth * 2) - Y(at * roof.bandwidth), X(at * 2) - X(at)) * 180) / Math.PI;
    body.append(s("text", { class: "roof-name", transform: `translate(${X(at)} ${Y(at * roof.bandwidth)}) rotate(${angle}) translate(4 -6)` }, `${roof.passes} ${bandwidth(roof.bandwidth)}`));
  }
  const first = Math.min(...slopes.map((roof) => roof.bandwidth), Infinity);
  peaks.forEach((unit) => {
    const from = Number.isFinite(first) ? unit.rate / Math.max(...slopes.map((roof) => roof.bandwidth)) : x.lo;
    body.append(s("path", { class: "line roof", d: path([[X(from), Y(unit.rate)], [right, Y(unit.rate)]]) }));
    top.append(s("text", { class: "roof-name", x: right - 6, y: Y(unit.rate) - 6, "text-anchor": "end" }, `${unit.name} ${[...new Set(unit.inputs)].join(" × ")} ${rate(unit.rate)}`));
  });
  const totals = PLANS.map((plan) => plan.groups.reduce((sum, group) => sum + group.time, 0));
  const ordered = [...spots].sort((a, b) => b.group.time / totals[b.side] - a.group.time / totals[a.side]);
  const marks = ordered.map(({ plan, side, group, n, x: at, y: speed, partial: less }) => {
    const part = group.time / totals[side];
    const chosen = shown.plan === side && shown.group === n;
    return s("g", {
      class: `dot ${TWO ? `side-${SIDES[side]}` : group.kind}${chosen ? " chosen" : ""}${less ? " partial" : ""}`, role: "button", tabindex: "-1",
      "aria-label": `${TWO ? `${SIDES[side]}, ` : ""}group ${n + 1}, ${group.operators}: ${digits(at)} operations per byte, ${rate(speed)}`,
      ...pressed(() => open(n, side, true)),
      ...tipped(() => [`${TWO ? `${SIDES[side]} ` : ""}${group.operators}`, `${digits(at)} operations per byte, ${rate(speed)}`, `${time(group.time)}, ${percent(part)} of the run`, `${percent(speed / peak)} of ${rate(peak)}`]),
    }, s("circle", { cx: X(at), cy: Y(speed), r: 4 + 22 * Math.sqrt(part) }));
  });
  marks[0]?.setAttribute("tabindex", "0");
  roving(top, () => marks);
  top.append(...marks);
  return svg;
}
