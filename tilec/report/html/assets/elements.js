"use strict";
/* Elements made from data: text stays text, whatever it holds. */

/** An HTML element; `props` are attributes, `on...` listeners, `text`, `class`; children are elements or text. */
function h(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children);
}

/** The same for SVG. */
function s(tag, props = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), props, children);
}

function filled(element, props, children) {
  for (const [key, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key === "text") element.textContent = value;
    else if (key === "vars") for (const [name, size] of Object.entries(value)) element.style.setProperty(name, size);
    else element.setAttribute(key, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Replace what an element holds. */
function fill(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter(Boolean));
  return element;
}

const waiting = [];

/** Draw at once what has just come into the document and waits for its width. */
function settle() {
  waiting.splice(0).forEach((look) => look());
}

/** Call `draw(width)` when the element is in the document and whenever it becomes wider or narrower. */
function responsive(element, draw) {
  let width = 0;
  const look = () => {
    if (!element.isConnected && !width) waiting.push(look);
    const now = Math.floor(element.clientWidth);
    if (now > 0 && now !== width) draw((width = now));
  };
  new ResizeObserver(() => requestAnimationFrame(look)).observe(element);
  waiting.push(look);
  return () => width && draw(width);
}

/** A section of the page with its heading and a line that says what it shows. */
function section(id, title, lede, ...children) {
  return h("section", { id, "aria-labelledby": `${id}-title` },
    h("h2", { id: `${id}-title` }, title), lede && h("p", { class: "lede" }, lede), children);
}

/** A box that scrolls sideways where the screen is narrow, and is reached by keyboard. */
function scrolling(label, ...children) {
  return h("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label }, children);
}

/** A table of rows of cells; `heads` are [text, class]; the first cell of a row is its head. */
function table(label, heads, rows, props = {}) {
  const cell = (value, n) => {
    const kind = heads[n]?.[1] ?? "";
    return n ? h("td", { class: kind }, value) : h("th", { scope: "row", class: kind }, value);
  };
  return scrolling(label, h("table", props,
    h("thead", {}, h("tr", {}, heads.map(([text, kind]) => h("th", { scope: "col", class: kind ?? "" }, text)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map(cell))))));
}

/** Only one of `items` is reached with Tab, the others with arrow keys; `columns` is how far up and down go. */
function roving(element, items, { next = null } = {}) {
  element.addEventListener("keydown", (event) => {
    const list = items();
    const at = list.indexOf(document.activeElement);
    if (at < 0) return;
    const last = list.length - 1;
    const steps = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: last };
    if (!(event.key in steps)) return;
    event.preventDefault();
    const to = list[Math.max(0, Math.min(last, steps[event.key]))];
    list[at].setAttribute("tabindex", "-1");
    to.setAttribute("tabindex", "0");
    to.focus();
    if (next) next(to);
  });
}

/** What makes an element that is no button behave like one. */
function pressed(action) {
  return {
    onclick: action,
    onkeydown: (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      action(event);
    },
  };
}

const tip = h("div", { class: "tip", role: "status", hidden: true });

/** Show lines about an element while the pointer is on it or it has the focus. */
function tipped(lines) {
  const show = (event) => {
    const [head, ...rest] = lines();
    fill(tip, h("strong", {}, head), rest.map((line) => h("span", {}, line)));
    tip.hidden = false;
    const box = event.currentTarget.getBoundingClientRect();
    const x = event.clientX || box.left + box.width / 2;
    const y = (event.clientY || box.top) - 12;
    const left = Math.max(8, Math.min(x - tip.offsetWidth / 2, innerWidth - tip.offsetWidth - 8));
    const top = y - tip.offsetHeight > 8 ? y - tip.offsetHeight : y + 32;
    tip.style.left = `${left}px`;
    tip.style.top = `${top}px`;
  };
  const hide = () => { tip.hidden = true; };
  return { onpointerenter: show, onpointermove: show, onpointerleave: hide, onfocus: show, onblur: hide };
}
