// Gradio runs this once, with `element` (the conversation), `trigger` and `watch` in scope.
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const scroll = (target, block) => target.scrollIntoView({ block, behavior: calm.matches ? "auto" : "smooth" });
const box = () => document.querySelector("#question textarea");

// A phone would open its keyboard.
(function begin() {
  if (!box()) requestAnimationFrame(begin);
  else if (matchMedia("(pointer: fine)").matches) box().focus({ preventScroll: true });
})();

// Browsers give pages from another machine no clipboard without https.
async function copy(words) {
  if (navigator.clipboard) return navigator.clipboard.writeText(words);
  const held = Object.assign(document.createElement("textarea"), { value: words });
  document.body.append(held);
  held.select();
  document.execCommand("copy");
  held.remove();
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest("button");
  if (!button) return;
  const { does, goto, copy: words, ...wanted } = button.dataset;
  const target = goto && document.getElementById(goto);
  if (target) {
    // A chip leads to the words behind its sentence, their source back to that sentence.
    document.querySelectorAll(".lit").forEach((lit) => lit.classList.remove("lit"));
    const words = target.querySelectorAll(`[data-behind~="${wanted.sentence}"]`);
    for (const lit of [target, ...words]) lit.classList.add("lit");
    const back = target.querySelector(".back");
    if (back && wanted.sentence) back.dataset.goto = `answer-${wanted.turn}-${wanted.sentence}`;
    target.focus({ preventScroll: true });
    scroll(target.offsetHeight < innerHeight / 2 ? target : words[0] ?? target, "nearest");
  } else if (goto) {
    trigger("select", wanted); // the sources of an earlier answer are fetched first
  } else if (does) {
    trigger(does, wanted);
    if (does === "select" || event.detail === 0) box().focus();
  } else if (words !== undefined) {
    await copy(words);
    const label = button.textContent;
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = label), 1500);
    if (event.detail === 0) button.focus();
  } else if (event.detail === 0 && button.closest("#ask, #stop, #new")) {
    box().focus(); // these go away when used; from the keyboard (detail 0), go on in the question box
  }
});

// Gradio opens a list a moment after any key, when this one has already left it.
document.addEventListener("keydown", (event) => {
  if (["Tab", "Shift"].includes(event.key) && event.target.closest("#options")) event.stopPropagation();
}, true);

// A new question goes to the top, so that its answer grows below it; so does an answered one, unless it has been scrolled out of sight.
watch("value", () => {
  const asked = [...element.querySelectorAll(".question")].at(-1);
  if (!asked) return;
  const { top } = asked.getBoundingClientRect();
  if (asked.matches(":last-child") || (top >= 0 && top < innerHeight)) scroll(asked, "start");
});
