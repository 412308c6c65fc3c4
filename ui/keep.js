// Gradio runs this once, with `element` (the list of conversations), `props`, `trigger` and `watch` in scope.
// Each conversation is one entry of localStorage, so that two tabs do not overwrite each other's. Its text is only ever set as text.
const PREFIX = "ask-abstracts:1:";
const OPEN = "ask-abstracts:open";
const TYPED = "ask-abstracts:typed";
const MOST = 50;             // conversations; a list longer than this is not read
const MOST_ANSWERS = 200;    // of one that is opened again, the newest
const MOST_CHARS = 2000000;  // of all together; browsers hold five million
let open = null;             // this tab's: { id, changed, answers, votes }

// A browser may refuse storage altogether; then nothing is kept, and the page works as before.
const storage = (use) => { try { return use(localStorage, sessionStorage); } catch { return null; } };

function conversations() {
  const found = storage((local) => Object.keys(local).filter((key) => key.startsWith(PREFIX)).map((key) => {
    try {
      const kept = JSON.parse(local.getItem(key));
      if (Array.isArray(kept.answers) && kept.answers.length && key === PREFIX + kept.id && Number.isFinite(kept.changed)) return kept;
    } catch { /* not ours, or cut short: it goes below */ }
    local.removeItem(key);
    return null;
  }));
  return (found || []).filter(Boolean).sort((a, b) => b.changed - a.changed || (a.id < b.id ? 1 : -1));
}

function save(kept) {
  kept.changed = Date.now();
  const text = JSON.stringify(kept);
  const others = conversations().filter((one) => one.id !== kept.id);
  const before = others.length;
  let size = text.length + others.reduce((sum, one) => sum + JSON.stringify(one).length, 0);
  const drop = () => {
    const oldest = others.pop();
    size -= JSON.stringify(oldest).length;
    localStorage.removeItem(PREFIX + oldest.id);
  };
  storage((local, session) => {
    while (others.length && (others.length >= MOST || size > MOST_CHARS)) drop();
    for (;;) {
      try { local.setItem(PREFIX + kept.id, text); break; } catch (full) { if (!others.length) throw full; drop(); }
    }
    if (open) session.setItem(OPEN, open.id);
  });
  const gone = before - others.length;
  if (gone) say(`There is room for no more: the oldest ${gone === 1 ? "conversation" : `${gone} conversations`} of this browser went.`);
}

function forget(id) {
  storage((local) => local.removeItem(PREFIX + id));
  if (open?.id === id) leave();
}

function leave() {
  open = null;
  storage((_, session) => session.removeItem(OPEN));
}

function button(words, name, values) {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = words;
  if (name) made.setAttribute("aria-label", name);
  Object.assign(made.dataset, values);
  return made;
}

function show() {
  const items = conversations().map((kept) => {
    const item = document.createElement("li");
    const title = String(kept.answers[0]?.question || "Untitled").slice(0, 200);
    const leads = button(title, "", { open: kept.id });
    if (kept.id === open?.id) leads.setAttribute("aria-current", "true");
    const when = Object.assign(document.createElement("span"), { className: "aside", textContent: new Date(kept.changed).toLocaleDateString() });
    item.append(leads, when, button("Delete", `Delete the conversation “${title}”`, { forget: kept.id, title }));
    return item;
  });
  element.querySelector(".past-list")?.replaceChildren(...items);
  element.querySelector(".take")?.toggleAttribute("hidden", !open);
}

// After the log was drawn anew, the thumbs are pressed again.
function press() {
  document.querySelectorAll("[data-vote]").forEach((thumb) => {
    thumb.setAttribute("aria-pressed", String(open?.votes[thumb.dataset.turn] === thumb.dataset.vote));
  });
}

// An answer says which conversation it belongs to: another may have been opened while it was on its way.
function keep(id, turn, answer) {
  const known = open?.id === id ? open : conversations().find((one) => one.id === id);
  const kept = known || { id, answers: [], votes: {} };
  if (!open || (!known && turn === 0)) open = kept;
  if (turn > kept.answers.length || JSON.stringify(kept.answers[turn]) === JSON.stringify(answer)) return;
  kept.answers.splice(turn, Infinity, answer);
  kept.votes = Object(kept.votes);
  delete kept.votes[turn];
  save(kept);
}

