/* Memory levels: what all groups move at each, how long that takes at its bandwidth, and how full it gets. */

function levels() {
  return section("levels", "Traffic and time by level",
    "Bytes that all groups move between a level and the next lower one, beside the time that they take at its bandwidth. Those of caches that hold no tiles are predicted, others are counted on the tile programs.",
    PLANS.map((plan, n) => levelPlan(plan, n)));
}

function levelPlan(plan, side) {
  const totals = plan.totals.levels;
  const moved = (name) => (isNumber(totals[name]?.read_bytes) && isNumber(totals[name]?.written_bytes) ? totals[name].read_bytes + totals[name].written_bytes : null);
  const most = Math.max(1, ...plan.levels.map((level) => moved(level.name) ?? 0));
  const predicted = plan.totals.predicted_picoseconds;
  const cards = pairs(plan).map(([name, below]) => {
    const about = plan.levels.find((each) => each.name === name);
    const use = totals[name];
    const all = moved(name);
    const bars = all === null ? h("p", { class: "mono wrap" }, `${use.read_bytes} read, ${use.written_bytes} written`) : [
      stacked([["read", use.read_bytes], ["written", use.written_bytes]], most),
      plan.device.roofs.filter((roof) => roof.level === name).map((roof) => timeBar(roof, all, predicted)),
    ];
    const held = isNumber(use.footprint_bytes) && use.footprint_bytes > 0
      && h("p", { class: "held" }, h("span", { class: "quiet" }, "fullest group "), about.capacity === null ? bytes(use.footprint_bytes) : meter(use.footprint_bytes, about));
    return h("div", { class: "level-card" },
      h("h3", {}, `${below} ⇄ ${name}`, h("span", { class: "quiet" }, described(about))),
      bars, held,
      h("p", { class: "quiet small" }, isNumber(use.transacted_bytes) && use.transactions ? `${separated(use.transactions)} transactions of ${about.transaction} bytes at ${name} for what goes on to higher levels: ${bytes(use.transacted_bytes)}` : ""));
  });
  const whole = totals[plan.levels[0].name];
  const asked = whole && isNumber(whole.transactions) && whole.transactions > 0
    && h("p", { class: "note" }, `${plan.levels[0].name} serves ${separated(whole.transactions)} transactions of ${plan.levels[0].transaction} bytes, ${bytes(whole.transacted_bytes)} in all.`);
  const unknown = !plan.device.known && h("p", { class: "note" }, `The file of device ${plan.device.name} is not at hand, so no times are shown: name it with --device FILE.`);
  return h("div", { class: "level-plan" }, TWO && h("h3", { class: "plan-name" }, h("b", { class: `side side-${SIDES[side]}` }, SIDES[side]), ` ${plan.label}`),
    cards.length ? h("div", { class: "level-cards" }, cards) : h("p", { class: "none" }, "No group moves anything."), asked, unknown);
}

/** Parts of a sum as one bar, as long as its share of the longest. */
function stacked(parts, most) {
  const total = parts.reduce((sum, [, size]) => sum + size, 0);
  return h("div", { class: "bar-line" },
    h("span", { class: "bar-track", "aria-hidden": "true" }, parts.map(([kind, size]) => h("span", { class: `fill ${kind}`, vars: { width: `${(100 * size) / most}%` } }))),
    h("span", { class: "bar-text" }, h("strong", {}, roundBytes(total)), h("span", { class: "quiet" }, parts.map(([kind, size]) => ` ${kind} ${bytes(size)}`).join(","))));
}

/** Time of bytes at a bandwidth, against the predicted time of the run. */
function timeBar(roof, moved, predicted) {
  const least = (moved / roof.bandwidth) * 1e12;
  const part = predicted ? least / predicted : null;
  return h("div", { class: "bar-line" },
    h("span", { class: "bar-track thin", "aria-hidden": "true" }, part !== null && h("span", { class: `fill time${part > 1 ? " over" : ""}`, vars: { width: `${Math.min(100, 100 * part)}%` } })),
    h("span", { class: "bar-text" }, `${time(least)} at ${roof.passes}'s ${bandwidth(roof.bandwidth)}`, part !== null && h("span", { class: "quiet" }, `, ${percent(part)} of the predicted time`)));
}
