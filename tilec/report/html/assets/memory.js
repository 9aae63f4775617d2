/* Memory over time: tensors between groups by offset and lifetime, and how full every level is, group by group. */

function memory() {
  const drawn = PLANS.map((plan, side) => [plan, side]).filter(([plan]) => plan.groups.length);
  if (!drawn.length) return null;
  const holder = h("div", { class: "holder" });
  responsive(holder, (width) => {
    fill(holder, drawn.map(([plan, side]) => [
      TWO && h("h3", { class: "plan-name" }, h("b", { class: `side side-${SIDES[side]}` }, SIDES[side]), ` ${plan.label}`),
      plan.memory ? arena(plan, side, width) : h("p", { class: "quiet small" }, "No tensor of fixed size is kept between groups."),
      plan.levels.slice(1).map((level) => fullness(plan, side, level, width)),
    ]));
    markChosen(holder);
  });
  listen(() => markChosen(holder));
  return section("memory", "Memory over time", "Groups from left to right in the order in which they run. Above, the tensors that are kept between them, by place and lifetime; below, how much each level holds during every group.", holder);
}

/** Tensors between groups: a box from the group that writes to the last one that reads, at its offset. */
function arena(plan, side, width) {
  const svg = boxes(plan.memory, plan.groups.length, width, `Tensors between the groups of ${planName(side)}`, (first, last) => `from group ${first + 1} to ${last + 1}`);
  return h("div", {}, h("p", { class: "strip-name" }, "between groups ", h("span", { class: "quiet" }, `${bytes(plan.memory.size)}, ${several(plan.memory.tensors.length, "tensor")}`)), svg);
}

/** Buffers of a kernel at every level with addresses: a box from the first statement that uses it to the last one. */
function kernelPlaces(plan, kernel) {
  const maps = Object.entries(plan.places[kernel] ?? {});
  if (!maps.length) return null;
  const holder = h("div", { class: "holder" });
  responsive(holder, (width) => {
    fill(holder, maps.map(([level, map]) => {
      const steps = Math.max(...map.tensors.map(([, , , , last]) => last + 1));
      const svg = boxes(map, steps, width, `Places of the buffers of ${kernel} in ${level}`, (first, last) => `from statement ${first + 1} to ${last + 1}`);
      return h("div", {}, h("p", { class: "strip-name" }, `places in ${level} `, h("span", { class: "quiet" }, `${bytes(map.size)}, ${several(map.tensors.length, "buffer")}`)), svg);
    }));
  });
  return holder;
}

/** Tensors or buffers as boxes: bytes upwards, steps to the right. */
function boxes(map, steps, width, label, period) {
  const height = 180;
  const step = width / steps;
  const svg = s("svg", { class: "memory-map", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label });
  for (const [name, offset, size, first, last] of map.tensors) {
    const tall = Math.max((height * size) / map.size, 1);
    svg.append(s("rect", { class: "kept-tensor", x: first * step, width: Math.max((last - first + 1) * step - 0.5, 0.5), y: height - (height * offset) / map.size - tall, height: tall,
      ...tipped(() => [name, `${bytes(size)} at ${bytes(offset)}`, period(first, last)]) }));
  }
  return svg;
}

/** How much of a level its fullest group takes; a cache may be asked for more than it has. */
function share(most, level) {
  return level.managed === "implicit" && most > level.capacity ? "more than the cache has: the rest is read again from below" : percent(most / level.capacity);
}

/** What a level holds during every group, against its capacity where it has one. */
function fullness(plan, side, level, width) {
  const held = plan.groups.map((group) => group.levels[level.name]?.footprint ?? 0).map((value) => (isNumber(value) ? value : 0));
  const most = Math.max(...held, 0);
  if (!most) return null;
  const height = 46;
  const top = Math.max(most, level.capacity !== null && level.capacity < 4 * most ? level.capacity : 0);
  const step = width / held.length;
  const svg = s("svg", { class: "memory-map", width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Bytes that ${level.name} holds during every group of ${planName(side)}` });
  held.forEach((value, n) => {
    const tall = (height * value) / top;
    svg.append(s("g", { class: `part ${plan.groups[n].kind}`, "data-side": side, "data-group": n, onclick: () => open(n, side, true),
      ...tipped(() => [plan.groups[n].operators, `${level.name} holds ${bytes(value)}${level.capacity === null ? "" : ` of ${bytes(level.capacity)}`}`, `group ${n + 1}`]) },
    s("rect", { x: n * step, y: height - tall, width: Math.max(step - (step > 3 ? 1 : 0), 0.4), height: tall })));
  });
  if (level.capacity !== null && level.capacity <= top) svg.append(s("line", { class: "capacity", x1: 0, x2: width, y1: height - (height * level.capacity) / top, y2: height - (height * level.capacity) / top }));
  const said = `up to ${bytes(most)}${level.capacity === null ? "" : ` of ${bytes(level.capacity)}, ${share(most, level)}`}`;
  return h("div", {}, h("p", { class: "strip-name" }, `${level.name} `, h("span", { class: "quiet" }, said)), svg);
}