function reopen(id) {
  const kept = conversations().find((one) => one.id === id);
  if (!kept) return;
  const whole = kept.answers.length <= MOST_ANSWERS;
  open = { id, changed: kept.changed, answers: kept.answers.slice(-MOST_ANSWERS), votes: whole ? Object(kept.votes) : {} };
  storage((_, session) => session.setItem(OPEN, id));
  trigger("select", { id, answers: open.answers });
  show();
}

// A word for everybody, which those who do not see the page hear too.
function say(words) {
  const told = document.querySelector("#said") || document.querySelector("#foot").appendChild(Object.assign(document.createElement("p"), { id: "said" }));
  told.setAttribute("role", "status");
  told.textContent = words;
  clearTimeout(say.timer);
  say.timer = setTimeout(() => told.replaceChildren(), 8000);
}

function download({ save, name, type }) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([save], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

function vote(thumb, word) {
  const { turn, vote } = thumb.dataset;
  if (!open) return;
  open.votes[turn] = vote;
  save(open);
  press();
  trigger("like", { turn: Number(turn), verdict: vote, word, conversation: open.id });
}

function askForAWord(thumb) {
  const bar = thumb.parentElement;
  bar.querySelector("input")?.remove();
  const word = document.createElement("input");
  word.maxLength = 500;
  word.placeholder = "Why? (optional)";
  word.setAttribute("aria-label", "Why? Optional; Enter sends it");
  word.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();  // else it would press the thumb that has the focus next
    vote(thumb, word.value);
    word.remove();
    thumb.focus();
  });
  bar.querySelector("[data-vote=down]").after(word);
  word.focus();
}

function unfold(wide) {
  element.querySelector(".past-toggle").setAttribute("aria-expanded", String(wide));
}

document.addEventListener("keydown", (event) => {
  if (event.key !== "Escape" || !element.querySelector(".past-toggle[aria-expanded=true]")) return;
  unfold(false);
  element.querySelector(".past-toggle").focus();
});

document.addEventListener("click", (event) => {
  if (!event.target.closest(".past")) unfold(false);
  const pressed = event.target.closest("button");
  if (!pressed) return;
  const { take, turn, vote: thumb, open: id, forget: gone, title } = pressed.dataset;
  if (pressed.matches(".past-toggle")) {
    show();
    unfold(pressed.getAttribute("aria-expanded") !== "true");
  }
  if (take) trigger("download", { form: take, turn: turn === undefined ? null : Number(turn) });
  if (thumb) { vote(pressed, ""); askForAWord(pressed); }
  if (id) { reopen(id); unfold(false); }
  if (gone && title) { // the first press asks
    delete pressed.dataset.title;
    pressed.textContent = "Really delete?";
    pressed.setAttribute("aria-label", `Really delete the conversation “${title}”?`);
  } else if (gone) {
    if (open?.id === gone) document.querySelector("#new").click();
    forget(gone);
    show();
    element.querySelector(".past-toggle").focus();
  }
  if (pressed.closest("#new")) { leave(); show(); }
});

watch("value", () => {
  const told = props.value ? JSON.parse(props.value) : {};
  if (told.answer) keep(told.conversation, told.turn, told.answer);
  if (told.save) download(told);
  if (told.forget) forget(told.forget);
  if (told.told) say(told.told);
  show();
  press();
});

// What this tab showed before it was loaded again comes back, and what was typed and not asked, once the page is there to show it.
const typing = () => document.querySelector("#question textarea");
addEventListener("pagehide", () => storage((_, session) => session.setItem(TYPED, typing()?.value ?? "")));
(function begin() {
  const log = document.querySelector("#log");
  if (!log || !typing()) { requestAnimationFrame(begin); return; }
  typing().value = storage((_, session) => session.getItem(TYPED)) ?? "";
  typing().dispatchEvent(new Event("input", { bubbles: true }));
  new MutationObserver(press).observe(log, { childList: true, subtree: true });
  const before = storage((_, session) => session.getItem(OPEN));
  if (before) reopen(before);
})();
