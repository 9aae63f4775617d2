/* Where time and traffic go: all groups in their order, each as wide as its part. */

function strip() {
  const holder = h("div", { class: "holder" });
  const measures = [
    ["predicted time", (group) => group.time, time],
    ["measured time", (group) => group.measured, time],
    ["traffic", (group) => group.traffic, bytes],
  ].filter(([, value]) => PLANS.some((plan) => plan.groups.some((group) => isNumber(value(group)) && value(group) > 0)));
  responsive(holder, (width) => {
    fill(holder, PLANS.map((plan, side) => measures.map(([name, value, text]) => row(plan, side, name, value, text, width))));
    markChosen(holder);
  });
  listen(() => markChosen(holder));
  return section("where", "Where time and bytes go",
    "All groups in the order in which they run, each as wide as its part of the whole. Choose one to open it.",
    legend(...kindsThere().map(([kind, name]) => [`fill ${kind}`, `${name}: ${KIND_MEANS[kind]}`])), holder);
}

function row(plan, side, name, value, text, width) {
  const height = 46;
  const sizes = plan.groups.map((group) => (isNumber(value(group)) ? value(group) : 0));
  const total = sizes.reduce((sum, size) => sum + size, 0);
  const svg = s("svg", { class: "strip", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": `Groups of ${planName(side)} by ${name}` });
  let x = 0;
  const parts = plan.groups.map((group, n) => {
    const wide = total ? (width * sizes[n]) / total : 0;
    const part = s("g", {
      class: `part ${group.kind}`, role: "button", tabindex: "-1", "data-side": side, "data-group": n,
      "aria-label": `${n + 1}, ${group.operators}: ${text(value(group))}, ${percent(sizes[n] / total)}`,
      ...pressed(() => open(n, side, true)),
      ...tipped(() => [group.operators, `${text(value(group))}, ${percent(sizes[n] / total)} of ${name}`, `group ${n + 1} of ${plan.groups.length}`]),
    }, s("rect", { x, y: 3, width: Math.max(wide - (wide > 3 ? 1 : 0), 0.4), height: height - 6, rx: wide > 8 ? 2 : 0 }));
    if (wide > 64) {
      part.append(s("text", { x: x + 7, y: 21 }, fitted(group.operators.split(", ")[0], wide - 12, 12.5)),
        s("text", { x: x + 7, y: 36, class: "small" }, text(value(group))));
    }
    x += wide;
    return part;
  });
  parts[0]?.setAttribute("tabindex", "0");
  roving(svg, () => parts);
  svg.append(...parts);
  const said = total ? text(total) : "nothing";
  return h("div", { class: "strip-row" }, h("p", { class: "strip-name" }, TWO && h("b", { class: `side side-${SIDES[side]}` }, SIDES[side]), ` ${name} `, h("span", { class: "quiet" }, said)), svg);
}
