/* The model as a graph of groups. Only rows in sight are in the document, so that thousands of groups stay quick. */

const ROW = 96;
const BOX = { width: 180, height: 56 };
const BEYOND = 8;

/** The graph of the plan that is shown, with its scale. */
function graph() {
  const holder = h("div", { class: "graph" });
  let view = null;
  const draw = () => { view = new GraphView(holder, current(), shown.plan); };
  const scale = h("div", { class: "tools" },
    h("button", { type: "button", onclick: () => view.zoom(1 / 1.25), "aria-label": "Smaller" }, "−"),
    h("button", { type: "button", onclick: () => view.fit() }, "Fit"),
    h("button", { type: "button", onclick: () => view.zoom(1.25), "aria-label": "Larger" }, "+"));
  listen((what) => (what === "plan" ? draw() : view?.choose()));
  responsive(holder, () => (view ? view.fit() : draw()));
  return h("div", { class: "graph-frame" }, holder,
    h("div", { class: "under-graph" }, h("p", { class: "hint" }, "Arrow keys go from group to group, Enter opens one."), scale));
}

class GraphView {
  constructor(holder, plan, side) {
    this.holder = holder;
    this.plan = plan;
    this.side = side;
    const { items, links, trunks } = plan.drawing;
    this.items = items.map(([kind, index, x, row], n) => ({ n, kind, index, x, row }));
    this.rows = [];
    for (const item of this.items) (this.rows[item.row] ??= []).push(item);
    this.order = [...this.rows.map((row) => (row ?? []).sort((a, b) => a.x - b.x))].flat();
    this.segments = segmentsOf(this.items, links, trunks);
    this.width = plan.drawing.width + 24;
    this.height = this.rows.length * ROW + 16;
    this.most = Math.max(1, ...plan.groups.map((group) => group.time));
    this.lines = s("g", { class: "lines", "aria-hidden": "true" });
    this.boxes = s("g", {});
    const arrow = (id, kind) => s("marker", { id, class: kind, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 8, markerHeight: 8, markerUnits: "userSpaceOnUse", orient: "auto" }, s("path", { d: "M0 0.5L8 4L0 7.5Z" }));
    this.svg = s("svg", { role: "group", "aria-label": `Groups of ${planName(side)}` },
      s("defs", {}, arrow("arrow", "arrow"), arrow("arrow-lit", "arrow lit")), this.lines, this.boxes);
    this.drawn = new Map();
    this.focus = this.order.find((item) => item.kind === "group") ?? this.order[0];
    fill(holder, this.svg);
    holder.onscroll = () => this.look();
    this.svg.addEventListener("keydown", (event) => this.move(event));
    this.fit();
    this.choose();
  }

  fit() {
    const wide = this.holder.clientWidth - 4;
    this.scale = Math.max(Math.min(1, wide / this.width), 0.62);
    this.sized();
    const middle = this.chosen ? this.chosen.x + 12 : this.width / 2;
    this.holder.scrollLeft = middle * this.scale - wide / 2;
  }

  zoom(factor) {
    const middle = (this.holder.scrollTop + this.holder.clientHeight / 2) / this.scale;
    this.scale = Math.max(0.25, Math.min(2, this.scale * factor));
    this.sized();
    this.holder.scrollTop = middle * this.scale - this.holder.clientHeight / 2;
  }

  sized() {
    const room = Math.max(0, (this.holder.clientWidth - 4) / this.scale - this.width);
    this.svg.setAttribute("viewBox", `${-12 - room / 2} 0 ${this.width + room} ${this.height}`);
    this.svg.setAttribute("width", (this.width + room) * this.scale);
    this.svg.setAttribute("height", this.height * this.scale);
    this.look();
  }

  /** Put rows in sight into the document, take the others out. */
  look() {
    const first = Math.max(0, Math.floor(this.holder.scrollTop / this.scale / ROW) - BEYOND);
    const last = Math.ceil((this.holder.scrollTop + this.holder.clientHeight) / this.scale / ROW) + BEYOND;
    for (const [row, made] of this.drawn) {
      if ((row < first || row > last) && !(row === this.focus?.row)) {
        made.forEach((element) => element.remove());
        this.drawn.delete(row);
      }
    }
    for (let row = first; row <= Math.min(last, this.rows.length - 1); row += 1) this.show(row);
    if (this.focus) this.show(this.focus.row);
  }

  show(row) {
    if (this.drawn.has(row)) return;
    const lines = (this.segments[row] ?? []).map((segment) => this.line(segment));
    const boxes = (this.rows[row] ?? []).map((item) => this.box(item));
    this.lines.append(...lines);
    this.boxes.append(...boxes);
    this.drawn.set(row, [...lines, ...boxes]);
  }

  line(segment) {
    const { x, to, row, through, end } = segment;
    const top = row * ROW + 8 + (through ? 0 : BOX.height);
    const bottom = (row + 1) * ROW + 8;
    const middle = (row * ROW + 8 + BOX.height + bottom) / 2;
    const start = row * ROW + 8 + BOX.height;
    const d = `M${x} ${top}V${start}C${x} ${middle} ${to} ${middle} ${to} ${bottom}`;
    const lit = this.lit(segment);
    return s("path", { d, class: lit ? "lit" : "", "marker-end": end ? `url(#arrow${lit ? "-lit" : ""})` : null });
  }

  /** Whether a line leads to or from the open group. */
  lit({ source, readers }) {
    const item = this.chosen;
    return item !== undefined && (source === item.n || readers.has(item.n));
  }

  get chosen() {
    return shown.plan === this.side ? this.items.find((item) => item.kind === "group" && item.index === shown.group) : undefined;
  }

