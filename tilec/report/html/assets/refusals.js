/* Edges between groups: why each was not connected, by code. */

const SHOWN = 40;

function refusals() {
  const holder = h("div", {});
  const draw = () => {
    const plan = current();
    const byCode = new Map();
    for (const each of plan.refusals) (byCode.get(each.code) ?? byCode.set(each.code, []).get(each.code)).push(each);
    const codes = [...byCode].sort((a, b) => b[1].length - a[1].length);
    const most = Math.max(1, ...codes.map(([, list]) => list.length));
    fill(holder, TWO && h("h3", { class: "plan-name" }, h("b", { class: `side side-${SIDES[shown.plan]}` }, SIDES[shown.plan]), ` ${plan.label}`),
      codes.length ? codes.map(([code, list]) => refusedBy(plan, code, list, most)) : h("p", { class: "none" }, "Every edge is connected."));
  };
  listen((what) => what === "plan" && draw());
  draw();
  return section("refusals", "Edges that were not connected",
    "Every edge between two groups has a reason, a code of a closed list with its numbers.", holder);
}

function refusedBy(plan, code, list, most) {
  const page = plan.codes[code] ?? { meaning: "", remedy: "", numbers: {} };
  const body = h("div", { class: "refused" });
  const show = (count) => fill(body,
    page.remedy && h("p", { class: "quiet" }, `What to do: ${page.remedy}`),
    list.slice(0, count).map((each) => refusalLine(plan, each)),
    list.length > count && h("button", { type: "button", class: "plain more", onclick: () => show(count + 200) }, `Show more of ${separated(list.length)}`));
  const details = h("details", { class: "code", ontoggle: () => { if (details.open && !body.childElementCount) show(SHOWN); } },
    h("summary", {}, h("code", {}, code), h("span", { class: "code-bar", "aria-hidden": "true" }, h("span", { vars: { width: `${(100 * list.length) / most}%` } })),
      h("span", { class: "right" }, several(list.length, "edge")), h("span", { class: "meaning" }, page.meaning)), body);
  return details;
}

const IN_PICOSECONDS = new Set(["apart", "joined"]);
const IN_BYTES = new Set(["bytes", "capacity"]);

/** One refusal with its numbers; `self` is the group that is open. */
function refusalLine(plan, refusal, self = null) {
  const page = plan.codes[refusal.code];
  const named = (n) => (n === null || n === self ? null : h("button", { type: "button", class: "link", onclick: () => open(n, shown.plan, self === null) }, `group ${n + 1}`));
  const numbers = Object.entries(refusal.numbers).map(([name, value]) => {
    const text = IN_BYTES.has(name) ? bytes(value) : IN_PICOSECONDS.has(name) && plan.groups.some((group) => group.time) ? time(value) : isNumber(value) ? separated(value) : String(value);
    return h("span", { class: "number-chip", title: `${isNumber(value) ? separated(value) : value}: ${page?.numbers[name] ?? name}` }, h("span", { class: "quiet" }, `${name} `), text);
  });
  const [tensor, node] = refusal.edge.split("->");
  return h("div", { class: "refusal" },
    h("p", { class: "mono wrap" }, short(tensor, 56), h("span", { class: "quiet" }, " → "), short(node ?? "", 56)),
    h("p", { class: "chips" }, self !== null && h("code", {}, refusal.code), numbers, named(refusal.from), named(refusal.to)),
    comparisonBar(refusal.numbers));
}

/** Joined against apart, or needed against there, as two bars. */
function comparisonBar({ joined, apart, bytes: needed, capacity }) {
  const [one, other, first, second] = isNumber(joined) && isNumber(apart) ? [joined, apart, "joined", "apart"] : isNumber(needed) && isNumber(capacity) ? [needed, capacity, "needed", "there"] : [];
  if (!first) return null;
  const most = Math.max(one, other, 1);
  return h("div", { class: "versus", role: "img", "aria-label": `${first} is ${times(one / Math.max(other, 1))} ${second}` },
    h("span", { class: "quiet" }, first), h("span", { class: "track" }, h("span", { class: "much", vars: { width: `${(100 * one) / most}%` } })),
    h("span", { class: "quiet" }, second), h("span", { class: "track" }, h("span", { vars: { width: `${(100 * other) / most}%` } })));
}
