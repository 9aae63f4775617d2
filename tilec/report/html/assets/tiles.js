/* The blocks of a group: a box for every level inside the one below, with the tiles that live there. */

/** Nested boxes of one variant. */
function blocks(plan, group, variant) {
  const outer = variant.levels.filter((level, n) => n === 0 || told(group, variant, level) || level in group.levels);
  return outer.reduceRight((inside, level) => block(plan, group, variant, level, inside), null);
}

/** Whether a variant decides anything at a level. */
function told(group, variant, level) {
  return [variant.tiles, variant.steps, variant.layouts ?? {}].some((part) => Object.keys(part[level] ?? {}).length)
    || Object.values(group.connect).includes(level);
}

function block(plan, group, variant, level, inside) {
  const about = plan.levels.find((each) => each.name === level);
  const first = level === variant.levels[0];
  const use = group.levels[level];
  const head = h("p", { class: "block-head" },
    h("strong", {}, level), h("span", { class: "quiet" }, described(about)),
    !first && use && about.capacity !== null && meter(use.footprint, about),
    !first && use && about.capacity === null && isNumber(use.footprint) && use.footprint > 0 && h("span", { class: "quiet" }, `holds ${bytes(use.footprint)}`));
  return h("div", { class: `block${first ? " whole" : ""}` }, head,
    first ? whole(plan, group) : null,
    folded(tilesAt(group, variant, level), (tiles) => h("div", { class: "tiles" }, tiles), "tile"),
    level === variant.levels[variant.levels.length - 1] ? code(variant) : null,
    kept(plan, group, level), inside);
}

/** How the code computes tiles of the highest level: vectors, bodies, partial results, fetches and stores. */
function code(variant) {
  const body = (name) => Object.entries(variant.unroll?.[name] ?? {}).map(([i, points]) => `${i}=${points}`).join(" ");
  const sums = (name) => (variant.accumulators?.[name] ? `, ${variant.accumulators[name]} accumulators` : "");
  const nodes = Object.entries(variant.vectors ?? {}).map(([name, iterator]) =>
    h("li", {}, h("span", { class: "tensor", title: name }, short(name, 40)),
      h("span", { class: "quiet" }, `${iterator ? ` vectors along ${iterator}` : " scalar"}${body(name) ? `, a body of ${body(name)}` : ""}${sums(name)}`)));
  const fetched = Object.entries(variant.prefetch ?? {}).map(([name, kind]) =>
    h("li", {}, h("span", { class: "tensor", title: name }, short(name, 40)), h("span", { class: "quiet" }, ` fetched ahead: ${kind}`)));
  const streamed = (variant.streamed ?? []).map((name) =>
    h("li", {}, h("span", { class: "tensor", title: name }, short(name, 40)), h("span", { class: "quiet" }, " stored past the caches")));
  const list = (lines) => h("ul", { class: "whole-tensors" }, lines);
  return nodes.length ? folded([...nodes, ...fetched, ...streamed], list, "line") : null;
}

/** The first items of a long list, the others behind a fold. */
function folded(items, list, word) {
  const most = 8;
  if (items.length <= most + 1) return list(items);
  return [list(items.slice(0, most)), h("details", {}, h("summary", {}, several(items.length - most, `more ${word}`)), list(items.slice(most)))];
}

function described(level) {
  if (!level) return "";
  const units = level.units > 1 ? `${separated(level.units)} × ${level.scope || "unit"}` : level.scope;
  return [level.capacity === null ? "" : bytes(level.capacity), units, level.managed === "implicit" ? "cache" : "scratchpad"].filter(Boolean).join(" · ");
}

/** How much of a capacity is taken. */
function meter(used, level) {
  const capacity = level.capacity;
  if (!isNumber(used)) return h("span", { class: "quiet" }, `holds ${used}`);
  const part = capacity ? used / capacity : 0;
  return h("span", { class: "meter-line", title: `${separated(used)} of ${separated(capacity)} bytes` },
    h("span", { class: `meter${part > 1 && level.managed !== "implicit" ? " over" : ""}`, "aria-hidden": "true" }, h("span", { vars: { width: `${Math.min(100, 100 * part)}%` } })),
    `holds ${bytes(used)}, ${share(used, level)}`);
}

