// The playground: asks the server for texts of a length, and shows where the limit is. Uses only this server's API.

const $ = (id) => document.getElementById(id);
const UNITS = {  // the slider of each unit: minimum, maximum, step, first value
  chars: [10, 800, 5, 200], words: [2, 150, 1, 40], tokens: [4, 250, 1, 60], graphemes: [10, 800, 5, 200],
  bytes: [10, 800, 5, 200], cells: [10, 800, 5, 200], "chars-nospace": [10, 700, 5, 170], tweet: [10, 560, 5, 280],
  "words-cjk": [2, 150, 1, 40],
  "× source": [0.2, 2, 0.05, 0.6],
};
const TASKS = {
  write: { label: "Prompt", go: "Write", text: "Why do leaves change colour in autumn?" },
  shorten: { label: "Text", go: "Shorten", text: "The operation could not be completed because the disk is full. Delete some files, or choose another folder, and try again." },
  translate: { label: "Text", go: "Translate", text: "The file {name} could not be saved because the disk is full." },
};
let task = "write";
const drafts = Object.fromEntries(Object.entries(TASKS).map(([name, one]) => [name, one.text]));
const history = [];
let running = null;

// ---- the server

async function call(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  if ($("key").value) headers.Authorization = `Bearer ${$("key").value}`;
  const reply = await fetch(path, { method: "POST", headers, body: JSON.stringify(body), signal });
  if (reply.status === 401) $("key-row").hidden = false;
  if (!reply.ok) throw new Error((await reply.json()).error.message);
  return reply;
}

async function* events(reply) {
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      if (!part.startsWith("data: ") || part === "data: [DONE]") continue;
      const found = JSON.parse(part.slice(6));
      if (found.error) throw new Error(found.error.message);
      yield found;
    }
  }
}

// ---- the length

const relative = () => $("unit").value === "× source";
const number = () => Number($("number").value);

function budget(times = 1) {
  const value = Math.max(relative() ? 0.05 : 1, number() * times);
  const shown = relative() ? `${Number(value.toFixed(2))}x` : `${Math.round(value)} ${$("unit").value}`;
  const mode = relative() && $("mode").value === "about" ? "" : `${$("mode").value} `;
  return `${mode}${shown}`;
}

function setUnit() {
  const [min, max, step, first] = UNITS[$("unit").value];
  Object.assign($("slider"), { min, max, step });
  Object.assign($("number"), { min: relative() ? 0.05 : 1, step: relative() ? 0.05 : 1 });
  $("number").value = $("slider").value = first;
  changed();
}

// ---- a text with its limit drawn in it

function draw(field, text, at) {
  const backdrop = field.querySelector(".backdrop");
  backdrop.replaceChildren();
  if (at === null || at === undefined) return;
  const points = Array.from(text);
  const limit = Object.assign(document.createElement("span"), { className: "limit" });
  const over = Object.assign(document.createElement("mark"), { textContent: points.slice(at).join("") });
  backdrop.append(points.slice(0, at).join(""), limit, over);
}

function grow(area) {  // for browsers without field-sizing
  area.style.height = "auto";
  area.style.height = `${area.scrollHeight}px`;
}

function later(wait, work) {
  let timer;
  return (...args) => { clearTimeout(timer); timer = setTimeout(() => work(...args).catch(() => {}), wait); };
}

const changed = later(120, async () => {
  const text = $("source").value, field = $("source").parentElement;
  drafts[task] = text;
  if (!text.trim() || task === "write" || relative()) {
    draw(field, text, null);
    $("source-count").textContent = "";
    if (!text.trim() || task === "write") return;
  }
  const asked = relative() ? {} : { length: budget() };
  const found = await (await call("/v1/measure", { text, ...asked })).json();
  if (text !== $("source").value) return;
  const unit = relative() ? "chars" : $("unit").value, now = found.lengths[unit];
  $("source-count").textContent = relative()
    ? `${now} chars × ${number()} = ${Math.floor(now * number())} chars`
    : `${now} of ${budget()}${found.limit_at === null ? "" : ` · ${now - number()} over, marked in the text`}`;
  if (!relative()) draw(field, text, found.limit_at);
});

// ---- results

