// Gradio runs this once, with `element` (the conversation), `trigger` and `watch` in scope.
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const scroll = (target, block) => target.scrollIntoView({ block, behavior: calm.matches ? "auto" : "smooth" });

// A chip leads to its source, a source back to its sentence. The sources of an earlier answer are fetched first.
document.addEventListener("click", (event) => {
  const link = event.target.closest("[data-goto]");
  if (link) {
    const target = document.getElementById(link.dataset.goto);
    if (!target) {
      trigger("select", { turn: Number(link.dataset.turn), n: Number(link.dataset.n) });
      return;
    }
    document.querySelectorAll(".lit").forEach((lit) => lit.classList.remove("lit"));
    target.classList.add("lit");
    target.focus({ preventScroll: true });
    scroll(target, "nearest");
  }
  // These buttons go away when used; from the keyboard (detail 0), go on in the question box.
  if (event.detail === 0 && event.target.closest("#ask, #stop, #new, #examples")) {
    document.querySelector("#question textarea").focus();
  }
});

// A new question goes to the top, so that its answer grows below it; so does an answered one, unless it has been scrolled out of sight.
watch("value", () => {
  const asked = [...element.querySelectorAll(".question")].at(-1);
  if (!asked) return;
  const { top } = asked.getBoundingClientRect();
  if (asked.matches(":last-child") || (top >= 0 && top < innerHeight)) scroll(asked, "start");
});
