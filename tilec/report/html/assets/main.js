/* The page, from its parts. */

function model() {
  const views = { graph: graph(), list: list() };
  const body = h("div", { class: "views" }, Object.values(views));
  const buttons = Object.keys(views).map((name) => h("button", { type: "button", onclick: () => show(name) }, name === "graph" ? "Graph" : "List"));
  const show = (name) => Object.keys(views).forEach((each, n) => {
    views[each].hidden = each !== name;
    buttons[n].setAttribute("aria-pressed", String(each === name));
  });
  const sides = TWO && h("div", { class: "choice", role: "group", "aria-label": "Plan" }, PLANS.map((plan, n) => {
    const button = h("button", { type: "button", "aria-pressed": String(shown.plan === n), onclick: () => open(slowest(PLANS[n]), n) }, planName(n));
    listen(() => button.setAttribute("aria-pressed", String(shown.plan === n)));
    return button;
  }));
  show("graph");
  return section("model", "The model, group by group", "Each box is a group of nodes that run together as one kernel; the bar in it is its part of the time. Open one for its tiles, traffic, tile program and edges.",
    h("div", { class: "toolbar" }, h("div", { class: "choice", role: "group", "aria-label": "View" }, buttons), sides),
    h("div", { class: "explorer" }, body, detail()));
}

function start() {
  const asked = addressed();
  if (asked) Object.assign(shown, asked);
  else shown.group = slowest(current());
  const sections = [strip(), model(), changes(), scenarios(), levels(), memory(), roofline(), distance(), refusals(), verification(), placement()].filter(Boolean);
  const titles = { where: "Overview", model: "Model", changes: "Changes", scenarios: "Scenarios", levels: "Levels", memory: "Memory", roofline: "Roofline", distance: "Bounds", refusals: "Refusals", verification: "Verification", placement: "Fallback" };
  document.getElementById("app").append(bar(sections.map((each) => [each.id, titles[each.id]])), h("main", {}, hero(), figures(), sections), foot(), tip);
  settle();
  addEventListener("hashchange", () => {
    const found = addressed();
    if (found) open(found.group, found.plan, true);
  });
}

/** The group with the longest predicted time; the first where none has any. */
function slowest(plan) {
  const most = plan.groups.reduce((best, group, n) => (group.time > (plan.groups[best]?.time ?? -1) ? n : best), 0);
  return plan.groups.length ? most : null;
}

start();
