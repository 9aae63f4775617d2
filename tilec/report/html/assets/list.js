/* The groups as a table that can be sorted and searched; rows beyond the first come when asked for. */

const CHUNK = 150;

const COLUMNS = [
  ["#", (group, n) => n, "right", (value) => String(value + 1)],
  ["group", (group) => group.operators, "", null],
  ["kind", (group) => group.kind, "nowrap", (value) => KINDS[value]],
  ["time", (group) => group.time, "right", time],
  ["measured", (group) => group.measured ?? -1, "right", (value) => (value < 0 ? "–" : time(value))],
  ["limited by", (group) => (group.limit ? limitName(group.limit) : ""), "nowrap", (value) => value || "–"],
  ["traffic", (group) => (isNumber(group.traffic) ? group.traffic : 0), "right", bytes],
  ["over known", (group) => overKnown(group) ?? -1, "right", (value) => (value < 0 ? "–" : times(value))],
];

/** How often a group moves the least known, at the lowest level where both are known. */
function overKnown(group) {
  const level = Object.values(group.levels).find((each) => each.known);
  return level ? level.moved / level.known : null;
}

function list() {
  const body = h("tbody");
  const more = h("button", { type: "button", class: "plain more", onclick: () => { count += CHUNK; draw(); } });
  const search = h("input", { type: "search", placeholder: "Filter by operator, node, layer, kernel …", "aria-label": "Filter groups", oninput: () => { count = CHUNK; draw(); } });
  let sorted = 0;
  let falling = false;
  let count = CHUNK;
  const heads = COLUMNS.map(([name, , kind], n) => h("th", { scope: "col", class: kind },
    h("button", { type: "button", onclick: () => { falling = sorted === n ? !falling : n > 2 && n !== 5; sorted = n; draw(); } }, name)));
  const draw = () => {
    const plan = current();
    const wanted = search.value.trim().toLowerCase();
    const key = COLUMNS[sorted][1];
    const rows = plan.groups.map((group, n) => ({ group, n, key: key(group, n) }))
      .filter(({ group }) => !wanted || [group.operators, group.name, ...group.kernels, ...group.nodes.flatMap((node) => [node.expr.text.split("[")[0], ...(node.origin ?? [])])].some((text) => text.toLowerCase().includes(wanted)))
      .sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : a.n - b.n) * (falling ? -1 : 1));
    heads.forEach((head, n) => head.setAttribute("aria-sort", n === sorted ? (falling ? "descending" : "ascending") : "none"));
    fill(body, rows.slice(0, count).map(({ group, n }) => line(plan, group, n)));
    markChosen(body);
    more.hidden = rows.length <= count;
    more.textContent = `Show ${Math.min(CHUNK, rows.length - count)} more of ${separated(rows.length)}`;
  };
  listen((what) => (what === "plan" ? draw() : markChosen(body)));
  draw();
  return h("div", { class: "list" }, h("div", { class: "search" }, search),
    scrolling("Groups", h("table", { class: "groups" }, h("thead", {}, h("tr", {}, heads)), body)), more);
}

function line(plan, group, n) {
  const most = Math.max(...plan.groups.map((each) => each.time), 1);
  const cells = COLUMNS.map(([, key, kind, text], column) => {
    const value = key(group, n);
    if (column === 1) {
      return h("th", { scope: "row" }, h("button", { type: "button", class: `plain ${group.kind}`, title: group.name, onclick: () => open(n) },
        h("span", { class: `dot ${group.kind}`, "aria-hidden": "true" }), short(value, 40)));
    }
    return h("td", { class: kind }, column === 3 && h("span", { class: "spark", vars: { "--part": `${(100 * group.time) / most}%` } }), text(value));
  });
  return h("tr", { "data-side": shown.plan, "data-group": n }, cells);
}
