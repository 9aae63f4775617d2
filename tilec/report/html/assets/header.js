/* The head of the page: which plans, how they were verified, and the figures that matter most. */

/** The bar that stays on top: places of the page, light or dark. */
function bar(sections) {
  const themes = ["auto", "light", "dark"];
  const button = h("button", { class: "theme", type: "button", onclick: () => choose(themes[(themes.indexOf(root.dataset.theme) + 1) % 3]) });
  const root = document.documentElement;
  const choose = (theme) => {
    root.dataset.theme = theme;
    fill(button, h("span", { class: `sun ${theme}`, "aria-hidden": "true" }), `${theme[0].toUpperCase()}${theme.slice(1)}`);
    button.setAttribute("aria-label", `Colors: ${theme}. Press to change.`);
  };
  choose("auto");
  return h("header", { class: "bar" },
    h("a", { class: "skip", href: "#model" }, "Skip to the model"),
    h("span", { class: "brand" }, mark(), "tilec", h("span", { class: "what" }, "report")),
    h("nav", { "aria-label": "Sections" }, sections.map(([id, title]) => h("a", { href: `#${id}` }, title))),
    button);
}

/** A tile out of a tensor. */
function mark() {
  const cells = [0, 1, 2].flatMap((row) => [0, 1, 2].map((column) => [row, column]));
  return s("svg", { class: "mark", viewBox: "0 0 20 20", width: 20, height: 20, "aria-hidden": "true" },
    cells.map(([row, column]) => s("rect", { x: 1 + column * 6.4, y: 1 + row * 6.4, width: 5.2, height: 5.2, rx: 1, class: row === 1 && column === 1 ? "on" : "off" })));
}

/** Title and badges of all plans. */
function hero() {
  const names = [...new Set(PLANS.map((plan) => plan.name))].join(" and ");
  const last = PLANS[PLANS.length - 1];
  const edited = PLANS.some((plan) => plan.edited) && h("span", { class: "badge warn" }, "edited by hand");
  return h("div", { class: "hero", id: "top" },
    h("p", { class: "eyebrow" }, TWO ? "Two plans side by side" : "Plan"),
    h("h1", {}, names, h("span", { class: "on" }, ` on ${[...new Set(PLANS.map((plan) => plan.device.name))].join(" and ")}`)),
    h("p", { class: "badges" }, PLANS.map((plan, n) => badge(plan, n)), edited,
      last.device.description && h("span", { class: "quiet" }, last.device.description)),
    PLANS.map((plan, n) => plan.sizes && sizesLine(plan.sizes, n)),
    TWO && h("p", { class: "sides" }, PLANS.map((plan, n) => h("span", {}, h("b", { class: `side side-${SIDES[n]}` }, SIDES[n]), ` ${plan.label}`))));
}

/** The sizes that vary, what they fulfil, and which ones all figures are for. */
function sizesLine(sizes, n) {
  const ranges = sizes.symbols.map((each) => `${each.symbol} ${each.sizes}${each.likely?.length ? `, likely ${each.likely.join(", ")}` : ""}`);
  const conditions = sizes.constraints.map((each) => each.holds);
  return h("p", { class: "quiet wrap" }, TWO && h("b", { class: `side side-${SIDES[n]}` }, SIDES[n]), `One plan for all sizes: ${[...ranges, ...conditions].join("; ")}. Figures are at `, h("strong", {}, sizes.at), ".");
}

/** How a plan was verified, in a few words. */
function badge(plan, n) {
  const found = plan.verdict;
  const side = TWO ? `${SIDES[n]}: ` : "";
  if (found.state === "none") return h("span", { class: "badge" }, `${side}not verified`);
  if (found.state === "stale") return h("span", { class: "badge warn" }, `${side}verified as another plan`);
  if (found.verdict === "pass") return h("a", { class: "badge ok", href: "#verification" }, `✓ ${side}verified on ${found.verified_on}`);
  return h("a", { class: `badge ${found.verdict === "mismatch" ? "bad" : "warn"}`, href: "#verification" }, `${side}${found.verdict}`);
}

/** The figures of all plans, each with the one before it. */
function figures() {
  const total = (plan) => plan.totals;
  const lowestPair = (plan) => `${plan.levels[0].name} → ${plan.levels[1]?.name ?? plan.levels[0].name}`;
  const tiles = [
    figureTile("Predicted time", total, (t) => t.predicted_picoseconds, time, "picoseconds", () => {
      const { run } = PLANS.at(-1).verdict;
      return isNumber(run?.latency_us) ? `${time(run.latency_us * 1e6)}${latencyPlace(run)} when it was verified` : "of one run, by the cost model";
    }),
    figureTile(`${lowestPair(PLANS.at(-1))}`, total, (t) => t.traffic_bytes, bytes, "bytes", (t) =>
      isNumber(t.traffic_bytes) && isNumber(t.unfused_traffic_bytes) && t.unfused_traffic_bytes > 0
        ? t.traffic_bytes < t.unfused_traffic_bytes ? `${percent(1 - t.traffic_bytes / t.unfused_traffic_bytes)} less than ${bytes(t.unfused_traffic_bytes)} unfused` : `${bytes(t.unfused_traffic_bytes)} unfused` : "between the groups"),
    figureTile("Over the least known", total, (t) => (t.ratio?.known_bytes ? t.ratio.moved_bytes / t.ratio.known_bytes : null), times, "times", (t) =>
      t.ratio ? `${bytes(t.ratio.known_bytes)} known at ${t.ratio.level}, ${bytes(t.ratio.least_bytes)} proved` : "the plan has no bounds"),
    figureTile("Groups", total, (t) => t.groups, separated, "groups", (t) =>
      `of ${several(t.nodes, "node")}; ${several(t.kernels, "different kernel")}`, (t) => kinds(t.kinds)),
    figureTile("Compiled", (plan) => plan.placement, (p) => p.compiled, separated, "nodes", (p) =>
      (p.total === p.compiled ? "all nodes of the model" : `of ${several(p.total, "node")}, the others run on onnxruntime`)),
  ];
  return h("dl", { class: "figures" }, tiles);
}

function figureTile(name, of, value, text, unit, below, more) {
  const found = PLANS.map((plan) => value(of(plan)));
  const shownValue = (one) => h("span", { class: "value", title: isNumber(one) ? `${separated(one)} ${unit}` : null },
    one === null || one === undefined ? "–" : isNumber(one) ? text(one) : short(String(one), 28));
  const grown = TWO ? growth(found[0], found[1]) : "";
  return h("div", { class: "figure" }, h("dt", {}, name),
    h("dd", {}, TWO && h("span", { class: "before" }, `${isNumber(found[0]) ? text(found[0]) : "–"} →`),
      shownValue(found.at(-1)), grown && h("span", { class: `growth ${grown.startsWith("+") ? "more" : "less"}` }, grown),
      more && more(of(PLANS.at(-1))), h("span", { class: "below" }, below(of(PLANS.at(-1))))));
}

/** Groups by kind as one bar. */
function kinds(counts) {
  const parts = Object.entries(counts).filter(([, count]) => count);
  return h("span", { class: "kinds", role: "img", "aria-label": parts.map(([kind, count]) => `${count} ${KINDS[kind]}`).join(", ") },
    parts.map(([kind, count]) => h("span", { class: `fill ${kind}`, vars: { "flex-grow": String(count) }, title: `${count} ${KINDS[kind]}` })));
}
