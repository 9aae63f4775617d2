/* How numbers read: bytes with binary units, times, operations, rates; exact beside rounded. */

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const separated = (value) => String(value).replace(/\B(?=(\d{3})+(?!\d))/g, ",");

function digits(value) {
  if (value >= 100 || value === 0) return value.toFixed(0);
  return value.toFixed(value >= 10 ? 1 : 2);
}

function bytes(value) {
  if (!isNumber(value)) return value === null || value === undefined ? "–" : String(value);
  const units = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10]];
  const unit = units.find(([, size]) => value >= size);
  return unit ? `${digits(value / unit[1])} ${unit[0]}` : `${Math.round(value)} B`;
}

function time(picoseconds) {
  if (!isNumber(picoseconds)) return "–";
  const units = [["s", 1e12], ["ms", 1e9], ["µs", 1e6], ["ns", 1e3]];
  const unit = units.find(([, size]) => picoseconds >= size);
  return unit ? `${digits(picoseconds / unit[1])} ${unit[0]}` : `${digits(picoseconds)} ps`;
}

function scaled(value, unit) {
  if (!isNumber(value)) return String(value ?? "–");
  const found = [["P", 1e15], ["T", 1e12], ["G", 1e9], ["M", 1e6], ["k", 1e3]].find(([, size]) => value >= size);
  return found ? `${digits(value / found[1])} ${found[0]}${unit}` : `${digits(value)} ${unit}`;
}

const operations = (value) => scaled(value, "op");
const rate = (value) => scaled(value, "op/s");
const bandwidth = (value) => scaled(value, "B/s");
const times = (value) => (isNumber(value) ? `${value >= 100 ? value.toFixed(0) : value.toFixed(2)}×` : "?");
const percent = (part) => (isNumber(part) ? `${part >= 0.0995 || part === 0 ? (100 * part).toFixed(0) : (100 * part).toFixed(1)} %` : "–");
const several = (count, word) => `${separated(count)} ${word}${count === 1 ? "" : "s"}`;

/** A rounded number that tells the exact one to who points at it. */
function rounded(text, value, unit) {
  return isNumber(value) ? h("span", { title: `${separated(value)} ${unit}` }, text(value)) : h("span", { class: "mono" }, String(value ?? "–"));
}

const roundBytes = (value) => rounded(bytes, value, "bytes");
const roundTime = (value) => rounded(time, value, "picoseconds");

/** `+5.2 %` of a change, "" where it cannot be told. */
function growth(before, after) {
  if (!isNumber(before) || !isNumber(after) || before === after || before === 0) return "";
  const part = (100 * (after - before)) / before;
  return `${part > 0 ? "+" : "−"}${Math.abs(part) >= 10 ? Math.abs(part).toFixed(0) : Math.abs(part).toFixed(1)} %`;
}

const ruler = document.createElement("canvas").getContext("2d");

/** The text as far as it fits into some pixels, at a size and weight of the page's font. */
function fitted(text, pixels, size = 13, weight = 600) {
  ruler.font = `${weight} ${size}px ${getComputedStyle(document.body).fontFamily}`;
  if (ruler.measureText(text).width <= pixels) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if (ruler.measureText(`${text.slice(0, middle)}…`).width <= pixels) low = middle;
    else high = middle - 1;
  }
  return low ? `${text.slice(0, low).replace(/[\s,·]+$/, "")}…` : "";
}

/** The text, its middle left out where it is longer than `most` characters. */
function short(text, most) {
  if (text.length <= most) return text;
  const head = Math.ceil((most - 1) * 0.6);
  return `${text.slice(0, head)}…${text.slice(text.length - (most - 1 - head))}`;
}
