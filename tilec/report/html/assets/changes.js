/* What `tilec diff` tells of two plans: totals, and what became of every group that changed. */

const BYTE_METRICS = /^(traffic|footprint|unfused)/;

const METRICS = { picoseconds: "predicted time", flops: "operations", unfused: "unfused traffic" };
const metricName = (name) => METRICS[name] ?? name.replace("@", " at ");

function metricText(name, value) {
  if (value === null || value === undefined) return "–";
  if (!isNumber(value)) return String(value);
  if (name === "picoseconds") return time(value);
  if (BYTE_METRICS.test(name)) return bytes(value);
  return name === "flops" ? operations(value) : separated(value);
}

function changes() {
  if (!TWO) return null;
  const found = DATA.changes;
  const totals = Object.entries(found.totals).map(([name, { before, after }]) => [metricName(name), exact(name, before), exact(name, after), changed(before, after)]);
  const kinds = new Map();
  for (const group of found.groups) kinds.set(group.kinds.join(", "), (kinds.get(group.kinds.join(", ")) ?? 0) + 1);
  const told = [...[...kinds].map(([kind, count_]) => `${count_} ${kind}`), `${found.unchanged} unchanged`].join(", ");
  return section("changes", "What changed from A to B", found.changed ? `Groups are matched by what their nodes compute: ${told}.` : "Nothing but names.",
    h("div", { class: "two" },
      h("div", {}, h("h3", {}, "Totals"), table("Totals of both plans", [["metric"], ["A", "right"], ["B", "right"], ["change", "right"]], totals)),
      h("div", {}, h("h3", {}, "Groups"), groupChanges(found.groups))),
    found.changes.length ? h("details", {}, h("summary", {}, `${several(found.changes.length, "fact")} beside the groups`), factTable(found.changes, "Facts beside the groups")) : null);
}

const exact = (name, value) => h("span", { title: isNumber(value) ? separated(value) : null }, metricText(name, value));

function changed(before, after) {
  const text = growth(before, after);
  return text ? h("span", { class: `growth ${text.startsWith("+") ? "more" : "less"}` }, text) : before === after ? h("span", { class: "quiet" }, "same") : "";
}

function groupChanges(groups) {
  if (!groups.length) return h("p", { class: "none" }, "No group changed.");
  const holder = h("div", {});
  const show = (count_) => fill(holder, groups.slice(0, count_).map(groupChange),
    groups.length > count_ && h("button", { type: "button", class: "plain more", onclick: () => show(count_ + 60) }, `Show more of ${groups.length}`));
  show(12);
  return holder;
}

function groupChange(group) {
  const cost = group.costs.picoseconds ?? Object.entries(group.costs).find(([name]) => name.startsWith("traffic@"))?.[1];
  const body = h("div", { class: "changed" });
  const fillBody = () => fill(body,
    h("p", {}, [0, 1].map((side) => [h("b", { class: `side side-${SIDES[side]}` }, SIDES[side]), (side ? group.after : group.before).map((name) => opener(name, side)), (side ? group.after : group.before).length ? " " : " – "])),
    Object.keys(group.costs).length ? table(`Costs of ${group.after[0] ?? group.before[0]}`, [["metric"], ["A", "right"], ["B", "right"], ["change", "right"]], Object.entries(group.costs).map(([name, { before, after }]) => [metricName(name), exact(name, before), exact(name, after), changed(before, after)])) : null,
    group.changes.length ? factTable(group.changes, `Facts of ${group.after[0] ?? group.before[0]}`) : null);
  const details = h("details", { class: "change", ontoggle: () => { if (details.open && !body.childElementCount) fillBody(); } },
    h("summary", {}, h("span", { class: "chip" }, group.kinds.join(", ")), h("span", { class: "name" }, short(group.operators, 60)), cost && changed(cost.before, cost.after)), body);
  return details;
}

function opener(name, side) {
  const n = PLANS[side].groups.findIndex((group) => group.name === name);
  return h("button", { type: "button", class: "link", onclick: () => open(n, side, true) }, `group ${n + 1}`);
}

function factTable(facts, label) {
  const told = (fact) => (fact === null || fact === undefined ? "–" : Array.isArray(fact) ? fact.join(" ") || "–" : typeof fact === "object" ? Object.entries(fact).map(([key, value]) => `${key}=${value}`).join(" ") : String(fact));
  return table(label, [["fact"], ["about"], ["A"], ["B"]], facts.slice(0, 60).map((fact) => [fact.kind, h("span", { class: "mono wrap" }, [fact.level, short(String(fact.subject), 40)].filter(Boolean).join(" ")), h("span", { class: "mono wrap" }, told(fact.before)), h("span", { class: "mono wrap" }, told(fact.after))]), { class: "fact-table" });
}
