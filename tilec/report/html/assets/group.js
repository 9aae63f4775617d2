/* The group that is open: what it costs, its blocks, traffic against bounds, tile program, nodes and edges. */

const TABS = [
  ["tiles", "Tiles", tilesTab],
  ["parts", "Parts", partsTab],
  ["traffic", "Traffic", trafficTab],
  ["program", "Program", programTab],
  ["nodes", "Nodes", nodesTab],
  ["edges", "Edges", edgesTab],
];
let tabShown = "tiles";

function detail() {
  const panel = h("article", { id: "detail", class: "detail", tabindex: "-1", "aria-live": "off" });
  const draw = () => {
    fill(panel, shown.group === null ? empty() : opened(current(), current().groups[shown.group], shown.group));
    settle();
  };
  listen(draw);
  draw();
  return panel;
}

function empty() {
  return h("div", { class: "none" }, h("p", {}, "Choose a group: what runs together, with which tiles, how much it moves, and its tile program open here."));
}

function opened(plan, group, n) {
  const total = plan.groups.reduce((sum, each) => sum + each.time, 0);
  const facts = [
    ["predicted", roundTime(group.time || null), total && group.time ? `${percent(group.time / total)} of the run` : ""],
    ["traffic", roundBytes(group.traffic), `at ${lowest(plan, group) ?? "no level"}`],
    ["operations", rounded(operations, group.operations, "operations"), group.time && isNumber(group.operations) ? rate(group.operations / (group.time / 1e12)) : ""],
    plan.sizes && ["as expressions", h("span", { class: "mono wrap small" }, group.expressions.operations), Object.entries(group.expressions.footprint).map(([level, held]) => `${level} holds ${held} bytes`).join(", ") || "operations over sizes"],
    isNumber(group.measured) && ["measured", roundTime(group.measured), group.time ? `${times(group.measured / group.time)} the predicted time` : ""],
    ["limited by", group.limit ? limitName(group.limit) : "?", group.limit ? `${time(group.limit.least)} of ${time(group.time)}` : ""],
    ["over the least known", times(overKnown(group)), overKnown(group) === null ? "no bound" : ""],
  ].filter(Boolean);
  return [
    h("div", { class: "detail-head" },
      h("div", {}, h("p", { class: "eyebrow" }, h("span", { class: `dot ${group.kind}`, "aria-hidden": "true" }), `group ${n + 1} of ${plan.groups.length} · ${KINDS[group.kind]}`, TWO && h("b", { class: `side side-${SIDES[shown.plan]}` }, SIDES[shown.plan])),
        h("h3", {}, group.operators), h("p", { class: "mono quiet wrap" }, group.name), h("p", { class: "quiet small wrap" }, layersOf(group))),
      h("div", { class: "steps" },
        h("button", { type: "button", "aria-label": "Group before", disabled: n === 0, onclick: () => open(n - 1) }, "‹"),
        h("button", { type: "button", "aria-label": "Group behind", disabled: n === plan.groups.length - 1, onclick: () => open(n + 1) }, "›"))),
    h("dl", { class: "facts" }, facts.map(([name, value, more]) => h("div", {}, h("dt", {}, name), h("dd", {}, value, more && h("span", { class: "below" }, more))))),
    TWO && counterpart(n),
    limits(plan, group),
    tabs(plan, group, n),
  ];
}