/** What comes from outside and what leaves, as whole tensors. */
function whole(plan, group) {
  const one = (name, kind) => h("li", { class: kind }, h("span", { class: "tensor", title: name }, short(name, 44)), h("span", { class: "quiet mono" }, plan.tensors[name]?.[0] ?? ""));
  const most = 5;
  const reads = group.reads.slice(0, most).map((name) => one(name, "reads"));
  const rest = group.reads.length > most && h("li", { class: "quiet" }, `and ${group.reads.length - most} more`);
  return h("ul", { class: "whole-tensors" }, reads, rest, group.outputs.map((name) => one(name, "writes")));
}

/** Tiles and reduce steps at a level. */
function tilesAt(group, variant, level) {
  const extents = Object.fromEntries(group.nodes.map((node) => [nameOf(node), node.expr.extents]));
  const names = new Set([...Object.keys(variant.tiles[level] ?? {}), ...Object.keys(variant.steps[level] ?? {})]);
  return [...names].map((name) => {
    const tile = variant.tiles[level]?.[name] ?? {};
    const steps = variant.steps[level]?.[name] ?? {};
    const order = variant.order?.[level]?.[name];
    const sizes = Object.entries(tile).map(([i, size]) => size_(i, size, extents[name]?.[i], ""));
    const reduced = Object.entries(steps).map(([i, size]) => size_(i, size, extents[name]?.[i], " reduce"));
    return h("div", { class: "tile" }, glyph(tile, extents[name] ?? {}),
      h("div", {}, h("p", { class: "tensor", title: name }, short(name, 40)), h("p", { class: "sizes" }, sizes, reduced),
        order?.length > 1 && h("p", { class: "quiet small" }, `loops ${order.join(" › ")}, outermost first`)));
  });
}

const nameOf = (node) => node.expr.text.slice(0, node.expr.text.search(/[[ ]/));

function size_(iterator, size, extent, kind) {
  const count = isNumber(extent) ? Math.ceil(extent / size) : null;
  return h("span", { class: `size${kind}`, title: count ? `${several(count, kind ? "step" : "tile")} of ${size} over ${extent}` : null },
    h("b", {}, iterator), ` ${size}`, h("span", { class: "quiet" }, ` / ${extent ?? "?"}`));
}

/** A tensor cut into tiles along the two largest iterators that are cut, one tile filled. */
function glyph(tile, extents) {
  const cut = Object.keys(tile).filter((i) => isNumber(extents[i]) && tile[i] < extents[i]).sort((a, b) => extents[b] - extents[a]).slice(0, 2);
  const side = 44;
  const [wide, tall] = cut;
  const part = (i) => (i ? Math.min(1, tile[i] / extents[i]) : 1);
  const lines = [];
  for (const [i, across] of [[wide, true], [tall, false]]) {
    const count = i ? Math.ceil(extents[i] / tile[i]) : 1;
    if (count > 16) continue;
    for (let n = 1; n < count; n += 1) {
      const at = side * n * part(i);
      lines.push(s("line", across ? { x1: at, x2: at, y1: 0, y2: side } : { x1: 0, x2: side, y1: at, y2: at }));
    }
  }
  return s("svg", { class: "glyph", width: side + 2, height: side + 2, viewBox: `-1 -1 ${side + 2} ${side + 2}`, "aria-hidden": "true" },
    s("rect", { class: "all", width: side, height: side, rx: 2 }), lines,
    s("rect", { class: "one", width: Math.max(side * part(wide), 2), height: Math.max(side * part(tall), 2), rx: 1.5 }));
}

/** Tensors that never go below a level, because their edges are connected there. */
function kept(plan, group, level) {
  const names = [...new Set(Object.entries(group.connect).filter(([, at]) => at === level).map(([edge]) => edge.split("->")[0]))];
  if (!names.length) return null;
  return h("p", { class: "kept" }, h("span", { class: "quiet" }, "stays here: "), names.slice(0, 8).map((name) => h("span", { class: "chip mono", title: name }, short(name, 34))),
    names.length > 8 && h("span", { class: "quiet" }, ` and ${names.length - 8} more`));
}
