/* What is shown: the data of the page, which plan and which group are open; who wants to hear of it. */

const DATA = JSON.parse(document.getElementById("data").textContent);
const PLANS = DATA.plans;
const TWO = PLANS.length > 1;
const SIDES = ["A", "B"];
const KINDS = { stitched: "stitched", register: "register-fused", single: "single" };
const KIND_MEANS = {
  stitched: "nodes that share tiles of memory",
  register: "nodes that share registers",
  single: "one node",
};

/** Kinds of groups that occur, with their names. */
const kindsThere = () => Object.entries(KINDS).filter(([kind]) => PLANS.some((plan) => plan.totals.kinds[kind]));

const shown = { plan: PLANS.length - 1, group: null };
const listeners = [];

const current = () => PLANS[shown.plan];
const planName = (n) => (TWO ? `${SIDES[n]}: ${PLANS[n].label}` : PLANS[n].label);

/** Call `hear(what)` when another plan or group is shown. */
function listen(hear) {
  listeners.push(hear);
}

/** Open a group of a plan; with `go`, bring it into view. */
function open(group, plan = shown.plan, go = false) {
  const other = plan !== shown.plan;
  shown.plan = plan;
  shown.group = group;
  for (const hear of listeners) hear(other ? "plan" : "group");
  const name = group === null ? "" : `#group=${encodeURIComponent(current().groups[group].name)}${TWO ? `&plan=${SIDES[plan]}` : ""}`;
  history.replaceState(null, "", location.href.split("#")[0] + name);
  if (go) document.getElementById("detail")?.focus();
}

/** The group that the address names, if any. */
function addressed() {
  const asked = new URLSearchParams(location.hash.slice(1));
  if (!asked.has("group")) return null;
  const plan = TWO && asked.get("plan") === "A" ? 0 : PLANS.length - 1;
  const group = PLANS[plan].groups.findIndex((each) => each.name === asked.get("group"));
  return group < 0 ? null : { plan, group };
}

/** Mark the pieces of the open group inside an element, wherever it is drawn. */
function markChosen(element) {
  element.querySelectorAll(".chosen").forEach((each) => each.classList.remove("chosen"));
  element.querySelectorAll(`[data-side="${shown.plan}"][data-group="${shown.group}"]`).forEach((each) => each.classList.add("chosen"));
}

/** Operations of a group for each byte that it moves at a level. */
function intensity(group, level) {
  const moved = group.levels[level]?.moved;
  return isNumber(moved) && moved > 0 && isNumber(group.operations) ? group.operations / moved : null;
}

/** Levels of a plan at which groups move anything, as [level, next lower one]. */
function pairs(plan) {
  return plan.levels.slice(1).map((level, n) => [level.name, plan.levels[n].name])
    .filter(([level]) => plan.groups.some((group) => level in group.levels));
}

/** The lowest level at which a group moves anything. */
function lowest(plan, group) {
  return plan.levels.slice(1).map((level) => level.name).find((level) => group.levels[level]?.moved);
}
