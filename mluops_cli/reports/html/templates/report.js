"use strict";
(() => {
  const [CASE, OP, SUITE, STATUS, REASON, WORST, MARGIN, LATENCY, SECONDS, SECTION, DOUBTS] = Array(11).keys();
  const PAGE = 50;
  const data = JSON.parse(document.getElementById("data").textContent);
  const rows = data.rows;
  const by = (id) => document.getElementById(id);
  // What is searched, lower case, made once: a search of 20,000 cases is then a scan of some milliseconds.
  const haystack = rows.map((r) => `${r[CASE]} ${data.status[r[STATUS]]} ${r[REASON]} ${r[WORST]}`.toLowerCase());
  const chosen = { words: [], statuses: new Set(), op: "", suite: "", sort: STATUS, down: false, page: 0 };
  let found = [];

  // The status, and the doubts beside it.
  function marksOf(row) {
    return [data.status[row[STATUS]], ...row[DOUBTS].map((at) => data.doubt[at])];
  }

  function matches(index) {
    const row = rows[index];
    if (chosen.statuses.size && !marksOf(row).some((word) => chosen.statuses.has(word))) return false;
    if (chosen.op && data.op[row[OP]] !== chosen.op) return false;
    if (chosen.suite && data.suite[row[SUITE]] !== chosen.suite) return false;
    return chosen.words.every((word) => haystack[index].includes(word));
  }

  function compare(a, b) {
    const x = rows[a][chosen.sort], y = rows[b][chosen.sort];
    if (x === y) return a - b;
    if (x === null) return 1;  // what has no figure comes last, whichever way
    if (y === null) return -1;
    return (x < y ? -1 : 1) * (chosen.down ? -1 : 1);
  }

  // The filters stand in the address, so that it can be sent. Some browsers refuse that for a page from a file.
  function remember() {
    const words = new URLSearchParams();
    if (chosen.words.length) words.set("q", chosen.words.join(" "));
    if (chosen.statuses.size) words.set("status", [...chosen.statuses].join(","));
    for (const name of ["op", "suite"]) if (chosen[name]) words.set(name, chosen[name]);
    const query = words.toString();
    try {
      history.replaceState(null, "", `${location.pathname}${query && `?${query}`}${location.hash}`);
    } catch { /* the filters work all the same */ }
  }

  function recall() {
    const words = new URLSearchParams(location.search);
    by("search").value = words.get("q") ?? "";
    chosen.words = by("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const marks = (words.get("status") ?? "").split(",");
    for (const chip of chips) press(chip, marks.includes(chip.dataset.status ?? chip.dataset.doubt));
    for (const name of ["op", "suite"]) {
      const word = words.get(name) ?? "";
      if (data[name].includes(word)) by(name).value = chosen[name] = word;
    }
  }

  function update() {
    remember();
    found = [];
    for (let i = 0; i < rows.length; i++) if (matches(i)) found.push(i);
    found.sort(compare);
    chosen.page = 0;
    show();
  }

  function cell(line, text) {
    const td = document.createElement("td");
    td.textContent = text;
    line.append(td);
    return td;
  }

  function time(us) {
    const [scale, unit] = us >= 1e6 ? [1e6, "s"] : us >= 1e3 ? [1e3, "ms"] : [1, "µs"];
    return `${Number((us / scale).toPrecision(3))} ${unit}`;
  }

  function show() {
    const first = chosen.page * PAGE;
    const lines = found.slice(first, first + PAGE).map((index) => {
      const row = rows[index], line = document.createElement("tr");
      const marks = marksOf(row).map((word) => {
        const mark = document.createElement("span");
        mark.className = `status ${word}`;
        mark.textContent = word;
        return mark;
      });
      cell(line, "").append(...marks.flatMap((mark) => [mark, " "]));
      if (row[SECTION]) {
        const link = document.createElement("a");
        link.href = `#${encodeURIComponent(row[SECTION])}`;
        link.textContent = row[CASE];
        cell(line, "").append(link);
      } else cell(line, row[CASE]);
      cell(line, row[WORST]);
      cell(line, row[LATENCY] === null ? "" : time(row[LATENCY]));
      cell(line, row[SECONDS] === null ? "" : `${row[SECONDS].toFixed(2)} s`);
      cell(line, row[REASON]);
      return line;
    });
    by("rows").replaceChildren(...lines);
    const pages = Math.max(1, Math.ceil(found.length / PAGE));
    by("shown").textContent = `${found.length} of ${rows.length} cases`;
    by("page").textContent = `${chosen.page + 1} of ${pages}`;
    by("previous").disabled = chosen.page === 0;
    by("next").disabled = chosen.page + 1 >= pages;
  }

  function turn(by_) {
    chosen.page += by_;
    show();
    by("cases").scrollIntoView();
  }

  function fill(select, words) {
    for (const word of [...words].sort()) select.append(new Option(word, word));
  }

  function press(chip, on) {
    chip.setAttribute("aria-pressed", String(on));
    const word = chip.dataset.status ?? chip.dataset.doubt;
    if (on) chosen.statuses.add(word);
    else chosen.statuses.delete(word);
  }

  const chips = [...document.querySelectorAll(".chip")];
  for (const chip of chips) {
    chip.addEventListener("click", () => {
      press(chip, chip.getAttribute("aria-pressed") !== "true");
      update();
    });
  }

  by("search").addEventListener("input", (event) => {
    chosen.words = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
    update();
  });
  for (const name of ["op", "suite"]) {
    fill(by(name), data[name]);
    by(name).addEventListener("change", (event) => {
      chosen[name] = event.target.value;
      update();
    });
  }

  function choose(op, suite) {
    by("op").value = chosen.op = op;
    by("suite").value = chosen.suite = suite;
    update();
  }

  for (const button of document.querySelectorAll(".cell")) {
    button.addEventListener("click", () => {
      choose(button.dataset.op, button.dataset.suite);
      by("cases").scrollIntoView();
      by("cases").focus({ preventScroll: true });
    });
  }

  function reset() {
    by("search").value = "";
    chosen.words = [];
    for (const chip of chips) press(chip, false);
    choose("", "");
  }
  by("reset").addEventListener("click", reset);
  by("previous").addEventListener("click", () => turn(-1));
  by("next").addEventListener("click", () => turn(1));

  const heads = [...document.querySelectorAll("[data-sort]")];
  for (const head of heads) {
    head.addEventListener("click", () => {
      const column = Number(head.dataset.sort);
      // Figures start with the largest: the slowest, the nearest to its threshold.
      chosen.down = column === chosen.sort ? !chosen.down : column >= MARGIN;
      chosen.sort = column;
      mark();
      update();
    });
  }
  function mark() {
    for (const head of heads) {
      const mine = Number(head.dataset.sort) === chosen.sort;
      head.parentElement.setAttribute("aria-sort", mine ? (chosen.down ? "descending" : "ascending") : "none");
    }
  }

  async function copy(text) {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      const area = document.createElement("textarea");
      area.value = text;
      document.body.append(area);
      area.select();
      const done = document.execCommand("copy");
      area.remove();
      return done;
    }
  }
  for (const button of document.querySelectorAll(".copy")) {
    button.addEventListener("click", async () => {
      button.textContent = (await copy(by(button.dataset.from).textContent)) ? "Copied" : "Not copied";
      button.focus();
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }

  const sections = [...document.querySelectorAll("article.failure")];
  function step(by_) {
    if (!sections.length) return;
    const at = sections.indexOf(document.activeElement.closest?.("article.failure"));
    const next = sections[at < 0 ? (by_ > 0 ? 0 : sections.length - 1) : (at + by_ + sections.length) % sections.length];
    next.focus();
    next.scrollIntoView();
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.matches?.("input, select, textarea");
    if (event.key === "Escape" && event.target === by("search")) reset();
    if (typing) return;
    if (event.key === "/") {
      event.preventDefault();
      by("search").focus();
    } else if (event.key === "n") step(1);
    else if (event.key === "p") step(-1);
  });

  by("theme").addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((each) => { each.open = true; }));

  recall();
  mark();
  update();
})();