class Card {
  constructor(length) {
    const node = $("card").content.cloneNode(true).firstElementChild;
    this.node = node;
    this.length = length;
    this.part = (name) => node.querySelector(name);
    this.area = this.part("textarea");
    this.part("h2").textContent = length;
    node.classList.add("busy");
    this.measure = later(150, () => this.show());
    this.area.addEventListener("input", () => { grow(this.area); this.edited = true; this.measure(); });
    this.part(".copy").addEventListener("click", () => navigator.clipboard?.writeText(this.area.value));
    $("results").append(node);
  }

  set text(value) { this.area.value = value; grow(this.area); }
  get text() { return this.area.value; }

  async show(complete, note) {
    if (complete !== undefined) this.complete = complete;
    const text = this.text, found = await (await call("/v1/measure", { text, length: this.budget ?? this.length })).json();
    if (text !== this.text) return;
    this.gauge(found, Number(/[\d.]+$/.exec(found.budget.replace(/ \S+$/, ""))[0]));
    draw(this.area.parentElement, text, found.limit_at);
    const verdict = this.part(".verdict");
    const left = this.target - found.length;
    const gap = found.limit_at !== null ? `${-left} over` : left > 0 ? `${left} left` : "";
    verdict.replaceChildren(`target ${found.budget} · actual ${found.length}${gap && ` (${gap})`} · `);
    const say = (kind, words) => verdict.append(Object.assign(document.createElement("b"), { className: kind, textContent: words }));
    say(found.fits ? "good" : "bad", found.fits ? "fits" : "does not fit");
    if (!this.edited && this.complete !== undefined) { verdict.append(" · "); say(this.complete ? "good" : "warn", this.complete ? "complete" : "not complete"); }
    if (note !== undefined) this.part(".note").textContent = note ?? "";
    return found;
  }

  gauge(found, limit) {
    const gauge = this.part(".gauge"), widest = Math.max(limit * 1.15, found.length);
    gauge.classList.toggle("over", found.limit_at !== null);
    gauge.classList.toggle("under", !found.fits && found.limit_at === null);
    gauge.querySelector(".fill").style.width = `${100 * found.length / widest}%`;
    gauge.querySelector(".tick").style.left = `${100 * limit / widest}%`;
    gauge.setAttribute("aria-valuenow", found.length);
    gauge.setAttribute("aria-valuemax", limit);
    this.target = limit;
  }

  async finish(complete, budget, note) {
    this.budget = budget;
    this.node.classList.remove("busy");
    const found = await this.show(complete, note);
    if (!found) return;
    history.push({ unit: found.unit, target: this.target, actual: found.length, fits: found.fits });
    chart(found.unit);
  }
}

async function write(card, signal) {
  const messages = [{ role: "user", content: $("source").value }];
  const reply = await call("/v1/chat/completions", { messages, length: card.length, stream: true }, signal);
  let end;
  for await (const found of events(reply)) {
    const choice = found.choices[0];
    if (choice?.delta?.content) { card.text += choice.delta.content; card.show(); }
    if (choice?.finish_reason) end = choice;
  }
  await card.finish(end.complete, end.length.budget);
}

async function shorten(card, signal) {
  const body = { text: $("source").value, length: card.length };
  await fill(card, await call("/v1/shorten", body, signal));
}

async function translate(card, signal) {
  const [from, to] = $("pair").value.split("-");
  await fill(card, await call("/v1/translate", { text: $("source").value, from, to, length: card.length }, signal));
}

async function fill(card, reply) {
  const [found] = (await reply.json()).data;
  card.text = found.text;
  await card.finish(found.complete, found.budget, found.note);
}

async function run() {
  if (running || !$("source").value.trim()) return;
  const stop = running = new AbortController();
  const lengths = $("three").checked ? [...new Set([0.5, 1, 2].map(budget))] : [budget()];
  $("results").replaceChildren();
  $("results").style.setProperty("--columns", lengths.length);
  const cards = lengths.map((length) => new Card(length)), work = { write, shorten, translate }[task];
  busy(true);
  const began = performance.now();
  try {
    await Promise.all(cards.map((card) => work(card, stop.signal)));
    say(`${((performance.now() - began) / 1000).toFixed(1)} s`);
  } catch (error) {
    stop.abort();
    say(error.name === "AbortError" ? "stopped" : error.message, error.name !== "AbortError");
    cards.forEach((card) => card.node.classList.remove("busy"));
  } finally {
    running = null;
    busy(false);
  }
}

