// The button that chooses between the system's theme, light and dark.
(() => {
  "use strict";
  const CHOICES = ["auto", "light", "dark"];
  const KEPT = "rlm-rag-theme";
  const button = document.getElementById("theme");

  function kept() {
    // A page that a browser opens from a file may have no storage.
    try {
      const found = localStorage.getItem(KEPT);
      return CHOICES.includes(found) ? found : "auto";
    } catch {
      return "auto";
    }
  }

  function choose(theme) {
    document.documentElement.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    button.title = "Light, dark, or as the system has it";
  }

  let theme = kept();
  choose(theme);
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = CHOICES[(CHOICES.indexOf(theme) + 1) % CHOICES.length];
    choose(theme);
    try {
      localStorage.setItem(KEPT, theme);
    } catch {
      // It is forgotten with the page, then.
    }
  });
})();
