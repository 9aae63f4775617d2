/* Charts: a frame with logarithmic axes, and the places of values in it. */

const MARGIN = { left: 66, right: 16, top: 14, bottom: 44 };

/** Ticks of a logarithmic axis: powers of ten, or of two where values are bytes. */
function logTicks(lo, hi, binary, most) {
  const base = binary ? 2 : 10;
  const first = Math.ceil(Math.log(lo) / Math.log(base) - 1e-9);
  const last = Math.floor(Math.log(hi) / Math.log(base) + 1e-9);
  const steps = binary ? [1, 2, 4, 5, 10, 20] : [1, 2, 3, 6];
  const step = steps.find((each) => (last - first) / each <= most) ?? 30;
  const found = [];
  for (let power = first; power <= last; power += 1) if (power % step === 0) found.push(base ** power);
  return found.length ? found : [base ** first];
}

/** Bounds of a logarithmic axis around some values, with some room. */
function around(values, room = 1.5) {
  const positive = values.filter((value) => value > 0);
  if (!positive.length) return [1, 10];
  return [Math.min(...positive) / room, Math.max(...positive) * room];
}

/** A frame of `width` x `height` pixels; x and y are { lo, hi, label, text, binary }. */
function frame(width, height, x, y, label) {
  const inner = { width: width - MARGIN.left - MARGIN.right, height: height - MARGIN.top - MARGIN.bottom };
  const part = (axis, value) => (Math.log(value) - Math.log(axis.lo)) / (Math.log(axis.hi) - Math.log(axis.lo));
  const X = (value) => MARGIN.left + inner.width * part(x, Math.max(value, x.lo / 10));
  const Y = (value) => MARGIN.top + inner.height * (1 - part(y, Math.max(value, y.lo / 10)));
  const clip = `clip-${frame.count = (frame.count ?? 0) + 1}`;
  const axes = s("g", { class: "axes", "aria-hidden": "true" });
  for (const tick of logTicks(x.lo, x.hi, x.binary, width < 520 ? 4 : 8)) {
    axes.append(s("line", { class: "grid", x1: X(tick), x2: X(tick), y1: MARGIN.top, y2: MARGIN.top + inner.height }),
      s("text", { x: X(tick), y: height - 24, "text-anchor": "middle" }, x.text(tick)));
  }
  for (const tick of logTicks(y.lo, y.hi, y.binary, 6)) {
    axes.append(s("line", { class: "grid", x1: MARGIN.left, x2: MARGIN.left + inner.width, y1: Y(tick), y2: Y(tick) }),
      s("text", { x: MARGIN.left - 8, y: Y(tick) + 4, "text-anchor": "end" }, y.text(tick)));
  }
  axes.append(s("text", { class: "title", x: MARGIN.left + inner.width, y: height - 5, "text-anchor": "end" }, `${x.label} →`),
    s("rect", { class: "border", x: MARGIN.left, y: MARGIN.top, width: inner.width, height: inner.height }));
  const body = s("g", { "clip-path": `url(#${clip})` });
  const top = s("g", {});
  const svg = s("svg", { class: "chart", width, height, viewBox: `0 0 ${width} ${height}`, role: "group", "aria-label": label },
    s("defs", {}, s("clipPath", { id: clip }, s("rect", { x: MARGIN.left, y: MARGIN.top, width: inner.width, height: inner.height }))),
    axes, body, top);
  return { svg, body, top, X, Y, inner, right: MARGIN.left + inner.width, bottom: MARGIN.top + inner.height };
}

/** Path through points; with `steps`, a value lasts until the next point. */
function path(points, steps = false) {
  return points.map(([x, y], n) => (n === 0 ? `M${x.toFixed(1)} ${y.toFixed(1)}`
    : steps ? `H${x.toFixed(1)}V${y.toFixed(1)}` : `L${x.toFixed(1)} ${y.toFixed(1)}`)).join("");
}

/** Marks of a legend: [class, text]. */
function legend(...entries) {
  return h("ul", { class: "legend" }, entries.filter(Boolean).map(([kind, text]) =>
    h("li", {}, h("span", { class: `key ${kind}`, "aria-hidden": "true" }), text)));
}

/** A picture's caption above it; the chart is drawn again when its width changes. */
function figure(caption, draw, ...more) {
  const holder = h("div", { class: "holder" });
  const redraw = responsive(holder, (width) => fill(holder, draw(width)));
  return { element: h("figure", {}, caption && h("figcaption", {}, caption), holder, more), redraw };
}