/** What the group became in the other plan, or was there. */
function counterpart(n) {
  const other = 1 - shown.plan;
  const family = DATA.changes.families.find((each) => each[shown.plan].includes(n));
  const found = family ? family[other] : [];
  const line = h("p", { class: "other" }, h("b", { class: `side side-${SIDES[other]}` }, SIDES[other]), found.length ? " the same nodes run in " : " has no such group",
    found.map((each) => h("button", { type: "button", class: "link", onclick: () => open(each, other) }, `group ${each + 1}: ${short(PLANS[other].groups[each].operators, 40)}`)));
  if (!found.length) return line;
  const sum = (side, value) => family[side].reduce((all, each) => all + value(PLANS[side].groups[each]), 0);
  const rows = [["predicted time", (group) => group.time, roundTime], ["traffic", (group) => group.traffic, roundBytes], ["operations", (group) => group.operations, (value) => rounded(operations, value, "operations")]]
    .map(([name, value, text]) => [name, text(sum(0, value)), text(sum(1, value)), changed(sum(0, value), sum(1, value))]);
  const several_ = family.some((side) => side.length > 1) && h("p", { class: "quiet small" }, `The table adds up ${family.map((side, n) => `${several(side.length, "group")} of ${SIDES[n]}`).join(" and ")}.`);
  return h("div", { class: "both" }, line, table("This group in both plans", [["in both plans"], ["A", "right"], ["B", "right"], ["change", "right"]], rows), several_);
}

/** The layers that the group's nodes come from, under the names that the model gives them. */
function layersOf(group) {
  const names = [...new Set(group.nodes.flatMap((node) => node.origin ?? []))];
  return names.length > 3 ? `${short(names[0], 48)} … ${short(names[names.length - 1], 48)} (${several(names.length, "layer")})` : names.map((each) => short(each, 60)).join(", ");
}

/** What limits a group, in a word or two. */
const limitName = (limit) => (limit.kind === "memory" ? `${limit.name} bandwidth` : limit.kind === "compute" ? `compute (${limit.name})` : limit.name);

/** Least times by each thing that could limit the group, beside the predicted one. */
function limits(plan, group) {
  const rows = group.factors.map((each) => [each.kind === "compute"
    ? `${operations(each.amount)} at ${rate(each.rate)} (${each.name})` : `${bytes(each.amount)} to ${each.level} at ${bandwidth(each.rate)} (${each.name})`, each.least, each.kind]);
  if (!rows.length || !group.time) return null;
  const most = Math.max(group.time, ...rows.map(([, least]) => least));
  const bar = ([name, least, kind]) => h("div", { class: `limit ${kind}` }, h("span", {}, name), h("span", { class: "track", "aria-hidden": "true" }, h("span", { vars: { width: `${(100 * least) / most}%` } })), h("span", { class: "right" }, time(least)));
  return h("div", { class: "limits" }, bar(["predicted by the cost model", group.time, "predicted"]), rows.map(bar));
}

function tabs(plan, group, n) {
  const body = h("div", { class: "tab-body", id: "tab-body", role: "tabpanel", tabindex: "0" });
  const buttons = TABS.map(([id, title]) => h("button", {
    type: "button", role: "tab", id: `tab-${id}`, "aria-controls": "tab-body", onclick: () => choose(id),
  }, title, id === "edges" ? count(refusedOf(plan, n).length) : id === "nodes" ? count(group.nodes.length) : null));
  const choose = (id) => {
    tabShown = id;
    buttons.forEach((button) => {
      const on = button.id === `tab-${id}`;
      button.setAttribute("aria-selected", String(on));
      button.setAttribute("tabindex", on ? "0" : "-1");
    });
    body.setAttribute("aria-labelledby", `tab-${id}`);
    fill(body, TABS.find(([each]) => each === id)[2](plan, group, n));
    settle();
  };
  const bar = h("div", { class: "tabs", role: "tablist", "aria-label": "About this group" }, buttons);
  roving(bar, () => buttons, { next: (button) => choose(button.id.slice(4)) });
  choose(tabShown);
  return h("div", {}, bar, body);
}

const count = (number) => h("span", { class: "count" }, separated(number));

function tilesTab(plan, group) {
  return group.variants.map((variant, n) => [
    group.variants.length > 1 && h("p", { class: "guard" }, n ? "else when " : "when ", h("code", {}, variant.guard), plan.sizes && n === group.runs ? h("strong", {}, ` runs at ${plan.sizes.at}`) : null),
    blocks(plan, group, variant),
  ]);
}

