/* A tile program as text, with its words told apart. */

const WORDS = /^(\s*)(program|level|input|output|allocate|fill|load|compute|store|barrier|for)\b/;

/** The text of a kernel, made when it is first looked at. */
function programText(plan, kernel) {
  const text = plan.programs[kernel] ?? "";
  const lines = text.replace(/\n$/, "").split("\n");
  const code = h("code", {}, lines.map((each, n) => codeLine(each, n)));
  const copy = h("button", { type: "button", class: "plain", onclick: () => copied(copy, text) }, "Copy");
  const users = plan.groups.filter((group) => group.kernels.includes(kernel)).length;
  return h("div", { class: "program" },
    h("p", { class: "program-head" }, h("span", { class: "mono" }, kernel), h("span", { class: "quiet" }, `${several(lines.length, "line")}, run by ${several(users, "group")}`), copy),
    kernelPlaces(plan, kernel),
    scrolling(`Tile program ${kernel}`, h("pre", {}, code)));
}

function codeLine(text, n) {
  const found = WORDS.exec(text);
  const number = h("span", { class: "number", "aria-hidden": "true" }, String(n + 1).padStart(3));
  if (!found) return h("span", { class: "line" }, number, text, "\n");
  const [all, indent, word] = found;
  const rest = text.slice(all.length);
  const spread = rest.match(/^(.*?)( spread over .*:)$/);
  return h("span", { class: "line" }, number, indent, h("span", { class: `word ${word}` }, word),
    spread ? [spread[1], h("span", { class: "word spread" }, spread[2])] : rest, "\n");
}

async function copied(button, text) {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed here";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1600);
}