  box(item) {
    const { plan } = this;
    const place = `translate(${item.x - BOX.width / 2} ${item.row * ROW + 8})`;
    if (item.kind !== "group") {
      const name = item.kind === "call" ? "onnxruntime" : plan.ports[`${item.kind}s`][item.index][0];
      const about = item.kind === "call" ? plan.ports.calls[item.index] : `${item.kind} ${plan.ports[`${item.kind}s`][item.index][1]}`;
      return s("g", { class: `port ${item.kind}`, transform: place, "data-n": item.n, role: "img", tabindex: this.focus === item ? "0" : "-1", "aria-label": `${name}: ${about}`, ...tipped(() => [name, about]) },
        s("rect", { x: 10, y: 10, width: BOX.width - 20, height: 36, rx: 18 }),
        s("text", { x: BOX.width / 2, y: 33, "text-anchor": "middle" }, short(name, 20)));
    }
    const group = plan.groups[item.index];
    const chosen = this.chosen === item;
    const part = group.time / this.most;
    const said = [group.time ? time(group.time) : null, isNumber(group.traffic) ? bytes(group.traffic) : null].filter(Boolean).join(" · ");
    return s("g", {
      class: `box ${group.kind}${chosen ? " chosen" : ""}`, transform: place, "data-n": item.n, role: "button", tabindex: this.focus === item ? "0" : "-1",
      "aria-pressed": String(chosen), "aria-label": `${item.index + 1}: ${group.operators}, ${KINDS[group.kind]}, ${said}`,
      ...pressed(() => { this.focus = item; open(item.index, this.side); }),
      ...tipped(() => [group.operators, group.name, `${several(group.nodes.length, "node")}, ${KINDS[group.kind]}`, said]),
    },
    s("rect", { class: "body", width: BOX.width, height: BOX.height, rx: 7 }),
    s("path", { class: "edge", d: `M7 0H5.5A5.5 5.5 0 0 0 0 7V${BOX.height - 7}A5.5 5.5 0 0 0 5.5 ${BOX.height}H7Z` }),
    s("text", { x: 16, y: 22 }, fitted(group.operators, BOX.width - 26, 13, 580)),
    s("text", { x: 16, y: 39, class: "small" }, said),
    s("rect", { class: "track", x: 16, y: 46, width: BOX.width - 28, height: 4, rx: 2 }),
    s("rect", { class: "part", x: 16, y: 46, width: Math.max((BOX.width - 28) * part, group.time ? 1.5 : 0), height: 4, rx: 2 }));
  }

  /** Draw again what is in sight, and bring the open group into it. */
  choose() {
    const item = this.chosen;
    const hadFocus = this.svg.contains(document.activeElement);
    if (item) this.focus = item;
    for (const made of this.drawn.values()) made.forEach((element) => element.remove());
    this.drawn.clear();
    if (item) this.reveal(item);
    this.look();
    if (hadFocus) this.element(this.focus)?.focus({ preventScroll: true });
  }

  reveal(item) {
    const { holder, scale } = this;
    const top = item.row * ROW * scale;
    if (top < holder.scrollTop + 40 || top > holder.scrollTop + holder.clientHeight - 110) holder.scrollTop = top - holder.clientHeight / 2;
    const middle = (item.x + 12) * scale;
    const half = (BOX.width / 2 + 8) * scale;
    if (middle - half < holder.scrollLeft || middle + half > holder.scrollLeft + holder.clientWidth) holder.scrollLeft = middle - holder.clientWidth / 2;
  }

  element(item) {
    return this.boxes.querySelector(`[data-n="${item.n}"]`);
  }

  /** Up and down go from row to row, left and right within one. */
  move(event) {
    const { row, x } = this.focus;
    const beside = this.rows[row];
    const near = (step) => {
      for (let at = row + step; at >= 0 && at < this.rows.length; at += step) {
        if (this.rows[at]?.length) return this.rows[at].reduce((a, b) => (Math.abs(a.x - x) <= Math.abs(b.x - x) ? a : b));
      }
      return null;
    };
    const keys = {
      ArrowDown: () => near(1), ArrowUp: () => near(-1),
      ArrowRight: () => beside[beside.indexOf(this.focus) + 1], ArrowLeft: () => beside[beside.indexOf(this.focus) - 1],
      Home: () => this.order[0], End: () => this.order.at(-1),
    };
    if (!(event.key in keys)) return;
    event.preventDefault();
    const to = keys[event.key]();
    if (!to) return;
    this.element(this.focus)?.setAttribute("tabindex", "-1");
    this.focus = to;
    this.reveal(to);
    this.look();
    const element = this.element(to);
    element.setAttribute("tabindex", "0");
    element.focus({ preventScroll: true });
  }
}

/** Lines from each row to the next: { source, row, x, to, readers }; `through` where a trunk passes the row. */
function segmentsOf(items, links, trunks) {
  const rows = [];
  const bySource = new Map();
  for (const [source, target] of links) (bySource.get(source) ?? bySource.set(source, []).get(source)).push(items[target]);
  for (const [source, readers] of bySource) {
    const from = items[source];
    const places = [from.x, ...(trunks[source] ?? [])];
    const put = (step, to, reached, end) => (rows[from.row + step] ??= []).push({
      source, row: from.row + step, x: places[step], to, through: step > 0, readers: new Set(reached.map((each) => each.n)), end,
    });
    for (let step = 0; step + 1 < places.length; step += 1) {
      put(step, places[step + 1], readers.filter((reader) => reader.row > from.row + step + 1), false);
    }
    for (const reader of readers) {
      const step = reader.row - from.row - 1;
      if (step >= 0 && step < places.length) put(step, reader.x, [reader], true);
    }
  }
  return rows;
}
