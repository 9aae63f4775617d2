/* How far every group is from the least traffic known and proved. */

function distance() {
  const lede = "Bytes that a group moves, beside the least that is known for its nodes at that capacity and the least that is proved. Several units need tasks, and each loads its operands for itself: the least known in tasks for all units stands beside. Groups with one kernel stand together; where most bytes could be saved comes first.";
  const holder = h("div", {});
  let all = false;
  const draw = () => {
    const plan = current();
    const ratio = plan.totals.ratio;
    if (!ratio) {
      fill(holder, h("p", { class: "none" }, "This plan has no bounds: the file of its device is not here, or its products are too large to be counted."));
      return;
    }
    const level = boundedLevel(plan);
    const rows = alike(plan, level);
    const most = Math.max(1, ...rows.map(({ use }) => Math.max(use.moved, use.known, use.least, use.parallel ?? 0)));
    const few = all ? rows : rows.slice(0, 10);
    fill(holder,
      h("p", { class: "whole-line" }, TWO && h("b", { class: `side side-${SIDES[shown.plan]}` }, SIDES[shown.plan]),
        ` All groups together move `, h("strong", {}, roundBytes(ratio.moved_bytes)), ` at ${ratio.level}; `, roundBytes(ratio.known_bytes), " are known to be enough, ", roundBytes(ratio.least_bytes), " are proved necessary.",
        level && level !== ratio.level ? ` One by one they are compared at ${level}.` : ""),
      h("ol", { class: "distances" }, few.map(({ group, n, use, same }) => h("li", {},
        h("button", { type: "button", class: "plain", onclick: () => open(n, shown.plan, true), "aria-label": `Group ${n + 1}, ${group.operators}: ${same > 1 ? `one of ${same} alike, ` : ""}moves ${bytes(use.moved)}, ${bytes(use.known)} known, ${use.parallel ? `${bytes(use.parallel)} in parallel, ` : ""}${bytes(use.least)} proved` },
          h("span", { class: "name" }, h("span", { class: `dot ${group.kind}`, "aria-hidden": "true" }), h("span", { class: "cut", title: group.operators }, group.operators), same > 1 && h("span", { class: "count" }, `${same} alike`)),
          h("span", { class: "distance", "aria-hidden": "true" },
            h("span", { class: "from-to", vars: { left: `${(100 * Math.min(use.known, use.moved)) / most}%`, width: `${(100 * Math.abs(use.moved - use.known)) / most}%` } }),
            h("span", { class: "at proved", vars: { left: `${(100 * use.least) / most}%` } }),
            h("span", { class: "at known", vars: { left: `${(100 * use.known) / most}%` } }),
            use.parallel && h("span", { class: "at parallel", vars: { left: `${(100 * use.parallel) / most}%` } }),
            h("span", { class: `at moved ${group.kind}`, vars: { left: `${(100 * use.moved) / most}%` } })),
          h("span", { class: "amount" }, `${bytes(use.moved)} `, h("b", {}, times(use.moved / (use.parallel ?? use.known)))))))),
      rows.length > 10 && h("button", { type: "button", class: "plain more", onclick: () => { all = !all; draw(); } }, all ? "Show the first ten" : `Show all ${rows.length}`));
  };
  listen((what) => what === "plan" && draw());
  draw();
  return section("distance", "How far from the least", lede,
    legend(["at-mark proved", "proved necessary"], ["at-mark known", "known to be enough"], ["at-mark parallel", "known to be enough in tasks for all units"], ["at-mark moved", "moved by this plan"]), holder);
}

/** The lowest level at which groups have bounds of their own. */
function boundedLevel(plan) {
  return plan.levels.map((level) => level.name).find((name) => plan.groups.some((group) => group.levels[name]?.known));
}

/** Bytes beyond the least known, in tasks where there are several units. */
const excess = (use) => use.moved - (use.parallel ?? use.known);

/** Groups with a known least at a level, one of each kernel with how many are alike. */
function alike(plan, level) {
  const rows = new Map();
  plan.groups.forEach((group, n) => {
    const use = group.levels[level];
    const key = group.kernels.join(" ");
    if (!use || !use.known) return;
    if (rows.has(key)) rows.get(key).same += 1;
    else rows.set(key, { group, n, use, same: 1 });
  });
  return [...rows.values()].sort((a, b) => b.same * excess(b.use) - a.same * excess(a.use) || a.n - b.n);
}