function busy(now) {
  $("go").disabled = now;
  $("stop").hidden = !now;
  if (now) say("working …");
}

function say(text, error = false) {
  $("status").textContent = text;
  $("status").classList.toggle("error", error);
}

// ---- target against actual

function chart(unit) {
  const points = history.filter((one) => one.unit === unit), svg = $("chart");
  const most = 1.1 * Math.max(...points.flatMap((one) => [one.target, one.actual]));
  const x = (value) => 36 + 274 * value / most, y = (value) => 172 - 162 * value / most;
  const add = (name, fields, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(fields)) node.setAttribute(key, value);
    if (text !== undefined) node.textContent = text;
    svg.append(node);
    return node;
  };
  svg.replaceChildren();
  add("line", { x1: 36, y1: 172, x2: 310, y2: 172 });
  add("line", { x1: 36, y1: 10, x2: 36, y2: 172 });
  add("line", { x1: x(0), y1: y(0), x2: x(most), y2: y(most), class: "exact" });
  for (const part of [0.5, 1]) {
    const value = Math.round(part * most / 1.1);
    add("text", { x: x(value), y: 186, "text-anchor": "middle" }, value);
    add("text", { x: 32, y: y(value) + 4, "text-anchor": "end" }, value);
  }
  add("text", { x: 310, y: 198, "text-anchor": "end" }, "target");
  add("text", { x: 40, y: 14 }, "actual");
  for (const one of points) {
    const dot = add("circle", { cx: x(one.target), cy: y(one.actual), r: 4.5, class: one.fits ? "" : "bad" });
    dot.append(document.createElementNS("http://www.w3.org/2000/svg", "title"));
    dot.firstChild.textContent = `target ${one.target}, actual ${one.actual}`;
  }
  $("history-unit").textContent = `${points.length} text${points.length > 1 ? "s" : ""} in ${unit}; on the dashed line both are equal`;
  $("history").hidden = false;
}

// ---- tasks, keys, start

function choose(name) {
  task = name;
  for (const tab of $("tabs").children) {
    const own = tab.id === `tab-${name}`;
    tab.setAttribute("aria-selected", own);
    tab.tabIndex = own ? 0 : -1;
  }
  $("panel").setAttribute("aria-labelledby", `tab-${name}`);
  $("source-label").textContent = TASKS[name].label;
  $("go").textContent = TASKS[name].go;
  $("languages").hidden = name !== "translate";
  $("source").value = drafts[name];
  grow($("source"));
  const units = Object.keys(UNITS).filter((unit) => unit !== "× source" || name !== "write");
  const before = $("unit").value;
  $("unit").replaceChildren(...units.map((unit) => new Option(unit, unit)));
  $("unit").value = name === "translate" ? "× source" : units.includes(before) && before !== "× source" ? before : "chars";
  setUnit();
  if (name === "translate") $("number").value = $("slider").value = 1.1;
  if (name === "shorten" && $("unit").value === "chars") $("number").value = $("slider").value = 60;
}

$("tabs").addEventListener("click", (event) => event.target.id && choose(event.target.id.slice(4)));
$("tabs").addEventListener("keydown", (event) => {
  const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!step) return;
  const tabs = [...$("tabs").children].filter((tab) => !tab.hidden);
  const next = tabs[(tabs.indexOf(event.target) + step + tabs.length) % tabs.length];
  choose(next.id.slice(4));
  next.focus();
});
$("slider").addEventListener("input", () => { $("number").value = $("slider").value; changed(); });
$("number").addEventListener("input", () => { $("slider").value = $("number").value; changed(); });
$("unit").addEventListener("change", setUnit);
$("mode").addEventListener("change", changed);
$("source").addEventListener("input", () => { grow($("source")); changed(); });
$("ask").addEventListener("submit", (event) => { event.preventDefault(); run(); });
$("stop").addEventListener("click", () => running?.abort());
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); run(); }
  if (event.key === "Escape") running?.abort();
});

const health = await (await fetch("/health")).json();
$("server").textContent = `${health.model}${health.translates.length ? ` · ${health.translates.join(", ")}` : ""} · version ${health.version}`;
$("pair").replaceChildren(...health.translates.map((pair) => new Option(pair.replace("-", " → "), pair)));
$("tab-translate").hidden = !health.translates.length;
$("tab-shorten").hidden = !health.shortens;
choose("write");