function trafficTab(plan, group, n) {
  const rows = plan.levels.filter((level) => level.name in group.levels).map((level) => {
    const use = group.levels[level.name];
    return [level.name, roundBytes(use.read), roundBytes(use.written), rounded(separated, use.transactions, `of ${level.transaction} bytes`), roundBytes(use.footprint),
      "known" in use ? roundBytes(use.known) : "–", use.parallel ? roundBytes(use.parallel) : "–", "least" in use ? roundBytes(use.least) : "–"];
  });
  return [
    table("Traffic by level", [["level"], ["read", "right"], ["written", "right"], ["transactions", "right"], ["held", "right"], ["least known", "right"], ["in parallel", "right"], ["proved", "right"]], rows),
    h("h4", {}, "Ski slope"), slopeChart(plan, group),
    groupRoofline(n),
  ];
}

/** The roofline with the group alone standing out. */
function groupRoofline(n) {
  const plan = shown.plan;
  if (!spotsOf([plan], 0).some((spot) => spot.n === n)) return null;
  const { element } = figure(null, (width) => rooflineChart(width, [plan], 0, n), legend([`dot ${TWO ? `side-${SIDES[plan]}` : current().groups[n].kind}`, "this group"], ["dot other", "other groups"], ["line roof", "bandwidth or compute unit"]));
  return [h("h4", {}, "Roofline"), element];
}

function programTab(plan, group) {
  return group.kernels.map((kernel) => programText(plan, kernel));
}

function nodesTab(plan, group) {
  return h("ol", { class: "nodes" }, group.nodes.map((node) => h("li", {},
    h("p", {}, h("strong", {}, node.op || "node"), (node.origin ?? []).map((each) => h("span", { class: "quiet mono wrap" }, ` ${each}`))),
    h("p", { class: "mono wrap" }, node.expr.text),
    h("p", { class: "quiet small" }, Object.entries(node.expr.extents).map(([i, extent]) => `${i}=${extent}`).join("  ")))));
}

const refusedOf = (plan, n) => plan.refusals.filter((each) => each.from === n || each.to === n);

function edgesTab(plan, group, n) {
  const { items, links } = plan.drawing;
  const at = items.findIndex(([kind, index]) => kind === "group" && index === n);
  const named = (item) => {
    const [kind, index] = items[item];
    if (kind === "group") return h("button", { type: "button", class: "link", onclick: () => open(index) }, `${index + 1}: ${short(plan.groups[index].operators, 34)}`);
    return h("span", {}, kind === "call" ? "onnxruntime" : `${kind} ${plan.ports[`${kind}s`][index][0]}`);
  };
  const rows = links.filter(([from, to]) => from === at || to === at).map(([from, to, tensors]) => [
    from === at ? "writes for" : "reads from", named(from === at ? to : from), tensors.map((tensor) => h("span", { class: "mono wrap" }, `${short(tensor, 38)} ${plan.tensors[tensor]?.[0] ?? ""} `)), tensors.map((tensor) => roundBytes(plan.tensors[tensor]?.[1])),
  ]);
  const made = new Set(plan.drawing.links.filter(([, to]) => to === at).flatMap(([, , tensors]) => tensors));
  const weights = group.reads.filter((name) => !made.has(name));
  const refused = refusedOf(plan, n);
  return [
    table("Edges of the group", [["direction"], ["other end"], ["tensor"], ["bytes", "right"]], rows),
    weights.length ? h("p", { class: "note wrap" }, `Constants: ${weights.map((name) => `${short(name, 40)} ${plan.tensors[name]?.[0] ?? ""}`).join(", ")}.`) : null,
    h("h4", {}, refused.length ? "Why it was not joined with its neighbours" : "No edge was refused"),
    refused.map((each) => refusalLine(plan, each, n)),
  ];
}
