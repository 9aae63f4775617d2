/* The parts inside a group as boxes: what each level holds together, down to nodes under the names of their layers. */

/** The name under which the model's author knows a node: its layer, else the operator. */
const layerName = (node) => node.origin?.[0] ?? (node.op || nameOf(node));

function partsTab(plan, group) {
  return [
    h("p", { class: "quiet small" }, "What one level holds together is one box; inside it are those of the next higher level, in the order in which they run."),
    h("div", { class: "parts" }, group.parts.map((each) => part(group, each))),
  ];
}

function part(group, item) {
  if (isNumber(item)) {
    const node = group.nodes[item];
    return h("div", { class: "part-node", title: `${nameOf(node)}: ${node.expr.text}` }, h("strong", {}, node.op || "node"), h("span", { class: "quiet mono" }, short(layerName(node), 36)));
  }
  const [level, items] = item;
  return h("div", { class: "part-box" }, h("p", { class: "quiet small" }, `${level} · ${several(countNodes(item), "node")}`), h("div", { class: "parts" }, items.map((each) => part(group, each))));
}

const countNodes = (item) => (isNumber(item) ? 1 : item[1].reduce((sum, each) => sum + countNodes(each), 0));
