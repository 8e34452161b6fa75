// Runs before the first paint: resolves "auto" to the system's choice, so that no page flashes.
(() => {
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = () => {
    const choice = root.dataset.mTheme;
    const dark = choice === "dark" || (choice !== "light" && system.matches);
    root.dataset.bsTheme = dark ? "dark" : "light";
    root.dispatchEvent(new CustomEvent("muster:theme"));
  };
  system.addEventListener("change", apply);
  root.addEventListener("muster:theme-choice", apply);
  apply();
})();
