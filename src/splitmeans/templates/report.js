"use strict";
(() => {
  const root = document.documentElement;
  const slider = document.getElementById("k-slider");
  const shown = document.getElementById("k-shown");
  const said = document.getElementById("said");
  const theme = document.getElementById("theme");
  const ks = slider.dataset.ks.split(",");

  function show(k) {
    for (const part of document.querySelectorAll("[data-k]")) {
      part.toggleAttribute("hidden", part.dataset.k !== k);
    }
    const published = k === slider.dataset.published ? ", as published" : "";
    shown.textContent = k;
    slider.setAttribute("aria-valuetext", `${k} segments${published}`);
  }

  slider.addEventListener("input", () => show(ks[Number(slider.value)]));
  // Said once the slider rests, not at every step.
  slider.addEventListener("change", () => {
    said.textContent = `The report shows ${ks[Number(slider.value)]} segments.`;
  });
  document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());

  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches);
  const nameTheme = () => {
    theme.textContent = isDark() ? "Light" : "Dark";
    theme.setAttribute("aria-label", isDark() ? "Show in light colours" : "Show in dark colours");
  };
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    nameTheme();
  });
  dark.addEventListener("change", nameTheme);

  // On paper there is nothing to click.
  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((part) => { part.open = true; });
  });
  window.addEventListener("afterprint", () => closed.forEach((part) => { part.open = false; }));

  // A reloaded page may remember where the slider was.
  show(ks[Number(slider.value)]);
  nameTheme();
  root.classList.add("script");
})();
