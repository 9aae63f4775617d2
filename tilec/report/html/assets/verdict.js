/* What verification found, what fell back, and from what the plans were made. */

function verification() {
  return section("verification", "Verification", "The compiled model beside onnxruntime on random inputs; errors are relative to the largest value of the output.",
    PLANS.map((plan, n) => h("div", { class: "verdict" }, TWO && h("h3", { class: "plan-name" }, h("b", { class: `side side-${SIDES[n]}` }, SIDES[n]), ` ${plan.label}`), verdictOf(plan, plan.verdict))));
}

function verdictOf(plan, found) {
  if (found.state === "none") return h("p", { class: "none" }, "Not verified: there is no 4-report.json beside the plan. `tilec verify` writes it.");
  if (found.state === "stale") return h("p", { class: "none" }, "The 4-report.json beside the plan is that of another plan. Run `tilec codegen` and `tilec verify` again.");
  const groups = found.groups;
  const line = [
    h("strong", { class: found.verdict === "pass" ? "ok" : "bad" }, found.verdict === "pass" ? "✓ pass" : found.verdict),
    ` on ${found.verified_on}`, found.reference ? ` against ${found.reference}` : "", found.because ? ` (${found.because})` : "",
    groups ? `, ${groups.verified} of ${several(groups.total, "group")}` : "",
  ];
  const draws = found.draws;
  const heads = [["output"], ["allowed", "right"], ...draws.map((draw) => [sizesOf(draw) || `seed ${draw.seed}, mean ${draw.mean}`, "right"])];
  const precise = (value) => (isNumber(value) ? value.toExponential(1) : String(value ?? "–"));
  const rows = found.outputs.map((output) => [output.name, precise(output.tolerance), ...output.errors.map((error) => errorCell(error, output.tolerance))]);
  const run = found.run;
  const machine = [run.machine?.processor, run.threads && several(run.threads, "thread"), isNumber(run.latency_us) && `${time(run.latency_us * 1e6)} a run${latencyPlace(run)}`].filter(Boolean).join(", ");
  return [
    h("p", { class: "verdict-line" }, line),
    found.variants && h("p", { class: "note" }, `${found.variants.total - found.variants.idle.length} of ${several(found.variants.total, "variant")} ran, at ${several(found.samples, "sample")} of sizes.${found.variants.idle.map(([group, guard]) => ` Not that of ${group} for ${guard}.`).join("")}`,
      found.programs && ` Of the programs ${found.programs.all_sizes} hold at all sizes; ${found.programs.at_samples} were followed at samples in ${found.programs.followed} of ${found.programs.total}.`),
    found.diverging && h("p", { class: "note bad" }, `First group that diverges: ${Object.entries(found.diverging).map(([key, value]) => `${key} ${key === "sizes" ? sizesOf({ sizes: value }) : value}`).join(", ")}`),
    rows.length ? table("Errors by output", heads, rows) : null,
    found.per_group && h("p", { class: "note" }, `Group by group: ${found.per_group.compared} of ${several(found.per_group.total, "group")} compared, ${found.per_group.diverging?.length ? `${found.per_group.diverging.map((each) => each.group).join(", ")} diverge` : "all right"}.`),
    found.counted && h("p", { class: "note" }, found.counted.differ.length ? `Bytes counted on the run differ from the plan in ${found.counted.differ.join(", ")}.` : `Bytes counted on the run equal those of the plan in ${several(found.counted.groups, "group")}.`),
    found.below_known?.length ? h("details", {}, h("summary", {}, `${several(found.below_known.length, "group")} ${found.below_known.length === 1 ? "moves" : "move"} less than was known`),
      found.below_known.map((each) => h("p", { class: "wrap" }, h("span", { class: "mono" }, each.group), ` moves ${bytes(each.moved)} at ${each.level}, ${bytes(each.bound)} were the least known (${each.because}).`))) : null,
    machine && h("p", { class: "quiet" }, machine),
  ];
}

const sizesOf = (draw) => Object.entries(draw.sizes ?? {}).map(([symbol, size]) => `${symbol}=${size}`).join(", ");

/** ` at batch=8`: the sizes at which a model with symbols was timed. */
function latencyPlace(run) {
  const sizes = sizesOf({ sizes: run?.latency_sizes });
  return sizes && ` at ${sizes}`;
}

/** An error as part of what is allowed. */
function errorCell(error, tolerance) {
  if (!isNumber(error) || !isNumber(tolerance)) return String(error ?? "–");
  return h("span", { class: "error-cell", title: `${percent(error / tolerance)} of what is allowed` }, error.toExponential(1),
    h("span", { class: `meter${error > tolerance ? " over" : ""}`, "aria-hidden": "true" }, h("span", { vars: { width: `${Math.min(100, (100 * error) / tolerance)}%` } })));
}

function placement() {
  const fallen = PLANS.flatMap((plan, n) => (plan.placement.fallback ?? []).map((each) => [TWO ? SIDES[n] : "", each]));
  if (!fallen.length) return null;
  return section("placement", "Nodes on onnxruntime", "What does not compile, why, and what to do about it.",
    table("Nodes that do not compile", [["node"], ["operator"], ["why"], ["what to do"]], fallen.map(([side, each]) => [`${side} ${each.node}`, each.op, each.reason, each.remedy ?? ""])));
}

function foot() {
  return h("footer", {}, PLANS.map((plan, n) => h("p", { class: "mono small quiet wrap" }, TWO && `${SIDES[n]} `,
    Object.entries(plan.digests).map(([role, digest]) => `${role} ${digest.slice(0, 12)}`).join(" · "))),
  h("p", { class: "quiet small" }, "Written by tilec report. Bytes, operations and predicted times are those of 2-plan.json; point at a number for the exact one."));
}
